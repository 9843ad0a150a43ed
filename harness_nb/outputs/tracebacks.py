"""Tracebacks: bounded for the cell, and as a model reads them: without colours, with library frames in two lines.

The firewall calls it with the content of an iopub ``error`` message, whose ``traceback`` is a list of a ruler, a title,
a frame each and the message, as IPython 8 and 9 write it. It imports only its neighbours in ``outputs``.
"""

from __future__ import annotations

import re

from harness_nb.outputs.bounds import Bounds, head_and_tail
from harness_nb.outputs.terminal import clean_text
from harness_nb.types import JsonObject

_RULER = re.compile(r"-{20,}\s*\Z")
_TITLE = re.compile(r"\w[\w.]*\s+Traceback \(most recent call last\)\s*\Z")
_FRAME = re.compile(r"(File |Cell In\[|Input In |<ipython-input)")
_LIBRARY = re.compile(r"File [^\n]*(site-packages|dist-packages|lib[/\\]python\d|<frozen )", re.I)
_ARROW = re.compile(r"\s*-+> *\d+ ")
_CELL_PARTS = 30
_MODEL_FRAMES = 8
_PART_CHARS = 4000


def clean_error(content: JsonObject, bounds: Bounds) -> JsonObject:
    """The nbformat output of an ``error`` message {ename, evalue, traceback}: colours kept, everything bounded."""
    parts = [clean_text(str(part), colors=True) for part in content.get("traceback") or ()]
    kept = _without_middle(parts, _CELL_PARTS)
    return {
        "output_type": "error",
        "ename": clean_text(str(content.get("ename") or "Error")),
        "evalue": head_and_tail(clean_text(str(content.get("evalue") or "")), _PART_CHARS),
        "traceback": [head_and_tail(part, _PART_CHARS, bounds.cell_lines) for part in kept],
    }


def traceback_text(content: JsonObject) -> str:
    """The traceback for a model.

    Frames of libraries keep their place and the line that was executing, at most eight frames stay, the message is
    bounded. Without a traceback it is ``ename: evalue``.
    """
    summary = f"{content.get('ename') or 'Error'}: {clean_text(str(content.get('evalue') or ''))}".removesuffix(": ")
    parts = [clean_text(str(part)).strip("\n") for part in content.get("traceback") or ()]
    parts = [part for part in parts if part and not _RULER.match(part) and not _TITLE.match(part)]
    frames = [_shorten(part) for part in parts[:-1]]
    message = head_and_tail(parts[-1].removesuffix(": ") if parts else summary, _PART_CHARS)
    return "\n".join((*_without_middle(frames, _MODEL_FRAMES), message))


def _without_middle(parts: list[str], limit: int) -> list[str]:
    left_out = len(parts) - limit
    if left_out <= 0:
        return parts
    half = limit // 2
    return [*parts[:half], f"… {left_out:,} frames left out …", *parts[len(parts) - (limit - half) :]]


def _shorten(frame: str) -> str:
    lines = [line.rstrip() for line in frame.split("\n") if line.strip()]
    if _LIBRARY.match(frame):
        lines = [lines[0], *(line for line in lines[1:] if _ARROW.match(line))]
    return "\n".join(lines)
