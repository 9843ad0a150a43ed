"""The events of a session as a story: prompts, replies, and the cells that ran, with what came of each. Pure.

``clean_notebook`` reads it first. Cells are in the order in which they were started, with their final outputs, wherever
those arrived.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from harness_nb import events as ev
from harness_nb.export.source import Source, read_source
from harness_nb.outputs import apply_output, is_derived
from harness_nb.types import JsonObject, Status

SETUP = "setup"
RESUMED = "session resumed"
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_FRAME = re.compile(
    r"(?:Cell|File|Input)\s+(?:In\s?\[\d+\]|<ipython-input[^>]*>)(?:, line (\d+)|:(\d+)|[^\n]*line: (\d+))"
)
_ARROW = re.compile(r"^-+> (\d+) ", re.MULTILINE)


@dataclass
class Step:
    """A cell that ran.

    ``epoch`` counts the kernels of the session, ``stopped_at`` is the line (from 1) at which it failed, 0 where the
    record does not say and -1 where nothing of it ran. ``made`` are the names that it gave a new value, ``None`` where
    that is not known; ``types`` are the types of all names after it. ``changes`` are what it did to files, ``beside``
    the calls of cells that ran at the same time.
    """

    number: int
    call_id: str
    tool: str
    source: Source
    epoch: int
    reply: int
    status: Status = Status.RUNNING
    count: int | None = None
    outputs: list[JsonObject] = field(default_factory=list)
    elapsed: float = 0.0
    stopped_at: int = 0
    made: frozenset[str] | None = None
    types: dict[str, str] = field(default_factory=dict)
    changes: list[ev.FileChange] = field(default_factory=list)
    rebuilt_before: bool = False

    @property
    def ok(self) -> bool:
        """Whether it ended well."""
        return self.status is Status.OK

    @property
    def label(self) -> str:
        """How a person finds it in the session notebook."""
        return f"cell [{self.count}]" if self.count is not None else f"the {self.tool} cell of call {self.call_id}"


@dataclass(frozen=True)
class Reply:
    """Words of the model, and the calls that came with them."""

    prompt: int
    text: str
    calls: tuple[str, ...]


@dataclass
class Task:
    """A prompt and what it came to. ``first_step`` is the number of steps before it; ``answer`` is empty if none."""

    prompt: str
    first_step: int
    answer: str = ""
    accepted: bool = False
    ending: str = ""


@dataclass
class Story:
    """All of it. ``outside`` are changes of files by others: (number of steps before, change)."""

    started: ev.SessionStarted | None = None
    tasks: list[Task] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    outside: list[tuple[int, ev.FileChange]] = field(default_factory=list)
    files_known: bool = False
    unrun: dict[str, str] = field(default_factory=dict)


def read_story(events: Sequence[ev.Event]) -> Story:
    """The story that ``events`` tell."""
    reader = _Reader()
    for event in events:
        reader.apply(event)
    return reader.finish()


class _Reader:
    def __init__(self) -> None:
        self.story = Story()
        self.open: dict[str, Step] = {}
        self.types: dict[str, str] = {}
        self.epoch = 0
        self.rebuilt = self.lost = False

    def apply(self, event: ev.Event) -> None:
        """Read one event."""
        story = self.story
        match event:
            case ev.SessionStarted():
                story.started = story.started or event
            case ev.PromptAdded():
                story.tasks.append(Task(event.prompt, len(story.steps)))
            case ev.ModelReplied():
                self._reply(event)
            case ev.Nudged() if event.reason == RESUMED:
                self._lose_kernel()
            case ev.CellStarted() if event.call_id != SETUP:
                self._start(event)
            case ev.CellOutput() if event.call_id in self.open and not event.transient:
                apply_output(self.open[event.call_id].outputs, event)
            case ev.CellFinished() if event.call_id in self.open:
                self._finish(self.open[event.call_id], event)
            case ev.FilesChanged():
                self._change_files(event)
            case ev.ResultAdded() if event.name == "rebuild" and event.status in (Status.OK, Status.ERROR):
                self.rebuilt = True
            case ev.FinishAccepted() if story.tasks:
                story.tasks[-1].answer, story.tasks[-1].accepted = event.summary.strip(), True
            case ev.SessionEnded() if story.tasks:
                story.tasks[-1].ending = event.reason
            case _:
                pass

    def _reply(self, event: ev.ModelReplied) -> None:
        story = self.story
        calls = tuple(call.call_id for call in event.message.tool_calls)
        story.replies.append(Reply(len(story.tasks), event.message.text.strip(), calls))
        for call in event.message.tool_calls:
            self.open.pop(call.call_id, None)
            story.unrun[call.call_id] = str(call.arguments.get("code", "")) if call.name == "python" else ""

    def _start(self, event: ev.CellStarted) -> None:
        if self.lost:
            self.epoch, self.lost, self.types = self.epoch + 1, False, {}
        reply = max((i for i, one in enumerate(self.story.replies) if event.call_id in one.calls), default=-1)
        source = read_source(event.name, event.source)
        step = Step(len(self.story.steps), event.call_id, event.name, source, self.epoch, reply)
        step.rebuilt_before, self.rebuilt = self.rebuilt, False
        self.open[event.call_id] = step
        self.story.steps.append(step)
        self.story.unrun.pop(event.call_id, None)

    def _finish(self, step: Step, event: ev.CellFinished) -> None:
        step.status, step.count, step.elapsed = event.status, event.execution_count, event.elapsed
        if event.names is not None:
            self.types = {str(row.get("name")): str(row.get("type")) for row in event.names}
            step.made = frozenset(str(row["name"]) for row in event.names if row.get("cell") == event.execution_count)
        step.types = self.types
        if event.status is Status.KERNEL_DIED:
            self._lose_kernel()

    def _lose_kernel(self) -> None:
        self.lost = bool(self.story.steps)

    def _change_files(self, event: ev.FilesChanged) -> None:
        story = self.story
        story.files_known = True
        step = self.open.get(event.call_id)
        if step is None:  # a wait, or somebody else
            running = [one for one in story.steps if one.status is Status.RUNNING and one.epoch == self.epoch]
            if not running and event.name == "wait":
                running = [one for one in story.steps if one.source.kind in ("python", "shell", "opaque")]
            step = running[-1] if running else None
        for change in event.changes:
            if step is None or event.name == "outside":
                story.outside.append((len(story.steps), change))
            else:
                step.changes.append(change)

    def finish(self) -> Story:
        """The story, with what can only be said at its end."""
        for step in self.story.steps:
            step.outputs = [output for output in step.outputs if not is_derived(output)]
            if not step.ok:
                step.stopped_at = failing_line(step.outputs)
        for task, replies in self._last_replies():
            if not task.answer and replies and not replies[-1].calls:
                task.answer = replies[-1].text
        return self.story

    def _last_replies(self) -> Iterable[tuple[Task, list[Reply]]]:
        for number, task in enumerate(self.story.tasks, start=1):
            yield task, [reply for reply in self.story.replies if reply.prompt == number]


def failing_line(outputs: Sequence[JsonObject]) -> int:
    """The line of the cell at which its error arose: 0 where no traceback says it, -1 for a syntax error."""
    error = next((one for one in reversed(outputs) if one.get("output_type") == "error"), None)
    if error is None:
        return 0
    text = _ANSI.sub("", "\n".join(map(str, error.get("traceback", ()))))
    if error.get("ename") in ("SyntaxError", "IndentationError", "TabError") and "Traceback (most recent" not in text:
        return -1
    frame = _FRAME.search(text)
    if frame is None:
        return 0
    number = next((group for group in frame.groups() if group), None)
    arrow = _ARROW.search(text, frame.start())
    return int(number) if number else int(arrow[1]) if arrow else 0
