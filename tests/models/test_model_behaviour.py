"""What every model does, whatever is behind it. One suite over all adapters."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from itertools import groupby
from typing import Any

import pytest
from stand_ins import PICTURE, PROMPT, TOOLS, Naps

from harness_nb.errors import (
    AuthenticationError,
    ContextOverflowError,
    ModelError,
    QuotaError,
    RefusalError,
    TransientModelError,
)
from harness_nb.ports import CallDelta, Model, ModelSettings, TextDelta, Withdrawn
from harness_nb.types import Message, Status, TextPart, text_content

ADAPTERS = ["scripted", "replay", "responses", "chat", "anthropic"]
FAILING = ["scripted", "responses", "chat", "anthropic"]
Stage = Callable[[str, list[dict[str, Any]]], Model]
Ask = Callable[..., Any]


@pytest.mark.parametrize("kind", ADAPTERS)
async def test_text_streams_in_pieces_that_add_up(kind: str, stage: Stage, ask: Ask) -> None:
    deltas, message = await ask(stage(kind, [{"text": "One, two and three. Ünïcödé 🙂\nA second line."}]))
    assert len(deltas) > 3
    assert all(isinstance(delta, TextDelta) and delta.text for delta in deltas)
    assert "".join(delta.text for delta in deltas) == message.text == "One, two and three. Ünïcödé 🙂\nA second line."
    assert (message.role, message.tool_calls, message.finish_reason) == ("assistant", (), "stop")
    assert message.model


@pytest.mark.parametrize("kind", ADAPTERS)
async def test_a_call_comes_with_its_arguments(kind: str, stage: Stage, ask: Ask) -> None:
    arguments = {"command": 'echo "{ö}" \\n $5', "timeout": 2.5, "deep": [{"x": None}]}
    reply = {"text": "Looking.", "calls": [{"name": "bash", "arguments": arguments}]}
    _, message = await ask(stage(kind, [reply]))
    (call,) = message.tool_calls
    assert (call.name, call.arguments, call.malformed) == ("bash", arguments, None)
    assert call.call_id
    assert message.text == "Looking."
    assert message.finish_reason == "tool_calls"


@pytest.mark.parametrize("kind", ADAPTERS)
async def test_the_arguments_of_calls_stream_in_pieces_with_the_names(kind: str, stage: Stage, ask: Ask) -> None:
    written = {"path": "a.py", "content": "x = 1  # one\nprint(x)\n"}
    calls = [{"name": "write_file", "arguments": written}, {"name": "bash", "arguments": {"command": "python a.py"}}]
    deltas, message = await ask(stage(kind, [{"text": "Writing.", "calls": calls}]))
    pieces = [delta for delta in deltas if isinstance(delta, CallDelta)]
    assert len(pieces) > 4
    assert [name for name, _ in groupby(pieces, lambda piece: piece.name)] == ["write_file", "bash"]
    told = ["".join(piece.text for piece in pieces if piece.name == call.name) for call in message.tool_calls]
    assert [json.loads(text) for text in told] == [call.arguments for call in message.tool_calls]
    assert message.tool_calls[0].arguments == written


@pytest.mark.parametrize("kind", ADAPTERS)
async def test_a_call_may_come_alone_and_without_arguments(kind: str, stage: Stage, ask: Ask) -> None:
    deltas, message = await ask(stage(kind, [{"calls": [{"name": "look", "arguments": ""}]}]))
    assert not any(isinstance(delta, TextDelta) for delta in deltas)
    assert message.content == ()
    assert (message.tool_calls[0].name, message.tool_calls[0].arguments) == ("look", {})
    assert message.tool_calls[0].malformed is None


@pytest.mark.parametrize("kind", ADAPTERS)
async def test_parallel_calls_keep_their_order_and_have_ids_of_their_own(kind: str, stage: Stage, ask: Ask) -> None:
    calls = [{"name": "bash", "arguments": {"command": f"echo {k}"}} for k in range(12)]
    _, message = await ask(stage(kind, [{"calls": calls}]))
    assert [call.arguments["command"] for call in message.tool_calls] == [f"echo {k}" for k in range(12)]
    assert len({call.call_id for call in message.tool_calls}) == 12


@pytest.mark.parametrize("kind", ADAPTERS)
async def test_an_id_that_was_used_before_is_replaced(kind: str, stage: Stage, ask: Ask) -> None:
    reply = {"calls": [{"name": "bash", "arguments": {"command": "ls"}, "id": "call_same"}]}
    model = stage(kind, [reply, reply])
    _, first = await ask(model)
    history = (*PROMPT, first, Message(role="tool", call_id="call_same", content=text_content("a.py")))
    _, second = await ask(model, history)
    assert first.tool_calls[0].call_id == "call_same"
    assert second.tool_calls[0].call_id not in ("", "call_same")
    assert second.tool_calls[0].arguments == {"command": "ls"}


@pytest.mark.parametrize("kind", ADAPTERS)
async def test_usage_is_the_providers(kind: str, stage: Stage, ask: Ask) -> None:
    usage = {"input_tokens": 120, "output_tokens": 30, "cached_input_tokens": 100, "reasoning_tokens": 10}
    _, message = await ask(stage(kind, [{"text": "Yes.", "usage": usage}]))
    assert message.usage is not None
    assert message.usage.model_dump(include=set(usage)) == usage
    assert message.usage.total_tokens == 150


@pytest.mark.parametrize("kind", ADAPTERS)
async def test_missing_usage_is_unknown_and_not_zero(kind: str, stage: Stage, ask: Ask) -> None:
    _, message = await ask(stage(kind, [{"text": "Yes."}]))
    assert message.usage is not None
    assert (message.usage.input_tokens, message.usage.output_tokens) == (None, None)


@pytest.mark.parametrize("arguments", ['{"command": "ls"', '["ls"]', "ls -l", '{"command": NaN}', '{"a": 1} {"b": 2}'])
@pytest.mark.parametrize("kind", ADAPTERS)
async def test_malformed_arguments_are_kept_as_they_came(kind: str, arguments: str, stage: Stage, ask: Ask) -> None:
    _, message = await ask(stage(kind, [{"calls": [{"name": "bash", "arguments": arguments}]}]))
    assert (message.tool_calls[0].arguments, message.tool_calls[0].malformed) == ({}, arguments)


@pytest.mark.parametrize("kind", ADAPTERS)
async def test_a_cut_reply_says_so_and_its_last_call_is_not_whole(kind: str, stage: Stage, ask: Ask) -> None:
    calls = [
        {"name": "bash", "arguments": {"command": "ls"}},
        {"name": "write_file", "arguments": '{"path": "a.py", "content": "x ='},
    ]
    _, message = await ask(stage(kind, [{"text": "Writing", "calls": calls, "finish_reason": "length"}]))
    assert message.finish_reason == "length"
    assert [call.malformed for call in message.tool_calls] == [None, '{"path": "a.py", "content": "x =']


@pytest.mark.parametrize("kind", ADAPTERS)
async def test_a_call_cut_before_its_arguments_is_malformed(kind: str, stage: Stage, ask: Ask) -> None:
    reply = {"calls": [{"name": "bash", "arguments": ""}], "finish_reason": "length"}
    _, message = await ask(stage(kind, [reply]))
    assert message.tool_calls[0].malformed == ""


@pytest.mark.parametrize("kind", ADAPTERS)
async def test_a_conversation_with_results_and_pictures_goes_on(kind: str, stage: Stage, ask: Ask) -> None:
    model = stage(kind, [{"text": "Let me see.", "calls": [{"name": "bash", "arguments": {}}]}, {"text": "Done."}])
    _, first = await ask(model)
    result = Message(
        role="tool",
        call_id=first.tool_calls[0].call_id,
        content=(TextPart(text="plot"), PICTURE),
        status=Status.OK,
    )
    _, second = await ask(model, (*PROMPT, first, result))
    assert second.text == "Done."
    assert model.accepts_images


@pytest.mark.parametrize("kind", ADAPTERS)
async def test_a_reply_survives_the_journal(kind: str, stage: Stage, ask: Ask) -> None:
    reply = {"text": "Hm.", "calls": [{"name": "bash", "arguments": {"command": "ls"}}], "usage": {"input_tokens": 3}}
    _, message = await ask(stage(kind, [reply]))
    assert Message.model_validate_json(message.model_dump_json()) == message


@pytest.mark.parametrize("kind", ADAPTERS)
async def test_closing_early_leaves_a_model_that_works(kind: str, stage: Stage, ask: Ask) -> None:
    model = stage(kind, [{"text": "A long first reply that nobody hears."}, {"text": "The second."}])
    stream = model.stream(PROMPT, TOOLS, ModelSettings())
    assert isinstance(await anext(stream), TextDelta)
    await stream.aclose()
    _, message = await ask(model)
    assert message.text == "The second."


@pytest.mark.parametrize("kind", ADAPTERS)
async def test_cancelling_gets_through(kind: str, stage: Stage) -> None:
    model = stage(kind, [{"text": "A reply that is stopped."}])
    started = asyncio.Event()

    async def listen() -> None:
        async for _ in model.stream(PROMPT, TOOLS, ModelSettings()):
            started.set()
            await asyncio.sleep(30)

    task = asyncio.create_task(listen())
    await asyncio.wait_for(started.wait(), 20)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()


@pytest.mark.parametrize("kind", FAILING)
async def test_a_rate_limit_is_waited_for_and_said(kind: str, stage: Stage, ask: Ask, naps: Naps) -> None:
    error = {"status": 429, "code": "rate_limit_exceeded", "message": "Too fast.", "retry_after": 7}
    deltas, message = await ask(stage(kind, [{"error": error}, {"text": "Now."}]))
    assert message.text == "Now."
    assert isinstance(deltas[0], Withdrawn)
    assert "Too fast." in deltas[0].reason
    assert "429" in deltas[0].reason
    assert len(naps.seconds) == 1
    assert 7 <= naps.seconds[0] <= 8


@pytest.mark.parametrize("kind", FAILING)
async def test_an_outage_is_given_up_after_five_attempts(kind: str, stage: Stage, ask: Ask, naps: Naps) -> None:
    model = stage(kind, [{"error": {"status": 503, "message": "down"}}] * 5 + [{"text": "too late"}])
    with pytest.raises(TransientModelError, match=r"503.*down.*5 attempts") as caught:
        await ask(model)
    assert caught.value.status == 503
    assert len(naps.seconds) == 4
    assert naps.seconds == sorted(naps.seconds)
    assert 1 <= naps.seconds[0] <= 2
    assert naps.seconds[3] >= 8


@pytest.mark.parametrize("kind", FAILING)
async def test_a_long_wait_is_not_waited_for(kind: str, stage: Stage, ask: Ask, naps: Naps) -> None:
    error = {"status": 429, "code": "rate_limit_exceeded", "message": "Daily limit.", "retry_after": 3600}
    with pytest.raises(TransientModelError, match=r"Daily limit\..*3600 s") as caught:
        await ask(stage(kind, [{"error": error}, {"text": "never"}]))
    assert naps.seconds == []
    assert caught.value.retry_after == 3600


LASTING = [
    (401, "invalid_api_key", AuthenticationError),
    (403, None, AuthenticationError),
    (402, None, QuotaError),
    (429, "insufficient_quota", QuotaError),
    (400, "context_length_exceeded", ContextOverflowError),
    (413, None, ContextOverflowError),
    (400, "content_policy_violation", RefusalError),
    (400, "invalid_prompt", RefusalError),
    (400, "unsupported_value", ModelError),
    (404, "model_not_found", ModelError),
]


@pytest.mark.parametrize(("status", "code", "expected"), LASTING, ids=[f"{s}-{c}" for s, c, _ in LASTING])
@pytest.mark.parametrize("kind", FAILING)
async def test_what_no_repetition_mends_is_raised_at_once(
    kind: str, status: int, code: str | None, expected: type[ModelError], stage: Stage, ask: Ask, naps: Naps
) -> None:
    error = {"status": status, "code": code, "message": "It cannot be."}
    with pytest.raises(ModelError, match="It cannot be") as caught:
        await ask(stage(kind, [{"error": error}, {"text": "never"}]))
    assert type(caught.value) is expected
    assert caught.value.status == status
    assert naps.seconds == []


@pytest.mark.parametrize("kind", FAILING)
async def test_partial_text_of_a_lost_attempt_is_withdrawn(kind: str, stage: Stage, ask: Ask) -> None:
    lost = {"text": "Half an ans", "error": {"status": 503, "code": "server_error", "message": "gone"}}
    deltas, message = await ask(stage(kind, [lost, {"text": "A whole answer."}]))
    cut = next(k for k, delta in enumerate(deltas) if isinstance(delta, Withdrawn))
    assert "".join(delta.text for delta in deltas[:cut]) == "Half an ans"
    assert "".join(delta.text for delta in deltas[cut + 1 :]) == message.text == "A whole answer."


@pytest.mark.parametrize("kind", FAILING)
async def test_partial_text_is_withdrawn_when_nothing_follows(kind: str, stage: Stage) -> None:
    lost = {"text": "Half an ans", "error": {"status": 429, "code": "insufficient_quota", "message": "no credit"}}
    seen: list[Any] = []
    with pytest.raises(QuotaError, match="no credit"):
        async for item in stage(kind, [lost]).stream(PROMPT, TOOLS, ModelSettings()):
            seen.append(item)
    assert isinstance(seen[-1], Withdrawn)
    assert not any(isinstance(item, Message) for item in seen)
