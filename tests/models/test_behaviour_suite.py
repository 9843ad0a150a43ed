"""What an agent needs of a model, the same for all three APIs, against a mock server that others wrote.

``test_model_behaviour`` asks more of each adapter, with answers that are written down byte for byte; here the server
has a mind of its own: it checks the requests, makes up ids and figures, and cuts its streams where it likes.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from itertools import groupby
from typing import Any

import pytest
from llmock.scenarios import Reply, ToolCall
from stand_ins import PICTURE, PROMPT, TOOLS, Naps

from harness_nb.errors import (
    AuthenticationError,
    ContextOverflowError,
    ModelError,
    QuotaError,
    TransientModelError,
)
from harness_nb.models.remote import RemoteModel
from harness_nb.ports import CallDelta, ModelSettings, TextDelta, Withdrawn
from harness_nb.types import Message, Status, TextPart, text_message

Ask = Callable[..., Any]


def say(llmock: Any, text: str | None = None, *calls: tuple[str, dict[str, Any]], **more: Any) -> None:
    made = tuple(ToolCall(name, arguments) for name, arguments in calls)
    llmock.add(Reply(text=text, tool_calls=made, **more))


def results_of(reply: Message) -> list[Message]:
    return [
        Message(role="tool", call_id=call.call_id, content=(TextPart(text=f"result {k}"),), status=Status.OK)
        for k, call in enumerate(reply.tool_calls)
    ]


async def test_a_reply_streams_and_what_is_shown_is_what_is_kept(mocked: RemoteModel, llmock: Any, ask: Ask) -> None:
    say(llmock, "Ünïcödé 🙂 first.\nThen\ttwo more words.", ("bash", {"command": "echo 'ä' && ls \\ \"$HOME\""}))
    deltas, message = await ask(mocked)
    shown = [delta for delta in deltas if isinstance(delta, TextDelta)]
    assert len(shown) > 3
    assert "".join(delta.text for delta in shown) == message.text == "Ünïcödé 🙂 first.\nThen\ttwo more words."
    told = "".join(delta.text for delta in deltas if isinstance(delta, CallDelta))
    assert json.loads(told) == message.tool_calls[0].arguments == {"command": "echo 'ä' && ls \\ \"$HOME\""}
    assert message.finish_reason == "tool_calls"
    assert message.model == "gpt-4o"


async def test_parallel_calls_keep_their_order_and_their_results(mocked: RemoteModel, llmock: Any, ask: Ask) -> None:
    say(llmock, None, *[("bash" if k % 3 else "look", {"n": k, "text": "x" * k}) for k in range(9)])
    say(llmock, "All seen.")
    deltas, first = await ask(mocked)
    assert [call.arguments["n"] for call in first.tool_calls] == list(range(9))
    assert len({call.call_id for call in first.tool_calls}) == 9
    names = [name for name, _ in groupby(delta.name for delta in deltas if isinstance(delta, CallDelta))]
    assert names == ["look", "bash"] * 3
    _, second = await ask(mocked, (*PROMPT, first, *results_of(first)))
    assert second.text == "All seen."
    sent = json.dumps(llmock.last_request.body)
    places = [sent.index(f'"result {k}"') for k in range(9)]
    assert places == sorted(places)


async def test_a_reply_that_was_cut_off_says_so(mocked: RemoteModel, llmock: Any, ask: Ask) -> None:
    say(llmock, "Half of what I", finish_reason="length")
    _, message = await ask(mocked)
    assert (message.text, message.finish_reason, message.tool_calls) == ("Half of what I", "length", ())
    say(llmock, "Whole.")
    _, whole = await ask(mocked, (*PROMPT, message, text_message("user", "Go on.")))
    assert (whole.text, whole.finish_reason) == ("Whole.", "stop")


async def test_a_call_that_was_cut_off_is_malformed_and_can_be_answered(
    mocked: RemoteModel, llmock: Any, ask: Ask
) -> None:
    say(llmock, None, ("bash", {"command": "rm -r build"}), finish_reason="length")
    llmock.break_tool_call("malformed_arguments")
    _, message = await ask(mocked)
    (call,) = message.tool_calls
    assert (call.arguments, message.finish_reason) == ({}, "length")
    assert call.malformed and call.malformed.startswith('{"command')
    say(llmock, "Again, then.")
    _, whole = await ask(mocked, (*PROMPT, message, *results_of(message)))
    assert whole.text == "Again, then."


async def test_a_call_of_an_unknown_tool_is_passed_on(mocked: RemoteModel, llmock: Any, ask: Ask) -> None:
    say(llmock, None, ("bash", {"command": "ls"}))
    llmock.break_tool_call("unknown_tool")
    _, message = await ask(mocked)
    assert [(call.name, call.arguments) for call in message.tool_calls] == [("llmock_unknown_tool", {"command": "ls"})]


async def test_an_empty_reply_is_a_reply_and_the_conversation_goes_on(
    mocked: RemoteModel, llmock: Any, ask: Ask
) -> None:
    say(llmock, "")
    _, empty = await ask(mocked)
    assert (empty.text, empty.tool_calls, empty.finish_reason) == ("", (), "stop")
    say(llmock, "Now.")
    _, message = await ask(mocked, (*PROMPT, empty, text_message("user", "Say something.")))
    assert message.text == "Now."


async def test_pictures_in_results_and_prompts_are_accepted(mocked: RemoteModel, llmock: Any, ask: Ask) -> None:
    say(llmock, "Plotting.", ("bash", {"command": "plot"}), ("bash", {"command": "plot again"}))
    say(llmock, "A rising line.")
    _, first = await ask(mocked)
    plots = [result.model_copy(update={"content": (*result.content, PICTURE)}) for result in results_of(first)]
    look = Message(role="user", content=(TextPart(text="And this?"), PICTURE))
    _, second = await ask(mocked, (*PROMPT, first, *plots, look))
    assert second.text == "A rising line."
    assert json.dumps(llmock.last_request.body).count(PICTURE.data) == 3
    assert mocked.accepts_images


async def test_a_reply_of_another_model_is_taken_up(mocked: RemoteModel, llmock: Any, ask: Ask) -> None:
    say(llmock, "I see.")
    items = ({"type": "reasoning", "encrypted_content": "of another provider"},)
    other = Message(role="assistant", content=(TextPart(text="So."),), provider="elsewhere", provider_items=items)
    _, message = await ask(mocked, (*PROMPT, other, text_message("user", "Go on.")))
    assert message.text == "I see."
    sent = json.dumps(llmock.last_request.body)
    assert "So." in sent
    assert "of another provider" not in sent


async def test_a_reply_survives_the_record_and_goes_back(mocked: RemoteModel, llmock: Any, ask: Ask) -> None:
    say(llmock, "Hm.", ("bash", {"command": "ls"}))
    say(llmock, "Done.")
    _, first = await ask(mocked)
    stored = Message.model_validate_json(first.model_dump_json())
    assert stored == first
    assert first.usage is not None
    assert (first.usage.input_tokens or 0) > 0 and (first.usage.output_tokens or 0) > 0
    _, second = await ask(mocked, (*PROMPT, stored, *results_of(stored)))
    assert second.text == "Done."


async def test_a_first_byte_that_takes_its_time_is_waited_for(mocked: RemoteModel, llmock: Any, ask: Ask) -> None:
    llmock.delay(0.3).slow_first_token(0.3)
    say(llmock, "Awake.")
    deltas, message = await ask(mocked)
    assert message.text == "Awake."
    assert not any(isinstance(delta, Withdrawn) for delta in deltas)
    assert len(llmock.requests) == 1


async def test_silence_is_given_up_and_asked_again(mocked: RemoteModel, llmock: Any, ask: Ask, naps: Naps) -> None:
    llmock.slow_first_token(30)
    say(llmock, "Awake.", times=None)
    deltas, message = await ask(mocked)
    assert message.text == "Awake."
    assert isinstance(deltas[0], Withdrawn) and "sent nothing for 1 s" in deltas[0].reason
    assert len(naps.seconds) == 1


async def test_a_wait_that_is_asked_for_is_kept_and_a_long_one_is_not_begun(
    mocked: RemoteModel, llmock: Any, ask: Ask, naps: Naps
) -> None:
    llmock.rate_limit(retry_after=7)
    say(llmock, "Now.")
    deltas, message = await ask(mocked)
    assert message.text == "Now."
    assert isinstance(deltas[0], Withdrawn) and "429" in deltas[0].reason
    assert len(naps.seconds) == 1 and 7 <= naps.seconds[0] <= 8
    llmock.rate_limit(retry_after=3600)
    with pytest.raises(TransientModelError, match="3600 s") as caught:
        await ask(mocked)
    assert caught.value.retry_after == 3600
    assert (len(naps.seconds), len(llmock.requests)) == (1, 3)


LASTING = [
    (401, "Incorrect API key provided.", AuthenticationError),
    (403, "Not for you.", AuthenticationError),
    (402, "Payment required.", QuotaError),
    (400, "Your credit balance is too low to access the API.", QuotaError),
    (400, "This model's maximum context length is 1000 tokens.", ContextOverflowError),
    (400, "prompt is too long: 250000 tokens > 200000 maximum", ContextOverflowError),
    (413, "Payload too large.", ContextOverflowError),
    (404, "The model does not exist.", ModelError),
    (422, "temperature must be at most 2", ModelError),
]


@pytest.mark.parametrize(("status", "words", "expected"), LASTING, ids=[f"{s} {w[:16]}" for s, w, _ in LASTING])
async def test_what_no_repetition_mends_is_asked_once(
    status: int, words: str, expected: type[ModelError], mocked: RemoteModel, llmock: Any, ask: Ask, naps: Naps
) -> None:
    llmock.fail(status, message=words)
    say(llmock, "never")
    with pytest.raises(ModelError, match=words[:12]) as caught:
        await ask(mocked)
    assert type(caught.value) is expected
    assert caught.value.status == status
    assert (len(llmock.requests), naps.seconds) == (1, [])
    llmock.assert_resilient()


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
async def test_what_may_pass_is_asked_again(
    status: int, mocked: RemoteModel, llmock: Any, ask: Ask, naps: Naps
) -> None:
    llmock.fail(status)
    say(llmock, "Here again.")
    deltas, message = await ask(mocked)
    assert message.text == "Here again."
    assert [type(delta) for delta in deltas].count(Withdrawn) == len(naps.seconds) == 1
    first, second = llmock.requests
    assert first.fingerprint == second.fingerprint, "the same request goes again"


async def test_a_listener_that_leaves_or_is_cancelled_leaves_a_model_that_works(
    mocked: RemoteModel, llmock: Any, ask: Ask
) -> None:
    say(llmock, "A long reply that nobody hears to its end. " * 20, times=2)
    stream = mocked.stream(PROMPT, TOOLS, ModelSettings())
    assert isinstance(await anext(stream), TextDelta)
    await stream.aclose()
    started = asyncio.Event()

    async def listen() -> None:
        async for _ in mocked.stream(PROMPT, TOOLS, ModelSettings()):
            started.set()
            await asyncio.sleep(30)

    task = asyncio.create_task(listen())
    await asyncio.wait_for(started.wait(), 20)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    say(llmock, "Still here.")
    _, message = await ask(mocked)
    assert message.text == "Still here."
