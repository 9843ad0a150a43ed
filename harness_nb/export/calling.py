"""What a call changes: by the tables of ``purity``, and everything where those say nothing. Pure; ``reading`` asks."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from harness_nb.export import purity
from harness_nb.export.effects import Effects
from harness_nb.export.sharing import Knowledge, dotted_name, is_pure_function, shared_with, start_of, state_of

_IN_PLACE = frozenset({"append", "extend", "add", "update", "insert", "pop"})


def changed_by(
    node: ast.Call, name: str, last: str, known: Knowledge, *, arguments_change: bool
) -> Iterator[tuple[ast.AST, bool]]:
    """The expressions whose values a call changes, and whether it only may do so.

    ``name`` is the dotted name of what is called, ``last`` its last part. ``arguments_change`` says that a function
    among the arguments changes what it is given.
    """
    arguments = [*node.args, *(word.value for word in node.keywords)]
    changing = last in purity.CHANGING_FUNCTIONS or (last.endswith("_") and not last.startswith("_"))
    in_place = any(_is_in_place(word) for word in node.keywords)
    if isinstance(node.func, ast.Name) or name:
        if is_pure_function(node, name, last, known) and not changing and not in_place and not arguments_change:
            arguments = [*_called_or_written(node, last), *(node.args[2:] if name.startswith("numpy.") else [])]
        yield from ((argument, True) for argument in arguments)
        if not name and last not in purity.NAMESPACE:
            yield node.func, True
        return
    if not isinstance(node.func, ast.Attribute):
        yield from ((argument, True) for argument in [node.func, *arguments])
        return
    if last not in purity.PURE_METHODS or in_place or changing or arguments_change:
        yield node.func.value, not (last in _IN_PLACE or in_place)
        owner = node.func.value.id if isinstance(node.func.value, ast.Name) else ""
        unbound = owner in purity.NAMESPACE or owner[:1].isupper()  # as in list.append(xs, 1)
        if last not in purity.ARGUMENT_SAFE_METHODS or unbound:
            yield from ((argument, True) for argument in arguments)
            return
    yield from ((argument, True) for argument in _called_or_written(node, last))


def changed_by_decorator(node: ast.expr, known: Knowledge) -> Iterator[tuple[ast.AST, bool]]:
    """As ``changed_by`` for the call that ``@node`` is."""
    last = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    call = ast.Call(func=node, args=[], keywords=[])
    return changed_by(call, dotted_name(node, known.modules), last, known, arguments_change=False)


def _is_in_place(word: ast.keyword) -> bool:
    wanted = purity.IN_PLACE_KEYWORDS.get(word.arg or "")
    return wanted is not None and getattr(word.value, "value", wanted) is wanted


def _called_or_written(node: ast.Call, last: str) -> Iterator[ast.expr]:
    """The arguments that even a call that leaves its arguments alone changes: methods that it calls, what it fills."""
    for argument in node.args:
        if isinstance(argument, ast.Attribute) and _is_called(argument, last in purity.CALLING):
            yield argument
    for word in node.keywords:
        method = isinstance(word.value, ast.Attribute) and _is_called(word.value, word.arg in purity.CALLED_KEYWORDS)
        if method or word.arg in purity.WRITTEN_KEYWORDS:
            yield word.value


def _is_called(method: ast.Attribute, calls: bool) -> bool:
    return method.attr in purity.CHANGING_METHODS or (calls and method.attr not in purity.PURE_METHODS)


def is_setting(name: str, last: str) -> bool:
    """Whether a call changes what later cells depend on without naming it."""
    if name in purity.AMBIENT_CALLS or last in ("__enter__", "enter_context"):
        return True
    if not name:
        return last in purity.AMBIENT_METHODS
    inside = name.count(".") > 1 and last in purity.CHANGING_METHODS  # as in warnings.filters.insert
    words = last.startswith(purity.AMBIENT_WORDS) or last in purity.AMBIENT_FUNCTIONS
    return "." in name and (inside or words)


def take_thrown_away(node: ast.Expr, effects: Effects, known: Knowledge, local: frozenset[str]) -> None:
    """A call whose value nobody takes is there for what it does: to a library, where it starts at one."""
    call = node.value.value if isinstance(node.value, ast.Await) else node.value
    if not isinstance(call, ast.Call):
        return
    dotted = known.modules.get(start_of(call), "")
    last = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if not dotted or dotted.split(".")[0] in purity.FRESH_MODULES or last in purity.PURE_METHODS | purity.LOOKING:
        return
    calls = [part for part in ast.walk(call) if isinstance(part, ast.Call)]
    shared = {name for part in calls for one in part.args for name in shared_with(one, known)}
    effects.touches.add(state_of(dotted))
    effects.holds.setdefault(state_of(dotted), set()).update(shared - local)
