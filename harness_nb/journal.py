"""The journal of a session as lines: how an event is written, and what is read back of a file that may be damaged.

``store`` writes it, ``record`` and whoever looks at one session's past reads it. See "The journal" in the docs.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from harness_nb.errors import StoreError
from harness_nb.events import Event, parse_event
from harness_nb.notebook.reading import problem_of

JOURNAL = "journal.jsonl"

NAMED = 5
"""So many lines, or kinds of trouble with lines, are told one by one."""


def journal_line(event: Event) -> str:
    """The line of an event in the journal: ASCII, number and time and type first."""
    fields = event.model_dump(mode="json")
    return json.dumps({"seq": event.seq, "time": event.time, "type": event.type, **fields}) + "\n"


@dataclass(frozen=True, slots=True)
class AsideLine:
    """A line of a journal that is not used; ``number`` counts from 1."""

    number: int
    data: bytes
    reason: str


def take_apart(path: Path) -> tuple[list[Event], list[AsideLine], bool]:
    """The events of a journal by their numbers, the lines that are not used, and whether the lines were in order.

    Of several lines with one number the first counts: a line that was copied, or two journals that were put together.

    Raises:
        OSError: if it cannot be read.
    """
    events: list[Event] = []
    aside: list[AsideLine] = []
    taken: set[int] = set()
    for number, line in enumerate(path.read_bytes().split(b"\n"), start=1):
        if not line.strip():
            continue
        event, reason = _read_line(line)
        if event is None:
            aside.append(AsideLine(number, line, reason))
        elif event.seq > 0 and event.seq in taken:
            aside.append(AsideLine(number, line, "an earlier line has its number"))
        else:
            taken.add(event.seq)
            events.append(event)
    numbers = [event.seq for event in events]
    if all(number > 0 for number in numbers) and numbers != sorted(numbers):
        return sorted(events, key=lambda event: event.seq), aside, False
    return events, aside, True


def _read_line(line: bytes) -> tuple[Event | None, str]:
    """The event in a line, or why there is none."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None, "it is not JSON"
    try:
        return parse_event(value), ""
    except (ValueError, TypeError, RecursionError) as error:
        return None, problem_of(error, value)


def read_journal(path: Path) -> tuple[list[Event], list[str]]:
    """The events of a journal, and warnings about the lines that had to be set aside.

    Raises:
        StoreError: if there is no such file.
    """
    try:
        events, aside, in_order = take_apart(path)
    except OSError as error:
        raise StoreError(f"The journal {path} cannot be read: {error.strerror or error}.") from error
    groups = [(reason, [line.number for line in lines]) for reason, lines in groupby(aside, lambda line: line.reason)]
    told = [f"{path.name}, {_lines(numbers)} set aside: {reason}" for reason, numbers in groups[:NAMED]]
    if more := sum(len(numbers) for _, numbers in groups[NAMED:]):
        told.append(f"{path.name}, {more:,} more lines are set aside.")
    if not in_order:
        told.append(f"{path.name}: the lines are out of order, and their numbers tell it.")
    return events, told


def _lines(numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return f"line {numbers[0]} is"
    if numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"lines {numbers[0]} to {numbers[-1]} are"
    more = f" and {len(numbers) - NAMED:,} more" if len(numbers) > NAMED else ""
    return f"lines {', '.join(map(str, numbers[:NAMED]))}{more} are"
