"""How large the next request will be, before it is sent. Pure; ``remote`` and ``scripted`` offer it as ``estimate``.

The provider's count of the last request is taken where there is one, and only what has come since is guessed; so the
error stays small. Without a count, everything is guessed from its size, rather too high than too low.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from harness_nb.ports import ModelSettings
from harness_nb.types import ImagePart, Message, TextPart, ToolSpec, Usage

BYTES_PER_TOKEN = 3.2
"""Of UTF-8. English prose has about 4.5, code about 3.5, JSON about 3; other scripts have 3 bytes a letter."""

IMAGE_TOKENS = 1600
"""What a picture of the size that the firewall lets through costs at most (Anthropic: width x height / 750)."""

MESSAGE_TOKENS = 8
"""What stands around a message."""

LEAST_OUTPUT = 500
"""Tokens that a reply is expected to have at least."""

FUDGE = 2
"""A count that is so many times the guess is of a conversation that has been compacted since."""

RECENT = 4
"""Replies whose length says how long the next one may be."""


def estimate_request(messages: Sequence[Message], tools: Sequence[ToolSpec], settings: ModelSettings) -> Usage:
    """The tokens of the next request and of its reply, without the cost.

    The reply is expected to be as long as the longest of the last few; ``cached_input_tokens`` is set where the last
    reply says that its prefix is cached.
    """
    counted = [(k, message.usage) for k, message in enumerate(messages) if message.usage]
    counted = [(k, usage) for k, usage in counted if usage.input_tokens is not None]
    tokens, cached = sum(map(count_message, messages)) + sum(map(count_tool, tools)), None
    if counted:
        last, usage = counted[-1]
        before = usage.input_tokens or 0
        own = count_message(messages[last]) if usage.output_tokens is None else usage.output_tokens
        tokens = min(FUDGE * tokens, before + own + sum(map(count_message, messages[last + 1 :])))
        cached = min(before, tokens) if usage.cached_input_tokens or usage.cache_write_tokens else None
    output = max([LEAST_OUTPUT, *(usage.output_tokens or 0 for _, usage in counted[-RECENT:])])
    if settings.max_output_tokens is not None:
        output = min(output, settings.max_output_tokens)
    return Usage(input_tokens=tokens, output_tokens=output, cached_input_tokens=cached)


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
