"""Rows M1 to M6 and C3: what users of other agents reported of providers, in whole sessions over each adapter.

Each test is named after its row. What an adapter does by itself is tested beside it.
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from canned_server import Answer, CannedServer, error_answer, json_answer, sse
from conftest import ANSWERS
from PIL import Image
from stand_ins import Naps, timeless
from wire import anthropic_events, chat_chunk, response_events

from harness_nb import events as ev
from harness_nb.approval import DenyApprover
from harness_nb.kernel import FakeKernel
from harness_nb.models import resolve_model
from harness_nb.models.anthropic_model import anthropic_model
from harness_nb.models.chat import chat_model
from harness_nb.models.responses import responses_model
from harness_nb.ports import Model, Output, TextDelta, Withdrawn
from harness_nb.session import Session
from harness_nb.settings import Settings
from harness_nb.types import Status

KINDS = ["responses", "chat", "anthropic"]
MAKERS: dict[str, Any] = {"responses": responses_model, "chat": chat_model, "anthropic": anthropic_model}
STEP = {"text": "I look.", "calls": [{"name": "python", "arguments": {"code": "look()"}}]}
DONE = {"calls": [{"name": "finish", "arguments": {"summary": "All done."}}]}
USED = {"input_tokens": 1000, "output_tokens": 10, "cached_input_tokens": 900}


def maker(kind: str, server: CannedServer, naps: Naps) -> Model:
    model: Model = MAKERS[kind]("some-model", base_url=server.url, api_key="k", timeout=20, sleep=naps)
    return model


@asynccontextmanager
async def opened(
    workspace: Path, model: Model, kernel: FakeKernel | None = None, **given: Any
) -> AsyncGenerator[Session]:
    settings = Settings.load(workspace, given, {})
    session = await Session.open(settings, DenyApprover(), model=model, kernel=kernel or FakeKernel())
    try:
        yield session
    finally:
        await session.aclose()


async def send(session: Session, prompt: str = "Go.") -> tuple[list[ev.Event], list[Any]]:
    items = [item async for item in session.send(prompt)]
    return [item for item in items if isinstance(item, ev.EventBase)], items


def of(events: list[ev.Event], kind: type[Any]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def record_of(session: Session) -> str:
    journal = session.workspace / "harness_sessions" / session.id / "journal.jsonl"
    return journal.read_text() + session.notebook_path.read_text()


def half(kind: str) -> list[bytes]:
    """The beginning of a stream: some words and half of a call."""
    text = "HALF AN ANSWER"
    if kind == "chat":
        call = {"index": 0, "id": "c", "type": "function", "function": {"name": "python", "arguments": '{"code": "ev'}}
        return sse(chat_chunk({"content": text}), chat_chunk({"tool_calls": [call]}))
    if kind == "anthropic":
        tool = {"type": "tool_use", "id": "toolu_1", "name": "python", "json": '{"code": "ev'}
        return sse(*anthropic_events([{"type": "text", "text": text}, tool])[:-3], names=True)
    item = {"type": "function_call", "id": "f", "call_id": "c", "name": "python", "arguments": '{"code": "ev'}
    message = {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
    return sse(*response_events([message, item])[:-2], names=True)


def error_event(code: str) -> dict[str, dict[str, Any]]:
    said = {"message": "It broke.", "code": code, "type": code}
    failed = {"id": "r", "status": "failed", "output": [], "error": {"code": code, "message": "It broke."}}
    return {
        "responses": {"type": "error", "code": code, "message": "It broke."},
        "responses failed": {"type": "response.failed", "response": failed},
        "chat": {"error": said},
        "anthropic": {"type": "error", "error": said},
    }


def broken(kind: str, how: str) -> Answer:
    ends: dict[str, list[bytes]] = {
        "cut": [],
        "error event": sse(error_event("server_error")[kind]),
        "failed": sse(error_event("server_error").get(f"{kind} failed") or chat_chunk({}, "error")),
        "broken JSON": [b'data: {"type": "message_delta", "choi\n\n'],
        "dropped": [],
    }
    return Answer(half(kind) + ends[how], end="drop" if how == "dropped" else "close")


WAYS = ["cut", "error event", "failed", "broken JSON", "dropped"]


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("kind", KINDS)
async def test_m1_a_broken_stream_is_asked_for_again_and_nothing_of_it_is_stored(
    kind: str, how: str, server: CannedServer, naps: Naps, tmp_path: Path
) -> None:
    if (kind, how) == ("anthropic", "failed"):
        pytest.skip("this API tells a failure by an error event only")
    server.add(broken(kind, how), ANSWERS[kind](STEP), ANSWERS[kind](DONE))
    kernel = FakeKernel()
    async with opened(tmp_path, maker(kind, server, naps), kernel) as session:
        events, items = await send(session)
    assert events[-1].reason == "finished"
    assert [server.bodies[0]] == server.bodies[1:2] and len(server.requests) == 3
    assert len(naps.seconds) == 1
    withdrawn = next(k for k, item in enumerate(items) if isinstance(item, Withdrawn))
    assert any(isinstance(item, TextDelta) and "HALF"[:4] in item.text for item in items[:withdrawn])
    assert kernel.executed == ["look()"]
    assert "HALF" not in record_of(session)


@pytest.mark.parametrize("kind", KINDS)
async def test_m1_the_code_of_a_failure_decides(kind: str, server: CannedServer, naps: Naps, tmp_path: Path) -> None:
    lasting = Answer(half(kind) + sse(error_event("invalid_request_error")[kind]))
    server.add(lasting)
    async with opened(tmp_path, maker(kind, server, naps)) as session:
        events, items = await send(session)
    assert (events[-1].reason, len(server.requests), naps.seconds) == ("model_error", 1, [])
    assert "It broke." in events[-1].text
    assert isinstance(items[-2], Withdrawn)
    assert "HALF" not in record_of(session)


@pytest.mark.parametrize("kind", KINDS)
async def test_m2_a_call_that_was_cut_off_is_not_run_and_the_model_hears_of_the_limit(
    kind: str, server: CannedServer, naps: Naps, tmp_path: Path
) -> None:
    whole = {"name": "python", "arguments": {"code": "one()"}}
    cut = {"name": "python", "arguments": '{"code": "two('}
    server.add(ANSWERS[kind]({"calls": [whole, cut], "finish_reason": "length"}), ANSWERS[kind](DONE))
    kernel = FakeKernel()
    async with opened(tmp_path, maker(kind, server, naps), kernel) as session:
        events, _ = await send(session)
    assert kernel.executed == ["one()"]
    _, refused, _ = of(events, ev.ResultAdded)
    assert refused.status is Status.ERROR
    assert "max_output_tokens" in refused.content[0].text
    assert "max_output_tokens" in json.dumps(server.bodies[1])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (error_answer(429, "Slow down.", "rate_limit_exceeded", retry_after="3600"), "Slow down. It asks to wait 3600"),
        (error_answer(429, "You exceeded your current quota.", "insufficient_quota"), "no credit or quota left"),
        (error_answer(401, "Wrong key.", "invalid_api_key"), "Check the API key"),
    ],
    ids=["long wait", "quota", "key"],
)
async def test_m3_what_waiting_does_not_mend_stops_at_once_with_its_words_and_the_state_is_saved(
    kind: str, failure: Answer, said: str, server: CannedServer, naps: Naps, tmp_path: Path
) -> None:
    server.add(ANSWERS[kind](STEP), failure)
    async with opened(tmp_path, maker(kind, server, naps)) as session:
        events, _ = await send(session)
    assert (events[-1].reason, len(server.requests), naps.seconds) == ("model_error", 2, [])
    assert said in events[-1].text
    server.add(ANSWERS[kind](DONE))
    async with opened(tmp_path, maker(kind, server, naps), session=session.id) as again:
        resumed = [item async for item in again.resume() if isinstance(item, ev.EventBase)]
    assert resumed[-1].reason == "finished"
    assert "look()" in json.dumps(server.bodies[2])


def odd_answers(kind: str) -> dict[str, list[Answer]]:
    """What servers that only resemble the original send in place of a plain answer that finishes."""
    plain = ANSWERS[kind](DONE)
    event = sse({"type": "an_event_of_tomorrow", "choices": [], "n": 1})
    arguments = json.dumps(DONE["calls"][0]["arguments"])
    call = {"id": "c1", "name": "finish"}
    whole: dict[str, dict[str, Any]] = {
        "responses": {
            "status": "completed",
            "output": [{"type": "function_call", "call_id": "c1", "name": "finish", "arguments": arguments}],
        },
        "chat": {"choices": [{"message": {"tool_calls": [{"function": {"name": "finish", "arguments": arguments}}]}}]},
        "anthropic": {
            "type": "message",
            "content": [{"type": "tool_use", **call, "input": DONE["calls"][0]["arguments"]}],
            "stop_reason": "tool_use",
        },
    }
    answers = {
        "no usage": [plain],
        "unknown events": [Answer([*event, *plain.chunks[:-1], *event, plain.chunks[-1]])],
        "no stream": [json_answer(whole[kind])],
        "no stream name": [Answer(plain.chunks, headers={"content-type": "application/octet-stream"})],
    }
    if kind == "chat":
        pieces = [{"function": {"name": "finish", "arguments": ""}}, {"function": {"arguments": arguments}}]
        answers["no index, id or type"] = [
            Answer(sse(*(chat_chunk({"tool_calls": [piece]}) for piece in pieces), done=True))
        ]
    if kind == "responses":
        answers["rejects strict"] = [error_answer(400, "Unknown parameter: 'tools[0].strict'."), plain]
    return answers


ODD = [(kind, name) for kind in KINDS for name in odd_answers(kind)]


@pytest.mark.parametrize(("kind", "name"), ODD, ids=[f"{kind}-{name}" for kind, name in ODD])
async def test_m4_servers_that_only_resemble_the_original_work_and_usage_is_unknown(
    kind: str, name: str, server: CannedServer, naps: Naps, tmp_path: Path
) -> None:
    answers = odd_answers(kind)[name]
    server.add(*answers)
    async with opened(tmp_path, maker(kind, server, naps)) as session:
        events, _ = await send(session)
    assert (events[-1].reason, of(events, ev.FinishAccepted)[0].summary) == ("finished", "All done.")
    assert (events[-1].usage.input_tokens, events[-1].usage.cost_usd) == (None, None)
    assert len(server.requests) == len(answers)
    assert naps.seconds == []


@pytest.mark.parametrize("spec", ["openai:local", "chat:local", "anthropic:local"])
async def test_m4_an_empty_key_is_none_needed_at_a_server_of_ones_own(
    spec: str, server: CannedServer, tmp_path: Path
) -> None:
    kind = {"openai": "responses"}.get(spec.split(":")[0], spec.split(":")[0])
    server.add(ANSWERS[kind](DONE))
    environment = {"OPENAI_API_KEY": "", "ANTHROPIC_API_KEY": " "}
    model = resolve_model(spec, directory=tmp_path, base_url=server.url, environment=environment)
    async with opened(tmp_path, model) as session:
        events, _ = await send(session)
    assert events[-1].reason == "finished"


OVERFLOW: dict[str, Answer] = {
    "responses": error_answer(400, "Your input exceeds the context window of this model.", "context_length_exceeded"),
    "chat": json_answer({"error": {"code": 400, "type": "exceed_context_size_error", "message": "too long"}}, 400),
    "anthropic": json_answer(
        {"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 9 > 8"}}, 400
    ),
}


@pytest.mark.parametrize("kind", KINDS)
async def test_m5_an_overflow_in_the_middle_is_compacted_and_the_turn_asked_again(
    kind: str, server: CannedServer, naps: Naps, tmp_path: Path
) -> None:
    server.add(ANSWERS[kind](STEP), ANSWERS[kind](STEP), OVERFLOW[kind], ANSWERS[kind]({"text": "Looked twice."}))
    server.add(ANSWERS[kind](DONE))
    kernel = FakeKernel()
    async with opened(tmp_path, maker(kind, server, naps), kernel) as session:
        events, _ = await send(session)
    assert (events[-1].reason, kernel.executed) == ("finished", ["look()", "look()"])
    (compacted,) = of(events, ev.ContextCompacted)
    assert "Looked twice." in compacted.summary and "Looked twice." in json.dumps(server.bodies[-1])
    assert [event.turn for event in of(events, ev.ModelRequested)] == [1, 2, 3, 3]


@pytest.mark.parametrize("kind", KINDS)
async def test_m5_at_most_three_tries_a_turn(kind: str, server: CannedServer, naps: Naps, tmp_path: Path) -> None:
    summary = ANSWERS[kind]({"text": "Looked."})
    server.add(ANSWERS[kind](STEP), ANSWERS[kind](STEP), *[OVERFLOW[kind], summary] * 3, OVERFLOW[kind])
    async with opened(tmp_path, maker(kind, server, naps)) as session:
        events, _ = await send(session)
    assert events[-1].reason == "model_error"
    assert len(of(events, ev.ContextCompacted)) <= 3
    assert 2 <= len([event for event in of(events, ev.ModelRequested) if event.turn == 3]) <= 4


def picture(side: int, colour: int) -> Output:
    """A plot as a kernel sends it."""
    written = io.BytesIO()
    Image.effect_noise((side, side), 90).point(lambda value: (value + colour) % 256).save(written, "PNG")
    data = {"image/png": base64.b64encode(written.getvalue()).decode(), "text/plain": "<Figure>"}
    return Output("display_data", {"data": data, "metadata": {}})


def pictures_in(kind: str, body: dict[str, Any]) -> list[bytes]:
    """The pictures of a request, as the server gets them."""
    found: list[bytes] = []

    def look(value: Any) -> None:
        if isinstance(value, dict):
            if value.get("type") == "image" and kind == "anthropic":
                found.append(base64.b64decode(value["source"]["data"]))
            for item in value.values():
                look(item)
        elif isinstance(value, list):
            for item in value:
                look(item)
        elif isinstance(value, str) and value.startswith("data:image/"):
            found.append(base64.b64decode(value.split(",", 1)[1]))

    look(body)
    return found


@pytest.mark.parametrize("kind", KINDS)
async def test_m6_an_oversized_picture_and_thirty_plots_are_scaled_and_counted_and_the_session_goes_on(
    kind: str, server: CannedServer, naps: Naps, tmp_path: Path
) -> None:
    plots: list[Any] = [picture(2600, 0), *(picture(40, 8 * k) for k in range(30))]
    server.add(ANSWERS[kind](STEP), ANSWERS[kind](DONE))
    async with opened(tmp_path, maker(kind, server, naps), FakeKernel({"look()": plots})) as session:
        events, _ = await send(session)
    assert events[-1].reason == "finished"
    sent = pictures_in(kind, server.bodies[1])
    assert 1 < len(sent) < 10
    for data in sent:
        assert len(data) < 1_100_000
        assert max(Image.open(io.BytesIO(data)).size) <= 1024
    assert f"{len(sent)} of 31 images attached" in json.dumps(server.bodies[1])


REJECTED: dict[str, str] = {
    "responses": "Invalid image: image_url is not supported.",
    "chat": "This model does not support image input.",
    "anthropic": "messages.2.content.0: image exceeds 5 MB maximum: 6 bytes > 5 bytes",
}


@pytest.mark.parametrize("kind", KINDS)
async def test_m6_a_rejected_picture_is_left_out_with_a_note_and_the_session_goes_on(
    kind: str, server: CannedServer, naps: Naps, tmp_path: Path
) -> None:
    rejected = [error_answer(400, REJECTED[kind])] * 2  # first fewer pictures are tried where the words allow it
    server.add(ANSWERS[kind](STEP), *rejected, ANSWERS[kind](DONE))
    plots: list[Any] = [picture(60, 8 * k) for k in range(3)]
    async with opened(tmp_path, maker(kind, server, naps), FakeKernel({"look()": plots})) as session:
        server.answers[2:3] = []
        events, _ = await send(session)
    assert events[-1].reason == "finished"
    assert pictures_in(kind, server.bodies[2]) == []
    assert "a picture was left out" in json.dumps(server.bodies[2])
    assert naps.seconds == []


PREFIX: dict[str, Callable[[dict[str, Any]], list[Any]]] = {
    "responses": lambda body: [body["tools"], body["instructions"], *body["input"]],
    "chat": lambda body: [body["tools"], *body["messages"]],
    "anthropic": lambda body: [body["tools"], body["system"], *body["messages"]],
}
"""What a provider's cache sees of a request, in its order."""


