"""The file store: it looks at the workspace after each call, says what changed, and keeps the contents by their hash.

The session calls ``begin`` before a prompt's work and ``look`` after each call, in a thread, for both may read much. A
look walks the folders and opens only files whose stamp (size, times, number) differs from the last look. What is not
kept: files over ``kept_bytes`` (known by hash once a call has changed them, by stamp before that), links, anything that
is not a plain file, the folders of tools in ``walk.SKIPPED_FOLDERS``, empty folders.

``<session folder>/files/index.json`` remembers the look before the last, so that a session that is taken up again sees
what happened meanwhile. A look is not remembered before the next one begins: by then its changes are in the journal.
"""

from __future__ import annotations

import hashlib
import os
import stat
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from io import BufferedReader
from pathlib import Path

from harness_nb.events import UNKNOWN_CONTENT, FileChange
from harness_nb.files.blobs import CHUNK, Blobs
from harness_nb.files.index import Known, load_index, save_index
from harness_nb.files.walk import Stamp, Walk, walk_files

KEPT_BYTES = 8 * 2**20
BASELINE_BYTES = 256 * 2**20
TOTAL_BYTES = 2**30
READ_BYTES = 4 * 2**30
MAX_FILES = 20_000
MAX_IN_FOLDER = 2_000

SETTLED_NS = 2 * 10**9
"""A file that was written this short a time before a look is read again at the next: the clocks of file systems tick
as slowly as once in two seconds, and a second writing within a tick leaves the stamp as it is."""


