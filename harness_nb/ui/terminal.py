"""The screen in a terminal: what happens is written line by line with rich.

The command line uses it, and the magics where there is no kernel to draw into. Text streams as it comes; outputs are
text, and pictures are named; the line that is being written, a progress bar perhaps, is redrawn in place. It must not
import IPython.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.syntax import Syntax
from rich.text import Text

from harness_nb import events as ev
from harness_nb.approval import visible
from harness_nb.consent import INVALID
from harness_nb.ports import CallDelta, Delta, ReasoningDelta, TextDelta, Withdrawn
from harness_nb.toolset import FINISH, WAIT
from harness_nb.types import Status, TextPart
from harness_nb.ui.last_line import count_turns, duration, judging_words, usage_words
from harness_nb.ui.source import call_title
from harness_nb.ui.written import WrittenOutputs

SOURCE_LINES = 12
"""Lines of a cell's source that are shown; the whole is in the session notebook."""

CHECK_LINES = 3
"""Last lines of a check's output that are shown; the whole is in the session notebook."""

_COLOURS = {Status.OK: "green", Status.ERROR: "red", Status.KERNEL_DIED: "red"}


class TerminalDisplay:
    """Writes a run to a console. ``summary`` says whether the agent's summary is part of it."""

    def __init__(self, console: Console, summary: bool = True) -> None:
        self._console = console
        self._summary = summary
        self._notebook: Path | None = None
        self._outputs: dict[str, WrittenOutputs] = {}
        self._latest = ""
        self._unrun: set[str] = set()
        self._in_line = False
        self._redrawn = False
        self._said = ""

    def open(self, notebook_path: Path) -> None:
        """The session is there, and this is its notebook."""
        self._notebook = notebook_path

    def draw(self) -> None:
        """Nothing is kept back: ``apply`` writes at once."""
        self._console.file.flush()

    def fail(self, text: str) -> None:
        """The work cannot go on."""
        self._line(f"✗ stopped: {text}", "bold red")

    def ask(self, open: bool) -> None:
        """The running code has put a question to the person, on a line of its own."""
        if open:
            self._line("")

    def buttons(self, shown: bool) -> None:
        """There are none in a terminal."""

    def apply(self, item: ev.Event | Delta) -> None:
        """Write one item."""
        match item:
            case TextDelta() | ReasoningDelta():
                self._write(item.text, "dim italic" if isinstance(item, ReasoningDelta) else "")
            case CallDelta():
                pass
            case Withdrawn():
                self._line(f"↻ withdrawn: {item.reason}", "yellow")
            case ev.ModelReplied():
                self._said = item.message.text
                self._line("")
            case ev.CallDecided() if item.name != "finish" or item.decision.verdict != "allow":
                self._call(item)
            case ev.CellStarted() | ev.CellOutput() | ev.CellFinished() if item.name != "setup":
                self._apply_cell(item)
            case ev.SessionEnded():
                self._end(item)
            case _:
                self._apply_note(item)

    def _apply_cell(self, event: ev.CellStarted | ev.CellOutput | ev.CellFinished) -> None:
        outputs = self._outputs.setdefault(event.call_id, WrittenOutputs())
        match event:
            case ev.CellStarted():
                self._latest = event.call_id
                self._unrun.discard(event.call_id)
            case ev.CellOutput():
                self._write_outputs(event, outputs.apply(event))
                self._redraw(outputs.unfinished)
            case ev.CellFinished():
                self._write_outputs(event, outputs.finish())
                words = f"{event.status.value.replace('_', ' ')} · {duration(event.elapsed)}"
                about = "" if event.call_id == self._latest else f"{event.name} {event.call_id}: "
                self._line(about + words, _COLOURS.get(event.status, "yellow"))
                del self._outputs[event.call_id]

    def _write_outputs(self, event: ev.CellOutput | ev.CellFinished, texts: list[str]) -> None:
        if texts and event.call_id != self._latest:
            self._latest = event.call_id
            self._line(f"… {event.name} {event.call_id}:", "dim")
        for text in texts:
            self._line("")
            self._print(Text.from_ansi(text), soft_wrap=True)

    def _apply_note(self, event: ev.Event) -> None:
        match event:
            case ev.SessionStarted() if words := judging_words(event):
                self._line(words, "dim")
            case ev.ApprovalAsked():
                self._line(f"? needs your approval: {event.decision.reason}", "yellow")
            case ev.ApprovalAnswered() if not event.approval.approved:
                self._line(f"⊘ denied: {event.approval.reason}", "yellow")
            case ev.CheckFinished():
                self._check(event)
            case ev.FinishAccepted() if self._summary and event.summary.strip() != self._said.strip():
                self._line(event.summary)
            case ev.FinishRejected():
                self._line("✗ the finish is not accepted", "red")
            case ev.ResultAdded():
                self._result(event)
            case ev.LimitReached() | ev.Warned():
                self._line(f"⚠ {event.text}", "yellow")
            case ev.ModelSwitched():
                self._line(f"⇄ the model is {event.model} now, before it was {event.before}", "dim")
            case ev.ContextCompacted():
                self._line(f"▤ too long for the model: {event.dropped} earlier messages were summarised", "dim")
            case ev.Nudged():
                self._line(f"↪ told the model: {event.reason}", "dim")
            case _:
                pass

    def _check(self, event: ev.CheckFinished) -> None:
        words, colour = ("passed", "green") if event.passed else ("failed", "red")
        self._line(f"check {words}: {event.command} · {duration(event.elapsed)}", colour)
        if event.exit_code is not None or not event.passed:
            self._line("\n".join(event.output.rstrip().splitlines()[-CHECK_LINES:]), "dim")

    def _result(self, event: ev.ResultAdded) -> None:
        """What is not seen otherwise: that it still runs, or why nothing was run."""
        if event.status is Status.RUNNING:
            self._line("▶ still running" if event.name == WAIT else f"▶ {event.call_id} is still running", "blue")
        elif event.status is Status.ERROR and event.call_id in self._unrun and event.name != FINISH:
            self._line(f"✗ {' '.join(part.text for part in event.content if isinstance(part, TextPart))}", "red")
        self._unrun.discard(event.call_id)

    def _call(self, event: ev.CallDecided) -> None:
        self._line("")
        invalid = event.decision.policy == INVALID
        about = json.dumps(event.call.arguments) if invalid else call_title(event.name, event.call.arguments)
        title = Text.assemble("\n", (event.name, "bold cyan"), " ", about)
        self._print(title, no_wrap=True, overflow="ellipsis")
        lines = visible(event.source).splitlines()
        if lines and _says_more(event, self._console.width):
            limit = len(lines) if event.decision.verdict == "ask" else SOURCE_LINES
            left = len(lines) - limit
            more = [f"# … {left} more line{'s' if left > 1 else ''}"] if left > 0 else []
            language = "bash" if lines[0].startswith("%%bash") else "python"
            code = "\n".join([*lines[:limit], *more])
            self._print(Syntax(code, language, background_color="default", word_wrap=True))
        if event.decision.verdict == "deny":
            self._line(f"{'✗ not run' if invalid else '⊘ denied'}: {event.decision.reason}", "yellow")
        else:
            self._unrun.add(event.call_id)

    def _end(self, event: ev.SessionEnded) -> None:
        words = event.reason.replace("_", " ") + (f": {event.text}" if event.text else "")
        facts = [count_turns(event.turns), *usage_words(event.usage)] if event.turns else []
        facts.append(duration(event.elapsed))
        if self._notebook is not None:
            facts.append(os.path.relpath(self._notebook))
        colour = "bold green" if event.reason == "finished" else "bold yellow"
        self._line("")
        self._print(Text.assemble((words, colour), " · ", " · ".join(facts)), soft_wrap=True)

    def _write(self, text: str, style: str) -> None:
        self._print(Text(text, style), end="", soft_wrap=True)
        self._in_line = True

    def _line(self, text: str, style: str = "") -> None:
        """A line of its own; an empty one only ends what was being written."""
        self._redraw("")
        if self._in_line:
            self._in_line = False
            self._print()
        if text:
            self._print(Text(text, style), soft_wrap=True)

    def _redraw(self, line: str) -> None:
        """Show ``line`` as the last one, until something else is written."""
        if not self._console.is_terminal or not (line or self._redrawn):
            return
        self._console.file.write(f"\r\x1b[2K{line[: max(self._console.width - 1, 0)]}")
        self._console.file.flush()
        self._redrawn = bool(line)

    def _print(self, *what: Any, **how: Any) -> None:
        self._redraw("")
        self._console.print(*what, **how)


def _says_more(event: ev.CallDecided, width: int) -> bool:
    """Whether the source of a cell tells a person more than its title: not where the title is all of it."""
    if event.decision.verdict == "ask":
        return True
    lines = event.source.splitlines()
    if lines[:1] == ["%%bash"] and len(lines) == 2:
        return len(event.name) + 1 + len(lines[1]) > width
    return len(lines) > 1 or not event.source.startswith(f"{event.name}(")
