"""Which names an expression speaks of: what a chain starts at, what a call is pure in, what values share data. Pure.

``effects`` asks; the tables are in ``purity``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from harness_nb.export import purity

_VALUES_ONLY = frozenset({"json", "math", "os", "time", "re", "random", "datetime"})
_CONTAINERS = frozenset(
    [
        "list",
        "tuple",
        "dict",
        "set",
        "zip",
        "map",
        "filter",
        "iter",
        "enumerate",
        "reversed",
        "next",
        "getattr",
        "sorted",
    ]
)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True)
class Knowledge:
    """What is known before a statement: what imported names stand for, and functions that change no argument."""

    modules: Mapping[str, str]
    harmless: frozenset[str] = frozenset()


def dotted_name(node: ast.AST, modules: Mapping[str, str]) -> str:
    """``numpy.random.seed`` for ``np.random.seed``; empty if the chain does not start at a module or an import."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name) and node.id in modules:
        return ".".join([modules[node.id], *reversed(parts)])
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
        case ast.Name(id=name):
            if name not in known.modules:
                yield name
        case ast.Call():
            yield from _shared_by_call(node, known)
        case ast.Attribute() | ast.Subscript():
            yield from shared_with(node.value, known)
        case ast.Tuple() | ast.List() | ast.Set() | ast.Dict() | ast.IfExp() | ast.BoolOp() | ast.Starred():
            for child in ast.iter_child_nodes(node):
                yield from shared_with(child, known)
        case ast.Lambda():
            yield from (inner.id for inner in ast.walk(node.body) if isinstance(inner, ast.Name))
        case ast.Await() | ast.NamedExpr():
            yield from shared_with(node.value, known)
        case _ if isinstance(node, _COMPREHENSIONS):
            for name_node in ast.walk(node):
                if isinstance(name_node, ast.Name):
                    yield name_node.id
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
    for argument in arguments:
        yield from shared_with(argument, known)


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
            case _:
                pass
        yield from stored_in(ast.iter_child_nodes(node))
