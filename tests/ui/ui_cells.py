"""A cell of a front-end as the ui tests see it, and events to fill it with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from harness_nb import events as ev
from harness_nb.ports import Delta
from harness_nb.types import Decision, Message, Status, ToolCall, Usage, text_content
from harness_nb.ui.html import Link
from harness_nb.ui.publish import Bundle, Canvas
from harness_nb.ui.screen import Screen

ALLOW = Decision(verdict="allow", reason="", policy="allow_all")


class Cell:
    """A publisher that keeps what a front-end would show, and counts messages."""

    def __init__(self) -> None:
        self.shown: list[Bundle] = []
        self.messages = 0

    def block(self, bundle: Bundle) -> Place:
        self.shown.append(bundle)
        self.messages += 1
        return Place(self, len(self.shown) - 1)

    @property
    def text(self) -> str:
        return "\n".join(str(bundle.data["text/plain"]) for bundle in self.shown)


class Place:
    def __init__(self, cell: Cell, index: int) -> None:
        self.cell, self.index = cell, index

    def update(self, bundle: Bundle) -> None:
        self.cell.shown[self.index] = bundle
        self.cell.messages += 1


class Clock:
    """Seconds that pass when told."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def shown(items: Iterable[ev.Event | Delta], clock: Clock | None = None, every: bool = False) -> Cell:
    """The cell after these items, drawn after each of them or once at the end."""
    cell, screen = Cell(), Screen(clock or Clock(), Link("harness_sessions/s.ipynb"))
    canvas = Canvas(cell)
    for item in items:
        screen.apply(item)
        if every:
            canvas.draw(screen.bundles())
    canvas.draw(screen.bundles())
    return cell


def decided(source: str = "", decision: Decision = ALLOW, **arguments: Any) -> ev.CallDecided:
    call = ToolCall(call_id="c1", name="python", arguments=arguments or {"code": source})
    return ev.CallDecided(call_id="c1", name="python", call=call, source=source, decision=decision)


def started(source: str = "1 + 1") -> ev.CellStarted:
    return ev.CellStarted(call_id="c1", name="python", source=source)


def output(text: str = "", stream: str = "stdout", **changes: Any) -> ev.CellOutput:
    made = {"output": {"output_type": "stream", "name": stream, "text": text}, **changes}
    return ev.CellOutput(call_id="c1", name="python", **made)


def finished(status: Status = Status.OK) -> ev.CellFinished:
    return ev.CellFinished(call_id="c1", name="python", status=status, elapsed=1.25)


def result(status: Status = Status.OK, text: str = "done") -> ev.ResultAdded:
    return ev.ResultAdded(call_id="c1", name="python", status=status, content=text_content(text))


def replied(text: str, usage: Usage | None = None) -> ev.ModelReplied:
    return ev.ModelReplied(
        turn=1, message=Message(role="assistant", content=text_content(text), usage=usage or Usage())
    )
