"""Marks what files, commands and the web say as data, so that a model tells it from what is said to it. Pure.

``content`` puts the outputs of a call between ``<data-TAG>`` and ``</data-TAG>``; ``TAG`` is eight hexadecimal digits
that a session draws by chance, so that nothing that was written before can close the envelope. What the harness itself
says of a call stands outside.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from harness_nb.events import Event, SessionStarted

ENVELOPED = frozenset({"python", "bash", "read_file", "search_files", "list_files", "wait", "web_fetch"})
"""Tools whose results are the words of others."""

_OTHER_BRACKET = "\N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}"
_TAG_LIKE = re.compile(r"<(?=\s*/?\s*data-[0-9a-f]{8}\s*/?\s*>)", re.IGNORECASE)


def enveloped(text: str, tag: str) -> str:
    """``text`` as data; itself where there is no tag, or nothing in it. What imitates a tag in it is made harmless."""
    if not tag or not text.strip():
        return text
    end = "" if text.endswith("\n") else "\n"
    return f"<data-{tag}>\n{_TAG_LIKE.sub(_OTHER_BRACKET, text)}{end}</data-{tag}>"


def tag_of(events: Iterable[Event]) -> str:
    """The tag of a recorded session; empty where it has none."""
    return next((event.data_tag for event in events if isinstance(event, SessionStarted)), "")
