"""Requests of the Responses API: messages become input items. Pure; ``responses`` calls it.

Source of the shapes: the OpenAI API reference, "Create a model response".
"""

from __future__ import annotations

from collections.abc import Sequence

from harness_nb.models.calls import write_arguments
from harness_nb.models.quirks import Quirks
from harness_nb.ports import ModelSettings
from harness_nb.types import ImagePart, JsonObject, Message, Part, TextPart, ToolSpec

PROVIDER = "openai-responses"
"""``Message.provider`` of replies whose items go back as they came."""

NO_IMAGE = "[a picture was left out: this model or its server takes none]"


def write_request(
    model: str, messages: Sequence[Message], tools: Sequence[ToolSpec], settings: ModelSettings, quirks: Quirks
) -> JsonObject:
    """The body of one request. The same arguments give the same body, so that prompt caches hit."""
    leading = 0
    while leading < len(messages) and messages[leading].role == "system":
        leading += 1
    body: JsonObject = {"model": model, "store": False, "stream": quirks.stream}
    if leading:
        body["instructions"] = "\n\n".join(message.text for message in messages[:leading])
    body["input"] = [item for message in messages[leading:] for item in write_items(message, quirks)]
    if tools or settings.web_search:
        search: list[JsonObject] = [{"type": "web_search"}] if settings.web_search else []
        body["tools"] = [*(_write_tool(tool, quirks) for tool in tools), *search]
    if quirks.encrypted_reasoning:
        body["include"] = ["reasoning.encrypted_content"]
    reasoning = {
        "effort": settings.reasoning_effort,
        "summary": "auto" if quirks.reasoning_summary else None,
    }
    if any(reasoning.values()):
        body["reasoning"] = {key: value for key, value in reasoning.items() if value}
    if settings.cache_key and quirks.cache_key:
        body["prompt_cache_key"] = settings.cache_key
    if settings.max_output_tokens is not None:
        body["max_output_tokens"] = settings.max_output_tokens
    if settings.temperature is not None:
        body["temperature"] = settings.temperature
    return body


def write_items(message: Message, quirks: Quirks) -> list[JsonObject]:
    """The input items of one message; a reply of this API goes back as the items that it came in."""
    if message.role == "tool":
        return [
            {
                "type": "function_call_output",
                "call_id": message.call_id,
                "output": _write_content(message.content, quirks),
            }
        ]
    if message.role != "assistant":
        return [{"role": message.role, "content": _write_content(message.content, quirks)}]
    if message.provider == PROVIDER and message.provider_items and quirks.provider_items:
        return list(message.provider_items)
    items: list[JsonObject] = []
    if message.text:  # with its type: llama.cpp knows a reply by it
        items.append({"type": "message", "role": "assistant", "content": message.text})
    for call in message.tool_calls:
        items.append(
            {
                "type": "function_call",
                "call_id": call.call_id,
                "name": call.name,
                "arguments": write_arguments(call),
            }
        )
    return items


def _write_content(content: Sequence[Part], quirks: Quirks) -> str | list[JsonObject]:
    """A string where there is only text, for the sake of small servers; else a list of parts."""
    texts = [part.text if isinstance(part, TextPart) else NO_IMAGE for part in content]
    if not quirks.images or not any(isinstance(part, ImagePart) for part in content):
        return "\n".join(texts)
    return [
        {"type": "input_text", "text": part.text}
        if isinstance(part, TextPart)
        else {"type": "input_image", "image_url": f"data:{part.media_type};base64,{part.data}", "detail": "auto"}
        for part in content
    ]


def _write_tool(tool: ToolSpec, quirks: Quirks) -> JsonObject:
    written: JsonObject = {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    }
    return {**written, "strict": False} if quirks.strict else written