@pytest.mark.parametrize("kind", KINDS)
async def test_c3_two_runs_of_the_same_prompt_have_the_same_prefix_to_the_byte(
    kind: str, server: CannedServer, naps: Naps, tmp_path: Path
) -> None:
    cached = []
    for _ in range(2):
        server.add(*(ANSWERS[kind]({**reply, "usage": USED}) for reply in (STEP, STEP, DONE)))
        async with opened(tmp_path, maker(kind, server, naps), FakeKernel({"look()": "seen\n"})) as session:
            events, _ = await send(session, "Say {it}, ü.")
        cached.append(events[-1].usage.cached_input_tokens)
    assert cached == [2700, 2700]
    assert len(server.requests) == 6
    for first, second in zip(server.requests[:3], server.requests[3:], strict=True):
        one, two = (
            timeless(request.raw).replace(request.body.get("prompt_cache_key", "no key").encode(), b"")
            for request in (first, second)
        )
        assert one == two
    for bodies in (server.bodies[:3], server.bodies[3:]):
        for body, later in pairwise(bodies):
            before, after = (json.dumps(PREFIX[kind](each)) for each in (body, later))
            without = [text.replace(', "cache_control": {"type": "ephemeral"}', "") for text in (before, after)]
            assert without[1].startswith(without[0][:-1])
