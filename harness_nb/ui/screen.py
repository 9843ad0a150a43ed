"""The screen in the notebook: a fold of events and deltas into the bundles that a ``%%agent`` cell shows.

``ui.run`` feeds it and draws its ``bundles()`` a few times a second; nothing is sent from here. Replies are Markdown,
calls are titled blocks with their outputs below them, everything else is one line, and the last line says how it
stands. It must not import IPython or a kernel library.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, assert_never

from harness_nb import events as ev
from harness_nb.budget import add_usage
from harness_nb.outputs import format_bytes
from harness_nb.ports import CallDelta, Delta, ReasoningDelta, TextDelta, Withdrawn
from harness_nb.recordings import REPLAY
from harness_nb.types import Usage
from harness_nb.ui import html
from harness_nb.ui.html import Link
from harness_nb.ui.last_line import duration, ended_line, judging_words, running_line
from harness_nb.ui.publish import Bundle, Canvas
from harness_nb.ui.sections import Call, Note, Reply, Section, check_note

S = TypeVar("S", bound=Section)

FINISH = "finish"
SETUP = "setup"
WAIT = "wait"

ModelItem = TextDelta | ReasoningDelta | CallDelta | Withdrawn | ev.ModelRequested | ev.ModelReplied
NoteItem = (
    ev.ContextOffloaded
    | ev.ContextCompacted
    | ev.ModelSwitched
    | ev.Nudged
    | ev.PlanUpdated
    | ev.CheckFinished
    | ev.FinishAccepted
    | ev.FinishRejected
    | ev.LimitReached
    | ev.Warned
)


class Screen:
    """What one ``%%agent`` cell shows. ``clock`` gives seconds and only ever goes forward."""

    def __init__(self, clock: Callable[[], float], link: Link | None = None) -> None:
        self.link = link
        self._clock = clock
        self._started = clock()
        self._sections: list[Section] = []
        self._calls: dict[str, Call] = {}
        self._reply: Reply | None = None
        self._refusal = ""
        self._said = ""
        self._checks = 0
        self._turn = 0
        self._usage = Usage()
        self._ended: Bundle | None = None
        self._asked: set[str] = set()
        self.buttons = False
        """Whether approvals are asked for by buttons, and not by a line below the cell's output."""
        self._code_asks = False
        self._asking_call: Call | None = None
        self._activity = ""
        self._since = 0.0
        self._do("starting")

    def apply(self, item: ev.Event | Delta) -> None:
        """Fold one item."""
        match item:
            case TextDelta() | ReasoningDelta() | CallDelta() | Withdrawn() | ev.ModelRequested() | ev.ModelReplied():
                self._apply_model(item)
            case ev.SessionStarted():
                if words := judging_words(item):
                    self._add(Note(html.note_block("⚖", words, html.GREY)))
                self._do("starting the tool kernel")
            case ev.PromptAdded() | ev.FilesChanged() | ev.NetworkUsed():
                pass
            case ev.SessionEnded():
                self._end(item)
            case (
                ev.CallDecided()
                | ev.ApprovalAsked()
                | ev.ApprovalAnswered()
                | ev.CellStarted()
                | ev.CellOutput()
                | ev.CellFinished()
                | ev.ResultAdded()
            ):
                self._usage = add_usage(self._usage, ev.usage_of(item) or Usage())
                self._apply_call(item)
            case _:
                self._apply_note(item)

    @property
    def asking(self) -> bool:
        """Whether a question to the person is open."""
        return (bool(self._asked) and not self.buttons) or self._code_asks

    def ask(self, open: bool) -> None:
        """The code of the latest call that runs asks the person; or it has got its answer."""
        if open:
            self._asking_call = next((call for call in reversed(self._calls.values()) if call.running), None)
        if self._asking_call is not None:
            self._asking_call.ask(open)
        self._code_asks = open

    def offer(self, shown: bool) -> None:
        """Approvals are asked for by buttons below the cell; or by a line that is typed."""
        self.buttons = shown
        for call in self._calls.values():
            call.offer(shown)

    def fail(self, text: str) -> None:
        """The work cannot go on, and there will be no ``SessionEnded``."""
        self._stop_sections()
        elapsed = duration(self._clock() - self._started)
        self._ended = html.last_line("✗", f"stopped: {text}", [elapsed], html.RED, self.link)

    def bundles(self) -> list[Bundle]:
        """What the cell shows now; a bundle that has not changed is the same object as before.

        While a question is open there is no last line: the front-end puts the question at the end of the cell.
        """
        shown = [bundle for section in self._sections for bundle in section.bundles()]
        return shown if self.asking else [*shown, self._last_line()]

    def _apply_model(self, item: ModelItem) -> None:
        match item:
            case ev.ModelRequested():
                self._turn = item.turn
                self._reply = None
                played = item.model.startswith(REPLAY)
                of = item.model.removeprefix(REPLAY)
                self._do(f"playing the recording of {of}" if played else f"waiting for {of}")
            case TextDelta():
                self._do("writing")
                self._current_reply().add_text(item.text)
            case ReasoningDelta():
                self._do("thinking")
                self._current_reply().add_reasoning(item.text)
            case CallDelta():
                self._do(f"writing a call of {item.name}" if item.name else "writing a call")
            case Withdrawn():
                self._current_reply().withdraw(item.reason)
                self._reply = None
                self._do("waiting for the model")
            case ev.ModelReplied():
                if item.message.text or self._reply:
                    self._current_reply().settle(item.message.text)
                self._said = item.message.text
                self._reply = None
                self._usage = add_usage(self._usage, item.message.usage or Usage())
            case _:
                assert_never(item)

    def _current_reply(self) -> Reply:
        if self._reply is None:
            self._reply = self._add(Reply())
        return self._reply

    def _apply_call(self, item: ev.CallEvent) -> None:
        if item.name == FINISH and (isinstance(item, ev.ResultAdded) or item.call_id not in self._calls):
            return
        call = self._calls.get(item.call_id)
        if call is None or (isinstance(item, ev.CallDecided) and call.over):
            call = self._calls[item.call_id] = self._add(Call(item.name, quiet=item.name == SETUP))
        call.apply(item)
        call.offer(self.buttons)
        self._note_question(item)
        match item:
            case ev.CallDecided() if item.name == WAIT:
                self._do("watching a call that runs")
            case ev.CellStarted():
                self._do("starting the tool kernel" if item.name == SETUP else f"running {item.name}")
            case _:
                pass

    def _note_question(self, item: ev.CallEvent) -> None:
        if isinstance(item, ev.ApprovalAsked):
            self._asked.add(item.call_id)
            self._do("waiting for your answer")
        elif isinstance(item, ev.ApprovalAnswered | ev.ResultAdded):
            self._asked.discard(item.call_id)

    def _apply_note(self, item: NoteItem) -> None:
        match item:
            case ev.CheckFinished():
                self._add(Note(check_note(item)))
            case ev.FinishAccepted():
                self._checks = item.checks
                if item.summary.strip() and item.summary.strip() != self._said.strip():
                    self._add(Reply()).settle(item.summary)
            case ev.FinishRejected():
                self._refusal = item.reason
                self._add(Note(html.note_block("✗", "The finish is not accepted.", html.RED, item.reason, "why")))
            case ev.Nudged():
                if not self._refusal or not item.text.endswith(self._refusal):
                    words = f"Told the model: {item.reason}."
                    self._add(Note(html.note_block("↪", words, html.GREY, item.text, "in full")))
            case ev.LimitReached() | ev.Warned():
                self._add(Note(html.note_block("⚠", item.text, html.AMBER)))
            case ev.PlanUpdated():
                steps = [(str(step.get("status", "")), str(step.get("step", step))) for step in item.steps]
                self._add(Note(html.checklist(steps)))
            case ev.ContextOffloaded():
                words = f"{item.lines:,} lines ({format_bytes(item.bytes)}) in full:"
                self._add(Note(html.note_block("▤", words, html.GREY, link=self._link_to(item.path))))
            case ev.ModelSwitched():
                self._add(
                    Note(
                        html.note_block("⇄", f"The model is {item.model} now, before it was {item.before}.", html.GREY)
                    )
                )
            case ev.ContextCompacted():
                self._usage = add_usage(self._usage, ev.usage_of(item) or Usage())
                many = "1 earlier message was" if item.dropped == 1 else f"{item.dropped} earlier messages were"
                words = f"The conversation was too long for the model: {many} summarised."
                self._add(Note(html.note_block("▤", words, html.GREY, item.summary, "summary")))
            case _:
                assert_never(item)

    def _link_to(self, path: str) -> Link:
        """A link to a file of the workspace, which is two folders above the session notebook."""
        workspace = posixpath.dirname(posixpath.dirname(self.link.path)) if self.link else ""
        return Link(posixpath.join(workspace, path), path)

    def _add(self, section: S) -> S:
        self._sections.append(section)
        return section

    def _do(self, activity: str) -> None:
        if activity != self._activity:
            self._activity, self._since = activity, self._clock()

    def _end(self, event: ev.SessionEnded) -> None:
        self._stop_sections()
        self._asked, self._code_asks = set(), False
        self._ended = ended_line(event, self._checks, self.link)

    def _stop_sections(self) -> None:
        for call in self._calls.values():
            call.stop()
        if self._reply is not None:
            self._reply.stop()

    def _last_line(self) -> Bundle:
        if self._ended is not None:
            return self._ended
        now = self._clock()
        spent = self._usage if self._turn else None
        return running_line(self._activity, now - self._since, self._turn, now - self._started, spent, self.link)


class CellDisplay:
    """A screen on the canvas of one cell. ``folder`` is the folder of the notebook, from which links lead."""

    def __init__(self, screen: Screen, canvas: Canvas, folder: Path) -> None:
        self._screen = screen
        self._canvas = canvas
        self._folder = folder

    def open(self, notebook_path: Path) -> None:
        """The session is there, and this is its notebook."""
        self._screen.link = Link(Path(os.path.relpath(notebook_path, self._folder)).as_posix())

    def apply(self, item: ev.Event | Delta) -> None:
        """Fold one item."""
        self._screen.apply(item)

    def fail(self, text: str) -> None:
        """The work cannot go on."""
        self._screen.fail(text)

    def ask(self, open: bool) -> None:
        """The running code has put a question to the person, which the front-end shows below; or it has its answer."""
        self._screen.ask(open)
        self.draw()

    def buttons(self, shown: bool) -> None:
        """Approvals are asked for by buttons below the cell; or by a line that is typed."""
        self._screen.offer(shown)
        self.draw()

    def draw(self) -> None:
        """Send what has changed."""
        self._canvas.draw(self._screen.bundles())
        if self._screen.asking:
            self._canvas.give_up_blanks()
