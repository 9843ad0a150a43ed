"""A session's files: the journal, the session notebook, the whole outputs. All disk I/O of the record is here.

The session owns one ``SessionStore``; ``list_sessions`` serves the magics and the command line. See "Files" in the docs
for the layout::

    <workspace>/harness_sessions/<id>.ipynb
    <workspace>/harness_sessions/<id>/journal.jsonl
    <workspace>/harness_sessions/<id>/outputs/
"""

from __future__ import annotations

import io
import os
import secrets
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import IO

from filelock import FileLock, Timeout

from harness_nb.draft import Draft, remove_leftovers
from harness_nb.errors import SessionLockedError, StoreError, UsageError
from harness_nb.events import (
    CallDecided,
    ContextCompacted,
    Event,
    ModelReplied,
    PromptAdded,
    SessionEnded,
    SessionStarted,
    usage_of,
)
from harness_nb.journal import JOURNAL, journal_line, take_apart

FOLDER = "harness_sessions"
LOCK_SECONDS = 2.0
"""A process that was killed may leave the lock for a moment to a child that it was just starting."""

LISTED = 10
"""So many sessions are listed where one is not there."""


class SessionStore:
    """The files of one session, held under a lock that dies with the process.

    Raises:
        SessionLockedError: if another process works on the session.
        StoreError: if the folder cannot be written.
    """

    def __init__(self, workspace: Path, session_id: str) -> None:
        self.folder = workspace / FOLDER / session_id
        self.notebook_path = workspace / FOLDER / f"{session_id}.ipynb"
        self._workspace = workspace
        self._open_outputs: list[OutputFile] = []
        self._lock = FileLock(self.folder / ".lock")
        self._seq = 0
        self._new = not os.path.lexists(self.folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(timeout=LOCK_SECONDS, poll_interval=0.05)
            remove_leftovers(self.folder / JOURNAL)
            self._journal: io.FileIO = (self.folder / JOURNAL).open("ab", buffering=0)
            self._end_torn_line()
        except Timeout:
            raise SessionLockedError(
                f"Another process works on the session {session_id}; wait for it or stop it."
            ) from None
        except OSError as error:
            self._lock.release()
            text = f"The session cannot be stored in {self.folder} ({error.strerror or error})."
            if (self.folder / JOURNAL).is_dir():
                text += f" {JOURNAL} is a folder there: move it away, the session notebook is enough to go on."
            elif self._new:
                shutil.rmtree(self.folder, ignore_errors=True)
            raise StoreError(text) from error

    def continue_after(self, seq: int) -> None:
        """Number the next event after ``seq``."""
        self._seq = seq

    def append(self, event: Event) -> Event:
        """Stamp an event, write it to the journal, and return it once it is on disk.

        Raises:
            StoreError: if it cannot be written; the journal is then as it was.
        """
        stamped = event.model_copy(
            update={"seq": self._seq + 1, "time": datetime.now(UTC).isoformat(timespec="milliseconds")}
        )
        end = self._journal.seek(0, os.SEEK_END)
        try:
            self._write(journal_line(stamped).encode("ascii"))
            os.fsync(self._journal.fileno())
        except OSError as error:
            with suppress(OSError):
                self._journal.truncate(end)
            raise self._unwritable(error) from error
        self._seq += 1
        return stamped

    def rewrite(self, events: Sequence[Event]) -> None:
        """Write the journal anew with ``events``; lines of the old one that are not used are set aside beside it.

        Raises:
            StoreError: if it cannot be written; the old one is untouched.
        """
        path = self.folder / JOURNAL
        try:
            aside = take_apart(path)[1]
            if aside:
                with (self.folder / "journal.set-aside.txt").open("ab") as file:
                    file.writelines(line.data + b"\n" for line in aside)
            write_atomically(path, "".join(map(journal_line, events)))
            self._journal.close()
            self._journal = path.open("ab", buffering=0)
        except OSError as error:
            raise self._unwritable(error) from error
        self._seq = events[-1].seq if events else 0

    def _write(self, data: bytes) -> None:
        """All of ``data``: a disk that is nearly full takes a part of it, and refuses the rest."""
        while data:
            data = data[self._journal.write(data) or 0 :]

    def _unwritable(self, error: OSError) -> StoreError:
        return StoreError(
            f"The journal of the session cannot be written ({error.strerror or error}), so the work stops here. What "
            f"was done until now is recorded. Once {self.folder} can be written again, `harness-nb resume "
            f"{self.folder.name}` goes on."
        )

    def sink(self, call_id: str) -> OutputFile:
        """Where the whole output of a call goes if it is too large for the notebook."""
        safe = "".join(character if character.isalnum() or character in "-_" else "_" for character in call_id)
        path = self.folder / "outputs" / f"{safe}.txt"
        self._open_outputs.append(OutputFile(path, path.relative_to(self._workspace).as_posix()))
        return self._open_outputs[-1]

    def close_outputs(self) -> None:
        """Close the files of outputs that are complete."""
        for file in self._open_outputs:
            file.close()
        self._open_outputs.clear()

    def close(self) -> None:
        """Close the journal and give the lock back. A new session in which nothing was recorded leaves nothing."""
        if self._new and self._seq == 0 and not self.notebook_path.exists():
            self.discard()
            return
        self.close_outputs()
        self._journal.close()
        self._lock.release()

    def discard(self) -> None:
        """Close it, and remove all of its files: for a new session that was not to be."""
        self.close_outputs()
        self._journal.close()
        with suppress(OSError):
            self.notebook_path.unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)
        self._lock.release()

    def _end_torn_line(self) -> None:
        """A crash may have left half a line; end it, so that what follows stays readable."""
        path = self.folder / JOURNAL
        if path.stat().st_size:
            with path.open("rb") as file:
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":
                    self._journal.write(b"\n")


