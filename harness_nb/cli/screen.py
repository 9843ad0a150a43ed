"""Screens of the command line: one for people (rich, on stderr), one for programs (JSON lines, on stdout).

A screen is a listener: it takes events and deltas one by one and draws. It must not import the session or IPython.
"""

from __future__ import annotations

import json
import sys
from typing import Protocol

from rich.console import Console
from rich.markup import escape
from rich.syntax import Syntax

from harness_nb import events as ev
from harness_nb.outputs import clean_text, head_and_tail, is_derived
from harness_nb.ports import Delta, ReasoningDelta, TextDelta, Withdrawn
from harness_nb.types import Status, Usage

SOURCE_LINES = 12
"""Lines of a cell's source that are shown; the whole is in the session notebook."""

OUTPUT_CHARACTERS, OUTPUT_LINES = 4000, 40
"""How much of one output is shown."""

_MARKS = {Status.OK: "[green]ok[/]", Status.ERROR: "[red]error[/]", Status.DENIED: "[yellow]denied[/]"}


class Screen(Protocol):
    """What the command line shows a run on."""

    def show(self, item: ev.Event | Delta) -> None:
        """Draw one item."""
        ...


class JsonScreen:
    """Every event as one JSON object a line; deltas are not events and are left out."""

    def show(self, item: ev.Event | Delta) -> None:
        """Print an event."""
        if isinstance(item, ev.EventBase):
            sys.stdout.write(json.dumps({"seq": item.seq, "time": item.time, **item.model_dump(mode="json")}) + "\n")
            sys.stdout.flush()


class PeopleScreen:
    """Streamed text, each call with its source, its outputs as text, and what came of it."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, highlight=False)
        self._streaming = False
        self._printed: dict[tuple[str, int | None], str] = {}

    def show(self, item: ev.Event | Delta) -> None:
        """Draw one item."""
        match item:
            case TextDelta():
                self._streaming = True
                self._console.print(item.text, end="", markup=False, soft_wrap=True)
            case ReasoningDelta():
                self._streaming = True
                self._console.print(item.text, end="", markup=False, style="dim italic", soft_wrap=True)
            case Withdrawn():
                self._line(f"[yellow]the text above is withdrawn: {escape(item.reason)}[/]")
            case _:
                self._show_event(item)

    def _show_event(self, event: ev.Event) -> None:
        match event:
            case ev.CellStarted() if event.name != "setup":
                self._line(f"[bold cyan]{event.name}[/]")
                self._console.print(_shown_source(event))
            case ev.CellOutput() if not event.transient and event.output is not None:
                self._output(event, event.output)
            case ev.CellFinished() if event.name != "setup":
                mark = _MARKS.get(event.status, f"[magenta]{event.status.value.replace('_', ' ')}[/]")
                self._line(f"{mark} [dim]{event.elapsed:.1f} s[/]")
            case ev.CallDecided() if event.decision.verdict != "allow":
                self._line(f"[yellow]{event.name}: {event.decision.verdict}[/] {escape(event.decision.reason)}")
            case ev.ApprovalAnswered():
                answer = "approved" if event.approval.approved else f"not approved: {escape(event.approval.reason)}"
                self._line(f"[yellow]{event.name}: {answer}[/]")
            case ev.CheckFinished():
                mark = "[green]passed[/]" if event.passed else "[red]failed[/]"
                self._line(f"check {mark}: {escape(event.command)} [dim]{event.elapsed:.1f} s[/]")
            case ev.FinishRejected():
                self._line("[yellow]the finish is refused[/]")
            case ev.LimitReached() | ev.Warned():
                self._line(f"[yellow]{escape(event.text)}[/]")
            case ev.Nudged():
                self._line(f"[dim]told the model: {escape(event.reason)}[/]")
            case ev.SessionEnded():
                self._line(ending_line(event))
            case _:
                if self._streaming:
                    self._line("")

    def _output(self, event: ev.CellOutput, output: dict[str, object]) -> None:
        """Print an output; of one that has only grown, what is new."""
        text = output_text(output).rstrip("\n")
        key = (event.call_id, event.index if event.op == "set" else None)
        before = self._printed.get(key, "")
        self._printed[key] = text
        text = text.removeprefix(before).lstrip("\n") if event.op == "set" and text.startswith(before) else text
        if text:
            self._line("")
            shown = head_and_tail(text, OUTPUT_CHARACTERS, OUTPUT_LINES)
            self._console.print(shown, markup=False, soft_wrap=True, style="dim")

    def _line(self, text: str) -> None:
        if self._streaming:
            self._console.print()
            self._streaming = False
        if text:
            self._console.print(text)


def ending_line(event: ev.SessionEnded) -> str:
    """The last line of a run, as rich markup: outcome, turns, tokens, cost and time."""
    colour = "green" if event.reason == "finished" else "yellow"
    why = f": {escape(event.text)}" if event.text else ""
    turns = f"{event.turns} turn{'' if event.turns == 1 else 's'}"
    reason = event.reason.replace("_", " ")
    return f"[bold {colour}]{reason}{why}[/] [dim]({turns}, {usage_text(event.usage)}, {event.elapsed:.1f} s)[/]"


def usage_text(usage: Usage) -> str:
    """Tokens and cost in words; what the provider did not say is unknown."""
    if usage.input_tokens is None and usage.output_tokens is None:
        return "tokens unknown"
    cost = "cost unknown" if usage.cost_usd is None else f"${usage.cost_usd:.4f}"
    return f"{usage.input_tokens or 0:,} tokens in, {usage.output_tokens or 0:,} out, {cost}"


def output_text(output: dict[str, object]) -> str:
    """An nbformat output as plain text for a terminal; of a plot of metrics the summary."""
    kind = output.get("output_type")
    if kind == "stream":
        return clean_text(str(output.get("text", "")))
    if kind == "error":
        traceback = output.get("traceback")
        return clean_text("\n".join(traceback) if isinstance(traceback, list) else "")
    data = output.get("data")
    if not isinstance(data, dict):
        return ""
    if is_derived(output):
        return str(data.get("text/plain", "")).split("\n")[0]
    pictures = [name for name in data if name.startswith("image/")]
    if pictures:
        return f"[{pictures[0]}: see the session notebook]"
    return clean_text(str(data.get("text/markdown") or data.get("text/plain", "")))


def _shown_source(event: ev.CellStarted) -> Syntax:
    lines = event.source.split("\n")
    more = [f"# ... {len(lines) - SOURCE_LINES} more lines"] if len(lines) > SOURCE_LINES else []
    language = "bash" if event.name == "bash" else "python"
    return Syntax("\n".join([*lines[:SOURCE_LINES], *more]), language, background_color="default", word_wrap=True)
