"""The blocks that the screen draws, as MIME bundles: HTML with inline styles and a plain-text twin. Pure.

Inline styles survive a reload, nbconvert and other front-ends. They name no variables of a theme, for JupyterLab strips
those from a notebook that it does not trust yet. The twin says the same where HTML is not shown (R8). Used by
``ui.screen`` and by the line magic.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from harness_nb.ui.publish import Bundle
from harness_nb.ui.source import highlight

GREEN, RED, AMBER, BLUE, GREY = "#238b4e", "#dc4338", "#b4670f", "#217adf", "#7a7a7a"
"""Each has a contrast above 4.2 to white and to the black of dark themes."""

_SANS = "font-family:system-ui, sans-serif;font-size:13px;line-height:1.5"
_CODE = "font-family:monospace;font-size:12px"
_PRE = (
    f"{_CODE};line-height:1.45;margin:4px 0 2px;padding:6px 8px;border:0;border-radius:4px;color:inherit;"
    "background:rgba(128,128,128,.09);white-space:pre-wrap;overflow-wrap:anywhere;max-height:24em;overflow:auto"
)

OPEN_LINES = 12
"""Source up to so many lines is shown open, longer source is folded."""

SHORT = frozenset({"read_file", "list_files", "search_files", "view_image"})
"""Tools whose title says it all; their source is folded."""


@dataclass(frozen=True, slots=True)
class CallState:
    """How a call stands: a sign, words, and a colour."""

    sign: str
    words: str
    colour: str


def call_block(
    name: str, title: str, source: str, state: CallState, note: str = "", unfold: bool | None = None
) -> Bundle:
    """A tool call: name, title and state in a line, the source folded below it, ``note`` as a sentence under it.

    ``unfold`` says whether the source is open; short source is, where it is not said.
    """
    head = (
        f'<span style="float:right;margin-left:1em;color:{state.colour};white-space:nowrap">'
        f"{html.escape(f'{state.sign} {state.words}')}</span>"
        f'<b>{html.escape(name)}</b> <span style="{_CODE};opacity:.85">{html.escape(title)}</span>'
    )
    if source:
        unfolded = unfold if unfold is not None else name not in SHORT and source.count("\n") < OPEN_LINES
        body = (
            f'<details{" open" if unfolded else ""} style="margin:0"><summary style="cursor:pointer">{head}</summary>'
            f'<pre style="{_PRE}">{highlight(source)}</pre></details>'
        )
    else:
        body = f"<div>{head}</div>"
    if note:
        body += f'<div style="color:{state.colour};overflow-wrap:anywhere">{html.escape(note)}</div>'
    plain = [f"[{name}] {title}  ({state.sign} {state.words})"]
    plain += [f"    {line}" for line in source.splitlines()]
    plain += [f"    {note}"] if note else []
    return Bundle({"text/html": _framed(body, state.colour), "text/plain": "\n".join(plain)})


def note_block(
    sign: str, text: str, colour: str, detail: str = "", summary: str = "", link: Link | None = None
) -> Bundle:
    """One line that the harness says, with ``detail`` folded below it."""
    line = f'<span style="color:{colour}">{html.escape(sign)}</span> {html.escape(text)}'
    if link:
        line, text = f"{line} {link.html}", f"{text} {link.label}"
    if detail:
        aside = f' <span style="opacity:.7">{html.escape(summary)}</span>' if summary else ""
        line = (
            f'<details style="margin:0"><summary style="cursor:pointer">{line}{aside}</summary>'
            f'<pre style="{_PRE}">{html.escape(detail)}</pre></details>'
        )
    plain = "\n".join([f"{sign} {text}", *(f"    {line}" for line in detail.splitlines())])
    return Bundle({"text/html": _framed(line, colour), "text/plain": plain})


def lines_block(sign: str, lines: Sequence[str], colour: str) -> Bundle:
    """Several lines that the harness says, all of them in view."""
    first, *rest = [html.escape(line) for line in lines]
    body = f'<div><span style="color:{colour}">{html.escape(sign)}</span> {first}</div>'
    body += "".join(f'<div style="margin-left:1.2em">{line}</div>' for line in rest)
    plain = "\n".join([f"{sign} {lines[0]}", *(f"    {line}" for line in lines[1:])])
    return Bundle({"text/html": _framed(body, colour), "text/plain": plain})


def folded_text(text: str, summary: str, tail: str = "") -> Bundle:
    """Long text of an output: folded, with ``tail`` in view. ``text`` must be free of terminal codes."""
    shown = f'<pre style="{_PRE};margin-left:12px">{html.escape(tail)}</pre>' if tail else ""
    head = f'<summary style="cursor:pointer;color:{GREY}">{html.escape(summary)}</summary>'
    body = f'<details style="margin:0 0 0 12px">{head}<pre style="{_PRE}">{html.escape(text)}</pre></details>{shown}'
    return Bundle({"text/html": f'<div style="{_SANS}">{body}</div>', "text/plain": text})


def checklist(steps: Sequence[tuple[str, str]]) -> Bundle:
    """A plan: (status, words) for each step, status as the model named it."""
    signs = {"completed": "☑", "done": "☑", "in_progress": "▶", "running": "▶"}
    lines = [f"{signs.get(status, '☐')} {words}" for status, words in steps]
    body = "".join(f"<div>{html.escape(line)}</div>" for line in lines)
    return Bundle({"text/html": _framed(body, BLUE), "text/plain": "\n".join(lines)})


@dataclass(frozen=True, slots=True)
class Link:
    """A way to a file: ``path`` relative to the notebook that shows the link, with forward slashes."""

    path: str
    label: str = "session notebook"

    @property
    def html(self) -> str:
        """An anchor that the front-end resolves against the notebook's folder."""
        where = html.escape(quote(self.path))
        return f'<a href="{where}" title="{html.escape(self.path)}">{html.escape(self.label)}</a>'


