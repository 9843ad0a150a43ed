"""``anthropic:``: what goes over the wire of the Messages API, and what comes back of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import pytest
from anthropic.types import RawMessageStreamEvent
from anthropic.types.message_create_params import MessageCreateParamsStreaming
from canned_server import Answer, CannedServer, json_answer, sse
from pydantic import TypeAdapter
from stand_ins import PICTURE, PROMPT, TOOLS
from wire import anthropic_events

from harness_nb.models.anthropic_model import anthropic_model
from harness_nb.models.pricing import Tariff
from harness_nb.models.remote import RemoteModel
from harness_nb.ports import ModelSettings, ReasoningDelta, TextDelta
from harness_nb.types import ImagePart, Message, TextPart, ToolCall, Usage, text_content, text_message

Ask = Callable[..., Any]
REQUEST = TypeAdapter(MessageCreateParamsStreaming)
MARK = {"type": "ephemeral"}
THINKING = {"type": "thinking", "thinking": "Let me see.", "signature": "EqQBCg=="}
REDACTED = {"type": "redacted_thinking", "data": "EmwKAhgB"}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "bash", "json": '{"command": "ls"}'}
USAGE = {"input_tokens": 9, "output_tokens": 4}


def answer(*blocks: dict[str, Any], stop: str = "end_turn", usage: dict[str, Any] | None = None, **more: Any) -> Answer:
    return Answer(sse(*anthropic_events(list(blocks), usage, stop, **more), names=True))


def text(words: str = "Fine.") -> dict[str, Any]:
    return {"type": "text", "text": words}


def plain(value: Any) -> Any:
    """``value`` without cache marks, which are no part of the prefix that is cached."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items() if key != "cache_control"}
    return [plain(item) for item in value] if isinstance(value, list) else value


