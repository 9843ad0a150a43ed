"""Which cells the result needs: the targets, what they build on, and why each other cell is left out. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from harness_nb.export import purity
from harness_nb.export.chance import seeded_by
from harness_nb.export.flow import Flow
from harness_nb.export.history import History, Version
from harness_nb.export.looks import is_look, is_quiet, is_rich, labels_of, text_of, tokens_of
from harness_nb.export.nodes import Node
from harness_nb.export.story import Step, Story

_FIGURE = re.compile(r"(?<![\w.])\d[\d,]*\.\d+|(?<![\w.])\d[\d,]{2,}(?![\w.])")
_SCRATCH = re.compile(r"(?:^|/)(?:scratch|debug|tmp|temp|try|test_tmp|probe)[^/]*$")
SAME = 0.8
"""How alike two cells must be for the later one to be the earlier one once more."""


@dataclass(frozen=True)
class Unresolved:
    """Something that a kept cell needs and that the record cannot give. ``count`` is the cell's execution count."""

    cell: str
    count: int | None
    name: str
    reason: str

    def __str__(self) -> str:
        verb = "reads" if re.search(r"^\S*[/.]\S*$", self.name) else "needs"
        return f"{self.cell} {verb} `{self.name}`, which {self.reason}"


@dataclass
class Choice:
    """What is kept: nodes by id, versions of files that must be written, and what is wrong with it."""

    nodes: set[int] = field(default_factory=set)
    versions: set[Version] = field(default_factory=set)
    readers: dict[Version, list[int]] = field(default_factory=dict)
    unresolved: list[Unresolved] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    dropped: dict[int, str] = field(default_factory=dict)
    targets: set[int] = field(default_factory=set)

    def keeps(self, flow: Flow, step: Step) -> bool:
        """Whether anything of a step is kept, but for imports."""
        return any(node.id in self.nodes and node.kind != "import" for node in flow.of_step[step.number])


def choose(story: Story, flow: Flow, history: History) -> Choice:
    """The smallest set of cells that the results of the session need, as far as it can be told."""
    chooser = _Chooser(story, flow, history)
    chooser.run()
    return chooser.choice


