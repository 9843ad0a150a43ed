"""The cells of a session notebook while they are being made: what each shows, and the machine data that it carries.

``NotebookFold`` makes them and hands them events. A cell is built into nbformat's form when asked, and built again only
when an event has changed it.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from harness_nb.events import EventBase
from harness_nb.notebook.machine import dump_event
from harness_nb.notebook.serial import Piece
from harness_nb.outputs.mime import clean_json, replace_surrogates
from harness_nb.types import JsonObject, ToolCall

KEY = "harness_nb"
"""The one metadata key under which all machine data is."""


class Cell(ABC):
    """One cell. ``events`` are those that were folded into it, in order."""

    def __init__(self, number: int, kind: str) -> None:
        slug = re.sub(r"[^a-z0-9]+", "-", kind.lower()).strip("-")[:40] or "cell"
        self.id = f"step-{number:04d}-{slug}"
        self.events: list[EventBase] = []
        self._pieces: list[Piece] | None = None

    def add(self, event: EventBase) -> None:
        """Fold an event in; the cell will be built again."""
        self.events.append(event)
        self._pieces = None

    def touch(self) -> None:
        """What the cell shows has changed."""
        self._pieces = None

    def pieces(self) -> list[Piece]:
        """The cell in nbformat's form, after what goes before it. The same objects until it changes; frozen."""
        if self._pieces is None:
            first, last = (self.events[0].seq, self.events[-1].seq) if self.events else (0, 0)
            self._pieces = [Piece(built, first, last) for built in self._build()]
        return self._pieces

    @abstractmethod
    def _build(self) -> list[JsonObject]: ...

    def _machine_data(
        self, outputs: Sequence[JsonObject] = (), replied: ToolCall | None = None, **more: Any
    ) -> JsonObject:
        return {
            **clean_json(more),
            "events": [dump_event(event, self.events, outputs, replied) for event in self.events],
        }


class MarkdownCell(Cell):
    """Prose. ``text`` is Markdown, or a function that writes it when the cell is built."""

    def __init__(self, number: int, kind: str, text: str | Callable[[], str]) -> None:
        super().__init__(number, kind)
        self.text = text

    def _build(self) -> list[JsonObject]:
        text = self.text if isinstance(self.text, str) else self.text()
        return [markdown_cell(self.id, text, {KEY: self._machine_data()})]


def markdown_cell(cell_id: str, text: str, metadata: JsonObject) -> JsonObject:
    """A Markdown cell in nbformat's form."""
    return {"cell_type": "markdown", "id": cell_id, "metadata": metadata, "source": replace_surrogates(text)}
