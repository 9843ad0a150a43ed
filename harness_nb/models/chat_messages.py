"""Requests of Chat Completions: messages in that API's form. Pure; ``chat`` hands it to ``remote``.

Source of the shapes: the OpenAI API reference, "Create chat completion". Tool messages hold text only there, so the
pictures of results follow in a user message behind the last result of the reply.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any

from harness_nb.models.calls import write_arguments
from harness_nb.models.quirks import Quirks
from harness_nb.ports import ModelSettings
from harness_nb.types import ImagePart, JsonObject, Message, Part, TextPart, ToolCall, ToolSpec

PROVIDER = "openai-chat"
"""``Message.provider`` of replies that carry what must come back with them as provider items."""

NO_IMAGE = "[a picture was left out: this model or its server takes none]"
IMAGES_FOLLOW = "[the pictures of this result follow in the next user message]"
NOTHING: JsonObject = {"role": "assistant", "content": ""}
SEEN = "I have the results."
"""Stands between a result and a user message where a server wants a reply there."""

CALL_EXTRAS = "extra_content"
"""Where Google's compatible endpoint has the signature of a call's thinking, without which the call is rejected."""

_PLAIN = {"type", "description", "enum", "properties", "required", "items"}


def write_request(
    model: str, messages: Sequence[Message], tools: Sequence[ToolSpec], settings: ModelSettings, quirks: Quirks
) -> JsonObject:
    """The body of one request. The same arguments give the same body, so that prompt caches hit."""
    body: JsonObject = {"model": model, "messages": write_messages(messages, quirks), "stream": quirks.stream}
    if quirks.stream and quirks.usage_in_stream:
        body["stream_options"] = {"include_usage": True}
    if tools:
        body["tools"] = [_write_tool(tool, quirks) for tool in tools]
    if settings.cache_key and quirks.cache_key:
        body["prompt_cache_key"] = settings.cache_key
    if settings.max_output_tokens is not None:
        body[quirks.max_tokens_name] = settings.max_output_tokens
    if settings.temperature is not None:
        body["temperature"] = settings.temperature
    if settings.reasoning_effort is not None:
        body |= _write_effort(settings.reasoning_effort, quirks)
    return body


def write_messages(messages: Sequence[Message], quirks: Quirks) -> list[JsonObject]:
    """The conversation; pictures of tool results are moved behind the results that they belong to."""
    written: list[JsonObject] = []
    pictures: list[JsonObject] = []
    for message in split_calls(messages) if quirks.single_calls else messages:
        if message.role != "tool" and pictures:
            written.append({"role": "user", "content": pictures})
            pictures = []
        if message.role == "tool":
            call_id = write_id(message.call_id or "", quirks)
            written.append({"role": "tool", "tool_call_id": call_id, "content": _write_result(message.content, quirks)})
            pictures += _write_pictures(message, quirks)
        elif message.role == "assistant":
            reply = _write_reply(message, quirks)
            if reply != NOTHING:  # servers reject a reply that says nothing
                written.append(reply)
        else:
            role = quirks.system_role if message.role == "system" else message.role
            written.append({"role": role, "content": _write_content(message.content, quirks)})
    if pictures:
        written.append({"role": "user", "content": pictures})
    return list(_lay_out(written, quirks))


def split_calls(messages: Sequence[Message]) -> Iterator[Message]:
    """The conversation with each call in a reply of its own, and its result right behind it."""
    results = {message.call_id: message for message in messages if message.role == "tool"}
    told: set[str | None] = set()
    for message in messages:
        if message.role == "assistant" and len(message.tool_calls) > 1:
            for number, call in enumerate(message.tool_calls):
                alone: dict[str, Any] = {"tool_calls": (call,)}
                yield message.model_copy(
                    update=alone if number == 0 else {**alone, "content": (), "provider_items": ()}
                )
                if result := results.get(call.call_id):
                    told.add(call.call_id)
                    yield result
        elif message.role != "tool" or message.call_id not in told:
            yield message


def write_id(call_id: str, quirks: Quirks) -> str:
    """The id of a call as the server takes it; the same id always gives the same."""
    if not quirks.short_ids or (len(call_id) == 9 and call_id.isascii() and call_id.isalnum()):
        return call_id
    return sha256(call_id.encode()).hexdigest()[:9]


def _lay_out(written: Sequence[JsonObject], quirks: Quirks) -> Iterator[JsonObject]:
    """The messages in an order of roles that the server takes."""
    last: JsonObject = {}
    joins = quirks.merge_users or quirks.system_role == "user"
    for message in written:
        role, before = message["role"], last.get("role")
        if role == before == "user" and joins:
            last["content"] = _join(last["content"], message["content"])
            continue
        if last:
            yield last
        if role == "user" and before == "tool" and quirks.assistant_after_tool:
            yield {"role": "assistant", "content": SEEN}
        last = dict(message)
        joins = quirks.merge_users or (joins and role == "user")  # the system prompt joins what it stands before
    if last:
        yield last


def _join(first: str | list[JsonObject], second: str | list[JsonObject]) -> str | list[JsonObject]:
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}"
    parts = [[{"type": "text", "text": item}] if isinstance(item, str) else item for item in (first, second)]
    return [*parts[0], *parts[1]]


def _write_reply(message: Message, quirks: Quirks) -> JsonObject:
    nothing = None if message.tool_calls and quirks.null_content else ""
    reply: JsonObject = {"role": "assistant", "content": message.text or nothing}
    items = message.provider_items if message.provider == PROVIDER else ()
    extras: JsonObject = next((item[CALL_EXTRAS] for item in items if CALL_EXTRAS in item), {})
    if message.tool_calls:
        reply["tool_calls"] = [_write_call(call, extras, quirks) for call in message.tool_calls]
    if quirks.echo_reasoning:
        for item in items:
            reply.update({key: value for key, value in item.items() if key != CALL_EXTRAS})
    return reply


def _write_call(call: ToolCall, extras: JsonObject, quirks: Quirks) -> JsonObject:
    arguments: Any = write_arguments(call)
    if quirks.object_arguments:
        arguments = {"malformed_arguments": call.malformed} if call.malformed is not None else call.arguments
    written = {
        "id": write_id(call.call_id, quirks),
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    }
    return {**written, CALL_EXTRAS: extras[call.call_id]} if call.call_id in extras else written


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
    call_id = write_id(message.call_id or "", quirks)
    title: JsonObject = {"type": "text", "text": f"Pictures of the result of call {call_id}:"}
    return [title, *map(_write_picture, pictures)]


def _write_picture(part: ImagePart) -> JsonObject:
    return {"type": "image_url", "image_url": {"url": f"data:{part.media_type};base64,{part.data}"}}


def _write_tool(tool: ToolSpec, quirks: Quirks) -> JsonObject:
    parameters = plain_schema(tool.parameters) if quirks.plain_schemas else tool.parameters
    return {
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": parameters},
    }


def plain_schema(schema: JsonObject) -> JsonObject:
    """``schema`` in the plainest words of JSON Schema; of alternatives the first that is not null."""
    for word in ("anyOf", "oneOf", "allOf"):
        if choices := [choice for choice in schema.get(word) or [] if choice.get("type") != "null"]:
            schema = {**choices[0], **{key: schema[key] for key in ("description",) if key in schema}}
    plain = {key: value for key, value in schema.items() if key in _PLAIN}
    if isinstance(plain.get("type"), list):
        plain["type"] = next((kind for kind in plain["type"] if kind != "null"), "string")
    if isinstance(plain.get("properties"), dict):
        plain["properties"] = {name: plain_schema(value) for name, value in plain["properties"].items()}
    if isinstance(plain.get("items"), dict):
        plain["items"] = plain_schema(plain["items"])
    return plain


def _write_effort(effort: str, quirks: Quirks) -> JsonObject:
    """What asks for an effort; some servers know only thinking and not thinking."""
    thinks = effort != "none"
    forms: dict[str, JsonObject] = {
        "reasoning_effort": {"reasoning_effort": effort},
        "reasoning": {"reasoning": {"effort": effort}},
        "thinking": {"thinking": {"type": "enabled" if thinks else "disabled"}},
        "enable_thinking": {"enable_thinking": thinks},
    }
    return forms[quirks.effort_form]