class FileStore:
    """The files of one session, whose folder is ``folder``; ``workspace`` is what is looked at.

    Contents up to ``kept_bytes`` are kept: of the files that were there first ``baseline_bytes`` in all, and
    ``total_bytes`` in the session. A look reads ``read_bytes`` at most. ``skip`` are paths, relative to the workspace,
    that are not looked at, such as the notebook that a person works in; it may be changed at any time. Contents that
    are ``withheld``, such as those with secrets, are known by hash only.
    """

    def __init__(
        self,
        folder: Path,
        workspace: Path,
        *,
        kept_bytes: int = KEPT_BYTES,
        baseline_bytes: int = BASELINE_BYTES,
        total_bytes: int = TOTAL_BYTES,
        read_bytes: int = READ_BYTES,
        max_files: int = MAX_FILES,
        max_in_folder: int = MAX_IN_FOLDER,
    ) -> None:
        self.workspace = workspace
        self.blobs = Blobs(folder / "files", total_bytes)
        self.skip: frozenset[str] = frozenset()
        self.withheld: Callable[[bytes], bool] = lambda data: False
        self._index = folder / "files" / "index.json"
        self._kept_bytes, self._baseline_bytes, self._read_bytes = kept_bytes, baseline_bytes, read_bytes
        self._max_files, self._max_in_folder = max_files, max_in_folder
        self._known: dict[str, Known] = {}
        self._walk = Walk()
        self._begun = self._looked = False
        self._unsaved = False
        self._warnings: list[str] = []
        self._warned: set[str] = set()
        self._lock = threading.Lock()

    def begin(self, recorded: Mapping[str, str | None] | None = None) -> tuple[FileChange, ...]:
        """What others changed since the last look; blocking. Nothing at the first time, which takes the baseline.

        ``recorded`` is what the journal of a session that is taken up again says of files (``files_now``): what differs
        from it has been changed by others, or by a call that was cut off. Nothing is raised: a store that cannot be
        read or written gives ``kept=False`` and a warning.
        """
        with self._lock:
            if self._begun:
                return self._look(report_new=True)
            self._begun = True
            remembered = load_index(self._index)
            if remembered is None:
                report_new, self._unsaved = False, True  # an empty workspace is worth remembering too
            else:
                report_new, (self._known, self._walk) = True, remembered
            for path, digest in (recorded or {}).items():
                known = self._known.get(path)
                if digest is None:
                    self._known.pop(path, None)
                elif digest != UNKNOWN_CONTENT and (known is None or known.digest != digest):
                    self._known[path] = Known(None, digest)
            self.blobs.earlier = self._earlier_blobs()
            return self._look(report_new)

    def look(self) -> tuple[FileChange, ...]:
        """What changed since the last look, by path; blocking. Costs a walk, and the reading of what differs."""
        with self._lock:
            return self._look(report_new=True)

    def blob(self, digest: str) -> bytes | None:
        """A content by its SHA-256; ``None`` where it is not kept."""
        return self.blobs.read(digest)

    def adopt(self, other: FileStore, digests: Iterable[str | None]) -> tuple[str, ...]:
        """Take over contents from the store of another session; returns those that it does not have.

        Raises:
            OSError: if they cannot be written.
        """
        return self.blobs.adopt(other.blobs, (digest for digest in digests if digest != UNKNOWN_CONTENT))

    def warnings(self) -> list[str]:
        """What a person should know, since this was last asked. Each is said once a session."""
        said, self._warnings = self._warnings, []
        return said

    def digest_of(self, path: str) -> str | None:
        """The SHA-256 of a file as it is now, ``None`` where there is no plain file, whatever its size; blocking."""
        try:
            with _open(self.workspace / path) as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except FileNotFoundError:
            return None
        except OSError:
            return UNKNOWN_CONTENT if (self.workspace / path).exists() else None

    def keep(self, path: str) -> str:
        """Keep a file that is about to be overwritten, however large; its SHA-256. A large one is moved, and is gone.

        Raises:
            OSError: if it cannot be read or kept.
        """
        place = self.workspace / path
        with _open(place) as file:
            about = os.fstat(file.fileno())
            if about.st_size <= self._kept_bytes:
                data = file.read(about.st_size)
                digest = hashlib.sha256(data).hexdigest()
                self.blobs.put(digest, data, executable=bool(about.st_mode & stat.S_IXUSR), always=True)
                return digest
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        self.blobs.take(digest, place)
        return digest

    def note(self, path: str, digest: str | None) -> None:
        """The harness itself has made the file what it is now: the next look does not report it."""
        with self._lock:
            if digest is None:
                self._known.pop(path, None)
            elif self._begun:
                self._known[path] = Known(None, digest)

    def _look(self, report_new: bool) -> tuple[FileChange, ...]:
        if self._unsaved and self._looked:
            self._unsaved = not self._save(self._known, self._walk)
        walk = walk_files(self.workspace, self.skip, self._max_files, self._max_in_folder)
        now: dict[str, Known] = {}
        differing: list[tuple[int, str]] = []
        for path, stamp in walk.files.items():
            known = self._known.get(path)
            if known is not None and known.still_is(stamp):
                now[path] = known
            else:
                differing.append((stamp.size, path))
        changes = [
            *self._read_differing(walk, sorted(differing), now, report_new),
            *self._gone(walk, now),
        ]
        self._unsaved = self._unsaved or now != self._known
        self._known, self._walk, self._looked = now, walk, True
        self._warn_of(walk)
        if self._unsaved and not changes:
            self._unsaved = not self._save(now, walk)
        return tuple(sorted(changes, key=lambda change: change.path))

    def _save(self, known: Mapping[str, Known], walk: Walk) -> bool:
        """Remember a look, without the names of files that are themselves to be withheld."""
        named = {path: each for path, each in known.items() if not self.withheld(os.fsencode(path))}
        return save_index(self._index, named, walk)

    def _read_differing(
        self, walk: Walk, differing: list[tuple[int, str]], now: dict[str, Known], report_new: bool
    ) -> Iterable[FileChange]:
        """Read what differs, small files first while the bounds last; adds to ``now`` and yields the changes."""
        baseline, budget = self._baseline_bytes, self._read_bytes
        for size, path in differing:
            stamp, old = walk.files[path], self._known.get(path)
            first_seen = old is None and (not report_new or self._walk.hides(path))
            if first_seen:
                worth_reading = size <= min(self._kept_bytes, baseline)
                baseline -= size if worth_reading else 0
            else:
                worth_reading = size <= budget
                budget -= size if worth_reading else 0
            seen = self._read(path, stamp) if worth_reading else (Known(stamp, UNKNOWN_CONTENT), size, False)
            if seen is None:
                continue
            now[path], size, kept = seen
            before, after = old.digest if old else None, now[path].digest
            if not first_seen and (before != after or after == UNKNOWN_CONTENT):
                yield FileChange(path=path, before=before, after=after, size=size, kept=kept)

    def _gone(self, walk: Walk, now: dict[str, Known]) -> Iterable[FileChange]:
        for path in self._known.keys() - now.keys():
            if path in self.skip:
                continue
            if walk.hides(path):
                now[path] = self._known[path]
            else:
                yield FileChange(path=path, before=self._known[path].digest)

    def _read(self, path: str, stamp: Stamp) -> tuple[Known, int, bool] | None:
        """Read one file: what is known of it then, its size in bytes, and whether its content is kept.

        ``None`` where it has gone. Size, hash and kept content are of the same bytes, also while it is being written.
        """
        try:
            with _open(self.workspace / path) as file:
                about = os.fstat(file.fileno())
                if (about.st_size, about.st_mtime_ns) != stamp[:2]:
                    stamp = Stamp(about.st_size, about.st_mtime_ns, about.st_ino, about.st_ctime_ns)
                recent = stamp.mtime_ns > time.time_ns() - SETTLED_NS
                if stamp.size > self._kept_bytes:
                    digest = _hash(file, stamp.size)
                    return Known(stamp, digest), stamp.size, self.blobs.path(digest) is not None
                data = file.read(stamp.size)
        except FileNotFoundError:
            return None
        except OSError:
            return Known(stamp, UNKNOWN_CONTENT), stamp.size, False
        digest = hashlib.sha256(data).hexdigest()
        kept = self._keep(digest, data, bool(about.st_mode & stat.S_IXUSR))
        return Known(stamp, digest, recent), len(data), kept

    def _keep(self, digest: str, data: bytes, executable: bool) -> bool:
        if self.withheld(data):
            return False
        try:
            kept = self.blobs.put(digest, data, executable=executable)
        except OSError as error:
            self._warn(
                f"Contents of files cannot be kept in {self.blobs.folder} ({error.strerror or error}): "
                "the work goes on, and going back to an earlier step will not restore these files."
            )
            return False
        if not kept:
            self._warn(
                "The store of file contents is full: from here on, going back to an earlier step restores only what "
                "was kept before."
            )
        return kept

    def _warn_of(self, walk: Walk) -> None:
        for folder in sorted(walk.crowded)[:1]:
            self._warn(
                f"The folder {folder or '.'} has more than {self._max_in_folder:,} files: they are not watched, and "
                "going back to an earlier step leaves them as they are.",
                kind=f"crowded {folder}",
            )
        if walk.full:
            self._warn(
                f"The workspace has more than {self._max_files:,} files: those in the deepest folders are not watched, "
                "and going back to an earlier step leaves them as they are.",
                kind="full",
            )
        if walk.unnamed:
            self._warn("Files whose names are not UTF-8 are not watched, and not restored by going back.")

    def _warn(self, text: str, kind: str = "") -> None:
        if (kind or text[:60]) not in self._warned:
            self._warned.add(kind or text[:60])
            self._warnings.append(text)

    def _earlier_blobs(self) -> Path | None:
        """The blobs of the session that last looked at this workspace, besides this one."""
        found: list[tuple[float, Path]] = []
        for index in self._index.parent.parent.parent.glob("*/files/index.json"):
            with suppress(OSError):
                found.append((index.stat().st_mtime, index.parent))
        return max((item for item in found if item[1] != self.blobs.folder), default=(0.0, None))[1]


def _open(path: Path) -> BufferedReader:
    """Open a plain file for reading; no link is followed and no pipe is waited for.

    Raises:
        FileNotFoundError: if there is no plain file.
        OSError: if it cannot be opened.
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(path, flags)
    except NotADirectoryError as error:
        raise FileNotFoundError(path) from error
    except OSError:
        if path.is_symlink() or path.is_dir():
            raise FileNotFoundError(path) from None
        raise
    file = os.fdopen(descriptor, "rb") if stat.S_ISREG(os.fstat(descriptor).st_mode) else None
    if file is None:
        os.close(descriptor)
        raise FileNotFoundError(path)
    return file


def _hash(file: BufferedReader, size: int) -> str:
    """SHA-256 of the next ``size`` bytes, or of fewer where the file ends before."""
    sha = hashlib.sha256()
    while size > 0 and (chunk := file.read(min(CHUNK, size))):
        sha.update(chunk)
        size -= len(chunk)
    return sha.hexdigest()
