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
from typing import Literal

from harness_nb.export import purity
from harness_nb.export.chance import drawn_by, seeded_by
from harness_nb.export.code_files import CodeFiles
from harness_nb.export.effects import STAR, Effects
from harness_nb.export.history import History, Version
from harness_nb.export.line_magics import BRACED, magics_of, reloads, take_magic
from harness_nb.export.mentions import (
    WHOLE_PROJECT,
    is_local_module,
    match_paths,
    module_files,
    scripts_run,
    shell_mentions,
    shell_modules,
)
from harness_nb.export.names import Names
from harness_nb.export.nodes import Node, Value
from harness_nb.export.reading import effects_of
from harness_nb.export.sharing import Knowledge, state_of
from harness_nb.export.source import parse_cell
from harness_nb.export.story import Step, Story
from harness_nb.types import Status

AMBIENT = "<settings>"


class Flow:
    """The nodes of a story."""

    def __init__(self, story: Story, history: History) -> None:
        self.story, self.history = story, history
        self.nodes: list[Node] = []
        self.of_step: dict[int, list[Node]] = {}
        self.code = CodeFiles(history)
        self._known = history.known()
        self.names = Names(self._known)
        self._lost: dict[str, str] = {}
        self._loaded: dict[str, Version] = {}
        self._autoreload = False
        self._epoch = 0
        for step in story.steps:
            self._take(step)

    # ---- cells

    def _take(self, step: Step) -> None:
        if step.epoch != self._epoch:
            self._lost |= dict.fromkeys(self.names.values, "was lost when the kernel ended")
            self.names, self._loaded, self._epoch, self._autoreload = Names(self._known), {}, step.epoch, False
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
        for name in BRACED.findall(step.source.text) if step.tool == "python" else ():
            self._need(node, name)
        self._bind_unseen(step)

    def _take_python(self, step: Step) -> None:
        assert step.source.tree is not None
        self.of_step[step.number] = []
        for index, statement in enumerate(step.source.tree.body):
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
                last = statement.end_lineno or statement.lineno
                node.half = any(one is not statement and one.lineno <= last for one in step.source.tree.body[index:])
            self._apply(node)
        self._bind_unseen(step)

    def _bind_unseen(self, step: Step) -> None:
        """The manifest knows what ``exec``, ``%run``, a star import or a magic has bound."""
        nodes = self.of_step[step.number]
        if not step.ok or step.made is None or step.tool != "python":
            return
        seen = {name for node in nodes for one in [node.effects, *node.bodies] for name in one.binds}
        cause = [node for node in nodes if STAR in node.effects.binds or node.effects.anything] or nodes
        for name in step.made - seen:
            for node in cause:
                self.names.add(name, node)
            if star := next((node.effects.imports[STAR] for node in cause if STAR in node.effects.imports), ""):
                self.names.import_as(name, f"{star}.{name}")

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
        statement = node.statement
        match statement:
            case ast.Assign(targets=[ast.Subscript() | ast.Attribute()], value=value) if node.broken and not node.half:
                statement = ast.Expr(value=value)  # the store comes last, and has not happened
        effects = node.effects = effects_of(statement, self.names.knowledge(node.statement, node.step.types))
        for text in magics_of(node):
            self._autoreload = self._autoreload or reloads(text)
            self._read_code(node, set(take_magic(text, node, self.names.values, self.code)))
        bodies = node.bodies = self._bodies_used(effects)
        happening = [effects, *bodies]
        uses = {name for one in happening for name in one.uses}
        node.elsewhere = self._run_elsewhere(node, happening, uses)
        for name in sorted(uses):
            self._need(node, name, sure=name in effects.firm)
        self._need(node, AMBIENT)
        if node.kind == "code":
            for dotted in {dotted for one in [*happening, *node.elsewhere] for dotted in one.dotted}:
                self._need(node, state_of(dotted))
        if any(one.opaque or one.anything for one in happening):
            node.needs |= {one for value in self.names.values.values() for one in value.nodes}
        self._draw(node, happening, uses)
        self._use_files(node, happening, uses)
        self._import(node, effects)
        self.names.change(node, happening)
        if any(one.settings for one in [*happening, *node.elsewhere]):
            self.names.add(AMBIENT, node)
        self.names.bind(node, effects, uses)
        for name in {name for body in bodies for name in body.binds} - effects.binds:
            self.names.add(name, node, sure=True)

    def _run_elsewhere(self, node: Node, happening: list[Effects], uses: set[str]) -> list[Effects]:
        """The functions and classes of the workspace's modules that a statement runs; what they change there."""
        dotted = {name for one in happening for name in one.dotted}
        called = {name for one in happening for name, _ in one.calls}
        kinds = {
            (path, node.step.types.get(name, ""))
            for name in uses & set(self.names.values)
            for path in self.names.values[name].files
        }
        found = self.code.bodies_run(dotted, called, kinds, node.step.number)
        for path, body in found:
            sure, perhaps = self.code.changes_inside(path, body, node.step.number)
            perhaps = perhaps or any(one.attributes & body.changing for one in happening)
            for name, value in list(self.names.values.items()):
                if (sure or perhaps) and path in value.files and (value.stands_for or not value.plain):
                    self.names.add(name, node, sure=sure)
        return [body for _, body in found]

    def _bodies_used(self, effects: Effects) -> list[Effects]:
        """The functions and classes that a statement may call, and those that they call."""
        found: list[Effects] = []
        names = sorted(effects.uses)
        if called := set(effects.bodies) & {name for name, _ in effects.calls}:
            found += [effects.bodies[name] for name in called]
        seen = set(names)
        while names:
            value = self.names.values.get(names.pop())
            for body in value.bodies if value else ():
                if not any(body is one for one in found):
                    found.append(body)
                    fresh = sorted(body.uses - seen)
                    seen.update(fresh)
                    names += fresh
        return found

    def _need(self, node: Node, name: str, *, sure: bool = False) -> None:
        value = self.names.values.get(name)
        if value is not None:
            node.needs |= value.nodes - {node.id}
        elif name in purity.HARNESS_NAMES:
            node.missing[name] = "is a function that only harness_nb has"
        elif name.startswith("<") or hasattr(builtins, name) or name in purity.NAMESPACE:
            return
        elif STAR in self.names.values:
            node.needs |= self.names.values[STAR].nodes - {node.id}
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

    def _draw(self, node: Node, happening: list[Effects], uses: set[str]) -> None:
        """Which global generators a statement sets, for sure or perhaps, and which it draws from."""
        sets = seeded_by(node.effects)
        node.seeds = sets.union(*(seeded_by(one) for one in [*happening, *node.elsewhere]))
        node.draws = drawn_by([*happening, *node.elsewhere])
        simple = isinstance(node.statement, ast.Expr | ast.Assign) and not node.broken
        for state in sorted(node.seeds):
            if state in sets and simple:
                self.names.values[f"<{state}>"] = Value(frozenset({node.id}))
            else:
                self._need(node, f"<{state}>")
                self.names.add(f"<{state}>", node)
        values = [self.names.values[name] for name in uses & set(self.names.values)]
        for state in sorted(node.draws.union(*(value.draws for value in values))):
            if f"<{state}>" in self.names.values:
                self._need(node, f"<{state}>")
                self.names.add(f"<{state}>", node)
            elif state in node.draws:
                node.drew_unseeded.add(state)

    def _import(self, node: Node, effects: Effects) -> None:
        for dotted in effects.imports.values():
            if not is_local_module(dotted, self._known):
                continue
            for path in self.code.closure(module_files(dotted, self._known), node.step.number):
                version = self.history.at(path, node.step.number)
                if version is not None:
                    node.reads.add(self._loaded.setdefault(path, version))
        if STAR in effects.binds:
            self.names.add(STAR, node)

    # ---- files

    def _use_files(self, node: Node, happening: list[Effects], uses: set[str]) -> None:
        texts = [mention for one in happening for mention in one.texts]
        held = dict(pair for one in happening for pair in one.held)
        for name in uses:
            if name in self.names.values:
                texts += [(text, held.get(name, "")) for text in self.names.values[name].texts]
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
            files = {path for name in uses if name in self.names.values for path in self.names.values[name].files}
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
