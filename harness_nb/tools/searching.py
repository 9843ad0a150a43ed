"""``search_files``: the lines of text files that match a regular expression. It prints ``path:line: text``.

Standard library only; runs in the tool kernel.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness_nb.tools.entries import below, near_entries
from harness_nb.tools.formats import is_text, refuse_binary
from harness_nb.tools.reading import lines_of
from harness_nb.tools.workspace import brief, counted, plainly, quoted, resolve, root, shown

MATCHES = 100
MATCH_CHARACTERS = 300
SHOWN_CHARACTERS = 15_000
SEARCHED_BYTES = 20_000_000
RECORD = "harness_sessions"


@dataclass
class Found:
    """What a search has come to."""

    shown: int = 0
    characters: int = 0
    hits: int = 0
    files: int = 0
    searched: int = 0
    too_large: int = 0
    unreadable: int = 0


def search_files(pattern: str, path: str = ".") -> None:
    """Print the lines that match a regular expression, as ``path:line: text``.

    ``pattern`` is a Python regular expression, ``path`` a file or a folder. At most 100 hits and 15,000 characters are
    shown, with the count of all. Hidden files are left out, and of harness_sessions all but the whole outputs.

    Raises:
        FileNotFoundError, PermissionError, ValueError: with a sentence that says what to do.
    """
    expression = _compiled(pattern)
    target = resolve(path)
    found = Found()
    with plainly(target, "searched"):
        if not target.exists():
            raise brief(FileNotFoundError(f"there is no file or folder {quoted(path)}{near_entries(target)}"))
        if target.is_file():
            _refuse(target)
            _search(target, expression, found)
        else:
            for file in _files(target, found):
                _search(file, expression, found)
    print(_summary(pattern, target, found))


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        literal = re.sub(r"([\\.^$*+?{}\[\]|()])", r"\\\1", pattern)
        wrong = f"{quoted(pattern)} is not a regular expression: {error}"
        raise brief(ValueError(f"{wrong}; to find this text as it stands, pattern: {literal}")) from None


def _refuse(file: Path) -> None:
    if _recorded(file):
        raise brief(
            PermissionError(
                f"{quoted(shown(file))} belongs to the record of the sessions; of {RECORD} only the files in "
                f"<id>/outputs/ are searched"
            )
        )
    refuse_binary(file)


def _recorded(file: Path) -> bool:
    """Whether the file is a session's record: it repeats what the model has read, so it would match everything."""
    parts = file.relative_to(root()).parts
    return RECORD in parts and parts[parts.index(RECORD) + 2 :][:1] != ("outputs",)


def _files(folder: Path, found: Found) -> Iterator[Path]:
    """The text files below ``folder``; counts those that are left out for their size or because they are closed."""
    for entry in below(folder):
        if entry.is_dir() or not entry.is_file() or root() not in entry.resolve().parents or _recorded(entry):
            continue
        try:
            text = is_text(entry)
        except OSError:
            found.unreadable += 1
            continue
        if not text:
            continue
        if entry.stat().st_size > SEARCHED_BYTES:
            found.too_large += 1
            continue
        yield entry


def _search(file: Path, expression: re.Pattern[str], found: Found) -> None:
    found.searched += 1
    before = found.hits
    for number, line in enumerate(lines_of(file), start=1):
        match = expression.search(line)
        if not match:
            continue
        found.hits += 1
        row = f"{shown(file)}:{number}:{_around(line, match.start())}"
        found.characters += len(row) + 1
        if found.shown < MATCHES and (found.characters <= SHOWN_CHARACTERS or not found.shown):
            found.shown += 1
            print(row)
    found.files += found.hits > before


def _summary(pattern: str, target: Path, found: Found) -> str:
    parts = []
    if found.hits:
        parts.append(f"{counted(found.hits, 'hit')} in {counted(found.files, 'file')}")
    else:
        parts.append(f"no line matches {quoted(pattern)}")
    parts.append(f"{counted(found.searched, 'text file')} searched{'' if found.hits else ', hidden ones left out'}")
    if found.too_large:
        parts.append(f"{counted(found.too_large, 'file')} above {SEARCHED_BYTES // 10**6} MB left out")
    if found.unreadable:
        parts.append(f"{counted(found.unreadable, 'file')} could not be read")
    if not found.hits and ("\n" in pattern or r"\n" in pattern):
        parts.append(r"each line is matched by itself, so \n finds nothing")
    if found.shown < found.hits:
        parts.append(f"the first {found.shown} are shown, narrow the pattern or the path")
    if _recorded(target):
        parts.append(f"of {RECORD} only the files in <id>/outputs/ are searched")
    return f"({'; '.join(parts)})"


def _around(line: str, position: int) -> str:
    """The line, or the part of it around ``position`` when it is long."""
    if len(line) <= MATCH_CHARACTERS:
        return line
    start = max(0, position - MATCH_CHARACTERS // 3)
    part = line[start : start + MATCH_CHARACTERS]
    return f"{'…' if start else ''}{part}{'…' if start + MATCH_CHARACTERS < len(line) else ''}"
