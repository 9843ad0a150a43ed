"""What is in the workspace: visible entries, files that must exist, and near names for those that do not.

The reading, searching and writing functions use it. Standard library only; runs in the tool kernel.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from harness_nb.tools.workspace import brief, plainly, quoted, resolve, root, shown

SKIPPED = {"__pycache__", "harness_sessions", "node_modules"}
LOOKED_AT = 5000
NEAR = 3


def visible(folder: Path) -> list[Path]:
    """What a folder holds, without hidden entries, caches, sessions and dangling links; files and folders by name."""
    try:
        entries = sorted(folder.iterdir(), key=lambda entry: entry.name)
    except OSError:
        return []
    return [e for e in entries if not e.name.startswith(".") and e.name not in SKIPPED and e.exists()]


def below(folder: Path) -> Iterator[Path]:
    """The visible entries of a folder and of all folders below it, in order; links to folders are not followed."""
    for entry in visible(folder):
        yield entry
        if entry.is_dir() and not entry.is_symlink():
            yield from below(entry)


def existing_file(path: str | os.PathLike[str]) -> Path:
    """Like ``resolve``, for a file that must be there.

    Raises:
        FileNotFoundError: if nothing is there; names near ones.
        IsADirectoryError: if it is a folder.
        ValueError: if it is something else, such as a pipe or a device.
    """
    target = resolve(path)
    with plainly(target, "read"):
        if target.is_dir():
            name = quoted(shown(target))
            raise brief(IsADirectoryError(f"{name} is a folder; list it with list_files({name})"))
        if not target.exists():
            raise brief(FileNotFoundError(f"there is no file {quoted(path)}{near_files(target)}"))
        if not target.is_file():
            raise brief(ValueError(f"{quoted(shown(target))} is not a regular file and cannot be read"))
    return target


def existing_folder(path: str | os.PathLike[str]) -> Path:
    """Like ``resolve``, for a folder that must be there and be readable.

    Raises:
        FileNotFoundError: if nothing is there; names near ones.
        NotADirectoryError: if it is a file.
        PermissionError: if the system does not let it be read.
    """
    target = resolve(path)
    with plainly(target, "listed"):
        if not target.exists():
            raise brief(FileNotFoundError(f"there is no folder {quoted(path)}{near_folders(target)}"))
        if not target.is_dir():
            name = quoted(shown(target))
            raise brief(NotADirectoryError(f"{name} is a file; read it with read_file({name})"))
        os.scandir(target).close()
    return target


def near_files(target: Path) -> str:
    """What to add to "there is no file": files of that name elsewhere, or of a like name; else where to look."""
    candidates = [entry for entry in _candidates(target) if not entry.is_dir()]
    return _told(target, _nearest(target, candidates), "")


def near_folders(target: Path) -> str:
    """The same for a folder."""
    candidates = [entry for entry in _candidates(target) if entry.is_dir()]
    return _told(target, _nearest(target, candidates), "/")


def near_entries(target: Path) -> str:
    """The same for what may be a file or a folder."""
    return _told(target, _nearest(target, _candidates(target)), "")


def _candidates(target: Path) -> list[Path]:
    """What ``target`` may have been meant to be: the entries of its own folder, hidden ones too, then all others."""
    found: dict[Path, None] = {}
    with suppress(OSError):
        found.update(dict.fromkeys(sorted(target.parent.iterdir())[:LOOKED_AT]))
    for entry in below(root()):
        if len(found) >= LOOKED_AT:
            break
        found.setdefault(entry)
    return list(found)


def _nearest(target: Path, candidates: list[Path]) -> list[Path]:
    """At most three: those of the same name, whatever the folder and the case, else those of a like name."""
    same = [entry for entry in candidates if entry.name.lower() == target.name.lower()]
    if same:
        return sorted(same, key=lambda entry: (len(entry.parts), entry))[:NEAR]
    names: dict[str, Path] = {}
    for entry in candidates:
        names.setdefault(entry.name, entry)
    return [names[name] for name in difflib.get_close_matches(target.name, names, n=NEAR, cutoff=0.6)]


def _told(target: Path, near: list[Path], end: str) -> str:
    if near:
        return "; near names: " + ", ".join(shown(entry) + end for entry in near)
    folder = target.parent
    if folder.is_dir():
        return f"; see list_files({quoted(shown(folder))})"
    missing = f"; there is no folder {quoted(shown(folder))} either"
    near = _nearest(folder, [entry for entry in _candidates(folder) if entry.is_dir()])
    if near:
        return f"{missing}; near names: {', '.join(shown(entry) + '/' for entry in near)}"
    there = next(parent for parent in folder.parents if parent.is_dir())
    return f"{missing}; see list_files({quoted(shown(there))})"