class OutputFile:
    """A file that comes into being with its first text.

    ``path`` is relative to the workspace, as the model reads it. Where the file cannot be written, the work goes on
    without it, and ``path`` says so.
    """

    def __init__(self, file: Path, path: str) -> None:
        self.path = path
        self._path = file
        self._file: IO[str] | None = None
        self._failed = False

    def write(self, text: str) -> None:
        """Add text."""
        if self._failed:
            return
        try:
            if self._file is None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._file = self._path.open("a", encoding="utf-8", errors="backslashreplace")
            self._file.write(text)
            self._file.flush()
        except OSError as error:
            self._failed, self.path = True, f"not kept, {self.path} cannot be written ({error.strerror or error})"

    def close(self) -> None:
        """Close the file, if there is one."""
        if self._file is not None:
            self._file.close()
            self._file = None


def write_atomically(path: Path, text: str) -> None:
    """Write a file by way of a temporary one in the same folder, so that a crash leaves the old one whole.

    Raises:
        StoreError: if it cannot be written; the old file is untouched.
    """
    try:
        with Draft(path, [text.encode("utf-8", "backslashreplace")]) as draft:
            draft.put_in_place()
    except OSError as error:
        raise StoreError(f"{path} cannot be written ({error.strerror or error}).") from error


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """One line about a session.

    ``started`` is UTC in ISO 8601; ``status`` is the reason of its last end, or ``open``, or ``unreadable``.
    """

    id: str
    title: str
    started: str
    status: str
    turns: int
    cost_usd: float | None
    path: Path


def session_ids(workspace: Path) -> list[str]:
    """The names of the sessions of a workspace, oldest first: those with a journal, and session notebooks alone."""
    folder = workspace / FOLDER
    journals = {path.parent.name for path in folder.glob(f"*/{JOURNAL}") if path.is_file()}
    notebooks = {path.stem for path in folder.glob("*.ipynb") if _is_session_name(path.stem) and path.is_file()}
    return sorted(journals | notebooks)


def _is_session_name(name: str) -> bool:
    """Whether a session can have this name: it is one of a file, and not of what lies beside a session notebook."""
    return bool(name) and not any(character in name for character in "./\\\0")


def summarise(session_id: str, events: list[Event], workspace: Path) -> SessionSummary:
    """The summary of a session from its events."""
    title, started, status, turns, cost = "", "", "open", 0, None
    for event in events:
        match event:
            case SessionStarted():
                started = event.time
            case PromptAdded():
                title = title or " ".join(event.prompt.split())[:80]
                status = "open"
            case ModelReplied() | ContextCompacted() | CallDecided():
                turns += isinstance(event, ModelReplied)
                if (usage := usage_of(event)) and usage.cost_usd is not None:
                    cost = (cost or 0.0) + usage.cost_usd
            case SessionEnded():
                status = event.reason
            case _:
                pass
    path = workspace / FOLDER / f"{session_id}.ipynb"
    return SessionSummary(session_id, title, started, status, turns, cost, path)


def new_session_id() -> str:
    """A name that sorts by time and is its own."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def find_session(workspace: Path, session_id: str) -> Path:
    """The folder of a session, which need not be there: a session notebook alone is a session.

    Raises:
        UsageError: if there is none of that name; the text lists those that are there.
    """
    folder = workspace / FOLDER
    if _is_session_name(session_id) and _is_session(folder, session_id):
        return folder / session_id
    meant = PurePath(session_id.strip()).name.removesuffix(".ipynb")
    if _is_session_name(meant) and _is_session(folder, meant):
        raise UsageError(f"A session is named by its id alone: write {meant} in place of {session_id[:200]!r}.")
    known = session_ids(workspace)
    more = f" and {len(known) - LISTED:,} older ones" if len(known) > LISTED else ""
    listed = ", ".join(known[-LISTED:]) + more if known else "none"
    raise UsageError(f"There is no session {session_id[:80]!r} in {folder}. Sessions there: {listed}.")


def _is_session(folder: Path, session_id: str) -> bool:
    with suppress(OSError, ValueError):  # a name that no file can have
        return (folder / session_id / JOURNAL).is_file() or (folder / f"{session_id}.ipynb").is_file()
    return False
