"""The record of a session while it is being made: journal first, then the notebook, then whoever is shown the event.

The session hands every event to ``add`` and goes on when it is on disk. Reading a past session back is here too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from harness_nb import events as ev
from harness_nb.budget import add_usage
from harness_nb.errors import StoreError, UsageError
from harness_nb.joining import joined
from harness_nb.journal import JOURNAL, read_journal
from harness_nb.notebook import FORMAT_VERSION, NotebookFold, readable_events
from harness_nb.notebook_file import NotebookFile
from harness_nb.past import options_of, renumbered
from harness_nb.settings import PER_TASK, Settings
from harness_nb.store import (
    FOLDER,
    SessionStore,
    SessionSummary,
    find_session,
    session_ids,
    summarise,
)
from harness_nb.types import Usage

_TAIL = 16_384
"""Bytes at the end of a session notebook in which what it says of itself usually is."""

_FACT = re.compile(rb'(?<!\\)"(last_seq|format_version)": ?(\d{1,18})\b')
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
            self._saved = saved_state(self.store.notebook_path).last_seq == self._seq
        if not self._saved:
            self.save()
        self._file.close()
        self.store.close()

    def _fold(self, event: ev.Event) -> None:
        self._notebook.apply(event)
        match event:
            case ev.PromptAdded():
                self.ending = None
            case ev.ModelReplied() | ev.ContextCompacted() | ev.CallDecided():
                self.turns += isinstance(event, ev.ModelReplied)
                self.usage = add_usage(self.usage, ev.usage_of(event) or Usage())
            case ev.SessionEnded():
                self.ending = event
            case _:
                pass


class Saved(NamedTuple):
    """What a session notebook says of itself: its last event, and its version; ``None`` where it does not say."""

    last_seq: int | None = None
    format_version: int | None = None


def saved_state(path: Path) -> Saved:
    """What the session notebook at ``path`` says of itself. It stands at the end as a rule: that is looked at first."""
    found: Any = {}
    with suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
        if not path.is_file():  # anything else might never end
            return Saved()
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL))
            found = {name.decode(): int(number) for name, number in _FACT.findall(file.read())}
        if len(found) < len(Saved._fields):
            found = json.loads(path.read_bytes())["metadata"]["harness_nb"]
    values = [found.get(name) for name in Saved._fields] if isinstance(found, dict) else []
    return Saved(*(value if isinstance(value, int) else None for value in values))


def read_record(workspace: Path, session_id: str) -> tuple[list[ev.Event], list[str]]:
    """The events of a recorded session, and warnings: its journal, and from the notebook what the journal lacks.

    Either of them is enough.

    Raises:
        UsageError: if there is no such session, nothing of it can be read, or a newer harness_nb has written it.
    """
    folder = find_session(workspace, session_id)
    notebook = workspace / FOLDER / f"{session_id}.ipynb"
    saved = saved_state(notebook)
    journal: list[ev.Event] = []
    warnings: list[str] = []
    if (folder / JOURNAL).is_file():
        try:
            journal, warnings = read_journal(folder / JOURNAL)
        except StoreError as error:
            warnings = [str(error)]
    _refuse_newer(session_id, journal, saved)
    events, last = journal, journal[-1].seq if journal else 0
    if warnings or not journal or len(journal) != last or (saved.last_seq or 0) > last:
        events, more = _with_notebook(journal, notebook)
        warnings += more
    if not events:
        raise UsageError(f"Nothing of the session {session_id} can be read: {' '.join(warnings) or 'it is empty.'}")
    return events, warnings


def kept_options(workspace: Path, session_id: str) -> dict[str, Any]:
    """The options that a session's next task goes on with: those of its last one, but for those of one task only.

    Raises:
        UsageError: as ``read_record``.
    """
    events, _ = read_record(workspace, session_id)
    return {name: value for name, value in usable_options(events)[0].items() if name not in PER_TASK}


def usable_options(events: Sequence[ev.Event]) -> tuple[dict[str, Any], list[str]]:
    """The options that were last in force, and the names of those that this version cannot use: it may be older."""
    usable, others = {}, []
    for name, value in options_of(events).items():
        try:
            Settings.model_validate({"directory": ".", name: value})
            usable[name] = value
        except ValidationError:
            others.append(name)
    return usable, others


def _refuse_newer(session_id: str, journal: Sequence[ev.Event], saved: Saved) -> None:
    versions = [event.format_version for event in journal if isinstance(event, ev.SessionStarted)]
    newest = max([*versions, saved.format_version or 0])
    if newest > FORMAT_VERSION:
        raise UsageError(
            f"The session {session_id} was written by a newer harness_nb: its format version is {newest}, and this one "
            f"knows up to {FORMAT_VERSION}. Update harness-nb to go on with it."
        )


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
        notebook, warnings = readable_events(json.loads(path.read_text("utf-8", errors="replace")))
    except StoreError as error:
        return list(journal), [f"{path.name} cannot help: {error}"]
    except OSError as error:
        return list(journal), [f"{path.name} cannot be read: {error.strerror or error}."]
    except (ValueError, RecursionError):
        return list(journal), [f"{path.name} cannot help: it is not a notebook that can be read."]
    found = joined(journal, notebook)
    if (count := len(found) - len(journal)) > 0:
        told = "event comes" if count == 1 else "events come"
        warnings = [*warnings, f"{count:,} {told} from the session notebook {path.name}."]
    return found, warnings


def latest_session(workspace: Path) -> str:
    """The session of a workspace that was started last. One that died before its first event does not count.

    Raises:
        UsageError: if there is none.
    """
    for session_id in reversed(session_ids(workspace)):
        if "-replay" not in session_id and not _is_blank(workspace, session_id):
            return session_id
    raise UsageError(f"There is no session in {workspace / FOLDER}. `harness-nb run` starts one.")


def _is_blank(workspace: Path, session_id: str) -> bool:
    """Whether nothing was ever recorded in a session: no whole line, no notebook."""
    folder = workspace / FOLDER
    with suppress(OSError):
        with (folder / session_id / JOURNAL).open("rb") as file:
            first = file.readline()
        return not first.strip().endswith(b"}") and not (folder / f"{session_id}.ipynb").exists()
    return False


def list_sessions(workspace: Path) -> list[SessionSummary]:
    """The sessions of a workspace, oldest first. One that cannot be read says why in place of its title."""
    found = []
    for session_id in session_ids(workspace):
        try:
            events, _ = read_record(workspace, session_id)
        except (UsageError, StoreError) as error:
            if not _is_blank(workspace, session_id):
                path = workspace / FOLDER / f"{session_id}.ipynb"
                found.append(SessionSummary(session_id, str(error), "", "unreadable", 0, None, path))
            continue
        found.append(summarise(session_id, events, workspace))
    return found
