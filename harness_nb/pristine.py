"""Read-only files: how they were at the start, whether they still are, and how to get them back.

The session takes one ``Pristine`` before the first prompt. The loop asks ``put_back`` after each cell, for code in the
tool kernel can write where the file tools may not; the finish gate asks ``touched``.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pathspec import GitIgnoreSpec

KEPT_BYTES = 8 * 2**20
"""Files up to this size are kept whole, so that they can be put back; of larger ones only the hash is known."""

SKIPPED_FOLDERS = frozenset({"harness_sessions", "__pycache__", ".git", ".venv", "node_modules", ".pytest_cache"})


@dataclass(frozen=True, slots=True)
class Kept:
    """One file as it was: its SHA-256, its stamp (size, times, number), and its bytes where they are few.

    The time of the last change of the file's state is in the stamp, for nobody can set that back.
    """

    digest: str
    stamp: tuple[int, ...]
    mode: int
    data: bytes | None


class Pristine:
    """The files of ``workspace`` that match ``patterns`` (gitignore patterns), as they are when this is made."""

    def __init__(self, workspace: Path, patterns: Sequence[str]) -> None:
        self.patterns = tuple(patterns)
        self._workspace = workspace
        self._spec = GitIgnoreSpec.from_lines(self.patterns)
        self._kept = {name: self._keep(name) for name in self._names()}

    @property
    def names(self) -> list[str]:
        """The files that were there, relative to the workspace."""
        return list(self._kept)

    def touched(self) -> list[str]:
        """Names of files that have changed, gone or come since, sorted."""
        now = set(self._names())
        changed = [name for name in now & self._kept.keys() if self._has_changed(name)]
        return sorted([*changed, *(now ^ self._kept.keys())])

    def put_back(self) -> tuple[list[str], list[str]]:
        """Restore what has changed or gone; names of what was restored, and of what could not be.

        Files that have come since are left to whoever made them, and are among the second.
        """
        restored, left = [], []
        for name in self.touched():
            kept = self._kept.get(name)
            path = self._workspace / name
            if kept is None or kept.data is None or path.is_dir():
                left.append(name)
                continue
            try:
                self._unlink_ways(path)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.unlink(missing_ok=True)
                path.write_bytes(kept.data)
                path.chmod(kept.mode)
                os.utime(path, ns=(kept.stamp[1], kept.stamp[1]))
            except OSError:
                left.append(name)
                continue
            restored.append(name)
        return restored, left

    def present(self) -> set[str]:
        """The files that match now."""
        return set(self._names())

    def kept(self, name: str) -> Kept | None:
        """The file as it was; ``None`` if there was none."""
        return self._kept.get(name)

    def stamps(self) -> dict[str, tuple[int, ...] | None]:
        """The stamps of the files as they are now, which tell of every write since they were last asked for."""
        return {name: _stamp(self._workspace / name) for name in {*self._kept, *self._names()}}

    def _unlink_ways(self, path: Path) -> None:
        """Remove links that stand for folders on the way to a file: what is written must not go elsewhere."""
        for folder in reversed(path.relative_to(self._workspace).parents):
            if (self._workspace / folder).is_symlink() and folder != Path():
                (self._workspace / folder).unlink()

    def _names(self) -> Iterator[str]:
        if not self.patterns:
            return
        for folder, folders, files in os.walk(self._workspace):
            folders[:] = sorted(name for name in folders if name not in SKIPPED_FOLDERS)
            for name in sorted(files):
                relative = Path(folder, name).relative_to(self._workspace).as_posix()
                if self._spec.match_file(relative) and not name.endswith(".pyc") and Path(folder, name).is_file():
                    yield relative

    def _keep(self, name: str) -> Kept:
        path = self._workspace / name
        about = path.stat()
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        data = path.read_bytes() if about.st_size <= KEPT_BYTES else None
        return Kept(digest, _stamp_of(about), about.st_mode & 0o7777, data)

    def _has_changed(self, name: str) -> bool:
        path, kept = self._workspace / name, self._kept[name]
        try:
            about = path.stat()
            if _stamp_of(about) == kept.stamp and kept.data is None:
                return False
            if about.st_mode & 0o700 != kept.mode & 0o700:
                return True
            with path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest() != kept.digest
        except OSError:  # it went while we looked, or may not be read any more
            return True


def _stamp_of(about: os.stat_result) -> tuple[int, ...]:
    return (about.st_size, about.st_mtime_ns, about.st_ctime_ns, about.st_ino)


def _stamp(path: Path) -> tuple[int, ...] | None:
    try:
        return _stamp_of(path.stat())
    except OSError:
        return None


def put_back_note(restored: Sequence[str], left: Sequence[str]) -> str:
    """What the model and the person are told of it; empty when nothing was touched."""
    notes = []
    if restored:
        notes.append(f"This call changed read-only files; they have been put back as they were: {', '.join(restored)}.")
    if left:
        notes.append(
            f"These match read-only patterns and differ from the start: {', '.join(left)}. "
            "A finish is refused until they are as they were; new ones have to be removed."
        )
    return " ".join(notes)
