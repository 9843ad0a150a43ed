"""What a cell's source is: Python, a shell script, a file that is written, a look. Pure.

``story`` reads each cell once with ``read_source``. IPython's line magics and shell escapes are taken out of Python so
that ``ast`` can read the rest; line numbers stay what they were.
"""

from __future__ import annotations

import ast
import re
import shlex
from dataclasses import dataclass
from typing import Literal

Kind = Literal["python", "shell", "edit", "look", "show", "opaque", "install"]
LOOK_TOOLS = frozenset({"read_file", "list_files", "search_files", "view_image"})
EDIT_TOOLS = frozenset({"write_file", "search_replace"})

_MAGIC = re.compile(r"\s*(?:[%!?]|[\w.\[\]\"' ]+\?\??\s*$)")
_ASSIGNED = re.compile(r"(\s*[\w, ]+=\s*)([%!])(.*)$")
_INSTALL = re.compile(r"\s*(?:[%!]\s*)?(?:python[\d.]*\s+-m\s+)?(?:uv\s+)?(?:pip3?|conda|mamba)\s+\w")
_SHELL_MAGICS = ("%%bash", "%%sh", "%%script", "%%!", "%%system", "%%sx")
_SHOW_MAGICS = ("%%html", "%%HTML", "%%markdown", "%%latex", "%%svg", "%%SVG", "%%javascript", "%%js")
_PYTHON_MAGICS = ("%%time", "%%capture", "%%prun", "%%timeit")


@dataclass(frozen=True)
class Source:
    """One cell's source, read. ``tree`` is there for Python; ``magics`` are the lines that were taken out of it.

    ``path`` is the file that an edit writes, ``command`` a shell script. ``text`` is the source as it ran.
    """

    kind: Kind
    text: str
    tree: ast.Module | None = None
    magics: tuple[tuple[int, str], ...] = ()
    path: str = ""
    command: str = ""


def read_source(tool: str, text: str) -> Source:
    """What ``text``, the source of a cell of ``tool``, is."""
    if tool in LOOK_TOOLS:
        return Source("look", text)
    first, _, rest = text.lstrip("\n").partition("\n")
    words = first.split()
    magic = words[0] if words and words[0].startswith("%%") else ""
    if tool in EDIT_TOOLS or magic in ("%%writefile", "%%file"):
        return Source("edit", text, path=_edited_path(text, first))
    if tool == "bash" or magic in _SHELL_MAGICS:
        return _shell(text, rest if magic else text)
    if magic in _SHOW_MAGICS:
        return Source("show", text)
    if magic and magic not in _PYTHON_MAGICS:
        return Source("opaque", text)
    tree, magics = parse_cell(text)
    if tree is None:
        return Source("opaque", text)
    statements = [node for node in tree.body if not isinstance(node, ast.Pass)]
    commands = [line.lstrip() for _, line in magics if not line.lstrip().startswith("%%")]
    if not statements and commands:
        if all(_INSTALL.match(line) for line in commands):
            return Source("install", text, command="\n".join(commands))
        if all(line.startswith("!") for line in commands):
            return _shell(text, "\n".join(line.lstrip("! ") for line in commands))
        if all("?" in (line[0], line[-1]) for line in commands):
            return Source("look", text)
    return Source("python", text, tree, tuple(magics))


def _shell(text: str, command: str) -> Source:
    lines = [line for line in command.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    kind: Kind = "install" if lines and all(_INSTALL.match(line) for line in lines) else "shell"
    return Source(kind, text, command=command)


def _edited_path(text: str, first: str) -> str:
    """The path that a ``%%writefile`` cell, or a call of ``write_file`` or ``search_replace``, names."""
    if first.startswith("%%"):
        try:
            words = shlex.split(first)[1:]
        except ValueError:
            words = first.split()[1:]
        return next((word for word in words if not word.startswith("-")), "")
    arguments = call_arguments(text)
    return str(arguments[0]) if arguments else ""


def call_arguments(text: str) -> list[object]:
    """The literal arguments of the one call that ``text`` is, positional ones first."""
    try:
        node = ast.parse(text).body[0]
        assert isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
        call = node.value
        return [ast.literal_eval(item) for item in [*call.args, *(word.value for word in call.keywords)]]
    except (SyntaxError, ValueError, AssertionError, IndexError):
        return []


def parse_cell(text: str) -> tuple[ast.Module | None, list[tuple[int, str]]]:
    """The syntax tree of a cell, ``None`` where it has none, and the magics that were taken out (line, text)."""
    lines = text.split("\n")
    magics: list[tuple[int, str]] = []
    if lines and lines[0].startswith("%%"):
        magics.append((1, lines[0]))
        lines[0] = "pass"
    for _ in range(len(lines) + 1):
        try:
            return ast.parse("\n".join(lines)), magics
        except (SyntaxError, ValueError, RecursionError) as error:
            number = getattr(error, "lineno", None) or 0
            index = next((i for i in range(min(number, len(lines)) - 1, -1, -1) if _is_magic(lines[i])), -1)
            if index < 0:
                return None, magics
            magics.append((index + 1, lines[index]))
            assigned = _ASSIGNED.match(lines[index])
            indent = lines[index][: len(lines[index]) - len(lines[index].lstrip())]
            lines[index] = f"{assigned[1]}None" if assigned else f"{indent}pass"
    return None, magics


def _is_magic(line: str) -> bool:
    return bool(_MAGIC.match(line) or _ASSIGNED.match(line))
