"""Imports first: which imports of the kept cells may stand in one cell at the top, and that cell. Pure."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from harness_nb.export.nodes import Node

WIDTH = 100
_SETTING = re.compile(
    r"os\.environ(?:\[.*\] =|\.(?:update|setdefault|pop))|sys\.path\.?(?:append|insert|extend|\[.*\] =| = )"
    r"|os\.putenv|matplotlib\.use|set_start_method"
)

_STAGE = ("os.environ", "sys.path", "sys.modules", "sys.meta_path", "builtins.__import__")
"""What imports depend on, by dotted name."""


@dataclass
class Hoisted:
    """Import statements at the top: ``nodes`` are those that are said by it, ``lines`` its source."""

    nodes: set[int] = field(default_factory=set)
    lines: list[str] = field(default_factory=list)
    modules: set[str] = field(default_factory=set)


def hoist_imports(nodes: Iterable[Node], is_local: Callable[[str], bool], more: Iterable[str] = ()) -> Hoisted:
    """Gather the plain imports of kept ``nodes``. ``more`` are further import statements, as source.

    An import stays where it is if it is of the workspace, if a name of it means something else anywhere, or if settings
    that an import may depend on (``sys.path``, environment variables) come before it.
    """
    kept = sorted(nodes, key=lambda node: node.id)
    meanings = _meanings(kept)
    hoisted = Hoisted()
    entries: set[tuple[str, str, str]] = set()
    settled = False
    for node in kept:
        if node.kind != "import":
            settled = settled or _sets_the_stage(node)
            continue
        found = _entries(node.statement)
        if any(is_local(module) or module.startswith(".") or name == "*" for module, name, _ in found):
            continue
        if settled and not all(module.split(".")[0] in sys.stdlib_module_names for module, _, _ in found):
            continue
        if any(len(meanings[_bound(entry)]) > 1 for entry in found):
            continue
        hoisted.nodes.add(node.id)
        entries.update(found)
    for source in more:
        entries.update(_entries(ast.parse(source).body[0]))
    hoisted.lines = _render(entries)
    hoisted.modules = {module.split(".")[0] for module, _, _ in entries}
    return hoisted


def _meanings(nodes: Iterable[Node]) -> dict[str, set[str]]:
    """What each name is bound to: imports by what they import, everything else by its statement."""
    found: dict[str, set[str]] = {}
    for node in nodes:
        entries = (
            {_bound(entry): "/".join(entry) for entry in _entries(node.statement)} if node.kind == "import" else {}
        )
        if isinstance(node.statement, ast.Import):  # import a.b and import a.c both bind a
            entries = {
                name: name if "/" in text and text.split("/")[2] == "" else text for name, text in entries.items()
            }
        bodies = {name for body in node.bodies for name in body.binds}
        for name in node.effects.binds | bodies:
            found.setdefault(name, set()).add(entries.get(name, f"node {node.id}"))
    return found


def _sets_the_stage(node: Node) -> bool:
    source = ast.unparse(node.statement) if node.statement is not None else ""
    happening = [node.effects, *node.bodies, *node.elsewhere]
    stage = any(one.settings and any(name.startswith(_STAGE) for name in one.dotted) for one in happening)
    return stage or _SETTING.search(source) is not None


def _entries(statement: ast.stmt | None) -> list[tuple[str, str, str]]:
    """(module, name, alias) for each thing that is imported; the name is empty for a module."""
    if isinstance(statement, ast.Import):
        return [(alias.name, "", alias.asname or "") for alias in statement.names]
    if isinstance(statement, ast.ImportFrom):
        module = "." * statement.level + (statement.module or "")
        return [(module, alias.name, alias.asname or "") for alias in statement.names]
    return []


def _bound(entry: tuple[str, str, str]) -> str:
    module, name, alias = entry
    return alias or name or module.split(".")[0]


def _render(entries: set[tuple[str, str, str]]) -> list[str]:
    """Sorted lines: the standard library, then the rest, modules before names."""
    groups: list[list[str]] = []
    for standard in (True, False):
        mine = [entry for entry in entries if (entry[0].split(".")[0] in sys.stdlib_module_names) == standard]
        lines = [f"import {m}{f' as {a}' if a else ''}" for m, name, a in sorted(mine) if not name]
        for module in sorted({module for module, name, _ in mine if name}):
            names = sorted({f"{n} as {a}" if a else n for m, n, a in mine if m == module and n}, key=_order)
            lines.append(_from(module, names))
        if lines:
            groups += [[""]] if groups else []
            groups.append(lines)
    return [line for group in groups for line in group]


def _order(name: str) -> tuple[int, str]:
    """Constants, then classes, then the rest, as isort has it."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


def _from(module: str, names: list[str]) -> str:
    line = f"from {module} import {', '.join(names)}"
    if len(line) <= WIDTH:
        return line
    return f"from {module} import (\n" + "".join(f"    {name},\n" for name in names) + ")"


def without_statements(source: str, removed: list[ast.stmt]) -> str:
    """A cell's source without some of its statements; those that share a line with others stay."""
    lines: list[str | None] = [*source.split("\n")]
    for statement in removed:
        first, last = statement.lineno - 1, (statement.end_lineno or statement.lineno) - 1
        for index in range(first, last + 1):
            lines[index] = None
        while first > 0 and (before := lines[first - 1]) is not None and not before.strip():
            first -= 1
            lines[first] = None
        if any(lines[:first]) and last + 1 < len(lines) and lines[last + 1]:
            lines[last] = ""
    kept: list[str] = []
    for line in lines:
        if line is not None and not (
            not line.strip() and len(kept) > 1 and not kept[-1].strip() and not kept[-2].strip()
        ):
            kept.append(line)
    return "\n".join(kept).strip("\n")


def stands_alone(source: str, statement: ast.stmt) -> bool:
    """Whether a statement has its lines for itself."""
    lines = source.split("\n")
    last = lines[(statement.end_lineno or statement.lineno) - 1].encode()
    rest = last[statement.end_col_offset or 0 :].decode().strip()
    return statement.col_offset == 0 and (not rest or rest.startswith("#"))
