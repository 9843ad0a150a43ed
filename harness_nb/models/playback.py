"""Plays a known message as a model would stream it. Used by ``scripted`` and ``replay``."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Iterable

from harness_nb.ports import CallDelta, ReasoningDelta, TextDelta
from harness_nb.types import JsonObject

_PIECE = re.compile(r"\s*\S+\s*|\s+")


async def play_reply(
    text: str, calls: Iterable[tuple[str, JsonObject | str]] = (), *, reasoning: str = "", delay: float = 0.0
) -> AsyncGenerator[TextDelta | ReasoningDelta | CallDelta]:
    """Yield ``reasoning``, ``text`` and the arguments of ``calls`` word by word, with ``delay`` seconds between pieces.

    A call is the name of a tool and its arguments, or their text.

    Even without a delay other tasks get their turn between two pieces, as they do while a real model streams.
    """
    for piece in _PIECE.findall(reasoning):
        yield ReasoningDelta(piece)
        await asyncio.sleep(delay)
    for piece in _PIECE.findall(text):
        yield TextDelta(piece)
        await asyncio.sleep(delay)
    for name, arguments in calls:
        told = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        for piece in _PIECE.findall(told):
            yield CallDelta(name, piece)
            await asyncio.sleep(delay)
