"""Losses that have gone wrong: NaN, infinite, or far larger than at the start. ``reader`` shows it each row."""

from __future__ import annotations

from dataclasses import dataclass

from harness_nb.outputs.metrics.names import kind_of
from harness_nb.outputs.metrics.progress import format_value

_MOST = 5
_MOST_NAMES = 64
_FIRST = 3
_EXPLODED = 10.0


@dataclass(frozen=True, slots=True)
class Anomaly:
    """A loss that became NaN or infinite or grew beyond ten times its first values, and the line that says so.

    ``kind`` is ``nan``, ``inf`` or ``exploded``; ``where`` is the position in words.
    """

    kind: str
    name: str
    value: float
    where: str
    line: str

    def __str__(self) -> str:
        text = f"{self.name} is {format_value(self.value)} at {self.where}"
        return f"{text}, more than ten times what it was at the start" if self.kind == "exploded" else text


class Watchdog:
    """Looks at the values of each row. ``found`` are the first anomalies of each kind and name, five at most."""

    def __init__(self) -> None:
        self.found: tuple[Anomaly, ...] = ()
        self._first: dict[str, list[float]] = {}

    def look(self, values: dict[str, float]) -> list[tuple[str, str]]:
        """Kind and name of what is wrong in ``values`` and was not reported."""
        wrong = [(self._judge(name, value), name) for name, value in values.items() if kind_of(name) == "loss"]
        known = [(anomaly.kind, anomaly.name) for anomaly in self.found]
        return [pair for pair in wrong if pair[0] and pair not in known][: _MOST - len(known)]

    def report(self, kind: str, name: str, value: float, where: str, line: str) -> None:
        """Keep an anomaly."""
        self.found += (Anomaly(kind, name, value, where, line),)

    def _judge(self, name: str, value: float) -> str:
        if value != value:
            return "nan"
        size = abs(value)
        if size == float("inf"):
            return "inf"
        first = self._first.get(name)
        if first is None:
            first = []
            if len(self._first) < _MOST_NAMES:
                self._first[name] = first
        if len(first) < _FIRST:
            if size:
                first.append(size)
            return ""
        return "exploded" if size > _EXPLODED * max(first) else ""
