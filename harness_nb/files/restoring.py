"""The way back to the files of an earlier step: what they were, a plan that a person can read, and the restoring.

Fork and rewind call ``plan_restore``, show it, and hand it to ``restore``. Whatever is overwritten or deleted is kept
in the file store first. A step is a tool call, counted by its ``call_decided`` event from 1; step 0 is before any.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Literal

from harness_nb.events import UNKNOWN_CONTENT, CallDecided, Event, FileChange, FilesChanged
from harness_nb.files.store import FileStore
from harness_nb.files.walk import SKIPPED_FOLDERS, Stamp, stamp_at
from harness_nb.outputs import format_bytes

OUTSIDE = "outside"
NAMED = 10
"""So many names a sentence has at most."""

Action = Literal["write", "delete", "unchanged", "lost", "left"]


def files_at(events: Iterable[Event], step: int) -> dict[str, str | None]:
    """For every file that changed after ``step``: its SHA-256 then, ``None`` where it was not there.

    ``UNKNOWN_CONTENT`` where it was there and was never read. What others changed before the next step began belongs
    to ``step``.
    """
    then: dict[str, str | None] = {}
    for number, _, change in _numbered(events):
        if number > step:
            then.setdefault(change.path, change.before)
    return then


def files_now(events: Iterable[Event]) -> dict[str, str | None]:
    """The SHA-256 of every file that ever changed, as the record knows it last; ``None`` where it is gone."""
    return {change.path: change.after for _, _, change in _numbered(events)}


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """What is to become of one file.

    ``write`` and ``delete`` are done by ``restore``; ``unchanged`` is as it was then; ``lost`` cannot be restored since
    its content was not kept; ``left`` is left alone, for ``reason``. ``then`` and ``now`` are SHA-256 (see
    ``files_at``), ``size`` is in bytes, of the file as it is now. ``by_others``: somebody else has changed it since.
    """

    path: str
    action: Action
    then: str | None
    now: str | None
    size: int = 0
    by_others: bool = False
    reason: str = ""
    stamp: Stamp | None = None


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """What going back to ``step`` does to the files, by path."""

    step: int
    files: tuple[PlannedFile, ...]

    @property
    def changes_files(self) -> bool:
        """Whether ``restore`` would do anything."""
        return any(file.action in ("write", "delete") for file in self.files)

    def describe(self) -> str:
        """The plan in sentences, one a line."""
        write, delete = self._names("write"), self._names("delete")
        lines = [f"No file has to change to go back to step {self.step}."]
        if self.changes_files:
            lines = [f"To go back to the files of step {self.step}:"]
        if write:
            lines.append(f"Written as they were then: {listed(write)}.")
        if delete:
            lines.append(f"Deleted, for they were not there then: {listed(delete)}.")
        others = [file.path for file in self.files if file.by_others and file.action in ("write", "delete")]
        if others:
            lines.append(f"Of these, somebody else has changed since: {listed(others)}. Those changes would go too.")
        if self.changes_files:
            lines.append("What is overwritten or deleted is kept in the session's file store first.")
        return "\n".join([*lines, *self.left_behind()])

    def left_behind(self) -> list[str]:
        """Sentences on the files that do not come back, and why."""
        lost = [f"{shown(file.path)} (now {_size(file)})" for file in self.files if file.action == "lost"]
        lines = []
        if lost:
            lines.append(
                f"Left as they are, for their content then was not kept (too large, or no room): {_joined(lost)}."
            )
        for reason in dict.fromkeys(file.reason for file in self.files if file.action == "left"):
            names = [file.path for file in self.files if file.action == "left" and file.reason == reason]
            lines.append(f"Left as they are, for {reason}: {listed(names)}.")
        return lines

    def _names(self, action: Action) -> list[str]:
        return [file.path for file in self.files if file.action == action]


@dataclass(frozen=True, slots=True)
class Restored:
    """What ``restore`` did: ``changes`` are for the record, ``failed`` are paths with the reason why not.

    ``kept`` are the files that somebody else had changed, with the files that hold what they were. ``warnings`` are
    sentences on what else a person should know.
    """

    changes: tuple[FileChange, ...]
    failed: tuple[tuple[str, str], ...]
    kept: tuple[tuple[str, Path], ...] = ()
    warnings: tuple[str, ...] = ()

    def describe(self) -> str:
        """The outcome in sentences, one a line."""
        written = [change.path for change in self.changes if change.after is not None]
        deleted = [change.path for change in self.changes if change.after is None]
        lines = [f"Written: {listed(written)}."] if written else []
        lines += [f"Deleted: {listed(deleted)}."] if deleted else []
        lines += [f"Not restored: {shown(path)}: {reason}." for path, reason in self.failed]
        lines += [f"What somebody else had made of {shown(path)} is kept as {place}." for path, place in self.kept]
        lines += self.warnings
        return "\n".join(lines) or "No file was changed."


def plan_restore(events: Sequence[Event], step: int, store: FileStore, *, others: bool = False) -> RestorePlan:
    """What has to happen to the files for ``step``; changes nothing. Blocking: reads the files that are concerned.

    ``events`` are all events of the session, ``store`` has the contents (of a fork: what it has adopted). A file that
    only others have changed since is left alone unless ``others``.
    """
    recorded = files_now(events)
    by_calls = {change.path for number, name, change in _numbered(events) if number > step and name != OUTSIDE}
    by_others = {change.path for number, name, change in _numbered(events) if number > step and name == OUTSIDE}
    files = []
    for path, then in sorted(files_at(events, step).items()):
        theirs = path in by_others
        reason = _out_of_bounds(path, store.workspace)
        if not reason and not others and path not in by_calls:
            reason = "only somebody else has changed them"
        if reason:
            files.append(PlannedFile(path, "left", then, None, by_others=theirs, reason=reason))
            continue
        stamp = stamp_at(store.workspace / path)
        now = store.digest_of(path) if stamp else None
        theirs = theirs or now != recorded[path]
        action, reason = _action(then, now, store)
        if action == "write" and stamp is None and _is_taken(store.workspace / path):
            action, reason = "left", "a link or a special file is in their place"
        files.append(PlannedFile(path, action, then, now, stamp.size if stamp else 0, theirs, reason, stamp))
    return RestorePlan(step, tuple(files))


def restore(plan: RestorePlan, store: FileStore) -> Restored:
    """Do what the plan says: first delete, then write, each file as a whole. Blocking.

    A file that has changed since the plan was made is left alone, and so is one that cannot be kept first. Folders that
    become empty are removed. The store's next look does not report what was done here.
    """
    changes: list[FileChange] = []
    failed: list[tuple[str, str]] = []
    kept: list[tuple[str, Path]] = []
    for file in sorted(plan.files, key=lambda file: file.action != "delete"):
        if file.action not in ("write", "delete"):
            continue
        try:
            failure = _restore_file(file, store)
        except OSError as error:
            failure = error.strerror or str(error)
        if failure:
            failed.append((file.path, failure))
            continue
        store.note(file.path, file.then)
        size = (store.workspace / file.path).stat().st_size if file.then else 0
        changes.append(FileChange(path=file.path, before=file.now, after=file.then, size=size))
        if file.by_others and file.now and (place := store.blobs.path(file.now)):
            kept.append((file.path, place))
    return Restored(tuple(sorted(changes, key=lambda change: change.path)), tuple(failed), tuple(sorted(kept)))


def _restore_file(file: PlannedFile, store: FileStore) -> str:
    """Write or delete one file; why that was not possible, or nothing.

    Raises:
        OSError: if the disk refuses.
    """
    path = store.workspace / file.path
    if reason := _out_of_bounds(file.path, store.workspace):
        return reason
    if stamp_at(path) != file.stamp or (file.stamp is None and _is_taken(path)):
        return "it has changed since the plan was made"
    if file.then is None:
        store.keep(file.path)
        path.unlink(missing_ok=True)
        _remove_empty_folders(path.parent, store.workspace)
        return ""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name[:100]}.{os.getpid()}.tmp")
    try:
        if not store.blobs.copy_to(file.then, temporary):
            return "its content in the file store is damaged"
        _set_mode(temporary, path, store.blobs.path(file.then))
        if file.stamp is not None:
            store.keep(file.path)
        temporary.replace(path)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
    return ""


def _numbered(events: Iterable[Event]) -> Iterator[tuple[int, str, FileChange]]:
    """Each change with the number of the step after whose decision it was seen, and the name of who made it."""
    number = 0
    for event in events:
        if isinstance(event, CallDecided):
            number += 1
        elif isinstance(event, FilesChanged):
            for change in event.changes:
                yield number, event.name, change


def _action(then: str | None, now: str | None, store: FileStore) -> tuple[Action, str]:
    if then == now and then != UNKNOWN_CONTENT:
        return "unchanged", ""
    if now == UNKNOWN_CONTENT:
        return "left", "they cannot be read, and so cannot be kept first"
    if then is None:
        return "delete", ""
    return ("write" if store.blobs.path(then) else "lost"), ""


def _out_of_bounds(path: str, workspace: Path) -> str:
    """Why a path is none that may be written: the record may have been edited by anybody. Empty if it may."""
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return "no file can have their names"
    parts = PurePosixPath(path).parts
    outside = path.startswith("/") or ".." in parts or "\0" in path or not parts
    if os.name == "nt":
        outside = outside or "\\" in path or bool(PureWindowsPath(path).drive)
    if outside:
        return "they are outside the workspace"
    if SKIPPED_FOLDERS.intersection(parts):
        return "the folders of tools are not restored"
    folder = workspace
    for part in parts[:-1]:
        folder /= part
        if folder.is_symlink():
            return "a link is on their path"
    return ""


def _is_taken(path: Path) -> bool:
    """Whether something other than a plain file or a folder is there. (An empty folder is gone once it is needed.)"""
    try:
        mode = path.lstat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _set_mode(temporary: Path, path: Path, blob: Path | None) -> None:
    """The rights of the file that is replaced, and executable if a file with this content was."""
    with suppress(OSError):
        mode = stat.S_IMODE((path if path.is_file() else temporary).stat().st_mode)
        if blob is not None and blob.stat().st_mode & stat.S_IXUSR:
            mode |= (mode & 0o444) >> 2
        temporary.chmod(mode)


def _remove_empty_folders(folder: Path, workspace: Path) -> None:
    with suppress(OSError):  # the first that is not empty ends it
        while folder != workspace:
            folder.rmdir()
            folder = folder.parent


def _size(file: PlannedFile) -> str:
    return format_bytes(file.size) if file.now is not None else "not there"


def listed(names: Sequence[str]) -> str:
    """Names of files for a sentence: ten at most, each as one can see it."""
    return _joined([shown(name) for name in names])


def shown(name: str) -> str:
    """A name as it is, quoted where it has characters that cannot be seen or would move the cursor."""
    return name if name.isprintable() else repr(name)


def _joined(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
