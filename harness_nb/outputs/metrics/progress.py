"""Where a training or a progress bar is, how fast it goes and when it will end: numbers, and the words for them.

``reader`` keeps ``Bars`` and asks for the words. Nothing here has a clock: times are seconds that were passed in. It
imports only its neighbours and the text forms of ``outputs.bounds``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from harness_nb.outputs.bounds import format_seconds
from harness_nb.outputs.metrics.bars import Bar
from harness_nb.outputs.metrics.names import is_held_out
from harness_nb.outputs.metrics.series import LINE, Column, Labels, Row, Series

_MOST_BARS = 4
_STALE = 3.0
"""A bar that has not moved for so many times its own pace is not waited for."""

_MOST_VALUES = 6

TO_THE_END = "to the end"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far it is. ``fraction`` is from 0 to 1, ``left`` in seconds; ``None`` where that cannot be known.

    ``where``, ``pace`` and ``end`` are words: ``epoch 3 of 30``, ``4.1 s per epoch``, ``to the end``.
    """

    where: str
    fraction: float | None = None
    pace: str = ""
    left: float | None = None
    end: str = TO_THE_END


@dataclass
class _Moving:
    bar: Bar
    first: float
    begun: Bar
    seen: float
    pace: float | None = None

    def move(self, bar: Bar, now: float) -> None:
        """Take a new state; one that went back is a new bar of the same make."""
        if (bar.fraction or 0.0) < (self.bar.fraction or 0.0) or (bar.done or 0.0) < (self.bar.done or 0.0):
            self.first, self.begun, self.pace = now, bar, None
        elif bar != self.bar and now > self.seen:
            self.pace = now - self.seen
        self.bar, self.seen = bar, now

    def left(self, now: float) -> float | None:
        """Seconds to the end: as the bar says, else by its pace so far."""
        fraction, begun = self.bar.fraction, self.begun.fraction or 0.0
        if self.bar.left is not None:
            return max(self.bar.left - (now - self.seen), 0.0)
        if fraction is None or fraction <= begun or self.seen <= self.first:
            return None
        return max((1 - fraction) * (self.seen - self.first) / (fraction - begun) - (now - self.seen), 0.0)

    def waits(self, now: float) -> bool:
        """Whether it is still moving, as far as can be told."""
        unfinished = self.bar.fraction is None or self.bar.fraction < 1
        return unfinished and (self.pace is None or now - self.seen <= _STALE * self.pace)


class Bars:
    """The progress bars of a cell: the last few, by their description and total."""

    def __init__(self) -> None:
        self._bars: dict[tuple[str, float | None], _Moving] = {}

    def move(self, bar: Bar, now: float) -> None:
        """A bar was drawn."""
        key = (re.sub(r"[^A-Za-z]*[=:\d].*", "", bar.text), bar.total)
        moving = self._bars.pop(key, None)
        if moving is None:
            moving = _Moving(bar, now, bar, now)
        else:
            moving.move(bar, now)
        self._bars[key] = moving
        while len(self._bars) > _MOST_BARS:
            del self._bars[next(iter(self._bars))]

    def progress(self, now: float) -> Progress | None:
        """The bar that has longest to go, of those that still move; else the newest."""
        if not self._bars:
            return None
        newest = next(reversed(self._bars.values()))
        moving = [other for other in self._bars.values() if other is newest or other.waits(now)]
        chosen = max(moving, key=lambda other: other.left(now) or 0.0)
        bar = chosen.bar
        return Progress(_describe_bar(bar), bar.fraction, _bar_pace(bar), chosen.left(now))


def series_progress(series: Series, labels: Labels, now: float) -> Progress:
    """How far the training is by its own counters."""
    first, last = series.rows[0], series.last
    done, begun = _passes(last, series, labels), _passes(first, series, labels)
    unit, total = (labels.epoch, labels.epochs) if last.epoch is not None else (labels.step, labels.steps)
    fraction = min(done / total, 1.0) if done is not None and total else None
    took = last.time - first.time
    pace, left = "", None
    if series.label != LINE and done is not None and begun is not None and done > begun and took > 0:
        each = took / (done - begun)
        pace = _pace(each, unit, 0.05 if last.epoch is not None else 0.5)
        if total:
            left = max((total - done) * each - (now - last.time), 0.0)
    return Progress(describe_position(last, labels), fraction, pace, left)


