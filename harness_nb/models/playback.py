"""Plays a known message as a model would stream it. Used by ``scripted`` and ``replay``."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator

from harness_nb.ports import ReasoningDelta, TextDelta

_PIECE = re.compile(r"\s*\S+\s*|\s+")


async def play_text(
    text: str, *, reasoning: str = "", delay: float = 0.0
) -> AsyncGenerator[TextDelta | ReasoningDelta]:
    """Yield ``reasoning`` and then ``text`` word by word, with ``delay`` seconds between the pieces.

    Even without a delay other tasks get their turn between two pieces, as they do while a real model streams.
    """
    for piece in _PIECE.findall(reasoning):
        yield ReasoningDelta(piece)
        await asyncio.sleep(delay)
    for piece in _PIECE.findall(text):
        yield TextDelta(piece)
        await asyncio.sleep(delay)
