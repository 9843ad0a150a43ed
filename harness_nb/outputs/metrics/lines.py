"""Lines of training logs as numbers with names. Pure functions; ``reader`` calls ``read_line``.

What a line means depends only on what stands between its numbers. So that text is worked out once, as a plan that says
which number is what, and the plan is kept: the next line of the same make costs a split and a look-up. It imports only
``plans``.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from harness_nb.outputs.metrics.plans import Plan, make_plan

_NUMBER = re.compile(
    r"""(?=[-+.\dnNiI])(?<![\w@.])(?<!\w-)(
        \d+:\d\d(?::\d\d)?(?:\.\d+)?(?![\d:])                       # a time or a duration
      | [+-]?(?:\d{1,3}(?:,\d{3})+(?![\d,])|\d+)(?:\.\d*)?(?:[eE][+-]?\d+)?
      | [+-]?\.\d+(?:[eE][+-]?\d+)?
      | [+-]?(?:[nN][aA][nN]|[iI][nN][fF](?:inity)?)(?!\w)
    )""",
    re.X,
)
_LEVEL = r"(?:DEBUG|INFO|NOTICE|WARN|WARNING)"
_PREFIX = re.compile(
    rf"""(?:
        [\[(<]?\d{{4}}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?[\])>]?
      | [\[(<]?\d\d:\d\d:\d\d(?:[.,]\d+)?[\])>]?
      | I\d{{4}}\ \d\d:\d\d:\d\d\.\d+\ +\d+\ [\w.]+:\d+\]         # glog, absl
      | {_LEVEL}:[\w.]+:                                          # logging.basicConfig
      | [\[(<]?{_LEVEL}[\])>]?(?!\w)
      | [\w.]+(?=\ [-|]\ {_LEVEL}\b)                              # the logger's name before the level
      | [\w.]+:[\w.<>]+:\d+(?=\ -\ )                             # loguru
      | \[?rank:?\ ?\d+\]?:?
    )[\s:|-]*""",
    re.X,
)
_HIGHEST_COUNT = 1e15

LONGEST = 500
"""Characters of the longest line that can be metrics."""


class Counter(NamedTuple):
    """Where a training is: ``level`` is ``epoch`` or ``step``, ``label`` the word that was printed."""

    level: str
    label: str
    value: float
    total: float | None = None


class Reading(NamedTuple):
    """What a line says. ``shape`` is the same for lines of the same make; without ``values`` it only says where it is.

    ``percents`` are the names whose numbers had a percent sign.
    """

    counters: tuple[Counter, ...]
    values: dict[str, float]
    percents: frozenset[str]
    shape: tuple[str, ...]


def read_line(line: str, counters: tuple[Counter, ...] = ()) -> Reading | None:
    """The metrics in ``line``, or ``None``: prose, data, settings. ``counters`` are known from elsewhere, as from a
    progress bar.
    """
    line = " ".join(line.split())
    if len(line) > LONGEST:
        return None
    while (match := _PREFIX.match(line)) is not None:
        line = line[match.end() :]
    parts = _NUMBER.split(line)
    numbers = parts[1::2]
    if not numbers:
        return None
    plan = _plan(tuple(parts[::2]), tuple([":" in number for number in numbers]), bool(counters))
    return _carry_out(plan, numbers, counters) if plan is not None else None


_plan = lru_cache(maxsize=256)(make_plan)


def _carry_out(plan: Plan, numbers: list[str], counters: tuple[Counter, ...]) -> Reading:
    found = []
    for level, label, at, total in plan.counters:
        value = _float(numbers[at])
        if 0 <= value < _HIGHEST_COUNT:
            found.append(Counter(level, label, value, None if total is None else _total(numbers[total])))
    if counters:
        known = [counter.level for counter in found]
        found += [counter for counter in counters if counter.level not in known]
    values = {}
    for name, at, total in plan.fields:
        values[name] = _float(numbers[at]) if total is None else _float(numbers[at]) / (_float(numbers[total]) or 1.0)
    return Reading(tuple(found), values, plan.percents, plan.shape)


def _total(text: str) -> float | None:
    total = _float(text)
    return total if 0 < total < _HIGHEST_COUNT else None


def _float(text: str) -> float:
    return float(text.replace(",", "") if "," in text else text)
