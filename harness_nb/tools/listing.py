"""``list_files``: what a folder holds, or where files of a name are. It prints paths that every tool takes as they are.

Standard library only; runs in the tool kernel.
"""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path

from harness_nb.tools.entries import SKIPPED, below, existing_folder, visible
from harness_nb.tools.workspace import counted, named, quoted, shown

LISTED = 300
LISTED_CHARACTERS = 15_000


def list_files(path: str = ".", pattern: str | None = None) -> None:
    """Print what a folder holds, sorted, with sizes; folders end in ``/``. Paths are relative to the workspace.

    With ``pattern``, a glob over the path or over the file name alone (``src/**/*.py``, ``*.csv``), the matching files
    of the folder and of all below it. Hidden entries, caches and harness_sessions are left out.

    Raises:
        FileNotFoundError, NotADirectoryError, PermissionError: with a sentence that says what to do.
    """
    target = existing_folder(path)
    if pattern is None:
        found = visible(target)
    else:
        found = [entry for entry in below(target) if not entry.is_dir() and _matches(entry, target, pattern)]
    rows: list[str] = []
    characters = 0
    for entry in found[:LISTED]:
        row = _described(entry)
        characters += len(row) + 1
        if characters > LISTED_CHARACTERS:
            break
        rows.append(row)
    if not found:
        rows.append(_nothing(target, pattern))
    elif len(rows) < len(found):
        left = len(found) - len(rows)
        rows.append(f"(… and {left:,} more, {len(found):,} in all; narrow it with path or pattern)")
    print("\n".join(rows))


def _described(entry: Path) -> str:
    if entry.is_dir():
        return f"{shown(entry)}/  ({counted(len(visible(entry)), 'entry')})"
    return f"{shown(entry)}  ({counted(entry.stat().st_size, 'byte')})"


def _nothing(folder: Path, pattern: str | None) -> str:
    if pattern is not None:
        where = "in the workspace" if named(folder) == "the workspace" else f"below {named(folder)}"
        return f"(no file {where} matches {quoted(pattern)}; hidden files are not looked at)"
    if any(entry.name not in SKIPPED for entry in folder.iterdir()):
        return f"({named(folder)} holds only hidden files)"
    return f"({named(folder)} is empty)"


def _matches(entry: Path, folder: Path, pattern: str) -> bool:
    """Whether the name, the path below ``folder`` or the path in the workspace matches the glob."""
    plain = pattern[2:] if pattern.startswith("./") else pattern
    if "/" not in plain:
        return fnmatch(entry.name, plain)
    paths = (entry.relative_to(folder).as_posix(), shown(entry))
    return any(fnmatch(path, glob) for path in paths for glob in (plain, plain.replace("**/", "")))
