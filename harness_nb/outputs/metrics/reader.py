"""The metrics reader: finds the progress of a training in what a cell prints. Pure: no I/O, the time is passed in.

The firewall feeds it stream text as it comes; whoever tells people or a model about a running cell asks it for
``summary``, ``anomalies`` and ``last_line``. Any chunking of the text gives the same result. Memory is bounded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from harness_nb.outputs.bounds import format_seconds
from harness_nb.outputs.metrics.anomalies import Anomaly, Watchdog
from harness_nb.outputs.metrics.bars import Bar, find_bar
from harness_nb.outputs.metrics.lines import Counter, Reading, read_line
from harness_nb.outputs.metrics.names import singular
from harness_nb.outputs.metrics.progress import (
    TO_THE_END,
    Bars,
    Progress,
    describe_position,
    describe_values,
    series_progress,
)
from harness_nb.outputs.metrics.segments import Line, Segments
from harness_nb.outputs.metrics.series import Labels, Row, Series, Track, combine

_WORDS = "loss acc epoch step iter batch episode train val test mse mae auc rew % \u2501 it/s s/it [0 === ###"
_HINTS = tuple(_WORDS.split())
"""A line without any of these, in lower case, is neither metrics nor a bar."""

_PATIENCE = 20_000
"""Lines with a hint but no metric, after which only every eighth of them is looked at, until one has a metric."""

_RULERS = " \t\r\n-=*_#"
"""A line of nothing else parts other lines and says nothing."""

_MOST_SHAPES = 24
_MOST_NAMES = 64
_LONGEST_LINE = 300


class MetricsReader:
    """Reads the streams of one cell. ``clean`` is applied to each line that is kept as text: it takes secrets out."""

    def __init__(self, clean: Callable[[str], str] = str) -> None:
        self._last_line = ""
        self._clean = clean
        self._streams = {"stdout": Segments(), "stderr": Segments()}
        self._tracks: dict[tuple[str, ...], Track] = {}
        self._bars = Bars()
        self._labels = Labels()
        self._percents: frozenset[str] = frozenset()
        self._at: tuple[float | None, float | None] = (None, None)
        self._headline: float | None = None
        self._watchdog = Watchdog()
        self._order = 0
        self._noise = 0
        self._prose = 0
        self._started: float | None = None
        self._now = 0.0
        self._newest: Row | None = None
        self._ended = False

    # ---- in

    def feed(self, text: str, now: float, stream: str = "stdout") -> None:
        """Take the next text of ``stream``, printed at ``now``, in seconds of any clock that only goes forward."""
        self.tick(now)
        self._ended = False
        segments = self._streams["stderr" if stream == "stderr" else "stdout"]
        block = segments.take(text, now)
        if block and not segments.held and not _may_matter(block):
            self._pass_over(block)
        elif block:
            for line in segments.split(block, now):
                self._look_at(line)
        self._newest = None
        if segments.pending.endswith("]"):
            self._peek(segments.pending, now)
        elif segments.held is not None:
            self._peek(segments.held.text, segments.held.time)

    def tick(self, now: float) -> None:
        """It is ``now``; the first call says when the cell began."""
        self._now = now
        if self._started is None:
            self._started = now

    def finish(self, now: float) -> None:
        """Nothing more is expected: unfinished lines count as they are. Later text may still be fed."""
        self.tick(now)
        self._newest = None
        for segments in self._streams.values():
            for line in segments.finish():
                self._look_at(line)
        self._ended = True

    def _pass_over(self, block: str) -> None:
        """Note that there were lines that hold nothing."""
        if block.strip(_RULERS):
            self._prose += 1

    def _look_at(self, line: Line) -> None:
        if _may_matter(line.text):
            self._noise += 1
            skipped = self._noise > _PATIENCE and self._noise & 7
            if not skipped and self._read(line):
                self._noise = 0
                self._last_line = line.text
                return
        self._pass_over(line.text)

    def _read(self, line: Line) -> bool:
        """Take what a line says; whether it says anything."""
        bar = find_bar(line.text)
        if bar is not None:
            self._bars.move(bar, line.time)
        reading = _read_with(bar, line.text)
        if reading is None:
            return bar is not None
        unfinished = bar is not None and bar.fraction is not None and bar.fraction < 1
        self._learn(reading)
        row = self._row(reading, line.time, passing=not line.whole or unfinished)
        self._at = (row.epoch, row.step)
        if not reading.values:
            self._headline = row.epoch
        else:
            self._order += 1
            self._add(row, reading)
            self._watch(row, line.text)
        return True

    def _peek(self, line: str, now: float) -> None:
        """Look at a line that is not finished: the newest state of a bar waits for what follows it."""
        bar = find_bar(line)
        if bar is None:
            return
        self._bars.move(bar, now)
        reading = _read_with(bar, line)
        if reading is not None and reading.values:
            row = self._row(reading, now, passing=True)
            track = self._tracks.get((*reading.shape, "passing"))
            self._newest = row if track is not None and track.accepted else None

    def _learn(self, reading: Reading) -> None:
        """Keep what counters are called and what their totals are."""
        epoch, step = _counter(reading, "epoch"), _counter(reading, "step")
        old = self._labels
        if epoch and (epoch.label != old.epoch or epoch.total not in (None, old.epochs)):
            old = self._labels = replace(old, epoch=epoch.label, epochs=epoch.total or old.epochs)
        if step and (step.label, step.total) != (old.step, old.steps):
            self._labels = replace(old, step=step.label, steps=step.total)
        if not reading.percents <= self._percents and len(self._percents) < _MOST_NAMES:
            self._percents |= reading.percents

    def _row(self, reading: Reading, now: float, passing: bool) -> Row:
        """The row of a reading. One that does not say where it is is where the line before was.

        One that gives only the step is in the epoch of the last headline (``Epoch 3/10``).
        """
        epoch, step = _counter(reading, "epoch"), _counter(reading, "step")
        at = self._at
        if epoch or step:
            at = (epoch.value if epoch else self._headline, step.value if step else None)
        return Row(self._order + 1, now, *at, reading.values, passing)

    def _add(self, row: Row, reading: Reading) -> None:
        shape = (*reading.shape, *(["passing"] if row.passing else []))
        track = self._tracks.pop(shape, None)
        loose = row.epoch is None and row.step is None
        if track is None or (loose and not track.accepted and track.prose != self._prose):
            track = Track()
        self._tracks[shape] = track
        track.prose = self._prose
        track.add(row)
        if len(self._tracks) > _MOST_SHAPES:
            doubtful = (key for key, other in self._tracks.items() if not other.accepted)
            del self._tracks[next(doubtful, next(iter(self._tracks)))]

    def _watch(self, row: Row, line: str) -> None:
        """Look for losses that have gone wrong."""
        for kind, name in self._watchdog.look(row.values):
            where = describe_position(row, self._labels, totals=False)
            self._watchdog.report(kind, name, row.values[name], where, self._as_text(line))

    def _as_text(self, line: str) -> str:
        return self._clean(" ".join(line.split())[:_LONGEST_LINE])

    # ---- out

    @property
    def anomalies(self) -> tuple[Anomaly, ...]:
        """Losses that have gone wrong: the first of each kind and name, five at most."""
        return self._watchdog.found

    @property
    def last_line(self) -> str:
        """The last line that was read as metrics or as a bar, without colours; empty if there was none."""
        return self._as_text(self._last_line)

    @property
    def points(self) -> int:
        """How many lines of metrics the series has; 0 while there is none."""
        return sum(track.count for track in self._tracks.values() if track.accepted)

    @property
    def labels(self) -> Labels:
        """What the counters are called, and their totals."""
        return self._labels

    def series(self) -> Series | None:
        """The table so far, or ``None`` before three lines of one shape have come."""
        return combine(tuple(self._tracks.values()), self._percents, self._labels, self._newest)

    def progress(self, now: float | None = None) -> Progress | None:
        """How far it is, by the counters of its lines if they have a total, else by a progress bar.

        ``now`` is the time of the last ``tick`` or ``feed`` if it is not given.
        """
        now = self._now if now is None else now
        series, bar = self.series(), self._bars.progress(now)
        if series is None:
            return bar
        progress = series_progress(series, self._labels, now)
        if bar is None or progress.fraction is not None:
            return progress
        end = f"to the end of the {self._labels.epoch}" if series.last.epoch is not None else TO_THE_END
        return replace(bar, where=progress.where, pace=progress.pace or bar.pace, end=end)

    def summary(self, now: float | None = None) -> str:
        """One line: position, last values, best, pace, elapsed time and the time to the end; empty if there is nothing.

        ``epoch 12 of 30: loss 0.231, acc 0.874; best acc 0.881 at epoch 10; 4.1 s per epoch, 49 s elapsed, about 74 s
        to the end``. After ``finish`` nothing is said of the end.
        """
        now = self._now if now is None else now
        progress, series = self.progress(now), self.series()
        if progress is None:
            return ""
        told = [f"{progress.where}: {describe_values(series, self._labels)}" if series else progress.where]
        elapsed = now - (self._started if self._started is not None else now)
        times = [progress.pace, "" if self._ended else f"{format_seconds(elapsed)} elapsed", self._end(progress)]
        return "; ".join(filter(None, (*told, ", ".join(filter(None, times)))))

    def _end(self, progress: Progress) -> str:
        whole = progress.end == TO_THE_END
        if self._ended or (whole and progress.fraction == 1):
            return ""
        if progress.left is None or (not whole and progress.fraction == 1):
            return "time to the end unknown"
        return f"about {format_seconds(progress.left)} {progress.end}"


def _may_matter(text: str) -> bool:
    lower = text.lower()
    for hint in _HINTS:  # noqa: SIM110  a generator would take twice as long
        if hint in lower:
            return True
    return False


def _read_with(bar: Bar | None, line: str) -> Reading | None:
    """What a line says, the position of its bar included."""
    if bar is None:
        return read_line(line)
    unit = singular(bar.unit) if bar.unit.isalpha() and bar.unit != "it" else "step"
    step = () if bar.done is None else (Counter("step", unit, bar.done, bar.total),)
    reading = read_line(bar.text, step)
    return reading if reading is not None and reading.values else None


def _counter(reading: Reading, level: str) -> Counter | None:
    for counter in reading.counters:
        if counter.level == level:
            return counter
    return None
