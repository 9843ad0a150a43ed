"""Replies in the form of a script, written as the events of the APIs. For tests of adapters."""

from __future__ import annotations

import json
import re
from typing import Any

from canned_server import Answer, json_answer, sse


def pieces(text: str) -> list[str]:
    return re.findall(r".{1,5}", text, re.DOTALL)


def argument_text(call: dict[str, Any]) -> str:
    arguments = call.get("arguments", {})
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def message_item(text: str, number: int = 1, **more: Any) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {
        "type": "message",
        "id": f"msg_{number}",
        "role": "assistant",
        "status": "completed",
        "content": content,
        **more,
    }


def call_item(call: dict[str, Any], number: int, status: str = "completed") -> dict[str, Any]:
    return {
        "type": "function_call",
        "id": f"fc_{number}",
        "call_id": call.get("id", f"call_{number}"),
        "name": call["name"],
        "arguments": argument_text(call),
        "status": status,
    }


def response_events(
    items: list[dict[str, Any]],
    usage: dict[str, Any] | None = None,
    end: str = "response.completed",
    **response: Any,
) -> list[dict[str, Any]]:
    """The event sequence of a Responses stream that gives ``items``."""
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {"id": "resp_1", "status": "in_progress", "output": []}}
    ]
    for index, item in enumerate(items):
        where = {"output_index": index, "item_id": item.get("id")}
        begun = {**item, "arguments": ""} if item["type"] == "function_call" else {**item, "content": []}
        events.append({"type": "response.output_item.added", "output_index": index, "item": begun})
        for part in item.get("content") or []:
            for piece in pieces(part.get("text", "")):
                events.append({"type": "response.output_text.delta", **where, "content_index": 0, "delta": piece})
        for piece in pieces(item.get("arguments", "")):
            events.append({"type": "response.function_call_arguments.delta", **where, "delta": piece})
        if item["type"] == "function_call":
            whole = {"name": item["name"], "arguments": item["arguments"]}
            events.append({"type": "response.function_call_arguments.done", **where, **whole})
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    final = {
        "id": "resp_1",
        "object": "response",
        "status": end.removeprefix("response."),
        "model": "gpt-6-luna-2026-10-01",
        "output": items,
        "usage": usage,
        "incomplete_details": None,
        "error": None,
        **response,
    }
    events.append({"type": end, "response": final})
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def responses_answer(reply: dict[str, Any]) -> Answer:
    """A scripted reply as a Responses stream."""
    if error := reply.get("error"):
        return _failing(
            reply, error, [{"type": "response.output_text.delta", "item_id": "m", "delta": reply.get("text")}]
        )
    usage = reply.get("usage")
    if usage is not None:
        usage = {
            "input_tokens": usage.get("input_tokens"),
            "output_tokens": usage.get("output_tokens"),
            "input_tokens_details": {"cached_tokens": usage.get("cached_input_tokens")},
            "output_tokens_details": {"reasoning_tokens": usage.get("reasoning_tokens")},
        }
    cut = reply.get("finish_reason") == "length"
    items = [message_item(reply["text"])] if reply.get("text") else []
    calls = reply.get("calls", [])
    items += [
        call_item(call, number, "incomplete" if cut and call is calls[-1] else "completed")
        for number, call in enumerate(calls)
    ]
    if cut:
        details = {"reason": "max_output_tokens"}
        events = response_events(items, usage, "response.incomplete", incomplete_details=details)
    else:
        events = response_events(items, usage)
    return Answer(sse(*events, names=True))


