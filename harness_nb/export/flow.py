"""What every statement of a session needs: earlier statements, by the names they bound, and versions of files. Pure.

A walk over the cells in the order in which they ran, with the state of the kernel as it was then: for each name the
statements that made its value what it is, and the regions of data that it may share with other names. ``choice`` takes
the nodes and follows their needs backwards.
"""

from __future__ import annotations

import ast
import builtins
import posixpath
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from harness_nb.export import purity
from harness_nb.export.chance import drawn_by, seeded_by
from harness_nb.export.code_files import CodeFiles
from harness_nb.export.effects import Effects
from harness_nb.export.history import History, Version
from harness_nb.export.mentions import (
    WHOLE_PROJECT,
    is_local_module,
    match_paths,
    module_files,
    scripts_run,
    shell_mentions,
    shell_modules,
)
from harness_nb.export.nodes import Node, Value
from harness_nb.export.reading import effects_of
from harness_nb.export.sharing import Knowledge, dotted_name
from harness_nb.export.source import parse_cell
from harness_nb.export.story import Step, Story
from harness_nb.types import Status

AMBIENT = "<settings>"
STAR = "*"
_AMBIENT_MAGICS = re.compile(r"\s*%(?:matplotlib|config|env|set_env|cd|load_ext|autoreload|precision|pylab)\b")
_BRACED = re.compile(r"[{$](\w+)")


