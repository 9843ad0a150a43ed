"""Differences of texts in few lines: a unified diff that fits on a screen. Pure; ``comparison`` asks."""

from __future__ import annotations

import re
from difflib import unified_diff

MOST_LINES = 12
MOST_CHARS = 160
_ESCAPE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_LONGEST = 2000
"""Lines of a text that are compared: the first differing part is shown, and it is found by then or skipped to."""


def describe_texts(recorded: str, now: str) -> str:
    """A unified diff, ``-`` recorded and ``+`` now, around the first line that differs."""
    ours, theirs = recorded.splitlines(), now.splitlines()
    if ours == theirs:
        return "only the end of the last line differs (a newline more or less)"
    same = _common(ours, theirs)
    start = max(same - 1, 0)
    lines = list(unified_diff(ours[start : start + _LONGEST], theirs[start : start + _LONGEST], lineterm="", n=1))[3:]
    shown = [_shown(line, ours[same : same + 1], theirs[same : same + 1]) for line in lines[:MOST_LINES]]
    if len(lines) > MOST_LINES:
        shown.append(f"… {len(lines) - MOST_LINES} more lines")
    return "\n".join(shown)


def short_text(text: str, most: int = 80) -> str:
    """The text in one line, cut where it is too long."""
    line = " ".join(_ESCAPE.sub("", text).split())
    return line if len(line) <= most else line[: most - 1] + "…"


def _common(ours: list[str], theirs: list[str]) -> int:
    count = 0
    for one, other in zip(ours, theirs, strict=False):
        if one != other:
            break
        count += 1
    return count


def _shown(line: str, mine: list[str], other: list[str]) -> str:
    """A line of the diff; of a long one the part where the two begin to differ."""
    if len(line) <= MOST_CHARS:
        return line
    same = 0
    if mine and other:
        while same < min(len(mine[0]), len(other[0])) and mine[0][same] == other[0][same]:
            same += 1
    start = max(same - MOST_CHARS // 2, 0)
    piece = line[1 + start : 1 + start + MOST_CHARS]
    return f"{line[0]}{'…' if start else ''}{piece}{'…' if len(line) > 1 + start + MOST_CHARS else ''}"
