"""``openai:`` when something is wrong: streams that break, failures that are told, and what a server rejects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from canned_server import Answer, CannedServer, error_answer, json_answer, sse
from stand_ins import PICTURE, PROMPT, TOOLS, Naps
from wire import message_item, response_events

from harness_nb.errors import AuthenticationError, ModelError, RefusalError, TransientModelError
from harness_nb.models.remote import RemoteModel
from harness_nb.models.responses import responses_model
from harness_nb.ports import ModelSettings, Withdrawn
from harness_nb.types import Message, TextPart

Ask = Callable[..., Any]
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA=="}


def good(text: str = "Fine.") -> Answer:
    return Answer(sse(*response_events([message_item(text)]), names=True))


def failed(code: str, message: str = "It broke.") -> Answer:
    events = response_events([], end="response.failed", error={"code": code, "message": message}, output=[])
    return Answer(sse(*events, names=True))


BROKEN = {
    "cut": Answer(good().chunks[:-1]),
    "cut at once": Answer([]),
    "dropped": Answer(good().chunks[:4], end="drop"),
    "broken JSON": Answer([*good().chunks[:4], b'data: {"type": "response.output_te\n\n', *good().chunks[4:]]),
    "not an object": Answer([*good().chunks[:4], b"data: [1, 2]\n\n"]),
    "half a whole answer": Answer(
        [b'{"object": "response", "output": ['], headers={"content-type": "application/json"}
    ),
    "failed": failed("server_error"),
    "failed for an unknown reason": failed("some_new_trouble"),
    "rate limit in the stream": failed("rate_limit_exceeded", "Please try again in 2.5s."),
    "error event": Answer(sse({"type": "error", "code": "server_error", "message": "It broke."})),
    "error event, nested": Answer(sse({"type": "error", "error": {"code": "overloaded_error", "message": "Busy."}})),
    "error without type": Answer(sse({"error": {"message": "It broke.", "code": 502}})),
    "bad gateway page": Answer(
        [b"<html><head><title>502 Bad Gateway</title></head></html>"], 502, {"content-type": "text/html"}
    ),
}


@pytest.mark.parametrize("name", BROKEN)
async def test_a_broken_stream_is_made_again_and_never_half_an_answer(
    name: str, responses: RemoteModel, server: CannedServer, ask: Ask, naps: Naps
) -> None:
    server.add(BROKEN[name], good("Whole."))
    deltas, message = await ask(responses)
    assert message.text == "Whole."
    withdrawn = [delta for delta in deltas if isinstance(delta, Withdrawn)]
    assert len(withdrawn) == len(naps.seconds) == 1
    assert "127.0.0.1" in withdrawn[0].reason
    assert server.bodies[0] == server.bodies[1]


@pytest.mark.parametrize("name", ["cut", "dropped", "broken JSON", "failed", "error event"])
async def test_a_stream_that_stays_broken_ends_in_a_typed_error(
    name: str, responses: RemoteModel, server: CannedServer
) -> None:
    server.add(*[BROKEN[name]] * 5)
    seen: list[Any] = []
    with pytest.raises(TransientModelError, match="5 attempts"):
        async for item in responses.stream(PROMPT, TOOLS, ModelSettings()):
            seen.append(item)
    assert len(server.requests) == 5
    assert not any(isinstance(item, Message) for item in seen)


async def test_the_wait_that_a_failed_stream_asks_for_is_kept(
    responses: RemoteModel, server: CannedServer, ask: Ask, naps: Naps
) -> None:
    server.add(failed("rate_limit_exceeded", "Rate limit reached. Please try again in 1m2.5s."))
    with pytest.raises(TransientModelError, match="62 s"):
        await ask(responses)
    server.add(failed("rate_limit_exceeded", "Rate limit reached. Please try again in 250ms."), good())
    await ask(responses)
    assert len(naps.seconds) == 1
    assert 0.25 <= naps.seconds[0] < 0.3


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("invalid_prompt", RefusalError),
        ("bio_policy", RefusalError),
        ("misalignment_policy_violation", RefusalError),
        ("data_residency_mismatch", ModelError),
        ("invalid_image", ModelError),
    ],
)
async def test_failures_that_last_are_not_made_again(
    code: str, expected: type[ModelError], responses: RemoteModel, server: CannedServer, ask: Ask
) -> None:
    server.add(failed(code))
    with pytest.raises(ModelError, match="It broke") as caught:
        await ask(responses)
    assert type(caught.value) is expected
    assert caught.value.code == code
    assert len(server.requests) == 1


async def test_a_web_page_in_place_of_an_answer_points_to_the_base_url(
    responses: RemoteModel, server: CannedServer, ask: Ask
) -> None:
    page = b"<!doctype html><html><head><title>Sign in</title></head></html>"
    server.add(Answer([page], headers={"content-type": "text/html"}))
    with pytest.raises(ModelError, match=r"'Sign in'.*base URL") as caught:
        await ask(responses)
    assert type(caught.value) is ModelError


async def test_silence_is_a_timeout(server: CannedServer, naps: Naps) -> None:
    server.add(*[Answer(good().chunks[:4], end="hang")] * 5)
    model = responses_model("m", base_url=server.url, api_key="none", timeout=0.2, sleep=naps)
    with pytest.raises(TransientModelError, match="sent nothing for"):
        async for _ in model.stream(PROMPT, TOOLS, ModelSettings()):
            pass
    await model.aclose()
    assert len(naps.seconds) == 4


async def test_nobody_listening_names_the_address(naps: Naps, ask: Ask) -> None:
    model = responses_model("m", base_url="http://127.0.0.1:9/v1", api_key="none", sleep=naps)
    with pytest.raises(TransientModelError, match=r"127\.0\.0\.1:9 failed"):
        await ask(model)
    await model.aclose()
    assert len(naps.seconds) == 4


async def test_a_refusal_is_an_error_and_not_a_text(
    responses: RemoteModel, server: CannedServer, ask: Ask, naps: Naps
) -> None:
    item = {"type": "message", "id": "m", "content": [{"type": "refusal", "refusal": "I will not."}]}
    server.add(Answer(sse(*response_events([item]))))
    with pytest.raises(RefusalError, match="I will not"):
        await ask(responses)
    assert naps.seconds == []


async def test_a_content_filter_is_a_refusal(responses: RemoteModel, server: CannedServer, ask: Ask) -> None:
    details = {"reason": "content_filter"}
    events = response_events([message_item("So f")], end="response.incomplete", incomplete_details=details)
    server.add(Answer(sse(*events)))
    with pytest.raises(RefusalError, match="content filter"):
        await ask(responses)


async def test_a_cut_reply_does_not_go_back_as_items(responses: RemoteModel, server: CannedServer, ask: Ask) -> None:
    """Reasoning that nothing follows would be refused by the API."""
    details = {"reason": "max_output_tokens"}
    events = response_events([REASONING], end="response.incomplete", incomplete_details=details)
    server.add(Answer(sse(*events)), good())
    _, message = await ask(responses)
    assert (message.finish_reason, message.content, message.provider_items) == ("length", (), ())
    await ask(responses, (*PROMPT, message, PROMPT[1]))
    assert [item["role"] for item in server.bodies[1]["input"]] == ["user", "user"]


@pytest.mark.parametrize("stream", [True, False])
async def test_the_status_of_the_answer_counts_and_not_the_name_of_the_event(
    stream: bool, responses: RemoteModel, server: CannedServer, ask: Ask
) -> None:
    """Some servers end every stream with ``response.completed``."""
    half = [message_item("The first half of")]
    told = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    events = response_events(half, **told)
    server.add(Answer(sse(*events)) if stream else json_answer(events[-1]["response"]))
    _, message = await ask(responses)
    assert (message.text, message.finish_reason, message.provider_items) == ("The first half of", "length", ())
    failed_after_all = response_events([], status="failed", error={"code": "server_error", "message": "It broke."})
    server.add(Answer(sse(*failed_after_all)), good("Whole."))
    _, message = await ask(responses)
    assert message.text == "Whole."


@pytest.mark.parametrize(("written", "expected"), [(500, "length"), (499, "stop"), (None, "stop")])
async def test_a_reply_that_has_all_its_tokens_is_cut_off_whatever_the_server_says(
    written: int | None, expected: str, responses: RemoteModel, server: CannedServer, ask: Ask
) -> None:
    """llama.cpp calls each answer completed here."""
    usage = None if written is None else {"input_tokens": 9, "output_tokens": written}
    server.add(Answer(sse(*response_events([message_item("On and on")], usage))))
    _, message = await ask(responses, settings=ModelSettings(max_output_tokens=500))
    assert message.finish_reason == expected


# ---- what a server rejects ------------------------------------------------------------------------------------------

REJECTIONS = [
    ("Encrypted content is not supported with this model.", "include"),
    ("Unsupported parameter: 'include'", "include"),
    ("Unsupported parameter: 'reasoning.summary' is not supported with this model.", "reasoning"),
    ("Your organization must be verified to generate reasoning summaries.", "reasoning"),
    ("Unknown parameter: 'prompt_cache_key'", "prompt_cache_key"),
]


@pytest.mark.parametrize(("complaint", "field"), REJECTIONS)
async def test_what_a_server_rejects_is_left_out_from_then_on(
    complaint: str, field: str, responses: RemoteModel, server: CannedServer, ask: Ask, naps: Naps
) -> None:
    server.add(error_answer(400, complaint), good(), good())
    settings = ModelSettings(cache_key="k")
    deltas, _ = await ask(responses, settings=settings)
    await ask(responses, settings=settings)
    assert [field in body for body in server.bodies] == [True, False, False]
    assert {"include", "reasoning", "prompt_cache_key"} - {field} <= set(server.bodies[2])
    assert naps.seconds == []
    assert not any(isinstance(delta, Withdrawn) for delta in deltas)


async def test_strict_is_left_out_where_it_is_rejected(responses: RemoteModel, server: CannedServer, ask: Ask) -> None:
    server.add(error_answer(422, "tools.0.strict: extra fields not permitted"), good())
    await ask(responses)
    assert ["strict" in body["tools"][0] for body in server.bodies] == [True, False]


async def test_pictures_are_left_out_with_a_note_where_they_are_rejected(
    responses: RemoteModel, server: CannedServer, ask: Ask
) -> None:
    server.add(error_answer(400, "This model does not support image input."), good(), good())
    result = Message(role="tool", call_id="c1", content=(TextPart(text="plot"), PICTURE))
    await ask(responses, (*PROMPT, result))
    assert "picture was left out" in server.bodies[1]["input"][1]["output"]
    assert responses.accepts_images is False


async def test_encrypted_items_of_elsewhere_are_written_anew(
    responses: RemoteModel, server: CannedServer, ask: Ask
) -> None:
    server.add(error_answer(400, "The encrypted content could not be verified.", "invalid_encrypted_content"), good())
    items = (REASONING, message_item("I look."))
    foreign = Message(
        role="assistant", content=(TextPart(text="I look."),), provider="openai-responses", provider_items=items
    )
    await ask(responses, (*PROMPT, foreign))
    assert server.bodies[0]["input"][1] == REASONING
    assert server.bodies[1]["input"][1:] == [{"type": "message", "role": "assistant", "content": "I look."}]


async def test_a_complaint_that_teaches_nothing_is_told_once(
    responses: RemoteModel, server: CannedServer, ask: Ask
) -> None:
    server.add(error_answer(400, "Invalid value for image of include: nobody knows"), error_answer(400, "still"))
    with pytest.raises(ModelError, match="still"):
        await ask(responses)
    assert len(server.requests) == 2  # without `include`; no picture was sent, so none could be left out


async def test_a_complaint_about_pictures_teaches_nothing_where_none_was_sent(
    responses: RemoteModel, server: CannedServer, ask: Ask
) -> None:
    server.add(error_answer(400, "The image tool is broken."), good())
    with pytest.raises(ModelError, match="image tool is broken"):
        await ask(responses)
    await ask(responses)
    assert len(server.requests) == 2
    assert responses.accepts_images is True


async def test_a_key_that_a_server_repeats_is_not_passed_on(
    responses: RemoteModel, server: CannedServer, ask: Ask
) -> None:
    server.add(error_answer(401, "Incorrect API key provided: sk-test-0123456789."))
    with pytest.raises(AuthenticationError, match=r"provided: \[key\]") as caught:
        await ask(responses)
    assert "0123456789" not in str(caught.value)


async def test_the_servers_word_on_retrying_is_obeyed(responses: RemoteModel, server: CannedServer, ask: Ask) -> None:
    server.add(error_answer(503, "planned", x_should_retry="false"))
    with pytest.raises(ModelError, match="planned") as caught:
        await ask(responses)
    assert type(caught.value) is ModelError
    assert len(server.requests) == 1
