"""How many tokens a text or a message has, guessed from its size. Pure.

The estimate of a request and the compaction of a conversation use it. The guesses are rather too high than too low.
"""

from __future__ import annotations

import json

from harness_nb.types import ImagePart, Message, TextPart, ToolSpec

BYTES_PER_TOKEN = 3.2
"""Of UTF-8. English prose has about 4.5, code about 3.5, JSON about 3; other scripts have 3 bytes a letter."""

IMAGE_TOKENS = 1600
"""What a picture of the size that the firewall lets through costs at most (Anthropic: width x height / 750)."""

MESSAGE_TOKENS = 8
"""What stands around a message."""


def count_message(message: Message) -> int:
    """A guess at the tokens of one message."""
    text = "".join(part.text for part in message.content if isinstance(part, TextPart))
    calls = "".join(call.name + (call.malformed or json.dumps(call.arguments)) for call in message.tool_calls)
    pictures = sum(isinstance(part, ImagePart) for part in message.content)
    return MESSAGE_TOKENS + count_text(text) + count_text(calls) + pictures * IMAGE_TOKENS


def count_tool(tool: ToolSpec) -> int:
    """A guess at the tokens of one tool's description."""
    return MESSAGE_TOKENS + count_text(tool.name + tool.description + json.dumps(tool.parameters))


def count_text(text: str) -> int:
    """A guess at the tokens of a text."""
    return round(len(text.encode("utf-8", "replace")) / BYTES_PER_TOKEN)
