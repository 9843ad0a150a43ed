"""What one statement does to the names of the kernel: read from its syntax tree. Pure.

``flow`` asks ``effects_of`` for each statement that ran. Whatever cannot be told is taken to change what it touches.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from harness_nb.export import purity
from harness_nb.export.assigning import note_part, note_value, share_among
from harness_nb.export.calling import changed_by, changed_by_decorator, is_setting, take_thrown_away
from harness_nb.export.effects import STAR, Effects, join_now
from harness_nb.export.mentions import is_path_like, literals_in, mode_of_call, text_of
from harness_nb.export.sharing import (
    Knowledge,
    annotations_of,
    defaults_of,
    dotted_name,
    globals_of,
    holds_stream,
    imported,
    lambdas_in,
    names_in,
    parameters_of,
    root_of,
    shared_with,
    state_of,
    stored_in,
)
from harness_nb.export.source import parse_cell

_CONSTRUCTORS = frozenset({"__init__", "__new__", "__post_init__", "__set_name__", "__setstate__"})
"""What they do to their first parameter is no change: the object is not there before."""

_MAYBE = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.TryStar, ast.Match)


def effects_of(node: ast.stmt, known: Knowledge) -> Effects:
    """The effects of one statement at the top level of a cell."""
    reader = _Reader(known, Effects(), frozenset(), certain=True)
    reader.visit(node)
    return reader.effects


class _Reader(ast.NodeVisitor):
    """Reads one scope. ``local`` are the names of the functions around, which are nobody else's business."""

    def __init__(self, known: Knowledge, effects: Effects, local: frozenset[str], *, certain: bool) -> None:
        self.known = known
        self.effects = effects
        self.local = local
        self.parameters: frozenset[str] = frozenset()
        self.certain = certain
        self.taken: set[int] = set()

    # ---- names

    def visit_Name(self, node: ast.Name) -> None:
        """A name is read, bound or deleted."""
        if node.id in self.local:
            return
        if isinstance(node.ctx, ast.Store):
            self._bind(node.id)
        elif node.id not in self.effects.kills:
            self.effects.uses.add(node.id)
            if self.certain:
                self.effects.firm.add(node.id)
        if node.id in purity.OPAQUE_BUILTINS and node.id not in self.effects.binds:
            self.effects.opaque = True
        if node.id in self.known.modules:
            self.effects.dotted.add(self.known.modules[node.id])

    def _bind(self, name: str) -> None:
        if name in self.local:
            return
        self.effects.binds.add(name)
        if self.certain:
            self.effects.kills.add(name)

    def _change(self, node: ast.AST, *, perhaps: bool) -> None:
        name = root_of(node)
        if not name and not isinstance(node, ast.Constant):
            for inner in names_in([node]):
                self._change(ast.Name(id=inner), perhaps=perhaps)
            return
        if name in self.parameters:
            self.effects.changes_arguments = True
        if not name or name in self.local:
            return
        if name in ("globals", "locals"):
            self.effects.anything = True
        if name in self.known.modules:
            if not perhaps:
                self.effects.settings = True
            elif isinstance(node, ast.Name) and name in self.known.whole:
                self.effects.touches.add(state_of(self.known.modules[name]))
            return
        (self.effects.touches if perhaps else self.effects.changes).add(name)

    # ---- statements

    def visit_Assign(self, node: ast.Assign) -> None:
        """Value first, then the targets."""
        if is_path_like(node.value):
            self._take_texts([node.value], "=")
        self.visit(node.value)
        for target in node.targets:
            self._store(target, node.value)
        if len(node.targets) > 1:
            share_among(self.effects, node.targets, None, self.local)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """As an assignment; without a value nothing is bound."""
        self.visit(node.annotation)
        if node.value is not None:
            self.visit(node.value)
            self._store(node.target, node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """A change in place, or a new value made of the old."""
        self.visit(node.value)
        name = root_of(node.target)
        if isinstance(node.target, ast.Name):
            self.visit_Name(ast.Name(id=name, ctx=ast.Load()))
            if name not in self.local:
                self.effects.binds.add(name)
                self.effects.parts.setdefault(name, set()).update(shared_with(node.value, self.known))
            self._change(node.target, perhaps=True)
        else:
            self.visit(node.target)
            self._change(node.target, perhaps=False)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        """Binds in the scope around."""
        self.visit(node.value)
        self._store(node.target, node.value)

    def visit_Delete(self, node: ast.Delete) -> None:
        """A deleted name is needed, and its fate is part of it; a deleted part changes the whole."""
        for target in node.targets:
            self.visit(target)
            if not isinstance(target, ast.Name):
                self._change(target, perhaps=False)
            elif target.id not in self.local:
                self.effects.binds.add(target.id)

    def _take_texts(self, nodes: Iterable[ast.AST], mode: str) -> None:
        """Remember how the literals and names of a path are used; they are not looked at again."""
        for part in (part for node in nodes for part in literals_in(node) if id(part) not in self.taken):
            self.taken.add(id(part))
            if (text := text_of(part)) is not None:
                self.effects.texts.append((text, mode))
            elif isinstance(part, ast.Name) and mode != "=":
                self.effects.held.append((part.id, mode))

    def _store(self, target: ast.AST, value: ast.AST | None) -> None:
        match target:
            case ast.Name(id=name):
                self._bind(name)
                if value is not None:
                    note_value(self.effects, name, value, self.known, self.local)
                for one in lambdas_in(value) if name not in self.local else ():
                    body = self.effects.bodies.setdefault(name, Effects())
                    join_now(body, self._body(one.args, [one.body]), frozenset())
            case ast.Tuple(elts=items) | ast.List(elts=items):
                values = value.elts if isinstance(value, ast.Tuple) and len(value.elts) == len(items) else None
                for index, item in enumerate(items):
                    self._store(item, values[index] if values else value)
                share_among(self.effects, items, value, self.local)
            case ast.Starred(value=inner):
                self._store(inner, value)
            case _:
                self.visit(target)
                self._change(target, perhaps=False)
                if value is not None and (name := root_of(target)) and name not in self.local:
                    note_part(self.effects, name, value, self.known)

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        """The loop variable may never get a value."""
        self.visit(node.iter)
        with _Doubt(self):
            self._store(node.target, node.iter)
            for inner in [*node.body, *node.orelse]:
                self.visit(inner)

    visit_AsyncFor = visit_For

    def visit_With(self, node: ast.With | ast.AsyncWith) -> None:
        """Its body always runs."""
        for item in node.items:
            self.visit(item.context_expr)
            if item.optional_vars is not None:
                self._store(item.optional_vars, item.context_expr)
        for inner in node.body:
            self.visit(inner)

    visit_AsyncWith = visit_With

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        """Its name is gone after it, whatever it was before."""
        if node.name and node.name not in self.local:
            self.effects.binds.add(node.name)
        inner = _Reader(self.known, self.effects, self.local | ({node.name} if node.name else set()), certain=False)
        inner.parameters, inner.taken = self.parameters, self.taken
        for child in ast.iter_child_nodes(node):
            inner.visit(child)

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        """A star import binds what the manifest says; ``flow`` adds it."""
        for name, dotted, stands_for in imported(node):
            self.effects.dotted.add(dotted)
            if name == STAR:
                self.effects.binds.add(STAR)
            else:
                self._bind(name)
            if name not in self.local:
                self.effects.imports[name] = stands_for

    visit_ImportFrom = visit_Import

    # ---- what happens later

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Decorators and defaults now, the body when it is called."""
        for now in [*node.decorator_list, *defaults_of(node.args), *annotations_of(node)]:
            self.visit(now)
        self._decorate(node)
        self._bind(node.name)
        body = self._body(node.args, node.body, constructs=node.name in _CONSTRUCTORS)
        if body.changes_arguments and any(not isinstance(one, ast.Constant) for one in defaults_of(node.args)):
            body.changes.add(node.name)
        if node.name not in self.local:
            self.effects.bodies[node.name] = body
        else:
            join_now(self.effects, body, self.local)
            self.effects.changing |= {node.name} if body.changes_arguments else set()

    visit_AsyncFunctionDef = visit_FunctionDef

    def _decorate(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        """A decorator is called with what it decorates, and may keep it."""
        for decorator in node.decorator_list:
            for part, perhaps in changed_by_decorator(decorator, self.known):
                self._change(part, perhaps=perhaps)
            if (root := root_of(decorator)) and root not in {*self.known.modules, *self.local}:
                self.effects.holds.setdefault(root, set()).add(node.name)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        """Nearly always called in the statement it stands in."""
        for now in defaults_of(node.args):
            self.visit(now)
        join_now(self.effects, self._body(node.args, [node.body]), self.local)

    def _body(self, arguments: ast.arguments, body: Iterable[ast.AST], *, constructs: bool = False) -> Effects:
        nodes = list(body)
        parameters = frozenset(parameters_of(arguments))
        shared = {name for node in nodes for name in globals_of(node)}
        local = self.local | parameters | (frozenset(stored_in(nodes)) - shared)
        inner = _Reader(self.known, Effects(), frozenset(local), certain=False)
        inner.parameters = parameters - {next(parameters_of(arguments), "")} if constructs else parameters
        for node in nodes:
            inner.visit(node)
        return inner.effects

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Bases, decorators and the body now, methods when they are called."""
        for now in [*node.decorator_list, *node.bases, *(word.value for word in node.keywords)]:
            self.visit(now)
        self._decorate(node)
        for base in node.bases:
            self._change(base, perhaps=True)
        inside = frozenset(stored_in(node.body))
        inner = _Reader(self.known, Effects(), self.local | inside, certain=False)
        for child in node.body:
            inner.visit(child)
        join_now(self.effects, inner.effects, self.local, bodies=False)
        self._bind(node.name)
        whole = Effects(changing=inner.effects.changing)
        for body in [inner.effects, *inner.effects.bodies.values()]:
            join_now(whole, body, frozenset())
        if node.name not in self.local:
            self.effects.bodies[node.name] = whole

    def _visit_comprehension(self, node: ast.AST) -> None:
        targets = frozenset(stored_in([node]))
        walrus = {n.target.id for n in ast.walk(node) if isinstance(n, ast.NamedExpr)}
        inner = _Reader(self.known, self.effects, self.local | (targets - walrus), certain=False)
        inner.parameters, inner.taken = self.parameters, self.taken
        first = node.generators[0].iter  # type: ignore[attr-defined]
        self.visit(first)
        inner.generic_visit(node)

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _visit_comprehension

    # ---- expressions

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """A chain that starts at a module is remembered whole."""
        if dotted := dotted_name(node, self.known.modules):
            self.effects.dotted.add(dotted)
        self.effects.attributes.add(node.attr)
        self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        """What a call changes: by the tables of ``purity``, and everything where those say nothing."""
        name = dotted_name(node.func, self.known.modules)
        last = node.func.attr if isinstance(node.func, ast.Attribute) else root_of(node.func)
        arguments = [*node.args, *(word.value for word in node.keywords)]
        if isinstance(node.func, ast.Name) and last in purity.CODE_BUILTINS and self._take_code(node):
            return
        self.effects.calls.append((name or last, node))
        if mode := mode_of_call(node, last):
            receiver = [node.func.value] if isinstance(node.func, ast.Attribute) and not name else []
            self._take_texts([*receiver, *arguments], mode)
        self.effects.settings |= is_setting(name, last)
        changes = self._changes_arguments(arguments)
        for part, perhaps in changed_by(node, name, last, self.known, arguments_change=changes):
            self._change(part, perhaps=perhaps)
        self._hold_arguments(node, arguments)
        if last == "backward":
            self.effects.traced |= set(names_in([node])) - self.local
        self.generic_visit(node)

    def _take_code(self, node: ast.Call) -> bool:
        """Read the text that ``exec`` or ``eval`` runs, if it stands there and runs on the names of the kernel."""
        text = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else None
        tree = parse_cell(text)[0] if isinstance(text, str) and len(node.args) == 1 and not node.keywords else None
        if tree is None:
            self.effects.anything |= len(node.args) + len(node.keywords) == 1
            return False
        with _Doubt(self):
            self.visit(tree)
        return True

    def _hold_arguments(self, node: ast.Call, arguments: list[ast.expr]) -> None:
        """An object may keep what its methods are given."""
        method = isinstance(node.func, ast.Attribute) and node.func.attr not in purity.PURE_METHODS
        if method and (root := root_of(node.func)) and root not in self.local and root not in self.known.modules:
            held = {shared for argument in arguments for shared in shared_with(argument, self.known)}
            self.effects.holds.setdefault(root, set()).update(held - self.local)
            if any(holds_stream(argument, self.known) for argument in arguments):
                self.effects.streams.add(root)

    def _changes_arguments(self, arguments: list[ast.expr]) -> bool:
        """Whether a function among the arguments of a call changes what it is given."""
        bodies = [self._body(one.args, [one.body]) for one in arguments if isinstance(one, ast.Lambda)]
        named = any(isinstance(one, ast.Name) and one.id in self.known.changing for one in arguments)
        return named or any(body.changes_arguments for body in bodies)

    def visit_Expr(self, node: ast.Expr) -> None:
        """What stands alone is there for what it does."""
        self.visit(node.value)
        take_thrown_away(node, self.effects, self.known, self.local)

    def visit_Constant(self, node: ast.Constant) -> None:
        """A text may name a file."""
        if id(node) not in self.taken and (text := text_of(node)) is not None:
            self.effects.texts.append((text, ""))

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """A text with parts that are not known."""
        if id(node) not in self.taken:
            self.effects.texts.append((text_of(node) or "", ""))
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                self.visit(part)

    def generic_visit(self, node: ast.AST) -> None:
        """Parts of what may not happen are not certain."""
        if isinstance(node, _MAYBE):
            head = [node.test] if isinstance(node, ast.If | ast.While) else []
            head += [node.subject] if isinstance(node, ast.Match) else []
            for part in head:
                self.visit(part)
            with _Doubt(self):
                for child in ast.iter_child_nodes(node):
                    if child not in head:
                        self.visit(child)
            return
        if isinstance(node, ast.MatchAs | ast.MatchStar) and node.name:
            self._bind(node.name)
        if isinstance(node, ast.MatchMapping) and node.rest:
            self._bind(node.rest)
        super().generic_visit(node)


class _Doubt:
    """What is read inside may not happen."""

    def __init__(self, reader: _Reader) -> None:
        self.reader = reader

    def __enter__(self) -> None:
        self.before, self.reader.certain = self.reader.certain, False

    def __exit__(self, *_: object) -> None:
        self.reader.certain = self.before
