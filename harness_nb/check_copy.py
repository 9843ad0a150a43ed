"""A copy of the workspace for a check, which stands in the workspace's place in the sandbox.

The finish gate makes one for each finish. What is big, and what tools keep, is not copied: the sandbox binds the
original, read-only. Links stay links; what is neither file, folder nor link is left out.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

SHARED = frozenset({".git", ".hg", ".svn", ".venv", "venv", "node_modules", ".tox", ".nox", "harness_sessions"})
LEFT_OUT = frozenset({"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".ipynb_checkpoints", ".cache"})
BIG_FILE = 64 * 2**20
MOST_BYTES = 2 * 2**30
MOST_FILES = 50_000
MOST_SECONDS = 120.0
_FICLONE = 0x40049409


class TooMuchError(Exception):
    """The workspace is too much to copy; the text says of what."""


@dataclass(slots=True)
class CheckCopy:
    """The copy of ``workspace`` in ``target``, an empty folder. ``shared`` are the paths that are to be bound."""

    workspace: Path
    target: Path
    shared: list[Path] = field(default_factory=list)
    _files: int = 0
    _bytes: int = 0
    _until: float = 0.0

    def make(self) -> None:
        """Copy. Blocking.

        Raises:
            TooMuchError: if there are too many files, or it takes too long.
            OSError: if the disk does not let us.
        """
        self._until = time.monotonic() + MOST_SECONDS
        self._copy_folder(Path())

    def put(self, name: str, data: bytes, mode: int) -> None:
        """Give the copy this file; a link in its place or on the way to it goes."""
        path = self.target / name
        self._clear_way(path)
        path.write_bytes(data)
        path.chmod(mode | 0o400)

    def remove(self, name: str) -> None:
        """Take a file out of the copy."""
        path = self.target / name
        if not _crosses_link(self.target, path.parent):
            with suppress(OSError):
                path.unlink(missing_ok=True)

    def _clear_way(self, path: Path) -> None:
        for folder in [*reversed(path.relative_to(self.target).parents)][1:]:
            place = self.target / folder
            if place.is_symlink() or (place.exists() and not place.is_dir()):
                place.unlink()
            place.mkdir(exist_ok=True)
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)

    def _copy_folder(self, folder: Path) -> None:
        with os.scandir(self.workspace / folder) as found:
            entries = list(found)
        for entry in entries:
            path = folder / entry.name
            if entry.is_symlink():
                (self.target / path).symlink_to((self.workspace / path).readlink())
            elif entry.name in SHARED and entry.is_dir():
                (self.target / path).mkdir()
                self.shared.append(path)
            elif entry.is_dir(follow_symlinks=False):
                if entry.name not in LEFT_OUT:
                    (self.target / path).mkdir()
                    self._copy_folder(path)
            elif entry.is_file(follow_symlinks=False) and not entry.name.endswith(".pyc"):
                self._copy_file(path, entry.stat(follow_symlinks=False).st_size)

    def _copy_file(self, path: Path, size: int) -> None:
        self._files += 1
        if self._files > MOST_FILES or time.monotonic() > self._until:
            raise TooMuchError(f"more than {self._files - 1:,} files, or {MOST_SECONDS:g} s")
        source, target = self.workspace / path, self.target / path
        if size > BIG_FILE and _clone(source, target):
            return
        if size > BIG_FILE or self._bytes + size > MOST_BYTES:
            target.touch()
            self.shared.append(path)
            return
        self._bytes += size
        with suppress(PermissionError):
            shutil.copy2(source, target, follow_symlinks=False)


def _crosses_link(root: Path, folder: Path) -> bool:
    steps = [folder, *folder.parents]
    return any(step.is_symlink() for step in steps if step != root and step.is_relative_to(root))


def _clone(source: Path, target: Path) -> bool:
    """A copy that shares its blocks, where the file system can do it (ioctl_ficlone(2))."""
    if sys.platform != "linux":
        return False
    import fcntl

    try:
        with source.open("rb") as old, target.open("wb") as new:
            fcntl.ioctl(new, _FICLONE, old.fileno())
    except OSError:
        target.unlink(missing_ok=True)
        return False
    return True
