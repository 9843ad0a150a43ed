"""A file that is replaced at once: written under a name of its own in the same folder, synced, then renamed.

Whatever in the record must be old or new and never a part is written by way of a ``Draft``. Also here: the stamps by
which a file that somebody else has written to is recognised. Imports nothing of ours.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

Stamp = tuple[int, int, int]
"""Inode, time of the last change in nanoseconds, bytes: the same as long as nobody has written to a file."""


class Draft:
    """The content of ``path`` to be, already on disk; a context manager that leaves nothing behind.

    Raises:
        OSError: if it cannot be written. The file that it was to replace is untouched.
    """

    def __init__(self, path: Path, chunks: Iterable[bytes]) -> None:
        self._path = path
        self._temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
        descriptor = os.open(self._temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            with os.fdopen(descriptor, "wb") as file:
                with suppress(OSError):
                    os.fchmod(descriptor, stat.S_IMODE(path.stat().st_mode))
                file.writelines(chunks)
                file.flush()
                os.fsync(descriptor)
                self._stamp = stamp_of_status(os.fstat(descriptor))
        except BaseException:
            self._discard()
            raise

    def __enter__(self) -> Draft:
        return self

    def __exit__(self, *exception: object) -> None:
        self._discard()

    def put_in_place(self) -> Stamp:
        """Replace the file: it is old or new at every moment, also after a power failure. The stamp of the new one."""
        self._temporary.replace(self._path)
        with suppress(OSError):  # not every file system can sync a folder
            folder = os.open(self._path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        return self._stamp

    def _discard(self) -> None:
        with suppress(OSError):
            self._temporary.unlink(missing_ok=True)


def remove_leftovers(path: Path) -> None:
    """Remove the drafts of ``path`` that a crash has left. Nobody else may be writing it."""
    with suppress(OSError):
        for other in list(path.parent.iterdir()):
            if other.name.startswith(f".{path.name}.") and other.name.endswith(".tmp"):
                other.unlink(missing_ok=True)


def stamp_of(path: Path) -> Stamp | None:
    """The stamp of what is at ``path``, ``None`` if nothing is; a link is not followed."""
    try:
        return stamp_of_status(path.lstat())
    except FileNotFoundError:
        return None


def stamp_of_status(status: os.stat_result) -> Stamp:
    """The stamp in what ``os.stat`` gave."""
    return status.st_ino, status.st_mtime_ns, status.st_size


class OpenFile:
    """A file held open, so that it can be read after another one has taken its name.

    Raises:
        OSError: if it cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDONLY)

    @property
    def stamp(self) -> Stamp:
        """Its stamp as it is now."""
        return stamp_of_status(os.fstat(self._descriptor))

    def read(self) -> tuple[bytes, Stamp]:
        """The whole content, and the stamp from before it was read: if that is no longer right, read again."""
        stamp = self.stamp
        with os.fdopen(os.dup(self._descriptor), "rb") as file:
            file.seek(0)
            return file.read(), stamp

    def close(self) -> None:
        """Let go of it."""
        os.close(self._descriptor)
