"""The plot of a series: losses at the left, scores at the right, a learning rate as a thin line. Pure but for its cost.

``outputs.derived`` calls ``draw_chart`` now and then. matplotlib is imported when a chart is drawn, by its object
interface: pyplot, which belongs to the person's own notebook, is never touched. Colours are of middle brightness on no
background, so that the picture reads on white and on black.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from harness_nb.outputs.metrics.names import is_held_out
from harness_nb.outputs.metrics.progress import format_value
from harness_nb.outputs.metrics.series import Column, Series

SIZE = (7.0, 2.6)
"""Inches; at ``DPI`` that is what a cell shows at half size on a fine screen."""

DPI = 120

_GREY = "#8a8a8a"
_COLOURS = ("#2f81f7", "#2da44e", "#8957e5", "#1b9aaa", "#6e7781")
_HELD_OUT_COLOURS = ("#e0701a", "#bf4b8a", "#c99400", "#d1453b", "#a0522d")
_MOST_LINES = 5
_ENOUGH = 8
"""So many whole lines are drawn alone: what a bar shows in between are means that start anew with each epoch."""

_MARKED = 20
"""With fewer points than that each is marked."""

_HIGHEST = 1e30
"""Larger values, infinities and NaN leave gaps."""

_LOG = 50.0
"""Losses that span more than this factor are drawn on a logarithmic scale."""


def draw_chart(series: Series) -> bytes:
    """A PNG of the series, about 7 by 2.6 inches.

    Raises:
        Exception: whatever matplotlib raises; its settings belong to the person.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.text import Text

    losses, scores = _panel(series, "loss"), _panel(series, "score")
    panels = [panel for panel in (losses, scores) if panel]
    if not panels:
        panels = [[column for column in series.columns if column.kind == "other"][:_MOST_LINES]]
    figure = Figure(figsize=SIZE, dpi=DPI, layout="constrained")
    canvas: Any = FigureCanvasAgg(figure)
    figure.patch.set_alpha(0.0)
    rates = [column for column in series.columns if column.kind == "rate"]
    for place, columns in enumerate(panels, start=1):
        axes = figure.add_subplot(1, len(panels), place)
        _dress(axes, series)
        _draw_panel(axes, series, columns)
        if rates and place == 1:
            _draw_rate(axes, series, rates[0])
    for text in figure.findobj(Text):
        text.set_usetex(False)
    buffer = io.BytesIO()
    canvas.print_png(buffer)
    return buffer.getvalue()


def describe_chart(series: Series) -> str:
    """What the picture shows, for those who cannot see it."""
    names = [column.name for kind in ("loss", "score") for column in _panel(series, kind)]
    return f"{', '.join(names) or 'values'} by {series.label}, {series.points:,} lines"


def _panel(series: Series, kind: str) -> list[Column]:
    """The columns of one panel: of one sort, so that they can share an axis."""
    columns = [column for column in series.columns if column.kind == kind]
    for sort in ("loss", "acc"):
        same = [column for column in columns if sort in column.name]
        if same:
            columns = same
    return columns[:_MOST_LINES]


def _draw_panel(axes: Any, series: Series, columns: Sequence[Column]) -> None:
    percent = any(column.percent for column in columns)
    drawn: list[float] = []
    for column, colour in zip(columns, _colours(columns), strict=True):
        scale = 100.0 if percent and not column.percent and abs(column.last) <= 1.0 else 1.0
        xs, ys = _points(series, column, scale)
        if not xs:
            continue
        drawn += ys
        line = {"color": colour, "linewidth": 1.4, "linestyle": "-", "label": column.name}
        axes.plot(xs, ys, marker="o" if len(xs) < _MARKED else "None", markersize=2.6, **line)
        if column.best is not None and len(xs) > 2:
            at = next(
                (x for x, row in zip(series.xs, series.rows, strict=True) if row.order == column.best.order), None
            )
            if at is not None:
                best = column.best.values[column.name] * scale
                axes.plot([at], [best], "o", color=colour, markersize=5, fillstyle="none", markeredgewidth=1.1)
    if drawn and min(drawn) > 1 / _HIGHEST and max(drawn) / min(drawn) > _LOG and columns[0].kind == "loss":
        axes.set_yscale("log")
    names = [column.name for column in columns]
    title = names[0] if len(names) == 1 else _common(names)
    axes.set_title(f"{title}, %" if percent else title, loc="left", fontsize=8.5, color=_GREY)
    if len(names) > 1:
        where = "upper right" if columns[0].kind == "loss" else "lower right"
        axes.legend(fontsize=7.5, frameon=False, labelcolor=_GREY, loc=where, handlelength=1.4)


def _draw_rate(axes: Any, series: Series, column: Column) -> None:
    xs, ys = _points(series, column, 1.0)
    if not xs:
        return
    twin = axes.twinx()
    twin.plot(xs, ys, color=_GREY, linewidth=0.8, linestyle=(0, (4, 2)), marker="None")
    twin.set_ylim(0, max(ys) * 1.08 or 1.0)
    twin.set_title(f"- - {column.name.replace('_', ' ')}", loc="right", fontsize=7.5, color=_GREY)
    twin.yaxis.set_major_formatter(lambda value, _: format_value(value))
    twin.locator_params(axis="y", nbins=4)
    twin.tick_params(colors=_GREY, labelsize=7, length=2, width=0.6)
    twin.set_frame_on(False)


def _dress(axes: Any, series: Series) -> None:
    axes.set_facecolor("none")
    axes.grid(visible=True, color=_GREY, alpha=0.22, linewidth=0.6)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set(color=_GREY, linewidth=0.7)
    axes.tick_params(which="both", colors=_GREY, labelsize=7.5, length=2.5, width=0.6)
    axes.set_xlabel(series.label, fontsize=8, color=_GREY)
    axes.locator_params(axis="x", nbins=7, steps=[1, 2, 5, 10], integer=series.xs[-1] - series.xs[0] >= 3)


def _points(series: Series, column: Column, scale: float) -> tuple[list[float], list[float]]:
    """Where the column has a number that can be drawn."""
    points = []
    for x, row in zip(series.xs, series.rows, strict=True):
        value = row.values.get(column.name)
        if value is not None and abs(value) < _HIGHEST:
            points.append((x, value * scale, row.passing))
    whole = [point for point in points if not point[2]]
    if len(whole) >= _ENOUGH:
        points = whole
    return [x for x, _, _ in points], [y for _, y, _ in points]


def _colours(columns: Sequence[Column]) -> list[str]:
    """Cold colours for training, warm ones for held-out data, the same in each panel."""
    cold, warm = iter(_COLOURS), iter(_HELD_OUT_COLOURS)
    return [next(warm if is_held_out(column.name) else cold) for column in columns]


def _common(names: Sequence[str]) -> str:
    """What the names of a panel have in common, for its title."""
    for word in ("loss", "accuracy", "acc", "rmse", "reward", "perplexity", "f1", "auc"):
        if all(word in name for name in names):
            return word
    return "losses" if any("loss" in name for name in names) else "metrics"
