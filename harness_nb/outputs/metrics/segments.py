"""Stream text cut into lines, however it was chunked: what a newline ended, and what a carriage return overwrote.

``reader`` has one ``Segments`` for each stream. It imports nothing of ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_COLOR = re.compile(r"\x1b\[[0-9;]*m")
_ESCAPE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_BACK = re.compile(r"[\b\f\v]+")
_SEGMENT = re.compile(r"([^\r\n]*)([\r\n])")
_LONGEST = 2000
"""Characters of an unfinished line that are kept from chunk to chunk; a line as long as that is no line of metrics."""


class Line(NamedTuple):
    """A line, the ``time`` at which its last character came, and whether it is ``whole``: ended by a newline."""

    text: str
    time: float
    whole: bool


class Segments:
    """The lines of one stream.

    A cursor movement or a backspace ends a line as a carriage return does. The last line that a carriage return ended
    is held back until it is known whether a newline follows it, which makes it a whole one.
    """

    def __init__(self) -> None:
        self.pending = ""
        self.held: Line | None = None
        self._changed = 0.0
        self._before = 0.0

    def take(self, text: str, now: float) -> str:
        """Add ``text``; return what is complete now, without colours, each line with the character that ended it."""
        self._before = self._changed if text[:1] in "\r\n\b\x1b" else now
        text = self.pending + text
        if "\x1b" in text:
            text = _ESCAPE.sub("\r", _COLOR.sub("", text))
        if "\b" in text or "\f" in text or "\v" in text:
            text = _BACK.sub("\r", text)
        end = max(text.rfind("\n"), text.rfind("\r")) + 1
        if end or len(text) > len(self.pending):
            self._changed = now
        self.pending = text[end:][:_LONGEST]
        return text[:end]

    def split(self, block: str, now: float) -> Iterator[Line]:
        """The lines of what ``take`` has just returned; empty ones are left out."""
        time = self._before
        for match in _SEGMENT.finditer(block):
            text, whole = match[1], match[2] == "\n"
            held = self.held
            if held is not None and (text or whole):
                self.held = None
                yield held._replace(whole=whole and not text)
            if text and whole:
                yield Line(text, time, True)
            elif text:
                self.held = Line(text, time, False)
            time = now

    def finish(self) -> Iterator[Line]:
        """What is left: the stream has ended, or another look at it is the last."""
        rest, self.pending = self.pending, ""
        self._before = self._changed
        yield from self.split(f"{rest}\n", self._changed)
