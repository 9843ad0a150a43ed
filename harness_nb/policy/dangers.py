"""What there is against a call of any tool: the shell's, Python's and the files' rules under one name. Pure.

``report_of`` is asked by the rule ``judge_by`` and by ``kinds``.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable

from pathspec import GitIgnoreSpec

from harness_nb.policy import code, paths, shell
from harness_nb.policy.findings import Finding, Ground, Report
from harness_nb.types import ToolCall

_READERS = ("read_file", "view_image", "search_files")
_RULES_OF_PROJECT = re.compile(r"harness[-_]nb")
_BUILD = re.compile(
    r"\[build-system\]|build-backend|backend-path|\[tool\.(hatch\.build\.hooks|setuptools\.cmdclass|pdm\.build)"
)
_PACKAGE_HOOKS = re.compile(r"\"(pre|post)?(install|prepare|publish|pack)\"\s*:")


def ground_for(workspace: str = "", read_only: Iterable[str] = ()) -> Ground:
    """What the rules know of a session: its workspace as an absolute path, and the patterns that nobody may write."""
    return Ground(shell.examine, code.examine, workspace, GitIgnoreSpec.from_lines(read_only))


def report_of(call: ToolCall, ground: Ground) -> Report:
    """What there is against a call, before any rule of the user."""
    if call.name == "bash":
        return shell.examine(str(call.arguments.get("command", "")), ground)
    if call.name == "python":
        return code.examine(str(call.arguments.get("code", "")), ground)
    path = call.arguments.get("path")
    if not isinstance(path, str):
        return Report()
    report = Report((), (), (path,))
    if call.name in _READERS and paths.is_credentials(path):
        finding = paths.reading(path, path, ground)
        return report + Report((finding,) if finding else ())
    if call.name in ("write_file", "search_replace"):
        return report + _written(call, path, ground)
    return report


def _written(call: ToolCall, path: str, ground: Ground) -> Report:
    """A file tool that writes: files that run later, and the parts of files that do."""
    texts = [str(call.arguments.get(name, "")) for name in ("content", "search", "replace")]
    name = posixpath.basename(path)
    if name == "pyproject.toml":
        for pattern, why in (
            (_RULES_OF_PROJECT, "writes pyproject.toml where the rules and settings of this session stand"),
            (_BUILD, "writes pyproject.toml where it says what runs when the project is built"),
        ):
            if any(pattern.search(text) for text in texts):
                return Report((Finding("ask", f"write {path}", why, path, path=path),))
        return Report()
    if name == "package.json" and any(_PACKAGE_HOOKS.search(text) for text in texts):
        why = "writes package.json where it says what runs when the package is installed"
        return Report((Finding("ask", f"write {path}", why, path, path=path),))
    finding = paths.writing(path, path, ground)
    return Report((finding,) if finding else ())