def chat_chunk(delta: dict[str, Any] | None = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    choices = [{"index": 0, "delta": delta or {}, "finish_reason": finish}]
    return {"id": "c1", "object": "chat.completion.chunk", "model": "local-model", "choices": choices, **more}


def chat_answer(reply: dict[str, Any]) -> Answer:
    """A scripted reply as a Chat Completions stream."""
    if error := reply.get("error"):
        return _failing(reply, error, [chat_chunk({"content": reply.get("text")})])
    chunks = [chat_chunk({"role": "assistant", "content": ""})]
    chunks += [chat_chunk({"content": piece}) for piece in pieces(reply.get("text", ""))]
    for index, call in enumerate(reply.get("calls", [])):
        function = {"name": call["name"], "arguments": ""}
        head = {"index": index, "id": call.get("id", f"call_{index}"), "type": "function", "function": function}
        chunks.append(chat_chunk({"tool_calls": [head]}))
        for piece in pieces(argument_text(call)):
            chunks.append(chat_chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}))
    chunks.append(chat_chunk({}, reply.get("finish_reason") or ("tool_calls" if reply.get("calls") else "stop")))
    if usage := reply.get("usage"):
        figures = {
            "prompt_tokens": usage.get("input_tokens"),
            "completion_tokens": usage.get("output_tokens"),
            "prompt_tokens_details": {"cached_tokens": usage.get("cached_input_tokens")},
            "completion_tokens_details": {"reasoning_tokens": usage.get("reasoning_tokens")},
        }
        chunks.append({"id": "c1", "model": "local-model", "choices": [], "usage": figures})
    return Answer(sse(*chunks, done=True))


def anthropic_events(
    blocks: list[dict[str, Any]],
    usage: dict[str, Any] | None = None,
    stop: str = "end_turn",
    **delta: Any,
) -> list[dict[str, Any]]:
    """The event sequence of a Messages stream that gives ``blocks``; a call brings its argument text as ``json``."""
    start = {"id": "msg_1", "type": "message", "role": "assistant", "content": [], "model": "claude-sonnet-5-5"}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {**start, "usage": usage}}, {"type": "ping"}]
    for index, block in enumerate(blocks):
        begun, deltas = _parted(block)
        events.append({"type": "content_block_start", "index": index, "content_block": begun})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    end: dict[str, Any] = {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None, **delta}}
    if usage:
        end["usage"] = {"output_tokens": usage["output_tokens"]}
    return [*events, end, {"type": "message_stop"}]


def _parted(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A block as it begins, and the deltas that fill it."""
    match block["type"]:
        case "text":
            deltas = [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
            return {"type": "text", "text": ""}, deltas
        case "thinking":
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"])]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
            return {"type": "thinking", "thinking": "", "signature": ""}, deltas
        case "tool_use":
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ["", *pieces(block["json"])]]
            return {**{key: block[key] for key in block if key != "json"}, "input": {}}, deltas
    return block, []


def anthropic_answer(reply: dict[str, Any]) -> Answer:
    """A scripted reply as a Messages stream."""
    start = anthropic_events([{"type": "text", "text": reply.get("text", "")}])[:-3]
    if error := reply.get("error"):
        return _failing(reply, error, start)
    if usage := reply.get("usage"):
        cached = usage.get("cached_input_tokens", 0)
        usage = {
            "input_tokens": usage["input_tokens"] - cached if "input_tokens" in usage else None,
            "output_tokens": usage.get("output_tokens"),
            "cache_read_input_tokens": cached,
            "output_tokens_details": {"thinking_tokens": usage.get("reasoning_tokens")},
        }
    blocks: list[dict[str, Any]] = [{"type": "text", "text": reply["text"]}] if reply.get("text") else []
    for number, call in enumerate(reply.get("calls", [])):
        block = {"type": "tool_use", "id": call.get("id", f"toolu_{number}"), "name": call["name"]}
        blocks.append({**block, "json": argument_text(call)})
    stop = {"length": "max_tokens", None: "tool_use" if reply.get("calls") else "end_turn"}[reply.get("finish_reason")]
    return Answer(sse(*anthropic_events(blocks, usage, stop), names=True))


def _failing(reply: dict[str, Any], error: dict[str, Any], start: list[dict[str, Any]]) -> Answer:
    """An HTTP error, or, where there is a text, a stream that shows it and then fails."""
    told = {"message": error.get("message", "no"), "code": error.get("code"), "type": None}
    if reply.get("text"):
        return Answer(sse(*start, {"error": told}))
    headers = {"retry_after": str(error["retry_after"])} if "retry_after" in error else {}
    return json_answer({"error": told}, error["status"], **headers)
