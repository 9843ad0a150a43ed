"""``openai:``: what goes over the wire of the Responses API, there and back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from canned_server import Answer, CannedServer, json_answer, sse
from stand_ins import PICTURE, PROMPT, TOOLS, Naps
from wire import call_item, message_item, response_events

from harness_nb.models.remote import RemoteModel
from harness_nb.models.responses import responses_model
from harness_nb.ports import ModelSettings, ReasoningDelta, TextDelta
from harness_nb.types import Message, TextPart, ToolCall, text_content

Ask = Callable[..., Any]
CALL = {"name": "bash", "arguments": {"command": "ls"}}
REASONING = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "Think."}],
    "encrypted_content": "gAAAA==",
    "a_field_of_tomorrow": {"n": 1.0},
}


def good(text: str = "Fine.") -> Answer:
    return Answer(sse(*response_events([message_item(text)]), names=True))


async def test_the_request_says_what_it_must(responses: RemoteModel, server: CannedServer, ask: Ask) -> None:
    server.add(good())
    settings = ModelSettings(max_output_tokens=500, temperature=0.5, reasoning_effort="low", cache_key="session-7")
    await ask(responses, settings=settings)
    (request,) = server.requests
    assert request.path == "/v1/responses"
    assert request.headers["authorization"] == "Bearer sk-test-0123456789"
    assert request.body == {
        "model": "gpt-6-luna",
        "store": False,
        "stream": True,
        "instructions": "You are careful.",
        "input": [{"role": "user", "content": "Count to three."}],
        "tools": [
            {
                "type": "function",
                "name": "bash",
                "description": "Run a command.",
                "parameters": TOOLS[0].parameters,
                "strict": False,
            }
        ],
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "low", "summary": "auto"},
        "prompt_cache_key": "session-7",
        "max_output_tokens": 500,
        "temperature": 0.5,
    }


async def test_items_go_back_exactly_as_they_came(responses: RemoteModel, server: CannedServer, ask: Ask) -> None:
    items = [
        REASONING,
        message_item("I look.", phase="commentary", a_flag=None),
        {**call_item(CALL, 1), "caller": {"type": "direct"}, "namespace": "x"},
        {"type": "a_kind_of_tomorrow", "id": "new_1", "content": [{"deep": [1, 2.5, "ü"]}]},
    ]
    server.add(Answer(sse(*response_events(items), names=True)), good())
    _, first = await ask(responses)
    assert first.provider_items == tuple(items)
    stored = Message.model_validate_json(first.model_dump_json())
    result = Message(role="tool", call_id="call_1", content=text_content("a.py"))
    await ask(responses, (*PROMPT, stored, result))
    sent = server.bodies[1]["input"]
    assert sent[1:5] == items
    assert sent[5] == {"type": "function_call_output", "call_id": "call_1", "output": "a.py"}


async def test_the_prefix_of_requests_does_not_change(responses: RemoteModel, server: CannedServer, ask: Ask) -> None:
    server.add(good(), good())
    _, first = await ask(responses)
    await ask(responses, (*PROMPT, first, PROMPT[1]))
    one, two = (json.dumps(body["input"]) for body in server.bodies)
    assert two.startswith(one[:-1])
    assert [json.dumps(body["tools"]) for body in server.bodies].count(json.dumps(server.bodies[0]["tools"])) == 2


async def test_replies_of_another_provider_are_written_anew(
    responses: RemoteModel, server: CannedServer, ask: Ask
) -> None:
    server.add(good())
    calls = (
        ToolCall(call_id="c1", name="bash", arguments={"command": "ls"}),
        ToolCall(call_id="c2", name="bash", malformed='{"comm'),
    )
    foreign = Message(
        role="assistant",
        content=(TextPart(text="So."),),
        tool_calls=calls,
        provider="openai-chat",
        provider_items=({"reasoning": "r"},),
    )
    await ask(responses, (*PROMPT, foreign))
    said, first, second = server.bodies[0]["input"][1:]
    assert said == {"type": "message", "role": "assistant", "content": "So."}
    assert first == {"type": "function_call", "call_id": "c1", "name": "bash", "arguments": '{"command": "ls"}'}
    assert json.loads(second["arguments"]) == {"malformed_arguments": '{"comm'}


async def test_pictures_are_sent_in_results_and_prompts(responses: RemoteModel, server: CannedServer, ask: Ask) -> None:
    server.add(good())
    look = Message(role="user", content=(TextPart(text="See?"), PICTURE))
    result = Message(role="tool", call_id="c1", content=(TextPart(text="plot"), PICTURE, PICTURE))
    await ask(responses, (*PROMPT, look, result))
    user, tool = server.bodies[0]["input"][1:]
    image = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo=", "detail": "auto"}
    assert user["content"] == [{"type": "input_text", "text": "See?"}, image]
    assert tool["output"] == [{"type": "input_text", "text": "plot"}, image, image]


async def test_reasoning_summaries_are_shown_and_not_part_of_the_text(
    responses: RemoteModel, server: CannedServer, ask: Ask
) -> None:
    summary = [
        {"type": "response.reasoning_summary_part.added", "summary_index": 0},
        {"type": "response.reasoning_summary_text.delta", "summary_index": 0, "delta": "First "},
        {"type": "response.reasoning_summary_text.delta", "summary_index": 0, "delta": "this."},
        {"type": "response.reasoning_summary_part.added", "summary_index": 1},
        {"type": "response.reasoning_summary_text.delta", "summary_index": 1, "delta": "Then that."},
    ]
    server.add(Answer(sse(*summary, *response_events([REASONING, message_item("Done.")]))))
    deltas, message = await ask(responses)
    thought = "".join(delta.text for delta in deltas if isinstance(delta, ReasoningDelta))
    assert thought == "First this.\n\nThen that."
    assert message.text == "Done."


async def test_two_messages_of_one_reply_are_kept_apart(responses: RemoteModel, server: CannedServer, ask: Ask) -> None:
    items = [message_item("I begin.", 1, phase="commentary"), message_item("It is 3.", 2, phase="final_answer")]
    server.add(Answer(sse(*response_events(items), names=True)))
    deltas, message = await ask(responses)
    assert message.text == "I begin.\n\nIt is 3."
    assert "".join(delta.text for delta in deltas) == message.text
    assert [item["phase"] for item in message.provider_items] == ["commentary", "final_answer"]


async def test_usage_and_price_come_from_the_providers_figures(server: CannedServer, naps: Naps, ask: Ask) -> None:
    usage = {
        "input_tokens": 1_000_000,
        "output_tokens": 100_000,
        "input_tokens_details": {"cached_tokens": 800_000, "cache_write_tokens": 50_000},
        "output_tokens_details": {"reasoning_tokens": 64},
    }
    server.add(Answer(sse(*response_events([message_item("ok")], usage))))
    model = responses_model("gpt-6-luna", base_url=server.url, api_key="none", sleep=naps)
    _, message = await ask(model)
    await model.aclose()
    assert message.model == "gpt-6-luna-2026-10-01"
    assert message.usage.model_dump() == {
        "input_tokens": 1_000_000,
        "output_tokens": 100_000,
        "cached_input_tokens": 800_000,
        "cache_write_tokens": 50_000,
        "reasoning_tokens": 64,
        "searches": None,
        "cost_usd": None,  # whoever serves a model at loopback, its price is not known
    }


async def test_unknown_events_and_missing_fields_are_passed_over(
    responses: RemoteModel, server: CannedServer, ask: Ask
) -> None:
    call = {"type": "function_call", "name": "bash", "arguments": '{"command": "ls"}', "call_id": "c9"}
    events = [
        {"type": "response.something.new", "payload": [1]},
        {"type": "response.output_text.delta", "delta": "Look"},
        {"type": "response.output_text.delta", "delta": "ing", "obfuscation": "xx"},
        {"type": "response.output_item.done", "item": {"type": "message", "content": [None]}},
        {"type": "response.output_item.done", "item": call, "output_index": None},
        {"type": "response.completed", "response": {"status": "completed", "usage": None, "output": None}},
    ]
    events[3]["item"] = {"type": "message", "content": [{"type": "output_text", "text": "Looking"}]}
    server.add(Answer([b": a comment\n\n", b"retry: 10\n\n", *sse(*events)]))
    deltas, message = await ask(responses)
    assert "".join(delta.text for delta in deltas) == message.text == "Looking"
    assert message.tool_calls == (ToolCall(call_id="c9", name="bash", arguments={"command": "ls"}),)
    assert message.usage.input_tokens is None
    assert message.model == "gpt-6-luna"


async def test_a_server_that_ignores_stream_is_understood(
    responses: RemoteModel, server: CannedServer, ask: Ask
) -> None:
    whole = response_events([REASONING, message_item("All at once."), call_item(CALL, 1)])[-1]["response"]
    server.add(json_answer(whole))
    deltas, message = await ask(responses)
    assert deltas == [TextDelta("All at once.")]
    assert message.tool_calls[0].arguments == {"command": "ls"}
    assert len(message.provider_items) == 3


async def test_a_stream_is_read_however_it_is_cut_into_chunks(
    responses: RemoteModel, server: CannedServer, ask: Ask
) -> None:
    text = "Ümläute 🙂\u2028and a strange line end."
    stream = b"".join(sse(*response_events([message_item(text)]), names=True)).replace(b"\n", b"\r\n")
    stream = stream.replace(b"\\u2028", "\u2028".encode())
    server.add(Answer([stream[start : start + 7] for start in range(0, len(stream), 7)]))
    _, message = await ask(responses)
    assert message.text == text


async def test_lone_surrogates_do_not_get_in_or_out(responses: RemoteModel, server: CannedServer, ask: Ask) -> None:
    arguments = '{"command": "echo \\ud83d"}'
    items = [message_item("half \ud83d of it"), call_item({"name": "bash", "arguments": arguments}, 1)]
    server.add(Answer(sse(*response_events(items))), good())
    _, message = await ask(responses)
    assert message.text == "half \ufffd of it"
    assert message.tool_calls[0].arguments == {"command": "echo \ufffd"}
    await ask(responses, (*PROMPT, Message(role="user", content=(TextPart(text="bad \udc80 byte"),))))
    assert server.bodies[1]["input"][1]["content"] == "bad \ufffd byte"


async def test_an_open_connection_behind_the_end_is_not_waited_for(
    responses: RemoteModel, server: CannedServer, ask: Ask
) -> None:
    server.add(Answer(good().chunks, end="hang"))
    _, message = await asyncio.wait_for(ask(responses), 15)
    assert message.text == "Fine."


async def test_an_id_that_comes_again_is_changed_on_the_wire_too(
    responses: RemoteModel, server: CannedServer, ask: Ask
) -> None:
    items = [message_item("I look."), call_item({**CALL, "id": "call_same"}, 1)]
    server.add(*[Answer(sse(*response_events(items)))] * 2, good())
    _, first = await ask(responses)
    history = (*PROMPT, first, Message(role="tool", call_id="call_same", content=text_content("a.py")))
    _, second = await ask(responses, history)
    new_id = second.tool_calls[0].call_id
    result = Message(role="tool", call_id=new_id, content=text_content("a.py"))
    await ask(responses, (*history, second, result))
    sent = server.bodies[2]["input"]
    assert [item["call_id"] for item in sent if "call_id" in item] == ["call_same", "call_same", new_id, new_id]


async def test_a_server_that_tells_no_items_is_taken_by_its_pieces(
    responses: RemoteModel, server: CannedServer, ask: Ask
) -> None:
    """Some gateways send the pieces, and an empty list at the end."""
    events = [
        event
        for event in response_events([message_item("I look."), call_item(CALL, 1)])
        if event["type"] != "response.output_item.done"
    ]
    events[-1]["response"]["output"] = []
    server.add(Answer(sse(*events)), good())
    deltas, message = await ask(responses)
    assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) == message.text == "I look."
    assert [(call.name, call.arguments) for call in message.tool_calls] == [("bash", {"command": "ls"})]
    assert message.provider_items == ()
    await ask(responses, (*PROMPT, message))
    assert [item["type"] for item in server.bodies[1]["input"][1:]] == ["message", "function_call"]
