"""``anthropic:`` when something is wrong: streams that break, failures that are told, pauses, and what is rejected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from canned_server import Answer, CannedServer, json_answer, sse
from stand_ins import PICTURE, PROMPT, TOOLS, Naps
from test_anthropic import answer, text
from wire import anthropic_events

from harness_nb.errors import (
    AuthenticationError,
    ContextOverflowError,
    ModelError,
    QuotaError,
    RefusalError,
    TransientModelError,
)
from harness_nb.models.remote import MAX_PAUSES, RemoteModel
from harness_nb.ports import ModelSettings, TextDelta, Withdrawn
from harness_nb.types import Message, TextPart

Ask = Callable[..., Any]


def told(kind: str, message: str = "No.", code: str | None = None) -> dict[str, Any]:
    error = {"type": kind, "message": message, "details": {"error_code": code} if code else None}
    return {"type": "error", "error": error, "request_id": "req_1"}


def good(words: str = "Fine.") -> Answer:
    return answer(text(words))


BROKEN = {
    "no message_stop": Answer(good().chunks[:-1]),
    "cut": Answer(good().chunks[:4]),
    "cut at once": Answer([]),
    "dropped": Answer(good().chunks[:4], end="drop"),
    "broken JSON": Answer([*good().chunks[:4], b'event: ping\ndata: {"type": "con\n\n', *good().chunks[4:]]),
    "overloaded in the stream": Answer([*good().chunks[:4], *sse(told("overloaded_error"), names=True)]),
    "api_error in the stream": Answer(sse(told("api_error"), names=True)),
    "overloaded": json_answer(told("overloaded_error"), 529),
    "rate limit": json_answer(told("rate_limit_error"), 429, retry_after="3"),
    "ramp limit": json_answer(told("rate_limit_error", code="ramp_limit_exceeded"), 429),
    "timeout": json_answer(told("timeout_error"), 504),
    "internal": json_answer(told("api_error"), 500),
    "conflict": json_answer(told("conflict_error"), 409),
}


@pytest.mark.parametrize("name", BROKEN)
async def test_what_may_pass_is_tried_again_and_never_half_an_answer(
    name: str, anthropic: RemoteModel, server: CannedServer, ask: Ask, naps: Naps
) -> None:
    server.add(BROKEN[name], good("Whole."))
    deltas, message = await ask(anthropic)
    assert message.text == "Whole."
    last = max(k for k, delta in enumerate(deltas) if isinstance(delta, Withdrawn))
    assert "".join(delta.text for delta in deltas[last + 1 :]) == "Whole."
    assert len(naps.seconds) == 1
    assert server.bodies[0] == server.bodies[1]


async def test_the_librarys_own_retries_are_off(anthropic: RemoteModel, server: CannedServer, ask: Ask) -> None:
    server.add(*[json_answer(told("overloaded_error", "Overloaded"), 529)] * 9)
    with pytest.raises(TransientModelError, match=r"529.*Overloaded.*5 attempts"):
        await ask(anthropic)
    assert len(server.requests) == 5


@pytest.mark.parametrize(
    ("status", "body", "expected", "said"),
    [
        (401, told("authentication_error", "invalid x-api-key"), AuthenticationError, "ANTHROPIC_API_KEY"),
        (403, told("permission_error"), AuthenticationError, "ANTHROPIC_API_KEY"),
        (402, told("billing_error"), QuotaError, "credit"),
        (403, told("billing_error"), QuotaError, "credit"),
        (400, told("invalid_request_error", "Your credit balance is too low to access the API."), QuotaError, "credit"),
        (429, told("rate_limit_error", "No.", "contract_spend_limit_reached"), QuotaError, "credit"),
        (400, told("invalid_request_error", "prompt is too long: 208310 tokens > 200000 maximum"),
         ContextOverflowError, "too long"),
        (400, told("invalid_request_error", "input length and `max_tokens` exceed context limit: 188240 + 21333 > 2"),
         ContextOverflowError, "exceed"),
        (413, told("request_too_large"), ContextOverflowError, "No"),
        (404, told("not_found_error", "model: claude-9"), ModelError, "model's name"),
        (400, told("invalid_request_error", "messages: at least one message is required"), ModelError, "at least one"),
        (429, told("rate_limit_error", "Slow down."), TransientModelError, "3600 s"),
    ],
)  # fmt: skip
async def test_failures_that_last_are_typed_and_told_once(
    status: int,
    body: dict[str, Any],
    expected: type[ModelError],
    said: str,
    anthropic: RemoteModel,
    server: CannedServer,
    ask: Ask,
) -> None:
    server.add(json_answer(body, status, retry_after="3600"), good())
    with pytest.raises(ModelError, match=said) as caught:
        await ask(anthropic)
    assert type(caught.value) is expected
    assert caught.value.status == status
    assert len(server.requests) == 1


async def test_a_lasting_error_in_the_stream_is_not_tried_again(
    anthropic: RemoteModel, server: CannedServer, ask: Ask
) -> None:
    server.add(Answer([*good().chunks[:4], *sse(told("invalid_request_error", "bad block"), names=True)]), good())
    with pytest.raises(ModelError, match="bad block") as caught:
        await ask(anthropic)
    assert (type(caught.value), len(server.requests)) == (ModelError, 1)


async def test_a_refusal_says_why_and_leaves_nothing(anthropic: RemoteModel, server: CannedServer) -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "It could do harm."}
    server.add(answer(text("Sure, fi"), stop="refusal", stop_details=details))
    seen: list[Any] = []
    with pytest.raises(RefusalError, match=r"\(cyber\): It could do harm\.") as caught:
        async for item in anthropic.stream(PROMPT, TOOLS, ModelSettings()):
            seen.append(item)
    assert caught.value.code == "cyber"
    assert isinstance(seen[-1], Withdrawn)
    assert not any(isinstance(item, Message) for item in seen)


async def test_a_full_context_window_is_an_overflow(anthropic: RemoteModel, server: CannedServer, ask: Ask) -> None:
    server.add(answer(text("So far"), stop="model_context_window_exceeded"), good())
    with pytest.raises(ContextOverflowError, match="context window"):
        await ask(anthropic)
    assert len(server.requests) == 1


SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}


async def test_a_paused_turn_is_gone_on_with(
    anthropic: RemoteModel, server: CannedServer, ask: Ask, naps: Naps
) -> None:
    usage = {"input_tokens": 10, "output_tokens": 3}
    server.add(answer(text("I search. "), SEARCH, stop="pause_turn", usage=usage), answer(text("Found."), usage=usage))
    deltas, message = await ask(anthropic)
    assert message.text == "".join(delta.text for delta in deltas) == "I search. Found."
    assert message.provider_items == (text("I search. "), SEARCH, text("Found."))
    assert (message.finish_reason, message.usage.input_tokens, message.usage.output_tokens) == ("stop", 20, 6)
    assert server.bodies[1]["messages"][-1] == {"role": "assistant", "content": [text("I search. "), SEARCH]}
    assert naps.seconds == []


async def test_a_part_that_has_arrived_is_not_paid_for_again(
    anthropic: RemoteModel, server: CannedServer, ask: Ask
) -> None:
    lost = Answer(good("Fou").chunks[:4], end="drop")
    server.add(answer(text("I search. "), SEARCH, stop="pause_turn"), lost, good("Found."))
    deltas, message = await ask(anthropic)
    (cut,) = [k for k, delta in enumerate(deltas) if isinstance(delta, Withdrawn)]
    assert "".join(delta.text for delta in deltas[cut + 1 :]) == message.text == "I search. Found."
    assert server.bodies[1] == server.bodies[2] != server.bodies[0]


async def test_nothing_is_shown_again_when_the_rest_is_given_up(anthropic: RemoteModel, server: CannedServer) -> None:
    server.add(answer(text("I search. "), SEARCH, stop="pause_turn"), json_answer(told("billing_error"), 402))
    seen: list[Any] = []
    with pytest.raises(QuotaError):
        async for item in anthropic.stream(PROMPT, TOOLS, ModelSettings()):
            seen.append(item)
    assert [item.text for item in seen if isinstance(item, TextDelta)] == ["I sea", "rch. "]
    assert isinstance(seen[-1], Withdrawn)


async def test_pauses_have_an_end(anthropic: RemoteModel, server: CannedServer, ask: Ask) -> None:
    server.add(*[answer(text("."), stop="pause_turn")] * 20)
    _, message = await ask(anthropic)
    assert message.finish_reason == "length"
    assert len(server.requests) == MAX_PAUSES + 1


# ---- what a server rejects ------------------------------------------------------------------------------------------


def rejected(message: str) -> Answer:
    return json_answer(told("invalid_request_error", message), 400)


async def test_an_effort_becomes_a_budget_where_efforts_are_unknown(
    anthropic: RemoteModel, server: CannedServer, ask: Ask
) -> None:
    settings = ModelSettings(reasoning_effort="high")
    server.add(rejected("adaptive thinking is not supported on this model"), good(), good())
    await ask(anthropic, settings=settings)
    await ask(anthropic, settings=settings)
    budget = {"type": "enabled", "budget_tokens": 16_000}
    assert [body["thinking"] for body in server.bodies[1:]] == [budget, budget]
    assert "output_config" not in server.bodies[1]


async def test_our_own_output_limit_follows_the_models(anthropic: RemoteModel, server: CannedServer, ask: Ask) -> None:
    complaint = "max_tokens: 32000 > 8192, which is the maximum allowed number of output tokens for claude-3-5-sonnet"
    server.add(rejected(complaint), good(), rejected("max_tokens: 9000 > 8192, which is the maximum"))
    await ask(anthropic)
    assert [body["max_tokens"] for body in server.bodies] == [32_000, 8192]
    with pytest.raises(ModelError, match="9000 > 8192"):
        await ask(anthropic, settings=ModelSettings(max_output_tokens=9000))
    assert len(server.requests) == 3


async def test_cache_marks_are_left_out_where_they_are_unknown(
    anthropic: RemoteModel, server: CannedServer, ask: Ask
) -> None:
    server.add(rejected("system.0.cache_control: Extra inputs are not permitted"), good())
    await ask(anthropic)
    assert ["cache_control" in str(body) for body in server.bodies] == [True, False]


async def test_pictures_are_left_out_with_a_note_where_they_are_rejected(
    anthropic: RemoteModel, server: CannedServer, ask: Ask
) -> None:
    server.add(rejected("This model does not support image input."), good())
    result = Message(role="tool", call_id="c1", content=(TextPart(text="plot"), PICTURE))
    await ask(anthropic, (*PROMPT, result))
    assert "picture was left out" in str(server.bodies[1]["messages"])
    assert anthropic.accepts_images is False


async def test_lone_surrogates_do_not_get_in_or_out(anthropic: RemoteModel, server: CannedServer, ask: Ask) -> None:
    server.add(Answer([chunk.replace(b"Fine", b"Fi\\ud83dne") for chunk in sse(*anthropic_events([text("Fine")]))]))
    bad = Message(role="user", content=(TextPart(text="a\ud83db"),))
    _, message = await ask(anthropic, (bad,))
    assert message.text == "Fi\ufffdne"
    assert server.bodies[0]["messages"][0]["content"][0]["text"] == "a\ufffdb"
