"""The whole text of a cell, on its way to a file that is written only when something had to be left out elsewhere.

The firewall writes to it; the store supplies the ``Sink``. Nothing here opens a file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from harness_nb.outputs.bounds import Amount, measure


class Sink(Protocol):
    """Where the whole text goes: a file that the store opens at the first ``write``.

    ``path`` is relative to the workspace, as the model would name it.
    """

    path: str

    def write(self, text: str) -> None:
        """Append ``text``."""
        ...


@dataclass(frozen=True, slots=True)
class Offloaded:
    """The file that holds a whole output. Sizes are of the file."""

    path: str
    bytes: int
    lines: int


class WholeText:
    """Collects plain text; holds it back, up to ``limit`` characters, until ``spill`` says that the file is needed."""

    def __init__(self, sink: Sink | None, limit: int) -> None:
        self._sink = sink
        self._limit = limit
        self._pending: list[str] = []
        self._pending_chars = 0
        self._written = Amount()
        self._spilled = False

    @property
    def path(self) -> str | None:
        """Where the whole text can be read once it has been spilled."""
        return self._sink.path if self._sink else None

    @property
    def offloaded(self) -> Offloaded | None:
        """What the file holds, or ``None`` when none was needed."""
        if self._sink is None or not self._spilled:
            return None
        return Offloaded(self._sink.path, self._written.bytes, self._written.lines)

    def add(self, text: str) -> None:
        """Append ``text``, which holds no colours."""
        if not text or self._sink is None:
            return
        if self._spilled:
            self._write(text)
            return
        self._pending.append(text)
        self._pending_chars += len(text)
        if self._pending_chars > self._limit:
            self.spill()

    def spill(self) -> None:
        """Write what was held back, and everything that follows."""
        if not self._spilled:
            self._spilled = True
            self._write("".join(self._pending))
            self._pending.clear()

    def forget(self) -> None:
        """Drop what was held back: the outputs were cleared. What is in the file stays there."""
        self._pending.clear()
        self._pending_chars = 0

    def _write(self, text: str) -> None:
        if self._sink is not None and text:
            self._sink.write(text)
            self._written += measure(text)
