"""Progress bars of widgets: as text, and drawn in HTML where a text has some.

Pure; ``controls`` and ``text`` use it.
"""

from __future__ import annotations

import html
import math
import re
from typing import Any

from harness_nb.types import JsonObject

LENGTH = 20
"""Characters of a bar."""

_BLOCKS = " ▏▎▍▌▋▊▉█"
_BAR = re.compile(rf"\|([{_BLOCKS}]{{{LENGTH}}})\|")
_TEXT = "font-family:monospace;font-size:13px;line-height:1.4;white-space:pre-wrap;margin:2px 0"
_FRAME = (
    "display:inline-block;width:200px;height:12px;margin:0 6px;vertical-align:middle;background:rgba(128,128,128,.25)"
)
_RUNNING, _FULL = "#217adf", "#238b4e"


def bar(state: JsonObject) -> str:
    """``|█████     |``, of the state of a progress widget; full only when it is done."""
    value, least, most = number(state.get("value")), number(state.get("min")), number(state.get("max"), 100.0)
    share = min(max((value - least) / (most - least), 0.0), 1.0) if most > least else 1.0
    whole, rest = divmod(int(share * LENGTH * 8), 8)
    drawn = _BLOCKS[8] * whole + (_BLOCKS[rest] if rest else "")
    return f"|{drawn.ljust(LENGTH)}|"


def bar_figures(state: JsonObject) -> str:
    """``11/20``, or ``11 (5 … 20)`` where it does not begin at zero."""
    value, least, most = (plain(state.get(name)) for name in ("value", "min", "max"))
    return f"{value}/{most}" if least in ("0", "") else f"{value} ({least} … {most})"


def draw_bars(text: str) -> str | None:
    """The text as HTML with its bars drawn; ``None`` if it has none. Inline styles only, so that they survive."""
    if not _BAR.search(text):
        return None
    return f'<div style="{_TEXT}">{_BAR.sub(_draw, html.escape(text))}</div>'


def _draw(match: re.Match[str]) -> str:
    eighths = sum(_BLOCKS.index(block) for block in match.group(1))
    percent = 100 * eighths / (8 * LENGTH)
    colour = _FULL if percent == 100 else _RUNNING
    filled = f"display:block;width:{percent:g}%;height:100%;background:{colour}"
    return f'<span style="{_FRAME}"><span style="{filled}"></span></span>'


def number(value: Any, default: float = 0.0) -> float:
    """A finite number of a state, or ``default``."""
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else default


def plain(value: Any) -> str:
    """A value of a state as a person would write it."""
    if isinstance(value, bool) or value is None:
        return "" if value is None else str(value)
    if isinstance(value, dict):
        return "-".join(str(part) for part in value.values())
    return f"{value:.6g}" if isinstance(value, float) else str(value)
