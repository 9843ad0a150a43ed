"""Which names an expression speaks of: what a chain starts at, what a call is pure in, what values share data. Pure.

``effects`` asks; the tables are in ``purity``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from harness_nb.export import purity

_VALUES_ONLY = frozenset({"json", "math", "os", "time", "re", "random", "datetime"})
_STREAMS = frozenset(["iter", "map", "filter", "zip", "enumerate", "reversed", "open"])
_CONTAINERS = _STREAMS | frozenset(
    ["list", "tuple", "dict", "set", "next", "getattr", "sorted", "min", "max", "sum", "memoryview", "vars"]
)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True)
class Knowledge:
    """What is known before a statement: what imported names stand for, and which of them are whole modules.

    ``harmless`` are functions that change no argument, ``changing`` those that do, ``streams`` names of iterators.
    """

    modules: Mapping[str, str]
    harmless: frozenset[str] = frozenset()
    changing: frozenset[str] = frozenset()
    whole: frozenset[str] = frozenset()
    streams: frozenset[str] = frozenset()


def dotted_name(node: ast.AST, modules: Mapping[str, str]) -> str:
    """``numpy.random.seed`` for ``np.random.seed``; empty if the chain does not start at a module or an import."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name) and node.id in modules:
        return ".".join([modules[node.id], *reversed(parts)])
    return ""


def state_of(dotted: str) -> str:
    """What stands for the state of the library that a dotted name belongs to: its settings, registries and patches."""
    return f"<state of {dotted.split('.')[0]}>"


def start_of(node: ast.AST) -> str:
    """The name at the start of a chain, whatever is called on the way."""
    while True:
        match node:
            case ast.Attribute(value=inner) | ast.Subscript(value=inner):
                node = inner
            case ast.Call(func=inner) | ast.Await(value=inner):
                node = inner
            case ast.Name(id=name):
                return name
            case _:
                return ""


def root_of(node: ast.AST) -> str:
    """The name at the start of a chain of attributes, items and calls; empty if there is none."""
    while True:
        match node:
            case ast.Attribute(value=inner) | ast.Subscript(value=inner) | ast.Starred(value=inner):
                node = inner
            case ast.Call(func=ast.Attribute(value=inner)):
                node = inner
            case ast.Await(value=inner) | ast.NamedExpr(value=inner):
                node = inner
            case ast.Name(id=name):
                return name
            case _:
                return ""


def is_pure_function(node: ast.Call, name: str, last: str, known: Knowledge) -> bool:
    """Whether a function, by its dotted name or its last part, leaves its arguments alone."""
    if isinstance(node.func, ast.Name) and not name:
        builtin = last in purity.NAMESPACE and last not in purity.CHANGING_BUILTINS
        return builtin or last in known.harmless or last[:1].isupper()
    return name.lstrip(".").split(".")[0] in purity.PURE_MODULES or last[:1].isupper()


def shared_with(node: ast.AST | None, known: Knowledge) -> Iterator[str]:
    """The names that the value of an expression may share data with."""
    match node:
        case ast.Name(id=name) if name in known.modules:
            yield from [state_of(known.modules[name])] if name in known.whole else []
        case ast.Name(id=name):
            yield name
        case ast.Call():
            yield from _shared_by_call(node, known)
        case ast.Attribute(value=inner, attr=attribute):
            shares = attribute not in purity.IMMUTABLE_ATTRIBUTES and not dotted_name(node, known.modules)
            yield from shared_with(inner, known) if shares else ()
        case ast.Tuple() | ast.List() | ast.Set() | ast.Dict() | ast.IfExp() | ast.BoolOp() | ast.Starred():
            for child in ast.iter_child_nodes(node):
                yield from shared_with(child, known)
        case ast.Subscript(value=inner) | ast.Await(value=inner) | ast.NamedExpr(value=inner):
            yield from shared_with(inner, known)
        case ast.Lambda(body=inner):
            yield from names_in([inner])
        case _ if isinstance(node, _COMPREHENSIONS):
            yield from names_in([node])
        case _:
            pass