class Flow:
    """The nodes of a story."""

    def __init__(self, story: Story, history: History) -> None:
        self.story, self.history = story, history
        self.nodes: list[Node] = []
        self.of_step: dict[int, list[Node]] = {}
        self.code = CodeFiles(history)
        self._known = history.known()
        self._state: dict[str, Value] = {}
        self._lost: dict[str, str] = {}
        self._loaded: dict[str, Version] = {}
        self._regions = 0
        self._autoreload = False
        self._epoch = 0
        for step in story.steps:
            self._take(step)

    # ---- cells

    def _take(self, step: Step) -> None:
        if step.epoch != self._epoch:
            self._lost |= dict.fromkeys(self._state, "was lost when the kernel ended")
            self._state, self._loaded, self._epoch, self._autoreload = {}, {}, step.epoch, False
        if step.rebuilt_before:
            for node in [one for one in self.nodes if one.step.ok and one.kind != "whole"]:
                self._apply(node)
        match step.source.kind:
            case "python":
                self._take_python(step)
            case "shell" | "opaque" | "show":
                self._take_whole(step)
            case _:
                self.of_step[step.number] = []

    def _take_whole(self, step: Step) -> None:
        node = self._node(step, None, "whole")
        node.broken = "" if step.ok else "surely"
        command = step.source.command
        known = [(word, "") for word in self._known] if WHOLE_PROJECT.search(command) else []
        node.mentions = [*shell_mentions(command), *((path, mode) for path, mode in known if path.endswith(".py"))]
        files = {path for dotted in shell_modules(command) for path in module_files(dotted, self._known)}
        self._read(node, node.mentions)
        self._read_code(node, {*files, *scripts_run(command)})
        self._need(node, AMBIENT)
        for name in _BRACED.findall(step.source.text) if step.tool == "python" else ():
            self._need(node, name)

    def _take_python(self, step: Step) -> None:
        assert step.source.tree is not None
        self.of_step[step.number] = []
        for statement in step.source.tree.body:
            ran = step.ok or self._ran(step, statement)
            if ran is None:
                self._note_lost(step, statement)
                continue
            kind: Literal["import", "code"] = "code"
            if isinstance(statement, ast.Import | ast.ImportFrom) and getattr(statement, "module", "") != "__future__":
                kind = "import"
            node = self._node(step, statement, kind)
            if not ran:
                node.broken = "perhaps" if step.status is Status.ERROR else "surely"
            self._apply(node)

    def _ran(self, step: Step, statement: ast.stmt) -> bool | None:
        """Whether a statement of a cell that failed came to its end: ``False`` if it failed, ``None`` for later ones.

        Where no traceback tells, the manifest of names does: what it says that the cell has made was made.
        """
        line = step.stopped_at
        if line < 0:
            return None
        if line:
            first = min([statement.lineno, *(one.lineno for one in getattr(statement, "decorator_list", []))])
            end = statement.end_lineno or first
            return True if end < line else None if first > line else False
        bound = effects_of(statement, Knowledge({})).kills
        if step.made is not None and bound and bound <= step.made:
            return True
        return False if self.of_step[step.number] == [] or not self.of_step[step.number][-1].broken else None

    def _note_lost(self, step: Step, statement: ast.stmt) -> None:
        for name in effects_of(statement, Knowledge({})).binds:
            self._lost[name] = f"is bound in {step.label}, which ended before it ({step.status.value})"

    def _node(self, step: Step, statement: ast.stmt | None, kind: Literal["import", "code", "whole"]) -> Node:
        node = Node(len(self.nodes), step, statement, kind)
        self.nodes.append(node)
        self.of_step.setdefault(step.number, []).append(node)
        return node

    # ---- statements

    def _apply(self, node: Node) -> None:
        """Let a statement happen to the state."""
        assert node.statement is not None
        modules = {name: value.stands_for for name, value in self._state.items() if value.stands_for}
        harmless = {name for name, value in self._state.items() if value.bodies and not value.stands_for}
        harmless = {name for name in harmless if not any(body.changes_arguments for body in self._state[name].bodies)}
        effects = node.effects = effects_of(node.statement, Knowledge(modules, frozenset(harmless)))
        magics = self._magics(node, effects)
        bodies = node.bodies = self._bodies_used(effects)
        happening = [effects, *bodies]
        uses = {name for one in happening for name in one.uses}
        for name in sorted(uses):
            self._need(node, name, sure=name in effects.firm)
        self._need(node, AMBIENT)
        if any(one.opaque for one in happening):
            node.needs |= {one for value in self._state.values() for one in value.nodes}
        self._draw(node, happening)
        self._use_files(node, happening, uses)
        self._import(node, effects)
        self._change(node, happening)
        if effects.settings or magics or any(body.settings for body in bodies):
            self._add(AMBIENT, node)
        self._bind(node, effects, uses)
        for body in bodies:
            for name in body.binds - effects.binds:
                self._add(name, node)

    def _magics(self, node: Node, effects: Effects) -> bool:
        """Take in the magics that stand where a statement is; whether one of them is a setting."""
        assert node.statement is not None
        first, last = node.statement.lineno, node.statement.end_lineno or node.statement.lineno
        setting = False
        for line, text in node.step.source.magics:
            if not first <= line <= last:
                continue
            setting = setting or bool(_AMBIENT_MAGICS.match(text))
            self._autoreload = self._autoreload or bool(re.match(r"\s*%autoreload\s+[23]", text))
            effects.uses |= set(_BRACED.findall(text)) & set(self._state)
            command = text.split("!", 1)[1] if "!" in text else ""
            effects.texts += shell_mentions(command)
            self._read_code(node, set(scripts_run(command)))
            timed = re.match(r"\s*%(?:time|timeit|prun)\b(?:\s+-\S+)*\s+(.*)", text)
            if timed and (tree := parse_cell(timed[1])[0]) and tree.body:
                more = effects_of(tree.body[0], Knowledge({}))
                effects.uses |= more.uses
                effects.binds |= more.binds
                effects.touches |= more.touches | more.changes
        return setting

    def _bodies_used(self, effects: Effects) -> list[Effects]:
        """The functions and classes that a statement may call, and those that they call."""
        found: list[Effects] = []
        names = sorted(effects.uses)
        if called := set(effects.bodies) & {name for name, _ in effects.calls}:
            found += [effects.bodies[name] for name in called]
        seen = set(names)
        while names:
            value = self._state.get(names.pop())
            for body in value.bodies if value else ():
                if not any(body is one for one in found):
                    found.append(body)
                    fresh = sorted(body.uses - seen)
                    seen.update(fresh)
                    names += fresh
        return found

    def _need(self, node: Node, name: str, *, sure: bool = False) -> None:
        value = self._state.get(name)
        if value is not None:
            node.needs |= value.nodes - {node.id}
        elif name in purity.HARNESS_NAMES:
            node.missing[name] = "is a function that only harness_nb has"
        elif name.startswith("<") or hasattr(builtins, name) or name in purity.NAMESPACE:
            return
        elif STAR in self._state:
            node.needs |= self._state[STAR].nodes - {node.id}
        elif re.fullmatch(r"_+|_i*\d*|Out|_ih|_oh|_dh", name):
            node.missing[name] = "is IPython's history of cells, which the export does not have"
        elif name in self._lost:
            node.missing[name] = self._lost[name]
        elif sure:
            node.missing[name] = self._whereabouts(name)

    def _whereabouts(self, name: str) -> str:
        for call_id, code in self.story.unrun.items():
            tree = parse_cell(code)[0] if code else None
            if tree and any(name in effects_of(one, Knowledge({})).binds for one in tree.body):
                return f"is bound only in the code of call {call_id}, whose cell is not in the record"
        return "is bound by no cell of the record"

    def _draw(self, node: Node, happening: list[Effects]) -> None:
        for state in set().union(*(seeded_by(one) for one in happening)):
            self._state[f"<{state}>"] = Value(frozenset({node.id}))
        node.draws = drawn_by(happening)
        for state in sorted(node.draws):
            if f"<{state}>" in self._state:
                self._need(node, f"<{state}>")
                self._add(f"<{state}>", node)
            else:
                node.drew_unseeded.add(state)

    def _import(self, node: Node, effects: Effects) -> None:
        for name, dotted in effects.imports.items():
            if not is_local_module(dotted, self._known):
                continue
            for path in self.code.closure(module_files(dotted, self._known), node.step.number):
                version = self.history.at(path, node.step.number)
                if version is not None:
                    node.reads.add(self._loaded.setdefault(path, version))
            if name == STAR:
                self._add(STAR, node)
        if STAR in effects.binds:
            self._add(STAR, node)

    def _change(self, node: Node, happening: list[Effects]) -> None:
        """Every name that may share data with what is changed gets this node."""
        regions: set[int] = self._change_by_use(node, happening)
        for one in happening:
            changed = one.changes | one.touches
            for _ in range(3):  # a name that is bound in this statement may share data with names before it
                changed = changed.union(*(one.holds.get(name, ()) for name in changed))
            for name in changed:
                value = self._state.get(name)
                if value is None or value.plain or node.step.types.get(name) in purity.IMMUTABLE_TYPES:
                    continue
                regions |= value.regions
                self._add(name, node)
            for name, held in one.holds.items():
                if name in self._state and name not in one.binds:
                    more = {region for other in held if other in self._state for region in self._state[other].regions}
                    value = self._state[name]
                    self._state[name] = replace(value, regions=value.regions | more)
        for name, value in self._state.items():
            if value.regions & regions:
                self._add(name, node)

    def _change_by_use(self, node: Node, happening: list[Effects]) -> set[int]:
        """Take in what a mere use changes: iterators, objects with methods of their own, modules with a state."""
        regions: set[int] = set()
        for name in {name for one in happening for name in one.uses} & set(self._state):
            value, kind = self._state[name], node.step.types.get(name, "")
            own = value.bodies and kind not in ("function", "type", "ABCMeta", "") and not value.stands_for
            if (
                kind in purity.CONSUMED_TYPES
                or kind.endswith("iterator")
                or (own and any(body.changes_arguments for body in value.bodies))
            ):
                regions |= value.regions
                self._add(name, node)
        called = {name.lstrip(".") for one in happening for name, _ in one.calls}
        for name, value in self._state.items():
            if (
                value.files
                and value.stands_for
                and any(one.startswith(value.stands_for.split(".")[0]) for one in called)
            ):
                found = [one for path in value.files for one in self.code.effects_in(path, node.step.number)]
                if any(one.changes or one.touches for one in found):
                    self._add(name, node)
        return regions

    def _alias_of(self, value: ast.expr) -> str:
        """The dotted name of a part of a module that gets another name."""
        modules = {name: one.stands_for for name, one in self._state.items() if one.stands_for}
        return dotted_name(value, modules) if isinstance(value, ast.Attribute | ast.Name) else ""

    def _bind(self, node: Node, effects: Effects, uses: set[str]) -> None:
        inherited = tuple(
            {
                id(body): body for name in effects.uses if name in self._state for body in self._state[name].bodies
            }.values()
        )
        files = frozenset(path for name in uses if name in self._state for path in self._state[name].files)
        binds = effects.binds - {STAR}
        if node.broken:  # an assignment that fails binds nothing; a loop has perhaps bound something
            compound = isinstance(node.statement, ast.For | ast.While | ast.If | ast.With | ast.Try | ast.AsyncFor)
            binds = binds & node.step.made if node.step.made is not None else binds if compound else set()
        for name in sorted(binds):
            self._regions += 1
            others = set(effects.holds.get(name, ())).union(
                *(body.uses for body in [*node.bodies, *effects.bodies.values()])
            )
            held = [self._state[other] for other in others if other in self._state and other != name]
            regions = {self._regions}.union(*(value.regions for value in held))
            dotted = effects.imports.get(name, "")
            own = effects.bodies.get(name)
            if not dotted and isinstance(node.statement, ast.Assign):
                dotted = self._alias_of(node.statement.value)
            plain = bool(dotted) or node.step.types.get(name) in purity.IMMUTABLE_TYPES
            local = is_local_module(dotted, self._known) if dotted else False
            value = Value(
                frozenset({node.id}),
                frozenset() if plain else frozenset(regions),
                (own, *inherited) if own else () if dotted else inherited,
                tuple(effects.constants.get(name, ())),
                dotted,
                files | (frozenset(module_files(dotted, self._known)) if local else frozenset()),
                plain,
            )
            old = self._state.get(name)
            if old is not None and (name not in effects.kills or node.broken):
                value = replace(value, nodes=value.nodes | old.nodes, regions=value.regions | old.regions)
            self._state[name] = value

    def _add(self, name: str, node: Node) -> None:
        value = self._state.get(name, Value(frozenset()))
        self._state[name] = replace(value, nodes=value.nodes | {node.id})

    # ---- files

    def _use_files(self, node: Node, happening: list[Effects], uses: set[str]) -> None:
        texts = [mention for one in happening for mention in one.texts]
        held = dict(pair for one in happening for pair in one.held)
        for name in uses:
            if name in self._state:
                texts += [(text, held.get(name, "")) for text in self._state[name].texts]
        node.mentions = texts
        self._read(node, texts)
        commands = [text for text, _ in texts if text.endswith((".py", ".sh")) or "python" in text]
        if any(
            name.split(".")[0] in ("subprocess", "runpy") or name == "os.system"
            for one in happening
            for name, _ in one.calls
        ):
            self._read_code(node, {path for text in commands for path in [text, *scripts_run(text)]})
        if self._autoreload or any(name.endswith("reload") for name, _ in node.effects.calls):
            files = {path for name in uses if name in self._state for path in self._state[name].files}
            for path in self.code.closure(files, node.step.number):
                if (version := self.history.at(path, node.step.number)) is not None:
                    node.reads.add(version)
                    self._loaded[path] = version

    def _read(self, node: Node, mentions: Iterable[tuple[str, str]]) -> None:
        """The versions of changed files that mentions speak of; not those that the step does no more than write."""
        modes: dict[str, set[str]] = {}
        for text, mode in mentions:
            for path in match_paths(text, self.history.versions, self.history.workspace):
                modes.setdefault(path, set()).add(mode)
        for path, found in modes.items():
            version = self.history.at(path, node.step.number)
            if found - {"w", "="} and version is not None:
                node.reads.add(version)

    def _read_code(self, node: Node, files: Iterable[str]) -> None:
        """Scripts and modules that run in the statement, with all that their text names."""
        for path in self.code.closure({posixpath.normpath(one) for one in files}, node.step.number):
            if (version := self.history.at(path, node.step.number)) is not None:
                node.reads.add(version)
            for effects in self.code.effects_in(path, node.step.number):
                node.mentions += effects.texts
                self._read(node, effects.texts)
