"""The events of records for whoever looks through many: parts of a journal, a notebook, and where events are lost.

``recordings`` calls it. For one session that is gone on with or shown, ``record.read_record`` reads all there is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from harness_nb import events as ev
from harness_nb.errors import StoreError
from harness_nb.notebook import events_of

UNREADABLE = "a line of the record cannot be read"
"""The text of the warning that stands where events are lost."""


def read_notebook(path: Path) -> list[ev.Event]:
    """The events of a session notebook, none where it cannot be read."""
    try:
        return events_of(json.loads(path.read_bytes()))
    except (OSError, StoreError, ValueError, RecursionError):
        return []


def read_parts(data: bytes, fingerprint: str) -> list[ev.Event]:
    """The events of a journal: of its start, and of the parts about prompts with ``fingerprint``.

    A line that cannot be read, is lost or is out of order becomes the warning ``UNREADABLE``.
    """
    parts: list[list[bytes]] = [[]]
    inside = False
    for line in data.split(b"\n"):
        if b'"prompt_added"' in line[:200]:
            inside = fingerprint.encode("ascii") in line
            parts.append([])
        if inside or b'"session_started"' in line[:200]:
            parts[-1].append(line)
    return [event for part in parts for event in _parsed_in_order(part)]


def _parsed_in_order(lines: Iterable[bytes]) -> Iterator[ev.Event]:
    last = 0
    for event in parsed(lines):
        if last and event.seq not in (0, last + 1):
            yield ev.Warned(text=UNREADABLE)
        last = event.seq
        yield event


def parsed(lines: Iterable[bytes]) -> Iterator[ev.Event]:
    """The event of each line; the warning ``UNREADABLE`` for one that is none."""
    for line in lines:
        if line.strip():
            try:
                yield ev.parse_event(json.loads(line))
            except (ValueError, TypeError, RecursionError):  # pydantic's errors are ValueErrors
                yield ev.Warned(text=UNREADABLE)


def with_gaps(events: Iterable[ev.Event]) -> Iterator[ev.Event]:
    """The events of a record, with the warning ``UNREADABLE`` where some are lost.

    Outputs that come from a notebook have no numbers, and may be fewer than there were.
    """
    last, numbered = 0, True
    for event in events:
        if numbered and last and event.seq > last + 1:
            yield ev.Warned(text=UNREADABLE)
        numbered, last = event.seq > 0, event.seq or last
        yield event