def _pace(each: float, unit: str, least: float) -> str:
    """Seconds for each, or how many a second where that is less than ``least``."""
    if each < least:
        return f"{1 / each:,.3g} {unit}s/s"
    return f"{format_seconds(each) if each >= 1 else f'{each:.2g} s'} per {unit}"


def _passes(row: Row, series: Series, labels: Labels) -> float | None:
    """How many epochs (steps where there are none) are done at ``row``, counted from 0."""
    if row.epoch is None:
        return row.step
    epochs = [other.epoch for other in series.rows if other.epoch is not None]
    if any(epoch % 1 for epoch in epochs):
        return row.epoch
    done = row.epoch + (1 if min(epochs) == 0 else 0)
    return done if row.step is None or not labels.steps else done - 1 + min(row.step / labels.steps, 1.0)


def describe_position(row: Row, labels: Labels, totals: bool = True) -> str:
    """``epoch 3 of 30, step 100 of 600``; ``line 12`` for a row without counters."""
    parts = []
    for label, value, total in ((labels.epoch, row.epoch, labels.epochs), (labels.step, row.step, labels.steps)):
        if value is not None:
            parts.append(f"{label} {format_count(value)}" + (f" of {format_count(total)}" if total and totals else ""))
    return ", ".join(parts) or f"line {row.order:,}"


def describe_values(series: Series, labels: Labels) -> str:
    """The last values, and the best one of the metric that tells most: ``loss 0.23, acc 0.87; best acc 0.88 at …``."""
    shown = [column for column in series.columns if column.kind != "other"] or list(series.columns)
    text = ", ".join(f"{column.name} {format_value(column.last, column.percent)}" for column in shown[:_MOST_VALUES])
    telling = [column for column in shown if column.best is not None]
    if not telling:
        return text
    best = max(telling, key=tells)
    assert best.best is not None
    value = format_value(best.best.values[best.name], best.percent)
    return f"{text}; best {best.name} {value} at {describe_position(best.best, labels, totals=False)}"


def tells(column: Column) -> tuple[bool, bool]:
    """How much a column tells of a training: held-out data more than training data, a score more than a loss."""
    return is_held_out(column.name), column.kind == "score"


def _describe_bar(bar: Bar) -> str:
    name = f"{bar.name}: " if re.fullmatch(r"[A-Za-z][\w .-]{0,40}", bar.name) else ""
    if bar.done is not None and bar.total:
        return f"{name}{format_count(bar.done)} of {format_count(bar.total)} ({bar.done / bar.total:.0%})"
    if bar.fraction is not None:
        return f"{name}{bar.fraction:.0%}"
    return f"{name}{format_count(bar.done or 0)} {bar.unit}".strip()


def _bar_pace(bar: Bar) -> str:
    if bar.rate is None or not bar.unit:
        return ""
    if 0 < bar.rate < 0.5:
        return f"{format_seconds(1 / bar.rate)} per {bar.unit}"
    return f"{bar.rate:.3g} {bar.unit}/s"


def format_count(value: float) -> str:
    """A counter for people: ``1,200``, ``1.5``, ``1.2 M``."""
    if value >= 1e7:
        return f"{value / 1e6:,.4g} M"
    return f"{value:,.0f}" if value == round(value) else f"{value:,.2f}".rstrip("0")


def format_value(value: float, percent: bool = False) -> str:
    """A metric for people, four figures of it: ``0.4123``, ``87.3%``, ``3e-5``."""
    text = f"{value:.4g}"
    if "e" in text:
        mantissa, _, exponent = text.partition("e")
        text = f"{mantissa}e{int(exponent)}"
    return f"{text}%" if percent and value == value else text
