"""What the harness adds to the outputs of a cell that trains: a table and a plot of its metrics, live.

The firewall owns a ``Derived``: it hands it stream text, says when images come and go, and asks it for events after its
own. The derived output is marked in its metadata, and a fold keeps it behind all others (see ``fold``). It is mostly
transient; lasting states come rarely, and at the end. Imports only its neighbours in ``outputs`` and events.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from html import escape

from harness_nb.events import CellOutput
from harness_nb.outputs.bounds import Bounds
from harness_nb.outputs.changes import Changes
from harness_nb.outputs.fold import MARK
from harness_nb.outputs.metrics import MetricsReader
from harness_nb.outputs.metrics.chart import describe_chart, draw_chart
from harness_nb.outputs.metrics.table import html_table, text_table
from harness_nb.types import JsonObject

_USUAL_COST = 0.15
"""Seconds that a drawing takes, where nobody measures it."""

_MOST_WAITING = 200_000
"""Characters that wait for the next look at the clock."""

_NEVER = float("-inf")


class Derived:
    """The derived output of one cell; none if ``plot`` is false, but the metrics are read all the same.

    ``stopwatch`` gives seconds; with it the cost of a drawing is measured.
    """

    def __init__(
        self, bounds: Bounds, redact: Callable[[str], str], stopwatch: Callable[[], float] | None, plot: bool
    ) -> None:
        self._reader = MetricsReader(redact)
        self._bounds = bounds
        self._redact = redact
        self._stopwatch = stopwatch
        self._waiting: list[tuple[str, str]] = []
        self._waiting_chars = 0
        self._now = 0.0
        self._output: JsonObject | None = None
        self._picture = ""
        self._drawn = 0
        self._shown: JsonObject | None = None
        self._lasting: JsonObject | None = None
        self._next_draw = self._next_lasting = _NEVER
        self._unwanted = not plot
        self._cleared_image = False

    # ---- in

    @property
    def reader(self) -> MetricsReader:
        """The metrics of all text that was fed."""
        self._catch_up()
        return self._reader

    def feed(self, text: str, stream: str) -> None:
        """Text was printed. It is read at the next look at the clock, or when much of it has come."""
        self._waiting.append((text, stream))
        self._waiting_chars += len(text)
        if self._waiting_chars > _MOST_WAITING:
            self._catch_up()

    def image_shown(self, update: bool) -> None:
        """The cell showed an image; ``update`` if it took the place of another: then it has a live plot of its own."""
        self._unwanted = self._unwanted or update or self._cleared_image

    def cleared(self, image: bool) -> None:
        """The outputs were cleared; ``image`` if there was one among them."""
        self._cleared_image = self._cleared_image or image

    def tick(self, now: float) -> None:
        """It is ``now``; the first call says when the cell began."""
        if self._next_draw == _NEVER:
            self._next_draw = now + self._bounds.derived_delay
        self._now = now
        self._reader.tick(now)
        self._catch_up()

    def _catch_up(self) -> None:
        for text, stream in self._waiting:
            self._reader.feed(text, self._now, stream)
        self._waiting.clear()
        self._waiting_chars = 0

    # ---- out

    @property
    def output(self) -> JsonObject | None:
        """The output as it was last drawn; none while there is no series, or beside the cell's own live plot."""
        return None if self._unwanted else self._output

    def advance(self, now: float, before: Sequence[CellOutput], changes: Changes, closing: bool) -> list[CellOutput]:
        """The events that bring the derived output up to date, after the events ``before`` it for the cell's own."""
        for event in before:
            if event.op == "clear":
                self._shown = None
                self._lasting = self._lasting if event.transient else None
        if closing:
            self._reader.finish(now)
        self._draw(now, closing)
        output = self.output
        if output is None:
            return self._withdraw(changes)
        if self._lasting is not output and (closing or now >= self._next_lasting):
            self._next_lasting = now + self._bounds.derived_lasting_interval
            self._shown = self._lasting = output
        elif self._shown is not output:
            self._shown = output
        else:
            return []
        return [changes.derived(output, transient=self._lasting is not output)]

    def _withdraw(self, changes: Changes) -> list[CellOutput]:
        """Take the output away again: the cell has turned out to plot itself."""
        if self._shown is None and self._lasting is None:
            return []
        transient = self._lasting is None
        self._shown = self._lasting = None
        return changes.restate(transient)

    def _draw(self, now: float, closing: bool) -> None:
        """Draw what is new, if it is time: drawing gets a small share of the time at most."""
        points = self._reader.points
        due = points != self._drawn and (closing or now >= self._next_draw)
        if self._unwanted or not points or not (due or closing):
            return
        if due:
            began = self._stopwatch() if self._stopwatch else 0.0
            self._picture = _picture(self._reader)
            self._drawn = points
            cost = self._stopwatch() - began if self._stopwatch else _USUAL_COST
            self._next_draw = now + max(self._bounds.derived_interval, cost / self._bounds.derived_share)
        if self._next_lasting == _NEVER:
            self._next_lasting = now + self._bounds.derived_lasting_interval
        output = _compose(self._reader, self._picture, self._redact)
        if output != self._output:
            self._output = output


def _picture(reader: MetricsReader) -> str:
    """The plot as a PNG in base64; empty if it cannot be drawn, for matplotlib's settings are the person's own."""
    series = reader.series()
    try:
        return "" if series is None else base64.b64encode(draw_chart(series)).decode()
    except Exception:
        return ""


def _compose(reader: MetricsReader, picture: str, redact: Callable[[str], str]) -> JsonObject | None:
    """The plot, the table and a line of words as one nbformat output; ``None`` while there is no series."""
    series = reader.series()
    if series is None:
        return None
    summary = redact(reader.summary())
    data = {"text/plain": f"{summary}\n\n{redact(text_table(series, reader.labels))}"}
    image = ""
    if picture:
        data["image/png"] = picture
        words = escape(redact(describe_chart(series)))
        image = f'<img alt="{words}" style="width:700px;max-width:100%" src="data:image/png;base64,{picture}">'
    line = f'<div style="opacity:.75;font-size:90%;margin-bottom:2px">{escape(summary)}</div>'
    data["text/html"] = f"<div>{line}{image}{redact(html_table(series, reader.labels))}</div>"
    return {"output_type": "display_data", "data": data, "metadata": {MARK: {"derived": "metrics"}}}
