"""Contents by their SHA-256: ``<folder>/ab/abcdef…``, raw bytes, written once and never changed.

``FileStore`` keeps what it reads here; the way back takes it out again. A blob is forced to the disk only
where the file that has its content is about to go. It is checked against its name when it is read, so one that a power
cut tore is as good as none. A blob is executable if a file with its content was.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

CHUNK = 2**20

_DIGEST = re.compile(r"[0-9a-f]{64}")


class Blobs:
    """The blobs of one session, in ``folder``. ``room`` is how many bytes may be there in all.

    ``earlier`` is the folder of another session's blobs: what is there already is linked instead of written again.
    """

    def __init__(self, folder: Path, room: int) -> None:
        self.folder = folder
        self.earlier: Path | None = None
        self._capacity = room
        self._room: int | None = None

    def path(self, digest: str) -> Path | None:
        """The file of a blob, or ``None`` where there is none, or ``digest`` is not a SHA-256 in hexadecimal."""
        if not _DIGEST.fullmatch(digest):
            return None
        path = self._place(digest)
        return path if path.is_file() else None

    def read(self, digest: str) -> bytes | None:
        """The content, or ``None`` where it is not kept or is damaged."""
        path = self.path(digest)
        if path is None:
            return None
        try:
            data = path.read_bytes()
        except OSError:
            return None
        return data if hashlib.sha256(data).hexdigest() == digest else None

    def put(self, digest: str, data: bytes, *, executable: bool = False, always: bool = False) -> bool:
        """Keep a content; whether it is kept now.

        ``always``: even where there is no room left, and on disk before it returns, for the only other copy is about to
        go.

        Raises:
            OSError: if it cannot be written.
        """
        place = self._place(digest)
        with suppress(OSError):
            about = place.stat()
            if about.st_size == len(data) and (not always or place.read_bytes() == data):
                if executable and not about.st_mode & stat.S_IXUSR:
                    place.chmod(0o755)
                return True
        if not always and len(data) > self._room_left():
            return False
        place.parent.mkdir(parents=True, exist_ok=True)
        if always or not self._link_earlier(digest, len(data), place):
            self._write(place, data, sync=always)
            self._room = self._room_left() - len(data)
        if executable:
            place.chmod(0o755)
        return True

    def take(self, digest: str, path: Path) -> None:
        """Make the file at ``path`` the blob of this content by moving it; ``path`` is gone then.

        Raises:
            OSError: if it cannot be moved.
        """
        place = self._place(digest)
        place.parent.mkdir(parents=True, exist_ok=True)
        path.replace(place)

    def copy_to(self, digest: str, target: Path) -> bool:
        """Write a content to a new file; whether it was there and whole. ``target`` is left to the caller if not.

        Raises:
            OSError: if the target cannot be written.
        """
        path = self.path(digest)
        if path is None:
            return False
        sha = hashlib.sha256()
        with path.open("rb") as source, target.open("xb") as file:
            while chunk := source.read(CHUNK):
                sha.update(chunk)
                file.write(chunk)
        return sha.hexdigest() == digest

    def adopt(self, other: Blobs, digests: Iterable[str | None]) -> tuple[str, ...]:
        """Take over contents of another session, by a hard link where that works; those that it does not have.

        Raises:
            OSError: if they cannot be written.
        """
        missing = []
        for digest in dict.fromkeys(digest for digest in digests if digest):
            source = other.path(digest)
            if source is None:
                missing.append(digest)
                continue
            place = self._place(digest)
            if place.exists():
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            try:
                place.hardlink_to(source)
            except OSError:
                temporary = self._temporary(place)
                shutil.copy(source, temporary)
                temporary.replace(place)
        return tuple(missing)

    def _place(self, digest: str) -> Path:
        return self.folder / digest[:2] / digest

    def _temporary(self, place: Path) -> Path:
        return place.with_name(f".{place.name}.{os.getpid()}.tmp")

    def _link_earlier(self, digest: str, size: int, place: Path) -> bool:
        if self.earlier is None:
            return False
        source = self.earlier / digest[:2] / digest
        try:
            if source.stat().st_size != size:
                return False
            place.unlink(missing_ok=True)
            place.hardlink_to(source)
        except OSError:
            return False
        return True

    def _write(self, place: Path, data: bytes, sync: bool) -> None:
        temporary = self._temporary(place)
        try:
            with temporary.open("wb") as file:
                file.write(data)
                if sync:
                    file.flush()
                    os.fsync(file.fileno())
            temporary.replace(place)
        except OSError:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise

    def _room_left(self) -> int:
        """Bytes that may still be kept; counted once. What a crash left unfinished is removed on the way."""
        if self._room is None:
            used = 0
            for path in self.folder.glob("*/*"):
                with suppress(OSError):
                    if path.name.endswith(".tmp"):
                        path.unlink()
                    else:
                        used += path.stat().st_size
            self._room = self._capacity - used
        return self._room
