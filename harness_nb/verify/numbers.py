"""Numbers inside of texts: whether two texts are equal but for small differences of numbers, and which number differs.

``comparison`` asks. Pure.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from itertools import zip_longest

_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w])")
_LABEL_CHARS = 40
MOST_USEFUL = 0.2
"""Tolerances above this are not proposed: such numbers are different ones."""


@dataclass(frozen=True, slots=True)
class NumberDifference:
    """The first number that differs, with the words before it; ``needed`` is the tolerance that all would pass with."""

    label: str
    recorded: str
    now: str
    needed: float

    def __str__(self) -> str:
        words = f"{self.label} {self.recorded}".strip()
        return f"{words} recorded, {self.now} now"


def distance(recorded: float, now: float) -> float:
    """How far two numbers are from each other: absolutely up to 1, above that as a part of the recorded one."""
    if recorded == now or (math.isnan(recorded) and math.isnan(now)):
        return 0.0
    if not (math.isfinite(recorded) and math.isfinite(now)):
        return math.inf
    return abs(recorded - now) / max(1.0, abs(recorded))


def close(recorded: float, now: float, tolerance: float) -> bool:
    """Whether ``now`` is within ``tolerance``; the smallest rounding error beyond it is forgiven."""
    return distance(recorded, now) <= tolerance * (1 + 1e-9)


def compare_numbers(recorded: str, now: str) -> NumberDifference | None:
    """How two texts differ, if they differ only in numbers; ``None`` if something else differs, or nothing.

    Blanks do not count: a table's columns are as wide as their numbers.
    """
    ours, theirs = _NUMBER.split(recorded), _NUMBER.split(now)
    if [" ".join(_filled(part)) for part in ours] != [" ".join(_filled(part)) for part in theirs]:
        return None
    first: tuple[str, str, str] | None = None
    needed = 0.0
    before = ""
    pairs = zip_longest(_NUMBER.finditer(recorded), _NUMBER.finditer(now))
    for mine, other in pairs:
        if mine is None or other is None:
            return None
        step = distance(_value(mine.group()), _value(other.group()))
        if first is None and mine.group() != other.group():
            line = recorded[: mine.start()].rpartition("\n")[2]
            before = _label(line)
            first = (before, mine.group(), other.group())
        needed = max(needed, step)
    return NumberDifference(*first, needed) if first else None


def told_tolerance(needed: float) -> str:
    """A tolerance that is just large enough, with two digits; empty if none that is of use would pass."""
    if not 0 < needed <= MOST_USEFUL:
        return ""
    exponent = math.floor(math.log10(needed)) - 1
    return f"{math.ceil(needed / 10**exponent - 1e-6) * 10**exponent:.2g}"


def _filled(part: str) -> list[str]:
    return part.replace("-", " ").split()


def _value(text: str) -> float:
    return float(text.replace(",", ""))


def _label(line: str) -> str:
    """The words right before a number: back to the last number or clause."""
    words = re.split(r"[|;,\t]|\s{2,}", line.rstrip(" :=\t"))[-1]
    words = _NUMBER.split(words)[-1].strip(" :=([{'\"")
    return words if len(words) <= _LABEL_CHARS else "…" + words[-_LABEL_CHARS:]
