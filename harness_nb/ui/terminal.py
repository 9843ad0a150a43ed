"""The screen in a terminal: what happens is written line by line with rich. Used where there is no kernel to draw into.

Text streams as it comes; outputs are text, and pictures are named. It must not import IPython.
"""

from __future__ import annotations

import os
from pathlib import Path

from rich.console import Console
from rich.syntax import Syntax
from rich.text import Text

from harness_nb import events as ev
from harness_nb.outputs import apply_output, is_derived
from harness_nb.ports import Delta, ReasoningDelta, TextDelta, Withdrawn
from harness_nb.types import JsonObject, Status
from harness_nb.ui.last_line import count_turns, duration, usage_words
from harness_nb.ui.source import call_title, visible

SOURCE_LINES = 12
"""Lines of a cell's source that are shown; the whole is in the session notebook."""

_COLOURS = {Status.OK: "green", Status.ERROR: "red", Status.KERNEL_DIED: "red"}


class TerminalDisplay:
    """Writes a run to a console."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._notebook: Path | None = None
        self._outputs: list[JsonObject] = []
        self._written = 0
        self._in_line = False
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

    def apply(self, item: ev.Event | Delta) -> None:
        """Write one item."""
        match item:
            case TextDelta() | ReasoningDelta():
                self._write(item.text, "dim italic" if isinstance(item, ReasoningDelta) else "")
            case Withdrawn():
                self._line(f"↻ withdrawn: {item.reason}", "yellow")
            case ev.ModelReplied():
                self._said = item.message.text
                self._line("")
            case ev.CallDecided() if item.source or item.decision.verdict != "allow":
                self._call(item)
            case ev.CellStarted():
                self._outputs, self._written = [], 0
            case ev.CellOutput():
                apply_output(self._outputs, item)
                self._write_outputs(settled=False)
            case ev.CellFinished() if item.name != "setup":
                self._write_outputs(settled=True)
                words = item.status.value.replace("_", " ")
                self._line(f"{words} · {duration(item.elapsed)}", _COLOURS.get(item.status, "yellow"))
            case ev.SessionEnded():
                self._end(item)
            case _:
                self._apply_note(item)

    def _apply_note(self, event: ev.Event) -> None:
        match event:
            case ev.ApprovalAsked():
                self._line(f"? needs your approval: {event.decision.reason}", "yellow")
            case ev.ApprovalAnswered() if not event.approval.approved:
                self._line(f"⊘ denied: {event.approval.reason}", "yellow")
            case ev.CheckFinished():
                words, colour = ("passed", "green") if event.passed else ("failed", "red")
                self._line(f"check {words}: {event.command} · {duration(event.elapsed)}", colour)
            case ev.FinishAccepted() if event.summary.strip() != self._said.strip():
                self._line(event.summary)
            case ev.FinishRejected():
                self._line("✗ the finish is not accepted", "red")
            case ev.LimitReached() | ev.Warned():
                self._line(f"⚠ {event.text}", "yellow")
            case ev.Nudged():
                self._line(f"↪ told the model: {event.reason}", "dim")
            case _:
                pass

    def _call(self, event: ev.CallDecided) -> None:
        self._line("")
        self._console.print(Text.assemble((event.name, "bold cyan"), " ", call_title(event.name, event.call.arguments)))
        lines = visible(event.source).splitlines()
        if lines:
            limit = len(lines) if event.decision.verdict == "ask" else SOURCE_LINES
            more = [f"# … {len(lines) - limit} more lines"] if len(lines) > limit else []
            language = "bash" if lines[0].startswith("%%bash") else "python"
            code = "\n".join([*lines[:limit], *more])
            self._console.print(Syntax(code, language, background_color="default", word_wrap=True))
        if event.decision.verdict == "deny":
            self._line(f"⊘ denied: {event.decision.reason}", "yellow")

    def _write_outputs(self, settled: bool) -> None:
        """Write the outputs that will not change any more: all but the last, or all, what was derived from them too."""
        outputs = self._outputs if settled else [output for output in self._outputs if not is_derived(output)]
        end = len(outputs) if settled else len(outputs) - 1
        for output in outputs[self._written : max(end, self._written)]:
            text = output_text(output)
            if text.strip():
                self._console.print(Text.from_ansi(text.rstrip("\n")), soft_wrap=True)
        self._written = max(end, self._written)

    def _end(self, event: ev.SessionEnded) -> None:
        words = event.reason.replace("_", " ") + (f": {event.text}" if event.text else "")
        facts = [count_turns(event.turns), *usage_words(event.usage)] if event.turns else []
        facts.append(duration(event.elapsed))
        if self._notebook is not None:
            facts.append(os.path.relpath(self._notebook))
        colour = "bold green" if event.reason == "finished" else "bold yellow"
        self._line("")
        self._console.print(Text.assemble((words, colour), " · ", " · ".join(facts)), soft_wrap=True)

    def _write(self, text: str, style: str) -> None:
        self._console.print(Text(text, style), end="", soft_wrap=True)
        self._in_line = True

    def _line(self, text: str, style: str = "") -> None:
        """A line of its own; an empty one only ends what was being written."""
        if self._in_line:
            self._console.print()
            self._in_line = False
        if text:
            self._console.print(Text(text, style), soft_wrap=True)


def output_text(output: JsonObject) -> str:
    """An output in nbformat's form as text for a terminal; colours stay. Of a plot of metrics it is the summary."""
    if output["output_type"] == "stream":
        return str(output["text"])
    if output["output_type"] == "error":
        return "\n".join(output["traceback"]) or f"{output['ename']}: {output['evalue']}"
    if is_derived(output):
        return str(output["data"]["text/plain"].split("\n")[0])
    pictures = [kind for kind in output["data"] if kind.startswith("image/")]
    if pictures:
        return f"[{pictures[0]}: see the session notebook]"
    return str(output["data"].get("text/plain", f"[{', '.join(output['data'])}: see the session notebook]"))
