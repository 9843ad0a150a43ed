"""Requests of Chat Completions: messages in that API's form. Pure; ``chat`` calls it.

Source of the shapes: the OpenAI API reference, "Create chat completion". Tool messages hold text only there, so the
pictures of results follow in a user message behind the last result of the reply.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness_nb.models.calls import write_arguments
from harness_nb.models.quirks import Quirks
from harness_nb.ports import ModelSettings
from harness_nb.types import ImagePart, JsonObject, Message, Part, TextPart, ToolSpec

PROVIDER = "openai-chat"
"""``Message.provider`` of replies that carry reasoning text as provider items."""

NO_IMAGE = "[a picture was left out: this model or its server takes none]"
IMAGES_FOLLOW = "[the pictures of this result follow in the next user message]"


def write_request(
    model: str, messages: Sequence[Message], tools: Sequence[ToolSpec], settings: ModelSettings, quirks: Quirks
) -> JsonObject:
    """The body of one request. The same arguments give the same body, so that prompt caches hit."""
    body: JsonObject = {"model": model, "messages": write_messages(messages, quirks), "stream": quirks.stream}
    if quirks.stream and quirks.usage_in_stream:
        body["stream_options"] = {"include_usage": True}
    if tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
            }
            for tool in tools
        ]
    if settings.cache_key and quirks.cache_key:
        body["prompt_cache_key"] = settings.cache_key
    if settings.max_output_tokens is not None:
        body[quirks.max_tokens_name] = settings.max_output_tokens
    if settings.temperature is not None:
        body["temperature"] = settings.temperature
    if settings.reasoning_effort is not None:
        body["reasoning_effort"] = settings.reasoning_effort
    return body


def write_messages(messages: Sequence[Message], quirks: Quirks) -> list[JsonObject]:
    """The conversation; pictures of tool results are moved behind the results that they belong to."""
    written: list[JsonObject] = []
    pictures: list[JsonObject] = []
    for message in messages:
        if message.role != "tool" and pictures:
            written.append({"role": "user", "content": pictures})
            pictures = []
        if message.role == "tool":
            written.append(
                {"role": "tool", "tool_call_id": message.call_id, "content": _write_result(message.content, quirks)}
            )
            pictures += _write_pictures(message, quirks)
        elif message.role == "assistant":
            written.append(_write_reply(message, quirks))
        else:
            written.append({"role": message.role, "content": _write_content(message.content, quirks)})
    if pictures:
        written.append({"role": "user", "content": pictures})
    return written


def _write_reply(message: Message, quirks: Quirks) -> JsonObject:
    reply: JsonObject = {"role": "assistant", "content": message.text or (None if message.tool_calls else "")}
    if message.tool_calls:
        reply["tool_calls"] = [
            {
                "id": call.call_id,
                "type": "function",
                "function": {"name": call.name, "arguments": write_arguments(call)},
            }
            for call in message.tool_calls
        ]
    if quirks.echo_reasoning and message.provider == PROVIDER:
        for item in message.provider_items:
            reply.update(item)
    return reply


def _write_content(content: Sequence[Part], quirks: Quirks) -> str | list[JsonObject]:
    """A string where there is only text, for the sake of small servers; else a list of parts."""
    if not quirks.images or not any(isinstance(part, ImagePart) for part in content):
        return "\n".join(part.text if isinstance(part, TextPart) else NO_IMAGE for part in content)
    return [
        {"type": "text", "text": part.text} if isinstance(part, TextPart) else _write_picture(part) for part in content
    ]


def _write_result(content: Sequence[Part], quirks: Quirks) -> str:
    stand_in = IMAGES_FOLLOW if quirks.images else NO_IMAGE
    return "\n".join(part.text if isinstance(part, TextPart) else stand_in for part in content)


def _write_pictures(message: Message, quirks: Quirks) -> list[JsonObject]:
    """The pictures of one result, under a line that says whose they are."""
    pictures = [part for part in message.content if isinstance(part, ImagePart)]
    if not pictures or not quirks.images:
        return []
    title: JsonObject = {"type": "text", "text": f"Pictures of the result of call {message.call_id}:"}
    return [title, *map(_write_picture, pictures)]


def _write_picture(part: ImagePart) -> JsonObject:
    return {"type": "image_url", "image_url": {"url": f"data:{part.media_type};base64,{part.data}"}}
