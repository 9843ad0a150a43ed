"""What the names of the kernel stand for at one moment of a session, and which of them share data. Pure.

``flow`` lets each statement happen here: what it changes, then what it binds. Data is told apart by regions: numbers,
one for each value that was bound; names that may reach the same data have a region in common.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from harness_nb.export import purity
from harness_nb.export.effects import STAR, Effects
from harness_nb.export.mentions import is_local_module, module_files
from harness_nb.export.nodes import Node, Value
from harness_nb.export.sharing import Knowledge, dotted_name, names_in

_COMPOUND = (ast.For, ast.While, ast.If, ast.With, ast.Try, ast.AsyncFor, ast.AsyncWith, ast.Match, ast.TryStar)


class Names:
    """Values by name. ``known`` are the files of the workspace; names in angle brackets are states without a name."""

    def __init__(self, known: Collection[str]) -> None:
        self.values: dict[str, Value] = {}
        self._known = known
        self._regions = 0

    def knowledge(self, statement: ast.stmt, types: Mapping[str, str]) -> Knowledge:
        """What reading a statement needs to know; ``types`` are those of the names after its cell."""
        wanted = set(names_in([statement]))
        wanted = set(self.values) if wanted & purity.CODE_BUILTINS else wanted & set(self.values)
        values = {name: self.values[name] for name in wanted}
        functions = {name: value.bodies for name, value in values.items() if value.bodies and not value.stands_for}
        changing = {name for name, bodies in functions.items() if any(body.changes_arguments for body in bodies)}
        modules = {name: value.stands_for for name, value in values.items() if value.stands_for}
        return Knowledge(
            modules,
            frozenset(set(functions) - changing),
            frozenset(changing),
            frozenset(name for name in modules if types.get(name) == "module"),
            frozenset(name for name in values if is_consumed(types.get(name, ""))),
        )

    def add(self, name: str, node: Node, *, sure: bool = False) -> None:
        """A statement becomes part of what made a name's value what it is."""
        value = self.values.get(name)
        if value is None:
            value = Value(frozenset(), frozenset({self._region()}))
        self.values[name] = replace(value, nodes=value.nodes | {node.id})
        if sure:
            node.changed.add(name)

    def _region(self) -> int:
        self._regions += 1
        return self._regions

    # ---- changes

    def change(self, node: Node, happening: Iterable[Effects]) -> None:
        """Every name that may share data with what is changed gets this node."""
        regions, certain = self._used_up(node, happening)
        for one in happening:
            changed = one.changes | one.touches
            for _ in range(3):  # a name that is bound in this statement may share data with names before it
                changed = changed.union(*(one.holds.get(name, ()) for name in changed & one.binds))
            for name in changed:
                value = self.values.get(name)
                if value is None and not name.startswith("<"):
                    continue
                kind = node.step.types.get(name, "")
                if value is not None and (value.plain or kind in purity.IMMUTABLE_TYPES - purity.HOLDING_TYPES):
                    continue
                self.add(name, node, sure=name in one.changes)
                regions |= self.values[name].regions
                certain |= self.values[name].regions if name in one.changes else set()
            self._hold(one)
            for name in one.traced & set(self.values):
                regions |= self.values[name].traces
        if any(one.anything for one in happening):
            regions |= {region for value in self.values.values() for region in value.regions}
            self.add(STAR, node)
        for name, value in self.values.items():
            if value.regions & regions:
                self.add(name, node, sure=bool(value.regions & certain))

    def _hold(self, effects: Effects) -> None:
        """What a value was given shares its data from now on."""
        for name, held in effects.holds.items():
            if name in self.values and name not in effects.binds:
                more = {region for other in held if other in self.values for region in self.values[other].regions}
                self.values[name] = replace(self.values[name], regions=self.values[name].regions | more)
        for name in effects.streams & set(self.values) - effects.binds:
            self.values[name] = replace(self.values[name], streams=True)

    def _used_up(self, node: Node, happening: Iterable[Effects]) -> tuple[set[int], set[int]]:
        """The regions that a mere use changes: of iterators, and of objects with methods of their own."""
        regions: set[int] = set()
        certain: set[int] = set()
        for name in {name for one in happening for name in one.uses} & set(self.values):
            value, kind = self.values[name], node.step.types.get(name, "")
            own = not value.stands_for and kind not in purity.DEFINED_TYPES
            methods = {method for body in value.bodies for method in body.changing} if own else set()
            asked = methods & {attribute for one in happening for attribute in one.attributes}
            sure = is_consumed(kind) or value.streams or bool(asked)
            if sure or any(method.startswith("__") for method in methods):
                regions |= value.regions
                certain |= value.regions if sure else set()
                self.add(name, node, sure=sure)
        return regions, certain

    # ---- bindings

    def bind(self, node: Node, effects: Effects, uses: Iterable[str]) -> None:
        """The names that a statement binds stand for something new."""
        used = [self.values[name] for name in uses if name in self.values]
        inherited = {id(b): b for n in effects.uses if n in self.values for b in self.values[n].bodies}
        files = frozenset(path for value in used for path in value.files)
        draws = node.draws.union(*(value.draws for value in used))
        traces = frozenset(region for value in used for region in value.regions | value.traces)
        binds = effects.binds - {STAR}
        if node.broken:  # an assignment that fails binds nothing; a loop has perhaps bound something
            compound = isinstance(node.statement, _COMPOUND)
            binds = binds & node.step.made if node.step.made is not None else binds if compound else set()
        for name in sorted(binds):
            kind, own = node.step.types.get(name, ""), effects.bodies.get(name)
            dotted = effects.imports.get(name, "") or self._alias_of(node.statement, name, kind)
            regions = self._regions_of(node, effects, name, kind)
            plain = bool(dotted) or (
                kind in purity.IMMUTABLE_TYPES and (kind not in purity.HOLDING_TYPES or len(regions) == 1)
            )
            local = bool(dotted) and is_local_module(dotted, self._known)
            value = Value(
                frozenset({node.id}),
                frozenset() if plain else frozenset(regions),
                (own, *inherited.values()) if own else () if dotted else tuple(inherited.values()),
                tuple(effects.constants.get(name, ())),
                dotted,
                files | (frozenset(module_files(dotted, self._known)) if local else frozenset()),
                plain,
                name in effects.streams,
                frozenset() if plain or kind in purity.DATA_TYPES else frozenset(draws),
                traces if kind == "Tensor" else frozenset(),
            )
            old = self.values.get(name)
            if old is not None and (name not in effects.kills or node.broken):
                value = replace(value, nodes=value.nodes | old.nodes, regions=value.regions | old.regions)
            self.values[name] = value

    def _regions_of(self, node: Node, effects: Effects, name: str, kind: str) -> set[int]:
        others = set(effects.holds.get(name, ()))
        others = others.union(*(body.uses for body in [*node.bodies, *effects.bodies.values()]))
        if kind in purity.CONTAINER_TYPES or not kind:
            others |= effects.parts.get(name, set())
        for other in others:
            if other.startswith("<") and other not in self.values:  # the state of a library of which this is a part
                self.values[other] = Value(frozenset(), frozenset({self._region()}))
        held = [self.values[other] for other in others if other in self.values and other != name]
        return {self._region()}.union(*(value.regions for value in held))

    def _alias_of(self, statement: ast.stmt | None, name: str, kind: str) -> str:
        """The dotted name of a module, or of a part of one, that gets another name by an assignment."""
        if not isinstance(statement, ast.Assign):
            return ""
        value = statement.value
        modules = {name: one.stands_for for name, one in self.values.items() if one.stands_for}
        if isinstance(value, ast.Attribute | ast.Name) and (dotted := dotted_name(value, modules)):
            return dotted
        if kind != "module":
            return ""
        given = value.args[:1] if isinstance(value, ast.Call) else [getattr(value, "slice", None)]
        text = next((one.value for one in given if isinstance(one, ast.Constant)), None)
        return text if isinstance(text, str) else name

    def import_as(self, name: str, dotted: str) -> None:
        """A name that a star import has bound stands for a part of its module."""
        local = module_files(dotted, self._known) if is_local_module(dotted, self._known) else set()
        value = self.values[name]
        self.values[name] = Value(value.nodes, stands_for=dotted, files=frozenset(local), plain=True)


def is_consumed(kind: str) -> bool:
    """Whether values of a type are changed by every use."""
    return kind in purity.CONSUMED_TYPES or kind.endswith("iterator")
