"""A sink in memory, and a cell that is driven the way the session drives one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from harness_nb.events import CellOutput
from harness_nb.outputs import Firewall, apply_output
from harness_nb.ports import Output


class MemorySink:
    path = "harness_sessions/s/outputs/c1.txt"

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> None:
        assert text, "a write of nothing"
        self.text += text


class Cell:
    """Feeds a firewall and folds its events twice: all of them, and the lasting ones."""

    def __init__(self, tool: str = "python", **options: Any) -> None:
        self.sink = MemorySink()
        self.firewall = Firewall("c1", tool, sink=self.sink, **options)
        self.events: list[CellOutput] = []
        self.screen: list[dict[str, Any]] = []
        self.record: list[dict[str, Any]] = []
        self.now = 0.0

    def run(self, outputs: Iterable[Output], step: float = 0.01) -> Cell:
        for output in outputs:
            self.feed(output, step)
        return self.close()

    def feed(self, output: Output, step: float = 0.01) -> list[CellOutput]:
        self.firewall.feed(output)
        self.now += step
        return self.take(self.firewall.drain(self.now))

    def close(self) -> Cell:
        self.take(self.firewall.close(self.now))
        assert self.screen == self.record == list(self.firewall.outputs)
        return self

    def take(self, events: list[CellOutput]) -> list[CellOutput]:
        for event in events:
            apply_output(self.screen, event)
            if not event.transient:
                apply_output(self.record, event)
        self.events += events
        return events

    @property
    def texts(self) -> list[tuple[str, str]]:
        return [
            (
                output.get("name", output["output_type"]),
                output.get("text", output.get("data", {}).get("text/plain", "")),
            )
            for output in self.record
        ]
