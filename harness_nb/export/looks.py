"""What kind of cell a step is for the reader: a look, a test run, one that shows a picture. Pure; ``choice`` asks."""

from __future__ import annotations

import ast
import re
from collections import Counter

from harness_nb.export import purity
from harness_nb.export.mentions import first_words
from harness_nb.export.story import Step

_RICH = ("image/", "text/html", "text/markdown", "text/latex", "application/vnd", "application/javascript", "video/")
_SHELL_LOOKS = frozenset(
    [
        "ls",
        "cat",
        "head",
        "tail",
        "wc",
        "pwd",
        "find",
        "grep",
        "rg",
        "file",
        "du",
        "df",
        "tree",
        "stat",
        "which",
        "whoami",
        "uname",
        "nproc",
        "free",
        "env",
        "date",
        "echo",
        "printf",
        "test",
        "git",
        "ps",
        "nvidia-smi",
        "lscpu",
        "true",
        "sort",
        "uniq",
        "cut",
        "diff",
        "cmp",
        "md5sum",
        "sha256sum",
        "xxd",
        "less",
        "more",
        "type",
        "command",
        "sleep",
    ]
)
_QUIET_PROGRAMS = frozenset(["pytest", "unittest", "ruff", "mypy", "flake8", "make", "tox"])


def is_look(step: Step) -> bool:
    """Whether a cell looked at something and did nothing else."""
    if step.source.kind == "look":
        return True
    if step.source.kind == "shell":
        commands = first_words(step.source.command)
        quiet = commands and not step.changes and ">" not in step.source.command
        return bool(quiet) and all(words and words[0] in _SHELL_LOOKS for words in commands)
    if step.source.tree is None or any("!" not in text and "?" not in text for _, text in step.source.magics):
        return False
    return bool(step.source.tree.body) and all(_only_looks(node) for node in step.source.tree.body)


def _only_looks(node: ast.stmt) -> bool:
    if isinstance(node, ast.Import | ast.ImportFrom | ast.Pass):
        return True
    if not isinstance(node, ast.Expr):
        return False
    for inner in ast.walk(node.value):
        if isinstance(inner, ast.JoinedStr | ast.Await | ast.Yield | ast.NamedExpr | ast.Lambda):
            return False
        if isinstance(inner, ast.Call):
            last = inner.func.attr if isinstance(inner.func, ast.Attribute) else getattr(inner.func, "id", "")
            if last not in purity.LOOKING:
                return False
    return True


def is_rich(step: Step) -> bool:
    """Whether a cell shows more than text."""
    return any(kind.startswith(_RICH) for output in step.outputs for kind in output.get("data", {}))


def is_quiet(step: Step) -> bool:
    """Whether a shell cell runs programs that check and change nothing, such as a test run."""
    commands = first_words(step.source.command)
    return any(word in _QUIET_PROGRAMS for words in commands for word in words[:3])


def text_of(step: Step) -> str:
    """The text that a cell put out."""
    texts = [str(output.get("text", "")) for output in step.outputs]
    texts += [
        str(value)
        for output in step.outputs
        for kind, value in list(output.get("data", {}).items())
        if kind.startswith("text/")
    ]
    return "\n".join(texts)


def tokens_of(step: Step) -> list[str]:
    """The words and signs of a cell's source."""
    return re.findall(r"\w+|[^\w\s]", step.source.text)


def labels_of(step: Step) -> Counter[str]:
    """The titles that a plot gets."""
    found = re.findall(r"(?:title|suptitle|set_title)\s*[(=]\s*f?(['\"])(.*?)\1", step.source.text)
    return Counter(text for _, text in found)