async def test_the_request_says_what_it_must(anthropic: RemoteModel, server: CannedServer, ask: Ask) -> None:
    server.add(answer(text()))
    await ask(anthropic, settings=ModelSettings(max_output_tokens=500, temperature=0.0, cache_key="session-7"))
    (request,) = server.requests
    assert request.path == "/v1/messages"
    assert request.headers["anthropic-version"]
    assert request.headers["x-api-key"] == "sk-ant-0123"
    assert request.body == {
        "model": "claude-sonnet-5-5",
        "max_tokens": 500,
        "stream": True,
        "tools": [{"name": "bash", "description": "Run a command.", "input_schema": TOOLS[0].parameters}],
        "system": [{"type": "text", "text": "You are careful.", "cache_control": MARK}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Count to three.", "cache_control": MARK}]}],
        "temperature": 0.0,
    }


def conversation() -> tuple[Message, ...]:
    """Two parallel calls of another provider, their results with a picture, and a word of the harness."""
    calls = (ToolCall(call_id="functions.bash:0", name="bash"), ToolCall(call_id="c2", name="bash", malformed="{oops"))
    reply = Message(role="assistant", content=(TextPart(text="I look."),), tool_calls=calls, provider="openai-chat")
    nudge = text_message("user", "Two turns are left.")
    first = Message(role="tool", call_id="functions.bash:0", content=(TextPart(text="plot"), PICTURE))
    odd = ImagePart(media_type="image/tiff", data="SUkq")
    second = Message(role="tool", call_id="c2", content=(TextPart(text=""), odd))
    empty = Message(role="assistant")
    return (*PROMPT, reply, first, nudge, second, empty, text_message("system", "Mind the time."))


async def test_results_come_first_with_their_pictures(anthropic: RemoteModel, server: CannedServer, ask: Ask) -> None:
    server.add(answer(text()))
    await ask(anthropic, conversation())
    sent = plain(server.bodies[0]["messages"])
    assert [message["role"] for message in sent] == ["user", "assistant", "user"]
    assert sent[1]["content"] == [
        text("I look."),
        {"type": "tool_use", "id": "functions_bash_0", "name": "bash", "input": {}},
        {"type": "tool_use", "id": "c2", "name": "bash", "input": {"malformed_arguments": "{oops"}},
    ]
    first, second, nudge, late = sent[2]["content"]
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    assert first == {
        "type": "tool_result",
        "tool_use_id": "functions_bash_0",
        "content": [text("plot"), {"type": "image", "source": source}],
    }
    assert second["content"][0] == text("(empty)")
    assert "picture was left out" in second["content"][1]["text"]
    assert [nudge["text"], late["text"]] == ["Two turns are left.", "Mind the time."]


def drawn(value: Any) -> Any:
    """``value`` with its lazy lists read, which is when their items are validated."""
    if isinstance(value, dict):
        return {key: drawn(item) for key, item in value.items()}
    return value if isinstance(value, str) or not isinstance(value, Iterable) else [drawn(item) for item in value]


async def test_requests_and_events_have_the_shapes_of_the_library(
    anthropic: RemoteModel, server: CannedServer, ask: Ask
) -> None:
    server.add(answer(THINKING, REDACTED, text(), CALL, usage=USAGE, stop="tool_use"), answer(text()))
    settings = ModelSettings(max_output_tokens=500, reasoning_effort="high")
    _, reply = await ask(anthropic, settings=settings)
    await ask(anthropic, (*conversation(), reply), settings=settings)
    for body in server.bodies:
        assert drawn(REQUEST.validate_python(body)) == body
    events = anthropic_events([THINKING, REDACTED, text(), CALL], USAGE)
    kinds = [TypeAdapter(RawMessageStreamEvent).validate_python(e).type for e in events if e["type"] != "ping"]
    assert len(set(kinds)) == 6


async def test_blocks_go_back_exactly_as_they_came(anthropic: RemoteModel, server: CannedServer, ask: Ask) -> None:
    server.add(answer(THINKING, REDACTED, text("I look."), CALL, stop="tool_use"), answer(text()))
    deltas, message = await ask(anthropic)
    assert "".join(delta.text for delta in deltas if isinstance(delta, ReasoningDelta)) == "Let me see."
    assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) == message.text == "I look."
    assert message.finish_reason == "tool_calls"
    whole = {"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {"command": "ls"}}
    assert message.provider_items == (THINKING, REDACTED, text("I look."), whole)
    stored = Message.model_validate_json(message.model_dump_json())
    result = Message(role="tool", call_id="toolu_1", content=text_content("a.py"))
    await ask(anthropic, (*PROMPT, stored, result))
    assert server.bodies[1]["messages"][1] == {"role": "assistant", "content": list(message.provider_items)}


async def test_another_provider_gets_the_words_and_not_the_blocks(
    chat: RemoteModel, anthropic: RemoteModel, server: CannedServer, ask: Ask
) -> None:
    server.add(answer(THINKING, text("I look.")))
    _, message = await ask(anthropic)
    await _fails(ask(chat, (*PROMPT, message, PROMPT[1])))
    assert server.bodies[1]["messages"][2] == {"role": "assistant", "content": "I look."}


async def _fails(request: Any) -> None:
    from harness_nb.errors import ModelError

    with pytest.raises(ModelError, match="no answer is prepared"):
        await request


async def test_the_prefix_stays_and_the_marks_move(anthropic: RemoteModel, server: CannedServer, ask: Ask) -> None:
    """C3: what was sent before is sent again, byte for byte; at most four marks, one where the last request ended."""
    history, turns = PROMPT, 4
    for turn in range(turns):
        server.add(answer(THINKING, {**CALL, "id": f"toolu_{turn}"}, stop="tool_use"))
        _, reply = await ask(anthropic, history)
        history = (*history, reply, Message(role="tool", call_id=f"toolu_{turn}", content=text_content("a.py")))
    bodies = server.bodies
    for earlier, later in pairwise(bodies):
        before, after = (json.dumps(plain(body["messages"]))[:-1] for body in (earlier, later))
        assert after.startswith(before)
        assert json.dumps(earlier["tools"] + earlier["system"]) == json.dumps(later["tools"] + later["system"])
        assert later["messages"][-3]["content"][-1]["cache_control"] == MARK
        assert later["messages"][-1]["content"][-1]["cache_control"] == MARK
        assert json.dumps(later).count("cache_control") == 3


async def test_the_same_prompt_gives_the_same_bytes(anthropic: RemoteModel, server: CannedServer, ask: Ask) -> None:
    server.add(answer(text()), answer(text()))
    await ask(anthropic, conversation())
    await ask(anthropic, conversation())
    assert json.dumps(server.bodies[0]) == json.dumps(server.bodies[1])


async def test_usage_counts_cached_tokens_as_input_and_is_priced(naps: Any, server: CannedServer, ask: Ask) -> None:
    usage = {
        "input_tokens": 1000,
        "cache_read_input_tokens": 80_000,
        "cache_creation_input_tokens": 19_000,
        "output_tokens": 500,
        "output_tokens_details": {"thinking_tokens": 300},
    }
    server.add(answer(text(), usage=usage))
    model = anthropic_model("claude-sonnet-5-5", base_url=server.url, api_key="none", sleep=naps)
    model.tariff = Tariff(model.name, "claude-sonnet-5-5", "anthropic")  # as at its own address
    _, message = await ask(model)
    await model.aclose()
    assert message.usage.cost_usd == pytest.approx((1000 * 2 + 80_000 * 0.1 + 19_000 * 2.5 + 500 * 10) / 1e6)
    assert message.usage == Usage(
        input_tokens=100_000,
        output_tokens=500,
        cached_input_tokens=80_000,
        cache_write_tokens=19_000,
        reasoning_tokens=300,
        cost_usd=message.usage.cost_usd,
    )


async def test_later_figures_replace_earlier_ones(anthropic: RemoteModel, server: CannedServer, ask: Ask) -> None:
    events = anthropic_events([text()], {"input_tokens": 9, "output_tokens": 1, "cache_read_input_tokens": 5})
    events[-2]["usage"] = {"input_tokens": 12, "output_tokens": 40, "cache_read_input_tokens": None}
    server.add(Answer(sse(*events)))
    _, message = await ask(anthropic)
    assert (message.usage.input_tokens, message.usage.output_tokens) == (17, 40)
    assert message.usage.cached_input_tokens == 5


async def test_texts_around_something_else_stand_apart(anthropic: RemoteModel, server: CannedServer, ask: Ask) -> None:
    """Citations part a text into neighbours, which are one text."""
    server.add(answer(text("It is"), text(" so."), THINKING, text("Done."), THINKING))
    deltas, message = await ask(anthropic)
    assert message.text == "It is so.\n\nDone."
    assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) == message.text
    thought = "".join(delta.text for delta in deltas if isinstance(delta, ReasoningDelta))
    assert thought == "Let me see.\n\nLet me see."


