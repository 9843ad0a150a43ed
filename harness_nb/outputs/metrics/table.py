"""The series as a small table, in plain text and in HTML. Pure; ``outputs.derived`` puts it into the cell.

At most twelve rows: the first, the best, the last, and rows between them at even distances. The HTML has inline styles
without colours of its own, so that it reads in light and in dark themes. It imports only its neighbours.
"""

from __future__ import annotations

from html import escape
from math import floor, isfinite, log10

from harness_nb.outputs.metrics.names import is_held_out
from harness_nb.outputs.metrics.progress import format_count, format_value, tells
from harness_nb.outputs.metrics.series import LINE, Column, Labels, Row, Series

MOST_ROWS = 12
MOST_COLUMNS = 7
_ENOUGH = 4
_NEAR = 2

_CELL = "padding:1px 10px;text-align:right;border:none;white-space:nowrap"


def text_table(series: Series, labels: Labels) -> str:
    """The table in plain text, columns aligned at the right; the best value of a column has a star."""
    head, rows = _cells(series, labels)
    lines = [[f"{name} " for name in head], *[[f"{text}{'*' if best else ' '}" for text, best in row] for row in rows]]
    widths = [max(len(line[place]) for line in lines) for place in range(len(head))]
    return "\n".join(
        " ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def html_table(series: Series, labels: Labels) -> str:
    """The table in HTML; the best value of a column is bold."""
    head, rows = _cells(series, labels)
    heads = "".join(f'<th style="{_CELL};opacity:.65;font-weight:normal">{escape(name)}</th>' for name in head)
    body = "".join(f"<tr>{''.join(_html_cell(*cell) for cell in row)}</tr>" for row in rows)
    style = "border-collapse:collapse;border:none;margin:2px 0;font-size:90%;font-variant-numeric:tabular-nums"
    return f'<table style="{style}"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>'


def _html_cell(text: str, best: bool) -> str:
    return f'<td style="{_CELL}">{f"<b>{escape(text)}</b>" if best else escape(text)}</td>'


def _cells(series: Series, labels: Labels) -> tuple[list[str], list[list[tuple[str, bool]]]]:
    """Names of the columns, and for each row the texts with whether it is the column's best."""
    columns = _columns(series)
    chosen = _chosen(series, columns)
    rows = [_filled(series, index) for index in chosen]
    counters: list[tuple[str, list[float | None]]] = [
        (labels.epoch, [row.epoch for row in rows]),
        (labels.step, [row.step for row in rows]),
    ]
    counters = [(label, values) for label, values in counters if any(value is not None for value in values)]
    counters = counters or [(LINE, [float(row.order) for row in rows])]
    positions = [_counts(values) for _, values in counters]
    values = [_values(column, rows) for column in columns]
    bests = [series.best_index(column) for column in columns]
    shown = [
        [
            *((texts[number], False) for texts in positions),
            *((texts[number], best == index) for texts, best in zip(values, bests, strict=True)),
        ]
        for number, index in enumerate(chosen)
    ]
    return [*(label for label, _ in counters), *(column.name for column in columns)], shown


def _counts(values: list[float | None]) -> list[str]:
    """Counters with the same decimals."""
    if all(value is None or value == round(value) for value in values):
        return ["" if value is None else format_count(value) for value in values]
    return ["" if value is None else f"{value:,.2f}" for value in values]


def _filled(series: Series, index: int) -> Row:
    """The row, with values that were printed just before it where it has none: training is logged more often."""
    row = series.rows[index]
    values = row.values
    for before in reversed(series.rows[max(index - _NEAR, 0) : index]):
        if before.epoch == row.epoch or row.epoch is None or (before.epoch or 0.0) % 1 or row.epoch % 1:
            values = before.values | values
    return row._replace(values=values)


def _values(column: Column, rows: list[Row]) -> list[str]:
    """The values of a column, with as many decimals as tell them apart."""
    values = [row.values.get(column.name) for row in rows]
    sizes = [abs(value) for value in values if value and isfinite(value)]
    plain = sizes and max(sizes) < 1e5 and min(sizes) >= 1e-4 and column.kind != "rate"
    if plain and any(size != round(size) for size in sizes):
        decimals = 4 if min(sizes) < 0.01 else min(max(3 - floor(log10(max(sizes))), 0), 4)
    else:
        decimals = 0
    sign = "%" if column.percent else ""
    return [
        ""
        if value is None
        else f"{value:.{decimals}f}{sign}"
        if plain and isfinite(value)
        else format_value(value, column.percent)
        for value in values
    ]


def _columns(series: Series) -> list[Column]:
    """The columns that are shown, in their order: metrics before what is not known to be one."""
    telling = [column for column in series.columns if column.kind != "other"]
    others = [column for column in series.columns if column.kind == "other"]
    kept = [*telling, *others][:MOST_COLUMNS]
    return [column for column in series.columns if column in kept]


def _chosen(series: Series, columns: list[Column]) -> list[int]:
    """Indices of the rows that are shown. Rows with held-out values go before others, if there are some."""
    steady = series.steady
    held_out = [column.name for column in columns if is_held_out(column.name)]
    telling = [index for index in steady if any(name in series.rows[index].values for name in held_out)]
    if len(telling) >= _ENOUGH:
        steady = tuple(sorted({steady[0], *telling, steady[-1]}))
    last = len(steady) - 1
    if last < MOST_ROWS:
        return list(steady)
    places = [round(last * part / (MOST_ROWS - 1)) for part in range(MOST_ROWS)]
    free = set(places[1:-1])
    for column in sorted(columns, key=tells, reverse=True)[:2]:
        best = series.best_index(column)
        if best in steady and steady.index(best) not in places:
            nearest = min(free, key=lambda place: abs(place - steady.index(best)))
            free.remove(nearest)
            places[places.index(nearest)] = steady.index(best)
    return [steady[place] for place in sorted(places)]
