"""Server-sent events out of bytes. Pure; only ``endpoint`` uses it.

Format: WHATWG HTML, "Server-sent events", section 9.2.6. Decoding it here and not in the provider's client keeps the
items of a reply exactly as they came, and lets ``[DONE]``, a broken line and the end of the stream be told apart.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_LINE_END = re.compile(rb"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event: its name (empty where none was given) and its data."""

    name: str
    data: str


class EventDecoder:
    """Collects bytes until they make events; ``feed`` each chunk, then ``close``."""

    def __init__(self) -> None:
        self._rest = b""
        self._name = ""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """The events that this chunk completes."""
        text = self._rest + chunk
        held = b"\r" if text.endswith(b"\r") else b""  # its \n may be in the next chunk
        *lines, rest = _LINE_END.split(text.removesuffix(held))
        self._rest = rest + held
        return [event for line in lines for event in self._take(line)]

    def close(self) -> list[ServerEvent]:
        """The event that the end of the stream completes: some servers leave out the last empty line."""
        rest, self._rest = self._rest.rstrip(b"\r"), b""
        return [event for line in (rest, b"") for event in self._take(line)]

    def _take(self, line: bytes) -> list[ServerEvent]:
        if not line:
            event = ServerEvent(self._name, "\n".join(self._data)) if self._data else None
            self._name, self._data = "", []
            return [event] if event else []
        field, _, value = line.decode("utf-8", "replace").partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._name = value
        return []