async def test_a_reply_cut_while_thinking_leaves_no_half_block(
    anthropic: RemoteModel, server: CannedServer, ask: Ask
) -> None:
    server.add(answer({**THINKING, "signature": ""}, stop="max_tokens"), answer(text()))
    _, message = await ask(anthropic)
    assert (message.finish_reason, message.content, message.provider_items) == ("length", (), ())
    await ask(anthropic, (*PROMPT, message, text_message("user", "Go on.")))
    assert [block["text"] for block in server.bodies[1]["messages"][0]["content"]] == ["Count to three.", "Go on."]


async def test_a_call_that_was_cut_goes_back_behind_its_thinking(
    anthropic: RemoteModel, server: CannedServer, ask: Ask
) -> None:
    """M2; with thinking on, a call without the thinking before it would be rejected."""
    server.add(answer(THINKING, {**CALL, "json": '{"command": "l'}, stop="max_tokens"))
    _, message = await ask(anthropic)
    assert message.finish_reason == "length"
    assert message.tool_calls[0].malformed == '{"command": "l'
    whole = {"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {"malformed_arguments": '{"command": "l'}}
    assert message.provider_items == (THINKING, whole)


async def test_a_whole_answer_is_understood(anthropic: RemoteModel, server: CannedServer, ask: Ask) -> None:
    """A server that ignores ``stream``."""
    call = {"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {"command": "ls"}}
    value = {"type": "message", "model": "served", "content": [THINKING, text(), call], "stop_reason": "tool_use"}
    server.add(json_answer({**value, "usage": USAGE}))
    deltas, message = await ask(anthropic)
    assert deltas == [ReasoningDelta("Let me see."), TextDelta("Fine.")]
    assert message.tool_calls == (ToolCall(call_id="toolu_1", name="bash", arguments={"command": "ls"}),)
    assert (message.model, message.usage.input_tokens) == ("served", 9)
    assert message.provider_items == (THINKING, text(), call)


async def test_events_without_index_and_of_unknown_kinds_do_no_harm(
    anthropic: RemoteModel, server: CannedServer, ask: Ask
) -> None:
    events = anthropic_events([text(), CALL], stop="tool_use")
    odd = [{key: value for key, value in event.items() if key != "index"} for event in events]
    odd.insert(3, {"type": "content_block_delta", "delta": {"type": "some_new_delta", "text": "?"}})
    odd.insert(3, {"type": "some_new_event", "index": 7})
    server.add(Answer(sse(*odd)))
    _, message = await ask(anthropic)
    assert message.text == "Fine."
    assert [call.arguments for call in message.tool_calls] == [{"command": "ls"}]


@pytest.mark.parametrize(
    ("effort", "sent"),
    [
        ("none", {"thinking": {"type": "disabled"}}),
        ("minimal", {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "low"}}),
        ("high", {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "high"}}),
    ],
)
async def test_an_effort_is_asked_for(
    effort: str, sent: dict[str, Any], anthropic: RemoteModel, server: CannedServer, ask: Ask
) -> None:
    server.add(answer(text()))
    await ask(anthropic, settings=ModelSettings(reasoning_effort=effort))
    assert {key: server.bodies[0].get(key) for key in sent} == sent
    assert ("output_config" in server.bodies[0]) == ("output_config" in sent)
