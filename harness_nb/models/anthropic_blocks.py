"""Requests of Anthropic's Messages API: messages become blocks. Pure; ``anthropic_model`` hands it to ``remote``.

Source of the shapes: Anthropic's API reference, "Create a Message", "Prompt caching" and "Extended thinking", and the
parameter types of the ``anthropic`` library 2.14. Caching is by exact prefix, in the order tools, system, messages, so
the marks stand at the end of the system prompt, of the newest message, and of where the last request ended: a mark
finds an earlier one only within some twenty blocks, and one turn can have more than that.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness_nb.models.quirks import Quirks
from harness_nb.ports import ModelSettings
from harness_nb.types import ImagePart, JsonObject, Message, Part, TextPart, ToolSpec

PROVIDER = "anthropic"
"""``Message.provider`` of replies whose blocks go back as they came."""

NO_IMAGE = "[a picture was left out: this model or its server takes none of its kind]"
EMPTY = "(empty)"
"""Stands for a text without content, which the API rejects."""

MEDIA_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
WEB_SEARCH: JsonObject = {"type": "web_search_20250305", "name": "web_search"}
"""The provider's own search, in the version that all models know."""

CACHE: JsonObject = {"cache_control": {"type": "ephemeral"}}
THINKING_BUDGETS = {"minimal": 1024, "low": 4096, "medium": 10_000, "high": 20_000, "xhigh": 28_000, "max": 30_000}
"""Tokens of thinking that stand for an effort where a model knows no efforts."""


def write_request(
    model: str, messages: Sequence[Message], tools: Sequence[ToolSpec], settings: ModelSettings, quirks: Quirks
) -> JsonObject:
    """The body of one request. The same arguments give the same body, so that prompt caches hit."""
    leading = 0
    while leading < len(messages) and messages[leading].role == "system":
        leading += 1
    limit = settings.max_output_tokens or quirks.max_output_tokens
    body: JsonObject = {"model": model, "max_tokens": limit, "stream": quirks.stream}
    if tools or settings.web_search:
        body["tools"] = [
            *({"name": tool.name, "description": tool.description, "input_schema": tool.parameters} for tool in tools),
            *([WEB_SEARCH] if settings.web_search else []),
        ]
    texts = [message.text for message in messages[:leading] if message.text]
    if texts:
        body["system"] = [{"type": "text", "text": text} for text in texts]
    body["messages"] = write_messages(messages[leading:], quirks)
    if quirks.cache_marks:
        _mark(body)
    if settings.temperature is not None:  # the newest models take none, and say so
        body["temperature"] = settings.temperature
    if settings.reasoning_effort is not None:
        body |= _write_thinking(settings.reasoning_effort, limit, quirks)
    return body


def write_messages(messages: Sequence[Message], quirks: Quirks) -> list[JsonObject]:
    """The conversation. What stands between two replies is one user message, results of calls first."""
    written: list[JsonObject] = []
    for message in messages:
        role = "assistant" if message.role == "assistant" else "user"
        blocks = _write_reply(message) if role == "assistant" else _write_input(message, quirks)
        if not blocks:
            continue
        if written and written[-1]["role"] == role:
            written[-1]["content"] += blocks
        else:
            written.append({"role": role, "content": blocks})
    for entry in written:
        if entry["role"] == "user":
            entry["content"].sort(key=lambda block: block["type"] != "tool_result")
    return written


def _write_input(message: Message, quirks: Quirks) -> list[JsonObject]:
    if message.role != "tool":
        return _write_content(message.content, quirks)
    result: JsonObject = {"type": "tool_result", "tool_use_id": write_id(message.call_id or "")}
    content = _write_content(message.content, quirks)
    return [{**result, "content": content} if content else result]


def _write_content(content: Sequence[Part], quirks: Quirks) -> list[JsonObject]:
    blocks: list[JsonObject] = []
    for part in content:
        if isinstance(part, TextPart):
            blocks.append({"type": "text", "text": part.text if part.text.strip() else EMPTY})
        elif quirks.images and part.media_type in MEDIA_TYPES:
            blocks.append(_write_picture(part))
        else:
            blocks.append({"type": "text", "text": NO_IMAGE})
    return blocks


def _write_picture(part: ImagePart) -> JsonObject:
    return {"type": "image", "source": {"type": "base64", "media_type": part.media_type, "data": part.data}}


def _write_reply(message: Message) -> list[JsonObject]:
    """The blocks of a reply: its own, as they came, or what can be said of one of another provider."""
    if message.provider == PROVIDER and message.provider_items:
        return list(message.provider_items)
    blocks: list[JsonObject] = [{"type": "text", "text": message.text}] if message.text.strip() else []
    for call in message.tool_calls:
        arguments = call.arguments if call.malformed is None else {"malformed_arguments": call.malformed}
        blocks.append({"type": "tool_use", "id": write_id(call.call_id), "name": call.name, "input": arguments})
    return blocks


def write_id(call_id: str) -> str:
    """The id of a call as the API takes it: other servers have dots and colons in theirs."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", call_id) or "_"


def _mark(body: JsonObject) -> None:
    """Put the cache marks at the ends of the stable prefixes, at most three of the four that are allowed."""
    users = [entry for entry in body["messages"] if entry["role"] == "user"]
    for blocks in [body.get("system") or body.get("tools") or [], *(entry["content"] for entry in users[-2:])]:
        if blocks:
            blocks[-1] = {**blocks[-1], **CACHE}


def _write_thinking(effort: str, limit: int, quirks: Quirks) -> JsonObject:
    """What asks for an effort: newer models take it as it is, older ones a number of tokens to think with."""
    if effort == "none":
        return {"thinking": {"type": "disabled"}}
    if quirks.adaptive_thinking:
        effort = "low" if effort == "minimal" else effort
        return {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": effort}}
    budget = min(THINKING_BUDGETS.get(effort, THINKING_BUDGETS["medium"]), max(1024, limit // 2))
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}
