"""A session's files: the journal, the session notebook, the whole outputs. All disk I/O of the record is here.

The session owns one ``SessionStore``; ``list_sessions`` serves the magics and the command line. See "Files" in the docs
for the layout::

    <workspace>/harness_sessions/<id>.ipynb
    <workspace>/harness_sessions/<id>/journal.jsonl
    <workspace>/harness_sessions/<id>/outputs/
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from filelock import FileLock, Timeout
from pydantic import ValidationError

from harness_nb.draft import Draft, remove_leftovers
from harness_nb.errors import SessionLockedError, StoreError, UsageError
from harness_nb.events import Event, ModelReplied, PromptAdded, SessionEnded, SessionStarted, parse_event

FOLDER = "harness_sessions"


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
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = FileLock(self.folder / ".lock")
            self._lock.acquire(timeout=0)
            remove_leftovers(self.folder / "journal.jsonl")
            self._journal = (self.folder / "journal.jsonl").open("ab")
        except Timeout:
            raise SessionLockedError(
                f"Another process works on the session {session_id}; wait for it or stop it."
            ) from None
        except OSError as error:
            raise StoreError(f"The session cannot be stored in {self.folder}: {error}") from error
        self._end_torn_line()
        self._seq = 0

    def continue_after(self, seq: int) -> None:
        """Number the next event after ``seq``."""
        self._seq = seq

    def append(self, event: Event) -> Event:
        """Stamp an event, write it to the journal, and return it once it is on disk."""
        self._seq += 1
        stamped = event.model_copy(
            update={"seq": self._seq, "time": datetime.now(UTC).isoformat(timespec="milliseconds")}
        )
        try:
            self._journal.write(journal_line(stamped).encode("ascii"))
            self._journal.flush()
            os.fsync(self._journal.fileno())
        except OSError as error:
            raise StoreError(f"The journal of the session cannot be written: {error}") from error
        return stamped

    def rewrite(self, events: Sequence[Event]) -> None:
        """Write the journal anew with ``events``; lines of the old one that cannot be read are set aside beside it.

        Raises:
            StoreError: if it cannot be written; the old one is untouched.
        """
        path = self.folder / "journal.jsonl"
        broken = [line for line in path.read_bytes().split(b"\n") if line.strip() and not _is_event(line)]
        try:
            if broken:
                with (self.folder / "journal.set-aside.txt").open("ab") as file:
                    file.writelines(line + b"\n" for line in broken)
            write_atomically(path, "".join(map(journal_line, events)))
            self._journal.close()
            self._journal = path.open("ab")
        except OSError as error:
            raise StoreError(f"The journal of the session cannot be written: {error}") from error
        self._seq = events[-1].seq if events else 0

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
        """Close the journal and give the lock back."""
        self.close_outputs()
        self._journal.close()
        self._lock.release()

    def _end_torn_line(self) -> None:
        """A crash may have left half a line; end it, so that what follows stays readable."""
        path = self.folder / "journal.jsonl"
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
        raise StoreError(f"{path} cannot be written: {error}") from error


def journal_line(event: Event) -> str:
    """The line of an event in the journal: ASCII, number and time and type first."""
    fields = event.model_dump(mode="json")
    return json.dumps({"seq": event.seq, "time": event.time, "type": event.type, **fields}) + "\n"


def _is_event(line: bytes) -> bool:
    try:
        parse_event(json.loads(line))
    except (ValueError, ValidationError):
        return False
    return True


def read_journal(path: Path) -> tuple[list[Event], list[str]]:
    """The events of a journal, and a warning for each line that had to be set aside.

    Raises:
        StoreError: if there is no such file.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise StoreError(f"The journal {path} cannot be read: {error}") from error
    events: list[Event] = []
    warnings = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            events.append(parse_event(json.loads(line)))
        except (ValueError, ValidationError) as error:
            warnings.append(f"{path.name}, line {number} is set aside: {str(error).splitlines()[0]}")
    return events, warnings


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """One line about a session.

    ``started`` is UTC in ISO 8601; ``status`` is the reason of its last end, or ``open``.
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
    journals = {path.parent.name for path in folder.glob("*/journal.jsonl")}
    notebooks = {path.stem for path in folder.glob("*.ipynb") if not path.name.startswith(".") and "." not in path.stem}
    return sorted(journals | notebooks)


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
            case ModelReplied():
                turns += 1
                if event.message.usage and event.message.usage.cost_usd is not None:
                    cost = (cost or 0.0) + event.message.usage.cost_usd
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
    folder = workspace / FOLDER / session_id
    with suppress(OSError, ValueError):  # a name that no file can have
        if (folder / "journal.jsonl").is_file() or (workspace / FOLDER / f"{session_id}.ipynb").is_file():
            return folder
    known = ", ".join(session_ids(workspace)) or "none"
    raise UsageError(f"There is no session {session_id[:80]!r} in {workspace / FOLDER}. Sessions there: {known}.")
