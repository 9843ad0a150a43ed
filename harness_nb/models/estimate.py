"""How large the next request will be, before it is sent. Pure; ``remote`` and ``scripted`` offer it as ``estimate``.

The provider's count of the last request is taken where there is one, and only what has come since is guessed; so the
error stays small. Without a count, everything is guessed from its size, rather too high than too low.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness_nb.context.size import count_message, count_tool
from harness_nb.ports import ModelSettings
from harness_nb.types import Message, ToolSpec, Usage

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