def last_line(sign: str, words: str, facts: Sequence[str], colour: str, link: Link | None) -> Bundle:
    """The line at the end: how it stands, the figures, the way to the session notebook."""
    parts = [f'<b style="color:{colour}">{html.escape(f"{sign} {words}")}</b>', *map(html.escape, facts)]
    plain = [f"{sign} {words}", *facts]
    if link:
        parts.append(link.html)
        plain.append(link.path)
    line = '<span style="opacity:.5"> · </span>'.join(parts)
    body = f'<div style="{_SANS};margin-top:6px;padding-top:4px;border-top:1px solid rgba(128,128,128,.3)">{line}</div>'
    return Bundle({"text/html": body, "text/plain": " · ".join(plain)})


def table(headings: Sequence[str], rows: Sequence[Sequence[str | Link]]) -> Bundle:
    """A small table; the last column wraps. Without headings it is a list of names and values."""
    cell = "padding:2px 16px 2px 0;text-align:left;vertical-align:top"
    body = "".join(f'<th style="{cell}">{html.escape(heading)}</th>' for heading in headings)
    body = f"<tr>{body}</tr>" if headings else ""
    for row in rows:
        cells = [value.html if isinstance(value, Link) else html.escape(value) for value in row]
        last = len(cells) - 1
        styles = [cell if column == last else f"{cell};white-space:nowrap" for column in range(len(cells))]
        columns = zip(styles, cells, strict=True)
        body += "<tr>" + "".join(f'<td style="{style}">{value}</td>' for style, value in columns) + "</tr>"
    lines = [[value.label if isinstance(value, Link) else value for value in row] for row in [headings, *rows] if row]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    plain = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]
    return Bundle({"text/html": f'<table style="{_SANS};margin:0">{body}</table>', "text/plain": "\n".join(plain)})


def _framed(body: str, colour: str) -> str:
    return f'<div style="{_SANS};margin:6px 0 3px;padding:1px 0 1px 9px;border-left:3px solid {colour}">{body}</div>'
