"""One look at which files a workspace has, by ``scandir`` and ``stat`` alone: no file is opened.

``FileStore`` compares two looks. Links are neither followed nor listed, and nor is anything that is not a plain file.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import NamedTuple

SKIPPED_FOLDERS = frozenset(
    {
        "harness_sessions",
        ".git",
        ".hg",
        ".svn",
        ".venv",
        "node_modules",
        "__pycache__",
        ".ipynb_checkpoints",
        ".cache",
        ".pytest_cache",
        ".mypy_cache",
        ".ruff_cache",
        ".tox",
    }
)
"""Folders of tools: what is in them is made again, or is the tools' own history. Virtual environments are told by
their ``pyvenv.cfg``."""

SKIPPED_SUFFIXES = (".pyc", ".tmp")


class Stamp(NamedTuple):
    """What tells without reading that a file has changed: bytes, times in nanoseconds, and the file's number."""

    size: int
    mtime_ns: int
    inode: int
    ctime_ns: int


@dataclass(slots=True)
class Walk:
    """What was seen.

    ``crowded`` are folders with too many files, which were not listed one by one; ``closed`` are folders that were not
    entered: virtual environments, those that cannot be read or are beyond the cap. ``unnamed`` counts the names that
    are not text.
    """

    files: dict[str, Stamp] = field(default_factory=dict)
    crowded: set[str] = field(default_factory=set)
    closed: set[str] = field(default_factory=set)
    full: bool = False
    unnamed: int = 0

    def hides(self, path: str) -> bool:
        """Whether a file at ``path`` could be there without having been seen."""
        if not (self.crowded or self.closed):
            return False
        folder = path.rpartition("/")[0]
        if folder in self.crowded or folder in self.closed or "" in self.closed:
            return True
        return any(parent.as_posix() in self.closed for parent in PurePosixPath(folder).parents)


def walk_files(root: Path, skip: Collection[str], max_files: int, max_in_folder: int) -> Walk:
    """The files below ``root``, folders nearest to it first, so that a cap cuts off what is deepest.

    ``skip`` are paths relative to the root that are passed over.
    """
    walk = Walk()
    folders = [""]
    for folder in folders:  # grows while it is walked: breadth first
        if len(walk.files) >= max_files:
            walk.full = True
            walk.closed.add(folder)
            continue
        try:
            with os.scandir(root / folder) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError as error:
            if not folder or not isinstance(error, FileNotFoundError | NotADirectoryError):
                walk.closed.add(folder)
            continue
        if folder and any(entry.name == "pyvenv.cfg" for entry in entries):
            walk.closed.add(folder)
            continue
        _list_folder(walk, folder, entries, skip, max_in_folder, folders)
    return walk


def _list_folder(
    walk: Walk, folder: str, entries: list[os.DirEntry[str]], skip: Collection[str], most: int, folders: list[str]
) -> None:
    prefix = f"{folder}/" if folder else ""
    files: dict[str, Stamp] = {}
    for entry in entries:
        path = prefix + entry.name
        try:
            if not path.isascii():
                path.encode()
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in SKIPPED_FOLDERS and path not in skip:
                    folders.append(path)
            elif (
                len(files) <= most
                and not entry.name.endswith(SKIPPED_SUFFIXES)
                and path not in skip
                and entry.is_file(follow_symlinks=False)
            ):
                files[path] = stamp_of(entry.stat(follow_symlinks=False))
        except UnicodeEncodeError:
            walk.unnamed += 1
        except FileNotFoundError:
            continue  # it went while we looked
        except OSError:
            walk.crowded.add(folder)
    if len(files) > most:
        walk.crowded.add(folder)
    else:
        walk.files.update(files)


def stamp_of(about: os.stat_result) -> Stamp:
    """The stamp of a file from its ``stat``."""
    return Stamp(about.st_size, about.st_mtime_ns, about.st_ino, about.st_ctime_ns)


def stamp_at(path: Path) -> Stamp | None:
    """The stamp of the plain file at ``path``; ``None`` where there is none."""
    with suppress(OSError, ValueError):
        about = path.lstat()
        return stamp_of(about) if stat.S_ISREG(about.st_mode) else None
    return None
