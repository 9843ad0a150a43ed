"""The parts of the screen: a reply, a call with its outputs, a note. Each turns events into bundles. Pure."""

from __future__ import annotations

from typing import Protocol

from harness_nb import events as ev
from harness_nb.outputs import apply_output
from harness_nb.types import JsonObject, Status, TextPart
from harness_nb.ui import html
from harness_nb.ui.html import CallState
from harness_nb.ui.last_line import duration
from harness_nb.ui.markdown import inert_markdown, pieces
from harness_nb.ui.publish import Bundle
from harness_nb.ui.relay import relay
from harness_nb.ui.source import call_title

_STATES = {
    Status.OK: CallState("✓", "", html.GREEN),
    Status.ERROR: CallState("✗", "error", html.RED),
    Status.DENIED: CallState("⊘", "denied", html.AMBER),
    Status.INTERRUPTED: CallState("■", "interrupted", html.AMBER),
    Status.TIMED_OUT: CallState("■", "timed out", html.AMBER),
    Status.RUNNING: CallState("▶", "still running", html.BLUE),
    Status.KERNEL_DIED: CallState("✗", "kernel died", html.RED),
    Status.UNKNOWN: CallState("?", "outcome unknown", html.AMBER),
}

_BUSY = CallState("●", "running", html.BLUE)
_DECIDED = CallState("○", "", html.GREY)
_ALLOWED = CallState("○", "allowed", html.GREY)
_ASKED = CallState("?", "waiting for your answer", html.AMBER)

NOTE_LENGTH = 400
"""Characters of a reason that is shown under a call."""


class Section(Protocol):
    """A part of the screen."""

    def bundles(self) -> list[Bundle]:
        """What it shows now."""
        ...


class Note:
    """Something that is said once."""

    def __init__(self, bundle: Bundle) -> None:
        self._bundles = [bundle]

    def bundles(self) -> list[Bundle]:
        """The note."""
        return self._bundles


class Reply:
    """A reply of the model: a folded summary of its reasoning, if it gives one, and its text as Markdown."""

    def __init__(self) -> None:
        self._text = ""
        self._reasoning = ""
        self._withdrawn: str | None = None
        self._shown: list[Bundle] | None = None

    def add_text(self, text: str) -> None:
        """A piece of the text has arrived."""
        self._text += text
        self._shown = None

    def add_reasoning(self, text: str) -> None:
        """A piece of the reasoning summary has arrived."""
        self._reasoning += text
        self._shown = None

    def settle(self, text: str) -> None:
        """The whole text is known."""
        self._text = text
        self._shown = None

    def withdraw(self, reason: str) -> None:
        """What has arrived does not count."""
        self._withdrawn = reason
        self._shown = None

    def stop(self) -> None:
        """No more will come of a reply that is not whole."""
        if self._text:
            self.withdraw("stopped before the reply was whole")

    def bundles(self) -> list[Bundle]:
        """Reasoning and text, or the note that they are withdrawn."""
        if self._shown is None:
            self._shown = self._render()
        return self._shown

    def _render(self) -> list[Bundle]:
        if self._withdrawn is not None:
            words = f"Withdrawn: {self._withdrawn}." if self._text else f"{self._withdrawn}."
            return [html.note_block("↻", words, html.AMBER, self._text, "the partial text")]
        shown = []
        if self._reasoning.strip():
            count = len(self._reasoning.split())
            shown.append(html.note_block("✻", "Reasoning", html.GREY, self._reasoning, f"{count:,} words"))
        for piece in pieces(self._text):
            if piece.strip():
                shown.append(Bundle({"text/markdown": inert_markdown(piece), "text/plain": piece}))
        return shown


