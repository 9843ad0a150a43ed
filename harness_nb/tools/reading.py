"""``read_file``: the lines of a text file with their numbers. It prints; a tool cell's output is the tool's result.

Bounds keep one careless call from filling the model's context; the last line says what was left out and how to get it.
Standard library only; runs in the tool kernel.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from harness_nb.tools.entries import existing_file
from harness_nb.tools.formats import BYTE_ORDER_MARKS, refuse_binary
from harness_nb.tools.workspace import brief, counted, plainly, shown

LINE_CHARACTERS = 2000
READ_CHARACTERS = 15_000

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


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
    rows: list[str] = []
    total = characters = 0
    cut = full = False
    with plainly(target, "read"):
        refuse_binary(target)
        for total, line in enumerate(lines_of(target), start=1):
            if total < offset or len(rows) >= limit or full:
                continue
            row = f"{total:6d}\t{_cut(line)}"
            characters += len(row) + 1
            full = bool(rows) and characters > READ_CHARACTERS
            if not full:
                rows.append(row)
                cut = cut or len(line) > LINE_CHARACTERS
    remark = _summary(shown(target), offset, len(rows), total, cut=cut, full=full)
    print("\n".join([*rows, remark]))


def _summary(name: str, offset: int, printed: int, total: int, *, cut: bool, full: bool) -> str:
    """The last line: which lines these are, of how many, what is left out and how to go on."""
    if not total:
        return f"({name} is empty)"
    if not printed:
        raise brief(ValueError(f"offset {offset} is past the end: {name} has {counted(total, 'line')}"))
    if printed == total and not cut:
        return f"(all of {name}: {counted(total, 'line')})"
    last = offset + printed - 1
    parts = [f"(line {last} of {total:,}" if last == offset else f"(lines {offset} to {last} of {total:,}"]
    if full:
        parts[0] += f", cut at {READ_CHARACTERS:,} characters"
    if last < total:
        parts.append(f"go on with offset={last + 1}")
    elif offset > 1:
        parts.append("the end of the file")
    if cut:
        parts.append(f"long lines are cut at {LINE_CHARACTERS:,} characters")
    return "; ".join(parts) + ")"


def lines_of(path: Path) -> Iterator[str]:
    """The lines of a text file without their ends; bytes that are not UTF-8 show as the replacement character.

    Only a line feed ends a line, as editors count; control characters within one are shown as ``\\r`` or ``\\x1b``.
    """
    with path.open("rb") as opened:
        encoding = "utf-16" if opened.read(2) in BYTE_ORDER_MARKS else "utf-8-sig"
    with path.open(encoding=encoding, errors="replace", newline="\n") as file:
        for line in file:
            yield _CONTROL.sub(_escape, line.rstrip("\n").rstrip("\r"))


def _escape(match: re.Match[str]) -> str:
    return "\\r" if match.group() == "\r" else f"\\x{ord(match.group()):02x}"


def _cut(line: str) -> str:
    if len(line) <= LINE_CHARACTERS:
        return line
    left = counted(len(line) - LINE_CHARACTERS, "more character")
    return f"{line[:LINE_CHARACTERS]} … ({left} in this line; slice it with python to see them)"