class _Chooser:
    def __init__(self, story: Story, flow: Flow, history: History) -> None:
        self.story, self.flow, self.history = story, flow, history
        self.choice = Choice()
        self.looks = {step.number for step in story.steps if is_look(step)}

    def run(self) -> None:
        """Targets first, then everything that they need."""
        for step in self._targets():
            self.choice.targets.add(step.number)
            self._keep_step(step)
        for path in sorted(self.history.versions):
            self._keep_final(path)
        self._explain()

    # ---- targets

    def _targets(self) -> Iterator[Step]:
        steps = self.story.steps
        for index, task in enumerate(self.story.tasks):
            end = self.story.tasks[index + 1].first_step if index + 1 < len(self.story.tasks) else len(steps)
            mine = [step for step in steps[task.first_step : end] if step.ok and self._can_show(step)]
            shown = [step for step in mine if step.outputs]
            yield from [step for step in shown if step.number not in self.looks][-1:] or shown[-1:]
            yield from self._quoted(task.answer, [step for step in shown if step.number not in self.looks])
        for step in steps:
            rich = step.ok and step.number not in self.looks and self._can_show(step) and is_rich(step)
            if (rich and not self._is_done_again(step)) or (step.ok and self._may_have_effects(step)):
                yield step

    def _can_show(self, step: Step) -> bool:
        return step.source.kind in ("python", "shell", "show", "opaque")

    def _quoted(self, answer: str, shown: list[Step]) -> Iterator[Step]:
        """The last cells that put out the figures that the answer tells."""
        for figure in dict.fromkeys(_FIGURE.findall(answer)):
            bare = figure.replace(",", "")
            found = [
                step for step in shown if re.search(rf"(?<![\d.]){re.escape(bare)}", text_of(step).replace(",", ""))
            ]
            yield from found[-1:]

    def _may_have_effects(self, step: Step) -> bool:
        """Whether a cell may have done something that no name and no file shows."""
        if step.source.kind == "python":
            happening = [one for node in self.flow.of_step[step.number] for one in [node.effects, *node.bodies]]
            calls = {name.rsplit(".", 1)[-1] for one in happening for name, _ in one.calls}
            return not self.story.files_known and bool(calls & purity.EFFECT_CALLS)
        if step.source.kind not in ("shell", "opaque") or step.number in self.looks or is_quiet(step):
            return False
        background = re.search(r"(?<![&>])&(?![&>])", step.source.command) is not None
        if step.changes:
            return False
        return background or not self.story.files_known

    def _is_done_again(self, step: Step) -> bool:
        """Whether a later cell shows the same once more, better or after a repair."""
        later = [one for one in self.story.steps[step.number + 1 :] if one.ok and is_rich(one)]
        bound, labels = _names(self.flow, step), labels_of(step)
        for other in later:
            ratio = difflib.SequenceMatcher(None, tokens_of(step), tokens_of(other), autojunk=False)
            if ratio.quick_ratio() < SAME or labels_of(other) != labels:
                continue
            if ratio.ratio() >= SAME and bound <= _names(self.flow, other) and self._same_data(step, other):
                return True
        return False

    def _same_data(self, one: Step, other: Step) -> bool:
        """Whether two cells speak of the same names."""
        used = [
            {name for node in self.flow.of_step[step.number] for name in node.effects.uses} for step in (one, other)
        ]
        return used[0] <= used[1]

    # ---- what they need

    def _keep_step(self, step: Step) -> None:
        for node in self.flow.of_step[step.number]:
            self._keep(node)

    def _keep(self, node: Node) -> None:
        waiting = [node]
        while waiting:
            one = waiting.pop()
            if one.id in self.choice.nodes:
                continue
            self.choice.nodes.add(one.id)
            if one.step.ok and one.kind != "import":
                waiting += self.flow.of_step[one.step.number]
            for number in sorted(one.needs):
                if not self._is_broken(self.flow.nodes[number], one):
                    waiting.append(self.flow.nodes[number])
            for version in sorted(one.reads, key=lambda item: (item.path, item.index)):
                waiting += self._keep_version(version, one)
            if one.step.changes or not self.story.files_known:
                waiting += self._keep_what_is_changed(one)
            for name, reason in one.missing.items():
                self._miss(one.step, name, reason)

    def _is_broken(self, needed: Node, by: Node) -> bool:
        """Whether a needed statement is the one at which its cell failed; it cannot be run again."""
        if not needed.broken:
            return False
        happening = [needed.effects, *needed.bodies]
        names = needed.changed.union(*(one.binds | one.changes | one.touches for one in happening))
        names &= by.effects.uses.union(*(body.uses for body in by.bodies))
        states = [f"the generator of {state}" for state in (needed.seeds | needed.draws) & by.draws] or _libraries(
            [needed, by]
        )
        named = ", ".join(sorted(names or states)) or "data"
        if needed.broken == "surely" or self._is_certain(needed, by):
            status = needed.step.status.value
            self._miss(
                by.step, named, f"was being made or changed in {needed.step.label}, which did not end well ({status})"
            )
        else:
            told = f"{by.step.label} uses `{named}`, which {needed.step.label} was working on when it failed"
            self.choice.remarks = list(dict.fromkeys([*self.choice.remarks, told]))
        return True

    def _is_certain(self, needed: Node, by: Node) -> bool:
        """Whether a statement that failed had begun to change what another one builds on."""
        happening = [needed.effects, *needed.bodies]
        uses = by.effects.uses.union(*(body.uses for body in by.bodies))
        if uses & needed.changed.union(*(one.changes | one.binds for one in happening)):
            return True
        inside = [*needed.bodies, *needed.elsewhere, *([needed.effects] if needed.half else [])]
        if needed.seeds & by.draws and any(seeded_by(one) for one in inside):
            return True
        return any(one.settings for one in inside) and bool(_libraries([needed, by]))

    def _keep_version(self, version: Version, reader: Node | None) -> list[Node]:
        """Let a version of a file be there for a reader; the nodes that make it."""
        if reader is not None:
            self.choice.readers.setdefault(version, []).append(reader.step.number)
        if version in self.choice.versions:
            return []
        self.choice.versions.add(version)
        if version.origin == "run" and version.digest:
            step = self.story.steps[version.since]
            if step.ok:
                return self.flow.of_step[step.number]
            self._miss(
                reader.step if reader else step, version.path, f"was left by {step.label}, which did not end well"
            )
        return []

    def _keep_what_is_changed(self, node: Node) -> list[Node]:
        """A cell that changes a file in place needs the version before."""
        if node.kind == "import":
            return []
        found: list[Node] = []
        written = {text for text, mode in node.mentions if mode == "a"}
        for path in self.history.versions:
            before = self.history.at(path, node.step.number)
            if before is not None and before.digest and any(path.endswith(text.lstrip("./")) for text in written):
                found += self._keep_version(before, node)
        return found

    def _keep_final(self, path: str) -> None:
        """What the session leaves behind."""
        final, first = self.history.final(path), self.history.versions[path][0]
        if final.origin == "outside" or (
            final.digest == first.digest and final.digest != "?" and not self._was_written(path)
        ):
            return
        if _SCRATCH.search(path) and not self._was_written(path) and not self._is_told(path):
            return
        if not final.digest and not first.digest:
            return
        for node in self._keep_version(final, None):
            self._keep(node)

    def _was_written(self, path: str) -> bool:
        """Whether a kept cell needs an other version of the file than the last."""
        return any(version.path == path for version in self.choice.versions)

    def _is_told(self, path: str) -> bool:
        return any(path.rsplit("/", 1)[-1] in task.prompt + task.answer for task in self.story.tasks)

    def _miss(self, step: Step, name: str, reason: str) -> None:
        note = Unresolved(step.label, step.count, name, reason)
        if note not in self.choice.unresolved:
            self.choice.unresolved.append(note)

    # ---- why the others are not kept

    def _explain(self) -> None:
        kept_edits = {version.since for version in self.choice.versions if version.origin == "edit"}
        for step in self.story.steps:
            if self.choice.keeps(self.flow, step) or step.number in kept_edits:
                continue
            self.choice.dropped[step.number] = self._reason(step)

    def _reason(self, step: Step) -> str:
        if not step.ok:
            return "did not end well"
        if step.source.kind == "install":
            return "installed packages (they are named under Environment)"
        if step.number in self.looks:
            return "only looked"
        if step.source.kind == "edit" or any(self.history.versions.get(change.path) for change in step.changes):
            return "changed files that were changed again later"
        return "made nothing that the result needs"


def _libraries(nodes: list[Node]) -> set[str]:
    """The libraries that all of some statements use."""
    used = [{name.split(".")[0] for one in [node.effects, *node.bodies] for name in one.dotted} for node in nodes]
    return set.intersection(*used) - {""}


def _names(flow: Flow, step: Step) -> set[str]:
    return {name for node in flow.of_step[step.number] if node.kind != "import" for name in node.effects.binds}