class Call:
    """A tool call: a titled block, and its outputs below. A ``quiet`` one is shown only if it ends badly."""

    def __init__(self, name: str, quiet: bool = False) -> None:
        self.over = False
        self._name = name
        self._watches = name == "wait"
        self._started = False
        self._quiet = quiet
        self._title = ""
        self._source = ""
        self._state = _DECIDED
        self._note = ""
        self._asked_for = ""
        self._offered = False
        self._question: Bundle | None = None
        self._outputs: list[JsonObject] = []
        self._shown: list[Bundle] | None = None

    def apply(self, event: ev.CallEvent) -> None:
        """Fold an event about this call."""
        match event:
            case ev.CallDecided():
                self._title = call_title(event.name, event.call.arguments)
                self._source = event.source
                self._state = _BUSY if self._watches else _DECIDED
                self._note = event.decision.reason if event.decision.verdict == "deny" else ""
            case ev.ApprovalAsked():
                self._state, self._asked_for = _ASKED, event.decision.reason
                self._question = html.note_block("?", f"Needs your approval: {self._asked_for}", html.AMBER)
            case ev.ApprovalAnswered():
                self._answer(event)
            case ev.CellStarted():
                self._source, self._state, self._started = event.source, _BUSY, True
            case ev.CellOutput():
                apply_output(self._outputs, event)
            case ev.CellFinished():
                self._finish(event.status, event.elapsed)
            case ev.ResultAdded():
                if not self.over:
                    self._take_result(event)
        self._shown = None

    @property
    def running(self) -> bool:
        """Whether its cell is running."""
        return self._started and not self.over

    def ask(self, open: bool) -> None:
        """Its code has put a question to the person; or it has got its answer."""
        if self.running:
            self._state = _ASKED if open else _BUSY
            self._shown = None

    def offer(self, shown: bool) -> None:
        """Reason, source and buttons are shown below the cell; or they are not."""
        if shown is not self._offered:
            self._offered, self._shown = shown, None

    def stop(self) -> None:
        """The work has ended; a call that has not is interrupted."""
        if not self.over:
            self._finish(Status.INTERRUPTED)
            self._shown = None

    def bundles(self) -> list[Bundle]:
        """The block and the outputs."""
        if self._shown is None:
            self._shown = [] if self._quiet and (not self.over or self._state.colour == html.GREEN) else self._render()
        return self._shown

    def _answer(self, event: ev.ApprovalAnswered) -> None:
        approval = event.approval
        if approval.approved:
            self._state = _BUSY if self._watches else _ALLOWED
            self._question = html.note_block("✓", f"Allowed by {approval.by}: {self._asked_for}", html.GREY)
        else:
            self._state = _STATES[Status.DENIED]
            self._question = html.note_block("⊘", approval.reason or f"Not allowed by {approval.by}", html.AMBER)

    def _take_result(self, event: ev.ResultAdded) -> None:
        """Nothing was run, or the cell goes on by itself and more may come."""
        self._finish(event.status)
        if self._started and event.status is Status.RUNNING:
            self.over = False
        elif event.status in (Status.DENIED, Status.ERROR) and not (self._note or self._question or self._watches):
            self._note = " ".join(part.text for part in event.content if isinstance(part, TextPart))

    def _finish(self, status: Status, elapsed: float | None = None) -> None:
        self.over = True
        ended = _STATES[status]
        words = [ended.words, *([duration(elapsed)] if elapsed is not None else [])]
        self._state = CallState(ended.sign, " · ".join(word for word in words if word), ended.colour)

    def _render(self) -> list[Bundle]:
        asked = self._state is _ASKED
        offered = asked and self._offered
        unfold = not offered if asked else None  # what is offered is shown whole beside the buttons
        block = html.call_block(self._name, self._title, self._source, self._state, _shortened(self._note), unfold)
        look = self._name in html.SHORT
        outputs = [relay(output, running=not self.over, look=look) for output in self._outputs]
        question = [self._question] if self._question and not offered else []
        return [block, *question, *(bundle for bundle in outputs if bundle is not None)]


def check_note(event: ev.CheckFinished) -> Bundle:
    """One line about a check, its output folded."""
    sign, colour = ("✓", html.GREEN) if event.passed else ("✗", html.RED)
    code = "" if event.exit_code in (0, None) else f", exit {event.exit_code}"
    words = f"check {'passed' if event.passed else 'failed'}: {event.command}"
    summary = f"{duration(event.elapsed)}{code}"
    return html.note_block(sign, words, colour, event.output or "(no output)", summary)


def _shortened(text: str) -> str:
    return text if len(text) <= NOTE_LENGTH else text[: NOTE_LENGTH - 1] + "…"
