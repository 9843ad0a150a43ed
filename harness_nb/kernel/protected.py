"""What of a workspace tool code may read and not write: the record, read-only files, what others' programs act on.

``safeguards`` asks when it makes the confinement of a session. Git runs hooks and what its configuration names with the
person's own rights, outside of any sandbox; the harness reads its settings from pyproject.toml; its own Python may live
in the workspace too.
"""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from pathspec import GitIgnoreSpec

from harness_nb.kernel.places import TOOLS
from harness_nb.store import FOLDER

MOST = 300
"""So many files are protected one by one. Beyond, they are only put back after each call, as everywhere."""

NOT_ENTERED = frozenset({FOLDER, "__pycache__", ".git", ".venv", "node_modules", ".pytest_cache"})


def protected_paths(workspace: Path, patterns: Sequence[str]) -> tuple[Path, ...]:
    """Existing paths below ``workspace`` that are to be read-only. ``patterns`` are gitignore patterns."""
    found = {workspace / FOLDER, *_of_git(workspace), *_settings_file(workspace), *_own_python(workspace)}
    folders = [folder for pattern in patterns if (folder := _whole_folder(workspace, pattern))]
    files = [path for path in _matching(workspace, patterns) if not any(path.is_relative_to(one) for one in folders)]
    return tuple(sorted({*found, *folders, *(files if len(files) <= MOST else [])}))


def git_folders(workspace: Path) -> tuple[Path, ...]:
    """Where the repository is kept if not in the workspace (a worktree, a submodule): to be read."""
    link = workspace / ".git"
    with suppress(OSError, UnicodeDecodeError):
        if link.is_file() and (text := link.read_text()).startswith("gitdir:"):
            folder = (workspace / text.removeprefix("gitdir:").strip()).resolve()
            common = folder / "commondir"
            shared = (folder / common.read_text().strip()).resolve() if common.is_file() else folder
            return tuple(path for path in (folder, shared) if (path / "HEAD").is_file())
    return ()


def _of_git(workspace: Path) -> Iterator[Path]:
    repository = workspace / ".git"
    if repository.is_file():
        yield repository
    elif repository.is_dir():
        hooks = repository / "hooks"
        with suppress(OSError):
            hooks.mkdir(exist_ok=True)  # what is not there cannot be protected
        yield from (path for path in (hooks, repository / "config", repository / "config.worktree") if path.exists())


def _settings_file(workspace: Path) -> Iterator[Path]:
    path = workspace / "pyproject.toml"
    with suppress(OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        if "harness-nb" in tomllib.loads(path.read_text("utf-8")).get("tool", {}):
            yield path


def _own_python(workspace: Path) -> Iterator[Path]:
    """The Python that runs the harness, and the harness, where they are in the workspace."""
    for path in {Path(sys.prefix), Path(sys.base_prefix), Path(sys.exec_prefix), TOOLS.parent}:
        if path.is_relative_to(workspace) and path != workspace and path.exists():
            yield path


def _whole_folder(workspace: Path, pattern: str) -> Path | None:
    """The folder that a pattern such as ``tests/**`` or ``/tests/`` is all about, if it is there."""
    name = pattern.removesuffix("**").rstrip("/").lstrip("/")
    if not name or not pattern.endswith(("/**", "/")) or any(sign in name for sign in "*?[!\\#"):
        return None
    folder = workspace / name
    return folder if folder.is_dir() and not folder.is_symlink() and ".." not in Path(name).parts else None


def _matching(workspace: Path, patterns: Sequence[str]) -> Iterator[Path]:
    if not patterns:
        return
    spec = GitIgnoreSpec.from_lines(patterns)
    for folder, folders, files in os.walk(workspace):
        folders[:] = [name for name in folders if name not in NOT_ENTERED]
        for name in files:
            path = Path(folder, name)
            if spec.match_file(path.relative_to(workspace).as_posix()) and not path.is_symlink():
                yield path