def _shared_by_call(node: ast.Call, known: Knowledge) -> Iterator[str]:
    arguments = [*node.args, *(word.value for word in node.keywords)]
    name = dotted_name(node.func, known.modules)
    last = node.func.attr if isinstance(node.func, ast.Attribute) else root_of(node.func)
    if isinstance(node.func, ast.Attribute) and not name:
        if last in purity.PURE_METHODS - purity.VIEW_METHODS:
            return
        yield from shared_with(node.func.value, known)
        if last in purity.PURE_METHODS:
            return
    elif name.split(".")[0] in _VALUES_ONLY or (
        isinstance(node.func, ast.Name) and not name and last in purity.NAMESPACE - _CONTAINERS
    ):
        return
    if isinstance(node.func, ast.Name) and not name:
        yield node.func.id  # a function may return what it holds
    if name and name.split(".")[0] not in purity.FRESH_MODULES and not last[:1].isupper():
        yield state_of(name)  # as logging.getLogger does
    for argument in arguments:
        yield from shared_with(argument, known)


def parts_of(node: ast.AST | None, known: Knowledge) -> Iterator[str]:
    """The names whose items an expression may share, if it is a list, a dict or the like."""
    match node:
        case ast.BinOp(left=left, right=right):
            for side in (left, right):
                yield from shared_with(side, known)
                yield from parts_of(side, known)
        case ast.Call(func=ast.Attribute(value=inner, attr="copy" | "union" | "difference" | "intersection")):
            yield from shared_with(inner, known)
        case ast.IfExp() | ast.BoolOp() | ast.NamedExpr():
            for child in ast.iter_child_nodes(node):
                yield from parts_of(child, known)
        case _:
            pass


def holds_stream(node: ast.AST | None, known: Knowledge) -> bool:
    """Whether an expression is an iterator, or a display of values that has one inside."""
    match node:
        case ast.GeneratorExp():
            return True
        case ast.Name(id=name):
            return name in known.streams
        case ast.Call(func=ast.Name(id=name)):
            return name in _STREAMS
        case ast.Tuple() | ast.List() | ast.Set() | ast.Dict() | ast.Starred():
            return any(holds_stream(child, known) for child in ast.iter_child_nodes(node))
        case _:
            return False


def lambdas_in(node: ast.AST | None) -> Iterator[ast.Lambda]:
    """The functions without a name that an expression is, or that a display of values holds."""
    if isinstance(node, ast.Lambda):
        yield node
    elif isinstance(node, (ast.Tuple, ast.List, ast.Set, ast.Dict, ast.IfExp, *_COMPREHENSIONS)):
        for child in ast.iter_child_nodes(node):
            yield from lambdas_in(child)


def names_in(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """All names that stand anywhere inside."""
    for node in nodes:
        yield from (inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name))


def imported(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str, str]]:
    """(name, what is imported, what the name stands for) for each part of an import; ``import a.b`` binds ``a``."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            name = alias.asname or alias.name.split(".")[0]
            yield name, alias.name, alias.name if alias.asname else name
        return
    module = "." * node.level + (node.module or "")
    for alias in node.names:
        dotted = f"{module}.{alias.name}" if module.strip(".") else module + alias.name
        name = alias.asname or alias.name
        yield name, dotted, module if name == "*" else f"{module}.{alias.name}"


def defaults_of(arguments: ast.arguments) -> list[ast.expr]:
    """What is evaluated when a function is defined."""
    return [*arguments.defaults, *(default for default in arguments.kw_defaults if default is not None)]


def annotations_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.expr]:
    """The annotations of a function."""
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
    found = [argument.annotation for argument in arguments if argument is not None]
    return [annotation for annotation in [*found, node.returns] if annotation is not None]


def parameters_of(arguments: ast.arguments) -> Iterator[str]:
    """The names of all parameters."""
    for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]:
        if argument is not None:
            yield argument.arg


def globals_of(node: ast.AST) -> Iterator[str]:
    """The names that are declared global inside."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Global):
            yield from inner.names


def stored_in(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The names that get a value in a scope, without those of the functions and comprehensions inside."""
    for node in nodes:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
                continue
            case ast.Lambda():
                continue
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.Import() | ast.ImportFrom():
                yield from (alias.asname or alias.name.split(".")[0] for alias in node.names)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name
            case ast.MatchMapping(rest=str(name)):
                yield name
            case _:
                pass
        yield from stored_in(ast.iter_child_nodes(node))
