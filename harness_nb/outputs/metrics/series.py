"""The numbers of a training as a table of bounded size, and the views of it that people and models get.

``reader`` adds rows to tracks, one for each shape of line; ``combine`` makes the ``Series`` that table, chart and
summary show. It imports only its neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from harness_nb.outputs.metrics.names import Kind, kind_of

LEAST = 3
"""Lines of one shape that make a series."""

CAPACITY = 256
"""Rows that a track keeps at most, besides the best ones and the last."""

LINE = "line"
"""The label of an axis of lines: rows that have no counter, or several trainings one after the other."""

_MOST_COLUMNS = 24


class Row(NamedTuple):
    """The values of one line.

    ``order`` numbers the lines of metrics, ``time`` is in seconds; a ``passing`` line was overwritten by the next one.
    """

    order: int
    time: float
    epoch: float | None
    step: float | None
    values: dict[str, float]
    passing: bool = False


class Track:
    """Rows of one shape: the first, the last, the best of each column, and between them every second, fourth, … row."""

    def __init__(self) -> None:
        self.count = 0
        self.prose = 0
        self.last: Row | None = None
        self.best: dict[str, Row] = {}
        self._kept: list[Row] = []
        self._stride = 1

    @property
    def accepted(self) -> bool:
        """Whether there are enough lines to make a series."""
        return self.count >= LEAST

    def add(self, row: Row) -> None:
        """Append a row. A repetition of the last one, as bars print when they end, is not counted."""
        if self.last is not None and _repeats(self.last, row):
            return
        if self.count % self._stride == 0:
            self._kept.append(row)
            if len(self._kept) > CAPACITY:
                del self._kept[1::2]
                self._stride *= 2
        self.count += 1
        self.last = row
        for name, value in row.values.items():
            best = self.best.get(name)
            if _is_better(kind_of(name), value, None if best is None else best.values[name]):
                self.best[name] = row

    def rows(self) -> list[Row]:
        """What is kept, in order."""
        kept = {row.order: row for row in (*self._kept, *self.best.values(), *([self.last] if self.last else []))}
        return [kept[order] for order in sorted(kept)]


@dataclass(frozen=True, slots=True)
class Column:
    """A metric: its ``last`` value, and the row with the best one where it is known which way is better."""

    name: str
    kind: Kind
    percent: bool
    last: float
    best: Row | None = None


@dataclass(frozen=True, slots=True)
class Series:
    """A training so far. ``points`` counts the lines it was read from, ``rows`` are those kept.

    ``xs`` are the positions of the rows on the axis ``label``.
    """

    points: int
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    label: str
    xs: tuple[float, ...]

    @property
    def last(self) -> Row:
        """The newest row."""
        return self.rows[-1]

    def best_index(self, column: Column) -> int | None:
        """The row that holds the best value of ``column``."""
        if column.best is None:
            return None
        best = (column.best.values[column.name], column.best.passing)
        rows = enumerate(self.rows)
        return next((index for index, row in rows if (row.values.get(column.name), row.passing) == best), None)

    @property
    def steady(self) -> tuple[int, ...]:
        """Indices of the rows for a table: whole lines only, if there are enough of them."""
        whole = tuple(index for index, row in enumerate(self.rows) if not row.passing)
        return whole if len(whole) >= LEAST else tuple(range(len(self.rows)))


@dataclass(frozen=True, slots=True)
class Labels:
    """What the counters were called, and the last totals that were seen."""

    epoch: str = "epoch"
    step: str = "step"
    epochs: float | None = None
    steps: float | None = None


def combine(tracks: Sequence[Track], percents: frozenset[str], labels: Labels, newest: Row | None) -> Series | None:
    """The series of all accepted tracks; ``None`` without one. ``newest`` is a row that is not in any track yet."""
    accepted = [track for track in tracks if track.accepted]
    if not accepted:
        return None
    rows = [row for track in accepted for row in track.rows()]
    names = list(dict.fromkeys(name for row in rows for name in row.values))[:_MOST_COLUMNS]
    if newest is not None:
        rows.append(newest)
    merged = _merge(sorted(rows, key=lambda row: row.order))
    columns = []
    for name in names:
        last = next(row.values[name] for row in reversed(merged) if name in row.values)
        rivals = [track.best[name] for track in accepted if name in track.best]
        best = _best(name, [*rivals, newest] if newest is not None and name in newest.values else rivals)
        columns.append(Column(name, kind_of(name), name in percents, last, best))
    label, xs = _axis(merged, labels)
    return Series(sum(track.count for track in accepted), tuple(columns), tuple(merged), label, tuple(xs))


def _merge(rows: Iterable[Row]) -> list[Row]:
    """Lines about the same position as one row: training and validation are often printed apart."""
    merged: list[Row] = []
    for row in rows:
        last = merged[-1] if merged else None
        if last is not None and _belongs(last, row):
            merged[-1] = row._replace(values=last.values | row.values)
        else:
            merged.append(row)
    return merged


def _repeats(last: Row, row: Row) -> bool:
    placed = row.epoch is not None or row.step is not None
    return placed and (last.epoch, last.step, last.values) == (row.epoch, row.step, row.values)


def _belongs(last: Row, row: Row) -> bool:
    placed = row.epoch is not None or row.step is not None
    same = (last.epoch, last.step, last.passing) == (row.epoch, row.step, row.passing)
    return placed and same and not last.values.keys() & row.values.keys()


def _is_better(kind: Kind, value: float, than: float | None) -> bool:
    if kind not in ("loss", "score") or value != value or abs(value) == float("inf"):
        return False
    return than is None or (value < than if kind == "loss" else value > than)


def _best(name: str, rows: list[Row]) -> Row | None:
    """The best of the tracks' best rows; whole lines count before overwritten ones."""
    best: Row | None = None
    for row in [row for row in rows if not row.passing] or rows:
        if best is None or _is_better(kind_of(name), row.values[name], best.values[name]):
            best = row
    return best


def _axis(rows: Sequence[Row], labels: Labels) -> tuple[str, list[float]]:
    """What to draw rows over: the step where it only grows, else the epoch with a fraction, else the lines' numbers."""
    steps = [row.step for row in rows if row.step is not None]
    epochs = [row.epoch for row in rows if row.epoch is not None]
    if rows[0].step is not None and _grows(steps):
        xs = [steps[0]]
        for row in rows[1:]:
            xs.append(xs[-1] if row.step is None else row.step)
        return labels.step, xs
    if len(epochs) == len(rows) and _grows(epochs):
        if not steps:
            return labels.epoch, epochs
        span = max(labels.steps or 0.0, *steps) or 1.0
        done = -1.0 if min(epochs) else 0.0
        xs = [(row.epoch or 0.0) + done + (1.0 if row.step is None else row.step / span) for row in rows]
        if _grows(xs):
            return labels.epoch, xs
    return LINE, [float(row.order) for row in rows]


def _grows(numbers: Sequence[float]) -> bool:
    return all(before <= after for before, after in pairwise(numbers)) and numbers[0] < numbers[-1]
