"""Code that was run once and is no longer in the notebook: from the events in it, from journals and sessions beside it.

``repair`` looks here for a definition that a deleted or failed cell made. Reads files; never writes any.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from harness_nb.errors import StoreError
from harness_nb.events import CellFinished, CellStarted, Event
from harness_nb.journal import read_journal
from harness_nb.notebook import events_of
from harness_nb.store import FOLDER
from harness_nb.types import Status
from harness_nb.verify.document import Document

MOST_SESSIONS = 20
PYTHON = "python"


@dataclass(frozen=True, slots=True)
class PastCell:
    """A cell of the record: its source, the call that made it, how it ended, and where this is written."""

    source: str
    call_id: str
    status: Status | None
    where: str

    @property
    def words(self) -> str:
        """Where it comes from, for people."""
        ended = {Status.OK: "a cell that ended well", None: "a cell that did not end"}
        return f"{ended.get(self.status, f'a cell that ended as: {self.status}')}, from {self.where}"


def past_cells(document: Document) -> list[PastCell]:
    """The Python cells of the records that belong to a notebook, in the order of their run; the nearest record last."""
    found: list[PastCell] = []
    for where, events in reversed(list(_records(document))):
        found += _cells(events, where)
    return found


def _records(document: Document) -> Iterator[tuple[str, Sequence[Event]]]:
    """The records of a notebook, the nearest first: its session's journal, its own events, the sessions beside it."""
    folder = document.path.parent
    sessions = folder if folder.name == FOLDER else folder / FOLDER
    named = [name for name in (str(document.machine.get("session_id", "")), document.path.stem) if name]
    journals = [sessions / name / "journal.jsonl" for name in named]
    others = sorted(sessions.glob("*/journal.jsonl"), key=_age, reverse=True)[:MOST_SESSIONS]
    seen: set[Path] = set()
    for journal in [*journals, *([] if journals[0].is_file() else others)]:
        if journal not in seen and journal.is_file():
            seen.add(journal)
            with suppress(StoreError):
                yield f"the record of session {journal.parent.name}", read_journal(journal)[0]
    with suppress(StoreError):
        yield "the events in the notebook", events_of(document.data)
    if not seen:
        for name in named:
            yield from _session_notebook(sessions / f"{name}.ipynb", document)


def _session_notebook(path: Path, document: Document) -> Iterator[tuple[str, Sequence[Event]]]:
    if path != document.path and path.is_file():
        with suppress(StoreError, OSError, ValueError):
            yield f"the session notebook {path.name}", events_of(json.loads(path.read_text("utf-8")))


def _cells(events: Sequence[Event], where: str) -> list[PastCell]:
    ended = {event.call_id: event.status for event in events if isinstance(event, CellFinished)}
    return [
        PastCell(event.source, event.call_id, ended.get(event.call_id), where)
        for event in events
        if isinstance(event, CellStarted) and event.name == PYTHON
    ]


def _age(path: Path) -> float:
    with suppress(OSError):
        return path.stat().st_mtime
    return 0.0
