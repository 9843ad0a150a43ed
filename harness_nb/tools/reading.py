"""Reading: ``read_file``, ``list_files``, ``search_files``. They print; a tool cell's output is the tool's result.

Bounds keep one careless call from filling the model's context; each says what was left out and how to get it.
Standard library only; runs in the tool kernel.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

from harness_nb.tools.workspace import brief, existing_file, resolve, root, shown

LINE_CHARACTERS = 2000
READ_CHARACTERS = 15_000
LISTED = 300
MATCHES = 100
MATCH_CHARACTERS = 300
SEARCHED_BYTES = 20_000_000

SKIPPED = {"__pycache__", "harness_sessions", "node_modules"}
IMAGES = {".png", ".jpg", ".jpeg", ".gif", ".webp"}


def read_file(path: str, offset: int = 1, limit: int = 400) -> None:
    """Print lines of a text file with their numbers.

    ``offset`` is the first line, from 1; ``limit`` is the number of lines. Long lines are cut at 2,000 characters and
    the whole at 15,000; the last line of the output says how to go on.

    Raises:
        FileNotFoundError, IsADirectoryError, PermissionError, ValueError: with a sentence that says what to do.
    """
    if offset < 1 or limit < 1:
        raise brief(ValueError(f"offset and limit count from 1; got offset={offset}, limit={limit}"))
    target = existing_file(path)
    refuse_binary(target)
    printed = total = characters = 0
    for total, line in enumerate(_lines(target), start=1):
        if total < offset or printed >= limit or characters >= READ_CHARACTERS:
            continue
        text = f"{total:6d}\t{_cut(line)}"
        print(text)
        printed += 1
        characters += len(text) + 1
    print(_read_summary(shown(target), offset, printed, total))


def _read_summary(name: str, offset: int, printed: int, total: int) -> str:
    if not total:
        return f"({name} is empty)"
    if not printed:
        raise brief(ValueError(f"offset {offset:,} is past the end: {name} has {total:,} lines"))
    last = offset + printed - 1
    if printed == total:
        return f"(all of {name}: {total:,} {'line' if total == 1 else 'lines'})"
    onward = f"; go on with offset={last + 1}" if last < total else "; the end of the file"
    return f"(lines {offset:,} to {last:,} of {total:,}{onward})"


def _lines(path: Path) -> Iterator[str]:
    """The lines of a text file without their ends; bytes that are not UTF-8 show as the replacement character.

    Only a line feed ends a line, as editors count; a carriage return within one is shown as ``\\r``.
    """
    with path.open("rb") as opened:
        encoding = "utf-16" if opened.read(2) in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    with path.open(encoding=encoding, errors="replace", newline="\n") as file:
        for line in file:
            yield line.rstrip("\n").rstrip("\r").replace("\r", "\\r")


def _cut(line: str) -> str:
    if len(line) <= LINE_CHARACTERS:
        return line
    return (
        f"{line[:LINE_CHARACTERS]} … ({len(line) - LINE_CHARACTERS:,} more characters in this line; "
        f"slice it with python to see them)"
    )


def refuse_binary(path: Path) -> None:
    """Raise for a file that is no text.

    Raises:
        ValueError: names the tool that reads it.
    """
    with path.open("rb") as file:
        head = file.read(8192)
    if head[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" not in head:
        return
    size = f"{path.stat().st_size:,} bytes"
    if path.suffix.lower() in IMAGES:
        raise brief(ValueError(f"{shown(path)!r} is an image ({size}); use view_image({shown(path)!r})"))
    raise brief(ValueError(f"{shown(path)!r} is a binary file ({size}); open it with python, in mode 'rb'"))


def list_files(path: str = ".", pattern: str | None = None) -> None:
    """Print what a folder holds, sorted, with sizes; folders end in ``/``.

    With ``pattern``, a glob over the path below ``path`` or over the file name alone (``src/**/*.py``, ``*.csv``), the
    matching files of the folder and of all below it. Hidden entries, caches and harness_sessions are left out.

    Raises:
        FileNotFoundError, NotADirectoryError, PermissionError: with a sentence that says what to do.
    """
    target = resolve(path)
    if not target.exists():
        raise brief(FileNotFoundError(f"there is no folder {path!r}; see list_files('.')"))
    if not target.is_dir():
        raise brief(NotADirectoryError(f"{path!r} is a file; read it with read_file({path!r})"))
    found = 0
    for entry in visible(target) if pattern is None else _matching(target, "", pattern):
        found += 1
        if found <= LISTED:
            print(_described(entry, target))
    if not found:
        name = shown(target)
        print(f"({name!r} is empty)" if pattern is None else f"(no file below {name!r} matches {pattern!r})")
    elif found > LISTED:
        print(f"(… and {found - LISTED:,} more, {found:,} in all; narrow it with path or pattern)")


def _described(entry: Path, folder: Path) -> str:
    name = entry.relative_to(folder).as_posix()
    if entry.is_dir():
        count = len(visible(entry))
        return f"{name}/  ({count:,} {'entry' if count == 1 else 'entries'})"
    return f"{name}  ({entry.stat().st_size:,} bytes)"


def _matching(folder: Path, prefix: str, pattern: str) -> Iterator[Path]:
    """The files below ``folder`` whose path or name matches."""
    for entry in visible(folder):
        name = prefix + entry.name
        if entry.is_dir():
            if not entry.is_symlink():
                yield from _matching(entry, name + "/", pattern)
        elif _matches(name, pattern):
            yield entry


def visible(folder: Path) -> list[Path]:
    """What a folder holds, without hidden entries, caches, sessions and dangling links; files and folders by name."""
    try:
        entries = sorted(folder.iterdir(), key=lambda entry: entry.name)
    except OSError:
        return []
    return [e for e in entries if not e.name.startswith(".") and e.name not in SKIPPED and e.exists()]


def _matches(name: str, pattern: str) -> bool:
    plain = pattern[2:] if pattern.startswith("./") else pattern
    if "/" not in plain:
        return fnmatch(name.rsplit("/", 1)[-1], plain)
    return fnmatch(name, plain) or fnmatch(name, plain.replace("**/", ""))


def search_files(pattern: str, path: str = ".") -> None:
    """Print the lines that match a regular expression, as ``path:line: text``.

    ``pattern`` is a Python regular expression, ``path`` a file or a folder. At most 100 matches are shown, with the
    count of all.

    Raises:
        FileNotFoundError, PermissionError, ValueError: with a sentence that says what to do.
    """
    try:
        expression = re.compile(pattern)
    except re.error as error:
        escaped = re.escape(pattern)
        message = f"{pattern!r} is not a regular expression: {error}; to find it literally use {escaped!r}"
        raise brief(ValueError(message)) from None
    target = resolve(path)
    if not target.exists():
        raise brief(FileNotFoundError(f"there is no file or folder {path!r}; see list_files('.')"))
    found, files, searched = 0, 0, 0
    for file in [target] if target.is_file() else _text_files(target):
        searched += 1
        before = found
        for number, line in _matching_lines(file, expression):
            found += 1
            if found <= MATCHES:
                print(f"{shown(file)}:{number}: {line}")
        files += found > before
    if not found:
        print(f"(no match for {pattern!r} in {searched:,} files below {shown(target) or '.'!r})")
        return
    rest = f"; the first {MATCHES} are shown, narrow the pattern or the path" if found > MATCHES else ""
    print(f"({found:,} matching lines in {files:,} of {searched:,} files{rest})")


def _text_files(folder: Path) -> Iterator[Path]:
    for entry in visible(folder):
        if entry.is_dir():
            if not entry.is_symlink():
                yield from _text_files(entry)
        elif entry.is_file() and entry.stat().st_size <= SEARCHED_BYTES and root() in entry.resolve().parents:
            yield entry


def _matching_lines(file: Path, expression: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    try:
        with file.open("rb") as opened:
            if b"\0" in opened.read(8192):
                return
        for number, line in enumerate(_lines(file), start=1):
            match = expression.search(line)
            if match:
                yield number, _around(line, match.start())
    except OSError as error:
        print(f"{os.fspath(file)}: not searched: {error.strerror}")


def _around(line: str, position: int) -> str:
    """The line, or the part of it around ``position`` when it is long."""
    if len(line) <= MATCH_CHARACTERS:
        return line
    start = max(0, position - MATCH_CHARACTERS // 3)
    part = line[start : start + MATCH_CHARACTERS]
    return f"{'…' if start else ''}{part}{'…' if start + MATCH_CHARACTERS < len(line) else ''}"
