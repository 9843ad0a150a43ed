"""What a replay stands on: a session of its own that does not litter, and the files as they were when it was recorded.

The session prepares both before it plays a recording; everything here blocks. Nothing of a person is overwritten: a
session or a file that somebody has changed since is left alone.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path

from filelock import FileLock, Timeout

from harness_nb import events as ev
from harness_nb.files import FileStore, PlannedFile, Restored, RestorePlan, listed, restore, shown
from harness_nb.files.walk import stamp_at
from harness_nb.journal import read_journal
from harness_nb.notebook import FORMAT_VERSION, NotebookFold
from harness_nb.past import renumbered
from harness_nb.record import read_record
from harness_nb.recordings import REPLAY, Recording, recorded_changes
from harness_nb.store import FOLDER
from harness_nb.types import JsonObject


def base_of(recording: Recording) -> str:
    """The session that a replay of this recording is a replay of."""
    return recording.origin if recording.replayed and recording.origin else recording.session


class ReplayGround:
    """The ground of one replay session. ``base`` is the session that it is a replay of, ``session`` its own name.

    ``earlier`` are the changes of files by the replays before it, ``before`` the events of the session in front of the
    prompt that is played first. Takes the events of the replay, to know what it has changed itself.
    """

    def __init__(
        self,
        workspace: Path,
        base: str,
        session: str,
        earlier: Iterable[ev.FileChange] = (),
        before: Sequence[ev.Event] = (),
    ) -> None:
        self.base = base
        self.session = session
        self.events = [self._as_own(event, len(before)) for event in before]
        self._workspace = workspace
        self._earlier = _states(earlier)
        self._made: dict[str, str | None] = {}

    @classmethod
    def make(cls, workspace: Path, recording: Recording) -> ReplayGround:
        """A session for the replay, ``<id>-replay``; an earlier one that was only a replay makes room for it.

        One that another process holds, in which a model has worked since, or whose notebook a person has changed stays;
        the new one then gets a number.
        """
        base, free = base_of(recording), ""
        earlier: list[ev.FileChange] = []
        for number in count(1):
            name = f"{base}{'-replay' if number == 1 else f'-replay-{number}'}"
            folder, notebook = workspace / FOLDER / name, workspace / FOLDER / f"{name}.ipynb"
            if not folder.exists() and not notebook.exists():
                return cls(workspace, base, free or name, earlier, _before(workspace, recording))
            earlier += recorded_changes(workspace, name) if name != recording.session else []
            if not free and name != recording.session and _remove_if_temporary(folder, notebook):
                free = name
        raise AssertionError

    @property
    def origin(self) -> JsonObject:
        """What ``SessionStarted`` says of it."""
        return {"kind": "replay", "session": self.base}

    def _as_own(self, event: ev.Event, count: int) -> ev.Event:
        """An event of the other session as one of this."""
        if not isinstance(event, ev.SessionStarted):
            return event
        changes = {"session_id": self.session, "origin": {**self.origin, "events": count}}
        return event.model_copy(update={**changes, "format_version": FORMAT_VERSION})

    def apply(self, event: ev.Event) -> None:
        """Fold an event of the replay in."""
        if isinstance(event, ev.FilesChanged) and event.call_id != "outside":
            self._made |= {change.path: change.after for change in event.changes}

    def put_files_back(self, recording: Recording) -> list[str]:
        """Put the files that the recorded work changed back to how they were at the start of its prompt.

        A file is touched only where its present content is one that the record or an earlier replay knows: what a
        person made of it is left alone, and so is what this replay has made. What is overwritten is kept in a file
        store first. Returns sentences for the person; empty where nothing had to be done.
        """
        own = FileStore(self._workspace / FOLDER / self.session, self._workspace)
        folder = self._workspace / FOLDER / recording.session
        original = FileStore(folder, self._workspace) if folder.is_dir() else own
        recorded = _states(recorded_changes(self._workspace, recording.session))
        by_record: list[PlannedFile] = []
        by_replay: list[PlannedFile] = []
        left, lost = [], []
        for path, then in _states_at_start(recording).items():
            stamp = stamp_at(self._workspace / path)
            now = own.digest_of(path) if stamp else None
            if now == then or (path in self._made and self._made[path] == now):
                continue
            known = now in recorded.get(path, ())
            if now == ev.UNKNOWN_CONTENT or not (known or now in self._earlier.get(path, ())):
                left.append(path)
            elif then is not None and original.blobs.path(then) is None:
                lost.append(path)
            else:
                size = stamp.size if stamp else 0
                plan = by_record if known else by_replay
                plan.append(PlannedFile(path, "write" if then else "delete", then, now, size, stamp=stamp))
        own.adopt(original, [file.then for file in by_replay])
        done = [restore(RestorePlan(0, tuple(by_record)), original), restore(RestorePlan(0, tuple(by_replay)), own)]
        return _told(done, left, lost)


def _remove_if_temporary(folder: Path, notebook: Path) -> bool:
    """Remove a session that is nothing but a replay; whether it was one."""
    lock = FileLock(folder / ".lock")
    try:
        lock.acquire(timeout=0)
    except (Timeout, OSError):
        return False
    try:
        if not _is_temporary(folder, notebook):
            return False
        notebook.unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
    except OSError:
        return False
    finally:
        lock.release()
    return not folder.exists()


def _is_temporary(folder: Path, notebook: Path) -> bool:
    """Whether all work of a session was played, and its notebook is as it was written."""
    with suppress(OSError):
        if not (folder / "journal.jsonl").is_file():
            return not notebook.exists()
        events, warnings = read_journal(folder / "journal.jsonl")
        started = next((event for event in events if isinstance(event, ev.SessionStarted)), None)
        origin: JsonObject = started.origin if started else {"kind": "replay"}
        own = events[origin.get("events", 0) :]
        played = all(event.model.startswith(REPLAY) for event in own if isinstance(event, ev.ModelRequested))
        return played and origin.get("kind") == "replay" and not warnings and _as_written(events, folder.name, notebook)
    return False


def _as_written(events: Sequence[ev.Event], session: str, notebook: Path) -> bool:
    """Whether the notebook holds no cell but those of the session, and their code is unchanged."""
    if not notebook.exists():
        return True
    fold = NotebookFold(session)
    for event in events:
        fold.apply(event)
    own = {cell["id"]: _code(cell) for cell in fold.notebook()["cells"]}
    try:
        cells = json.loads(notebook.read_bytes())["cells"]
        return all(cell["id"] in own and own[cell["id"]] == _code(cell) for cell in cells)
    except (ValueError, KeyError, TypeError):
        return False


def _code(cell: JsonObject) -> str:
    source = cell.get("source", "")
    text = "".join(source) if isinstance(source, list) else str(source)
    return text if cell.get("cell_type") == "code" else ""


def _before(workspace: Path, recording: Recording) -> list[ev.Event]:
    """What a session had recorded when the work on this prompt began, where it was not the first one."""
    if not recording.previous:
        return []
    events, _ = read_record(workspace, recording.session)
    marks = ("", recording.fingerprint)
    starts = [
        index
        for index, event in enumerate(events)
        if isinstance(event, ev.PromptAdded) and event.prompt == recording.prompt and event.fingerprint in marks
    ]
    ends = [index for index, event in enumerate(events[: starts[-1]]) if isinstance(event, ev.SessionEnded)]
    return renumbered(events[: ends[-1] + 1]) if ends else []


def _states(changes: Iterable[ev.FileChange]) -> dict[str, set[str | None]]:
    """Every content that is known of each file, by SHA-256; ``None`` where it was not there."""
    states: dict[str, set[str | None]] = {}
    for change in changes:
        states.setdefault(change.path, set()).update((change.before, change.after))
    return states


def _states_at_start(recording: Recording) -> dict[str, str | None]:
    """Each file that the work changed, as it was before."""
    start: dict[str, str | None] = {}
    for change in recording.changes:
        start.setdefault(change.path, change.before)
    return start


def _told(done: Sequence[Restored], left: Sequence[str], lost: Sequence[str]) -> list[str]:
    """What was done to files, in sentences."""
    back = sorted(change.path for each in done for change in each.changes)
    failed = [f"{shown(path)} ({reason})" for each in done for path, reason in each.failed]
    told = [
        (back, "For the replay, put back to how they were at the start of the recorded work"),
        (left, "Left alone, for they have been changed since the recording"),
        (lost, "Left as they are, for their content at the start of the recorded work is not kept"),
        (failed, "Not put back"),
    ]
    return [f"{words}: {listed(names)}." for names, words in told if names]
