"""Small stand-ins that the model tests share."""

from __future__ import annotations

import re

from harness_nb.types import ImagePart, ToolSpec, text_message

TOOLS = (
    ToolSpec(
        name="bash",
        description="Run a command.",
        parameters={"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
    ),
)
PROMPT = (text_message("system", "You are careful."), text_message("user", "Count to three."))
PICTURE = ImagePart(media_type="image/png", data="iVBORw0KGgo=")


class Naps:
    """Takes the place of ``asyncio.sleep`` between attempts, and remembers the seconds."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


def timeless(raw: bytes) -> bytes:
    """The body of a request without the seconds that the cells in it took, and with one tag around results."""
    return re.sub(rb"data-[0-9a-f]{8}>", b"data-TAG>", re.sub(rb"\[ok, [\d.]+ s", b"[ok, 0 s", raw))
