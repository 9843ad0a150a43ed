"""Which names a cell defines and needs, read from its source without running it.

``explanation`` and ``repair`` ask where a missing name is defined. Python cells only; magics are passed over, cells of
another language define nothing. Pure.
"""

from __future__ import annotations

import ast
import builtins
import re
import symtable
from collections.abc import Iterator
from dataclasses import dataclass

_PYTHON_MAGICS = ("time", "timeit", "capture", "prun")
_MAGIC_LINE = re.compile(r"^(\s*)(?:[%!?].*|[^#'\"]*\?\s*)$")
_MAGIC_VALUE = re.compile(r"^(\s*[\w, ]+=\s*)[%!].*$")


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement at the top level of a cell: its source, what it binds, and what it needs from elsewhere.

    ``touches`` are names whose value it may change without binding them (``rows.append(1)``, ``table[0] = 1``).
    """

    source: str
    binds: frozenset[str]
    needs: frozenset[str]
    touches: frozenset[str] = frozenset()
    imports: bool = False


def statements_of(source: str) -> tuple[Statement, ...]:
    """The statements of a cell; empty when it is not Python."""
    code = python_code(source)
    if code is None:
        return ()
    found = []
    for node in ast.parse(code).body:
        text = ast.get_source_segment(code, node) or ""
        decorated = [d.lineno for d in getattr(node, "decorator_list", ())]
        if decorated:
            text = "\n".join(code.splitlines()[min(decorated) - 1 : node.end_lineno])
        imports = isinstance(node, ast.Import | ast.ImportFrom)
        touched, needed = frozenset(_touched(node)), frozenset(_needed(node, text))
        found.append(Statement(text, frozenset(_bound(node)), needed, touched, imports))
    return tuple(found)


def python_code(source: str) -> str | None:
    """The source with its magics taken out, if what remains is Python."""
    lines = source.splitlines()
    first = next((number for number, line in enumerate(lines) if line.strip()), None)
    if first is not None and lines[first].startswith("%%"):
        magic = lines[first][2:].split(maxsplit=1)
        if not magic or magic[0] not in _PYTHON_MAGICS:
            return None
        lines[first] = "pass"
    plain = "\n".join(lines)
    for code in (plain, "\n".join(_without_magic(line) for line in lines)):
        try:
            compile(code, "<cell>", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        except (SyntaxError, ValueError, RecursionError):
            continue
        return code
    return None


def definition(name: str, source: str) -> tuple[Statement, ...]:
    """The statements of a cell that define ``name``, with those of the same cell that they need; empty if none does.

    A statement that needs the name itself (``scale = scale * 2``) does not define it.
    """
    statements = statements_of(source)
    imported = {bound for statement in statements if statement.imports for bound in statement.binds}
    wanted, chosen = {name}, set()
    found = False
    for position in range(len(statements) - 1, -1, -1):
        statement = statements[position]
        binds = statement.binds & wanted
        if not binds and not (statement.touches - imported) & wanted:
            continue
        chosen.add(position)
        found = found or name in binds
        wanted = (wanted - binds) | set(statement.needs)
    if not found or name in wanted:
        return ()
    return tuple(statements[position] for position in sorted(chosen))


def _without_magic(line: str) -> str:
    if match := _MAGIC_VALUE.match(line):
        return f"{match[1]}None"
    if match := _MAGIC_LINE.match(line):
        return f"{match[1]}pass"
    return line


def _bound(node: ast.AST) -> Iterator[str]:
    """The names that a statement binds in the cell's namespace; bodies of functions and classes are their own."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
        return
    if isinstance(node, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        return
    if isinstance(node, ast.Import | ast.ImportFrom):
        for alias in node.names:
            yield alias.asname or alias.name.partition(".")[0]
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.MatchAs | ast.MatchStar) and node.name:
        yield node.name
    for child in ast.iter_child_nodes(node):
        yield from _bound(child)


def _touched(node: ast.stmt) -> Iterator[str]:
    """The names whose value a statement may change in place: by an attribute, an item, or a method."""
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AugAssign | ast.AnnAssign):
        targets = [node.target]
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        targets = [node.value.func]
    for target in targets:
        place: ast.expr = target
        while isinstance(place, ast.Attribute | ast.Subscript):
            place = place.value
        if place is not target and isinstance(place, ast.Name):
            yield place.id


def _needed(node: ast.stmt, text: str) -> Iterator[str]:
    """The names that a statement reads and does not make itself."""
    own = set(_bound(node))
    try:
        table = symtable.symtable(text, "<cell>", "exec")
    except (SyntaxError, ValueError):
        names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    else:
        names = set(_referenced(table, top=True))
    if isinstance(node, ast.AugAssign):
        own -= {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
        names |= {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        own = set()
    yield from (name for name in names - own if not hasattr(builtins, name))


def _referenced(table: symtable.SymbolTable, top: bool = False) -> Iterator[str]:
    for symbol in table.get_symbols():
        if symbol.is_referenced() and (top or symbol.is_global()):
            yield symbol.get_name()
    for child in table.get_children():
        yield from _referenced(child)
