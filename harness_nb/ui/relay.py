"""How an output of a tool cell appears in the ``%%agent`` cell: natively, as a display of its own. Pure.

Streams become text displays (a real stream message could not be redrawn, and thousands of them freeze a tab), errors
too (a relayed error would fail the cell under papermill), results become displays. Long text is folded once its cell
has ended, and shown by its end while it runs. Used by ``ui.sections``.
"""

from __future__ import annotations

import re

from harness_nb.types import JsonObject
from harness_nb.ui.html import folded_text
from harness_nb.ui.publish import Bundle

SHOWN_LINES = 30
"""Text of an output up to so many lines is shown as it is."""

TAIL_LINES = 8
"""Lines at the end of folded text that stay in view."""

_LEFT_OUT = re.compile(r"… .* left out.* …")
"""The line that the firewall puts where it has left something out."""

_TERMINAL_CODE = re.compile(r"\x1b\[[0-9;]*m")


def relay(output: JsonObject, running: bool, look: bool = False) -> Bundle | None:
    """The display for an output in nbformat's form; ``None`` for one that shows nothing.

    ``running``: the cell has not ended. ``look``: the call only looks at something, so that long text is folded whole.
    """
    if output["output_type"] == "stream":
        return _text(output["text"], "stderr" if output["name"] == "stderr" else "stdout", running, look)
    if output["output_type"] == "error":
        trace = "\n".join(output["traceback"]) or f"{output['ename']}: {output['evalue']}"
        return _text(trace, "stderr", running, False)
    data = {kind: value for kind, value in output["data"].items() if not kind.endswith("widget-view+json")}
    return Bundle(data, output.get("metadata", {})) if any(data.values()) else None


def _text(text: str, name: str, running: bool, look: bool) -> Bundle | None:
    if not text.strip():
        return None
    lines = text.rstrip("\n").split("\n")
    if len(lines) <= SHOWN_LINES:
        return _plain("\n".join(lines), name)
    whole = not any(_LEFT_OUT.fullmatch(line) for line in lines)
    if running:
        count = f"{len(lines) - SHOWN_LINES + 1:,} " if whole else ""
        return _plain("\n".join([f"… {count}earlier lines", *lines[-SHOWN_LINES + 1 :]]), name)
    clean = [_TERMINAL_CODE.sub("", line) for line in lines]
    summary = f"{len(lines):,} lines of output" if whole else f"the first and last {len(lines) - 1:,} lines of output"
    return folded_text("\n".join(clean), summary, "" if look else "\n".join(clean[-TAIL_LINES:]))


def _plain(text: str, name: str) -> Bundle:
    data = {"text/plain": text}
    if name == "stderr":
        data["application/vnd.jupyter.stderr"] = text
    return Bundle(data)
