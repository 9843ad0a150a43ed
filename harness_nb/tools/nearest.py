"""What ``search_replace`` says when its search text is not in the file: the nearest lines and what differs.

A model that gets "no match" guesses again; one that gets the true lines with their numbers corrects itself in one
step. Pure; standard library only; runs in the tool kernel.
"""

from __future__ import annotations

import difflib

CANDIDATES = 30
FILE_LINES = 50_000
SHOWN_LINES = 25


def describe_nearest(text: str, search: str) -> str:
    """A paragraph, after a space, with the nearest lines of ``text``, numbered, and the kind of difference."""
    lines, wanted = text.split("\n"), search.strip("\r\n").split("\n")
    if len(lines) > FILE_LINES or not any(line.strip() for line in wanted):
        return " Read the file again and copy the text exactly."
    found = _same_but_for_white_space(lines, wanted)
    if found is not None:
        reason = _white_space_reason(lines[found : found + len(wanted)], wanted, search)
        return (
            f" Lines {found + 1} to {found + len(wanted)} differ only in {reason}:\n{_numbered(lines, found, wanted)}"
        )
    found = _most_like(lines, wanted)
    if found is None:
        return " Nothing in the file is like it; read the file again."
    return f" The nearest lines are:\n{_numbered(lines, found, wanted)}"


def _same_but_for_white_space(lines: list[str], wanted: list[str]) -> int | None:
    """The index where ``wanted`` stands when all white space counts alike, or ``None``."""
    plain, target = [_squeezed(line) for line in lines], [_squeezed(line) for line in wanted]
    size = len(target)
    starts = (i for i in range(len(plain) - size + 1) if plain[i] == target[0])
    return next((i for i in starts if plain[i : i + size] == target), None)


def _squeezed(line: str) -> str:
    return "".join(line.split())


def _white_space_reason(there: list[str], wanted: list[str], search: str) -> str:
    pairs = [(have.rstrip("\r"), want.rstrip("\r")) for have, want in zip(there, wanted)]  # noqa: B905 - Python 3.9
    if all(have == want for have, want in pairs):
        return "the blank lines or the line end around it" if search != search.strip("\n") else "the line ends"
    if all(have.rstrip() == want.rstrip() for have, want in pairs):
        return "white space at the end of a line"
    if all(have.strip() == want.strip() for have, want in pairs):
        tabs = any(_margin(have).count("\t") != _margin(want).count("\t") for have, want in pairs)
        return "indentation (tabs against spaces)" if tabs else "indentation"
    return "white space within a line"


def _margin(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _most_like(lines: list[str], wanted: list[str]) -> int | None:
    """The start of the window that is most like ``wanted``; ``None`` when nothing is half alike."""
    words = [set(line.split()) for line in lines]
    target = [set(line.split()) for line in wanted]
    size, goal = len(target), "\n".join(line.strip() for line in wanted)
    shared = [
        (sum(len(have & want) for have, want in zip(words[i:], target)), -i)  # noqa: B905 - Python 3.9
        for i in range(max(1, len(lines) - size + 1))
    ]
    candidates = [-position for score, position in sorted(shared, reverse=True)[:CANDIDATES] if score]
    if not candidates:
        candidates = list(range(min(len(shared), CANDIDATES)))
    scored = [(_likeness(lines[i : i + size], goal), -i) for i in candidates]
    best, position = max(scored, default=(0.0, 0))
    return -position if best >= 0.5 else None


def _likeness(window: list[str], goal: str) -> float:
    have = "\n".join(line.strip() for line in window)
    return difflib.SequenceMatcher(None, have[:4000], goal[:4000], autojunk=False).ratio()


def _numbered(lines: list[str], start: int, wanted: list[str]) -> str:
    stop = min(len(lines), start + len(wanted))
    rows = [
        f"{number + 1:6d}\t{lines[number].rstrip(chr(13))}" for number in range(start, min(stop, start + SHOWN_LINES))
    ]
    if stop > start + SHOWN_LINES:
        rows.append(f"      \t… {stop - start - SHOWN_LINES} more lines")
    return "\n".join(rows)
