"""A fresh copy of a notebook's folder, so that a run changes nothing of the person's and finds nothing of its own.

Small files are copied; big ones are cloned where the file system can do it. What is too much to copy is shared: bound
read-only by the sandbox, or linked where there is none, and said. ``verification`` makes one for each run.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from harness_nb.errors import StoreError
from harness_nb.store import FOLDER

LEFT_OUT = {"__pycache__", ".ipynb_checkpoints", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".tox", ".nox"}
SHARED = {".venv", "venv", "node_modules", ".conda", "conda-meta"}
HISTORY = {".git", ".hg", ".svn"}
"""Shared with a sandbox, which keeps them from being written; left out without one."""

BIG_FILE = 2**30
MOST_BYTES = 4 * 2**30
MOST_FILES = 20_000
_FICLONE = 0x40049409


@dataclass(frozen=True, slots=True)
class Copied:
    """``shared``: paths in the folder that were not copied and must be bound or are linked; ``notes`` for people."""

    shared: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()


def root_of(path: Path) -> Path:
    """The folder that a notebook's code works with: its own, or the workspace of a session notebook."""
    folder = path.parent
    return folder.parent if folder.name == FOLDER else folder


def copy_folder(root: Path, target: Path, notebook: Path, sandboxed: bool) -> Copied:
    """Copy ``root`` into the empty folder ``target``; of the sessions only what ``notebook`` needs.

    Raises:
        StoreError: if the copy cannot be made.
    """
    if root == Path(root.anchor):
        raise StoreError(f"{root} is too much to copy; move the notebook into a folder, or use --in-place")
    copier = _Copier(root, target, sandboxed)
    try:
        copier.copy_children(Path())
        if notebook.parent.name == FOLDER:
            (target / FOLDER).mkdir(exist_ok=True)
            copier.copy_tree(Path(FOLDER) / notebook.stem / "outputs")
        if notebook.exists():
            (target / notebook.relative_to(root)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(notebook, target / notebook.relative_to(root))
    except OSError as error:
        raise StoreError(f"{root} cannot be copied for the run: {error}; try --in-place") from error
    return Copied(tuple(copier.shared), tuple(copier.notes))


class _Copier:
    """One copy in the making, with what is left of its budget."""

    def __init__(self, root: Path, target: Path, sandboxed: bool) -> None:
        self._root, self._target, self._sandboxed = root, target, sandboxed
        self._files, self._bytes = MOST_FILES, MOST_BYTES
        self.shared: list[Path] = []
        self.notes: list[str] = []

    def copy_children(self, folder: Path) -> None:
        """Copy what is in a folder, which is there already in the target."""
        for entry in sorted(_entries(self._root / folder), key=lambda entry: entry.is_dir(follow_symlinks=False)):
            path = folder / entry.name
            if entry.is_symlink():
                self._copy_link(path)
            elif entry.is_dir():
                self._take_folder(path)
            elif entry.is_file():
                self._take_file(path, entry.stat().st_size)

    def copy_tree(self, folder: Path) -> None:
        """Copy a folder with all that is in it, if it is there."""
        if (self._root / folder).is_dir():
            (self._target / folder).mkdir(parents=True, exist_ok=True)
            self.copy_children(folder)

    def _take_folder(self, path: Path) -> None:
        if path.name in LEFT_OUT or path.name == FOLDER:
            return
        if path.name in SHARED or (path.name in HISTORY and self._sandboxed):
            self._share(path)
        elif path.name not in HISTORY:
            files, size = _measure(self._root / path, self._files, self._bytes)
            if files > self._files or size > self._bytes:
                self._share(path, f"{path}/ is too much to copy")
            else:
                self.copy_tree(path)

    def _take_file(self, path: Path, size: int) -> None:
        source, target = self._root / path, self._target / path
        if size > BIG_FILE and _clone(source, target):
            return
        too_big = size > self._bytes or self._files <= 0
        if too_big or (size > BIG_FILE and self._sandboxed):
            self._share(path, f"{path} is too much to copy" if too_big else "")
            return
        self._files -= 1
        self._bytes -= size
        try:
            shutil.copy2(source, target)
        except PermissionError:
            self.notes.append(f"{path} cannot be read and is not in the copy")

    def _share(self, path: Path, why: str = "") -> None:
        self.shared.append(path)
        target = self._target / path
        if self._sandboxed:
            if (self._root / path).is_dir():
                target.mkdir(exist_ok=True)
            else:
                target.touch()
            if why:
                self.notes.append(f"{why}: it is the original, read-only")
            return
        target.symlink_to(self._root / path)
        if why:
            self.notes.append(f"{why}: it is a link to the original, which a cell could change")

    def _copy_link(self, path: Path) -> None:
        points_to = (self._root / path).readlink()
        if points_to.is_absolute() and points_to.is_relative_to(self._root):
            points_to = Path(os.path.relpath(points_to, (self._root / path).parent))
        with suppress(FileExistsError):
            (self._target / path).symlink_to(points_to)


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from list(entries)
    except PermissionError:
        return


def _measure(folder: Path, most_files: int, most_bytes: int) -> tuple[int, int]:
    """The number of files below a folder and the bytes of those that would be copied; stops beyond what is allowed."""
    files = size = 0
    for directory, names, children in os.walk(folder):
        names[:] = [name for name in names if name not in LEFT_OUT | SHARED | HISTORY]
        for child in children:
            with suppress(OSError):
                length = (Path(directory) / child).lstat().st_size
                files += 1
                size += length if length <= BIG_FILE else 0
        if files > most_files or size > most_bytes:
            break
    return files, size


def _clone(source: Path, target: Path) -> bool:
    """Clone a file on file systems that share blocks (Btrfs, XFS); whether that worked."""
    if sys.platform != "linux":
        return False
    import fcntl

    try:
        with source.open("rb") as reading, target.open("wb") as writing:
            fcntl.ioctl(writing.fileno(), _FICLONE, reading.fileno())
        shutil.copystat(source, target)
    except OSError:
        target.unlink(missing_ok=True)
        return False
    return True
