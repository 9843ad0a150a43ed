"""The record of a session while it is being made: journal first, then the notebook, then whoever is shown the event.

The session hands every event to ``add`` and goes on when it is on disk. Reading a past session back is here too.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from harness_nb import events as ev
from harness_nb.budget import add_usage
from harness_nb.errors import StoreError, UsageError
from harness_nb.journal import read_journal
from harness_nb.notebook import NotebookFold, events_of
from harness_nb.notebook_file import NotebookFile
from harness_nb.past import joined, renumbered
from harness_nb.store import (
    FOLDER,
    SessionStore,
    SessionSummary,
    find_session,
    session_ids,
    summarise,
)
from harness_nb.types import Usage

CHECKPOINT_AFTER = (ev.PromptAdded, ev.ModelReplied, ev.CellOutput, ev.ResultAdded, ev.CheckFinished)


class Record:
    """What is written of one session. ``turns`` and ``usage`` are of all of it, ``ending`` of the last prompt."""

    def __init__(self, store: SessionStore, session_id: str, past: Sequence[ev.Event] = ()) -> None:
        self.store = store
        self.turns = 0
        self.usage = Usage()
        self.ending: ev.SessionEnded | None = None
        self._notebook = NotebookFold(session_id)
        self._file = NotebookFile(store.notebook_path, past=past)
        self._seq = max((event.seq for event in past), default=0)
        self._saved = None if past else True
        for event in past:
            self._fold(event)
        store.continue_after(self._seq)

    def add(self, event: ev.Event) -> ev.Event:
        """Write an event to the journal and fold it into the notebook; in-between states of outputs are only shown.

        Raises:
            StoreError: if the journal cannot be written.
        """
        if isinstance(event, ev.CellOutput) and event.transient:
            return event
        stamped = self.store.append(event)
        self._fold(stamped)
        self._saved = False
        if isinstance(stamped, ev.CellFinished):
            self.store.close_outputs()
        if isinstance(stamped, ev.SessionEnded):
            self.save()
        elif isinstance(stamped, CHECKPOINT_AFTER):
            self._file.save(self._notebook)
        return stamped

    def save(self) -> None:
        """Write the notebook now."""
        self._file.save(self._notebook, final=True)
        self._saved = True

    def warnings(self) -> list[str]:
        """What went wrong with the notebook since this was last asked: a failed save, a conflict with a person."""
        return self._file.warnings()

    def close(self) -> None:
        """Let go of the files. A notebook that lags behind the journal is written first, also if a crash left it so."""
        if self._saved is None:
            self._saved = _last_seq(self.store.notebook_path) == self._seq
        if not self._saved:
            self.save()
        self._file.close()
        self.store.close()

    def _fold(self, event: ev.Event) -> None:
        self._notebook.apply(event)
        match event:
            case ev.PromptAdded():
                self.ending = None
            case ev.ModelReplied() | ev.ContextCompacted():
                self.turns += isinstance(event, ev.ModelReplied)
                self.usage = add_usage(self.usage, ev.usage_of(event) or Usage())
            case ev.SessionEnded():
                self.ending = event
            case _:
                pass


def _last_seq(path: Path) -> int | None:
    """The event up to which a session notebook goes; ``None`` where there is none, or it does not say."""
    try:
        number = json.loads(path.read_bytes())["metadata"]["harness_nb"]["last_seq"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return number if isinstance(number, int) else None


def read_record(workspace: Path, session_id: str) -> tuple[list[ev.Event], list[str]]:
    """The events of a recorded session, and warnings: its journal, and from the notebook what the journal lacks.

    Either of them is enough.

    Raises:
        UsageError: if there is no such session, or nothing of it can be read.
    """
    folder = find_session(workspace, session_id)
    journal: list[ev.Event] = []
    warnings: list[str] = []
    if (folder / "journal.jsonl").is_file():
        journal, warnings = read_journal(folder / "journal.jsonl")
    events = journal
    if not journal or len(journal) != journal[-1].seq:
        events, more = _with_notebook(journal, workspace / FOLDER / f"{session_id}.ipynb")
        warnings += more
    if not events:
        raise UsageError(f"Nothing of the session {session_id} can be read: {'; '.join(warnings) or 'it is empty'}.")
    return events, warnings


def take_up(store: SessionStore, workspace: Path, session_id: str) -> tuple[list[ev.Event], list[str]]:
    """As ``read_record``, for a session that goes on: a journal that was not whole is so afterwards.

    Raises:
        UsageError: if there is no such session, or nothing of it can be read.
        StoreError: if the journal cannot be written.
    """
    events, warnings = read_record(workspace, session_id)
    if warnings or any(event.seq != number for number, event in enumerate(events, start=1)):
        events = renumbered(events)
        store.rewrite(events)
    return events, warnings


def _with_notebook(journal: Sequence[ev.Event], path: Path) -> tuple[list[ev.Event], list[str]]:
    """A journal with holes, filled from the session notebook where that has what is missing; and warnings."""
    if not path.is_file():
        return list(journal), [f"{path.name} is not there, so what the journal lacks is lost."] if journal else []
    try:
        notebook = events_of(json.loads(path.read_text("utf-8", errors="replace")))
    except (StoreError, ValueError) as error:
        return list(journal), [f"{path.name} cannot help with that: {error}"]
    found = joined(journal, notebook)
    told = f"{len(found) - len(journal)} events come from the session notebook {path.name}."
    return found, [told] if len(found) > len(journal) else []


def latest_session(workspace: Path) -> str:
    """The session of a workspace that was started last.

    Raises:
        UsageError: if there is none.
    """
    ids = [session_id for session_id in session_ids(workspace) if "-replay" not in session_id]
    if not ids:
        raise UsageError(f"There is no session in {workspace / FOLDER}. `harness-nb run` starts one.")
    return ids[-1]


def list_sessions(workspace: Path) -> list[SessionSummary]:
    """The sessions of a workspace, oldest first; those of which nothing can be read are left out."""
    found = []
    for session_id in session_ids(workspace):
        try:
            events, _ = read_record(workspace, session_id)
        except (UsageError, StoreError):
            continue
        found.append(summarise(session_id, events, workspace))
    return found
