"""Fixtures of the model tests: a canned server, a sleep that takes no time, and each adapter ready to give replies."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from canned_server import Answer, CannedServer
from stand_ins import PROMPT, TOOLS, Naps
from wire import anthropic_answer, chat_answer, responses_answer

from harness_nb.events import ModelReplied
from harness_nb.models.anthropic_model import anthropic_model
from harness_nb.models.chat import chat_model
from harness_nb.models.remote import RemoteModel
from harness_nb.models.replay import ReplayModel, read_replies
from harness_nb.models.responses import responses_model
from harness_nb.models.scripted import ScriptedModel, read_script
from harness_nb.ports import Delta, Model, ModelSettings
from harness_nb.types import Message, ToolSpec

ANSWERS: dict[str, Callable[[dict[str, Any]], Answer]] = {
    "responses": responses_answer,
    "chat": chat_answer,
    "anthropic": anthropic_answer,
}
"""The adapters behind HTTP: how a scripted reply looks on their wire."""

MAKERS: dict[str, Callable[..., RemoteModel]] = {
    "responses": responses_model,
    "chat": chat_model,
    "anthropic": anthropic_model,
}
MOCK_TIMEOUT = 1.0
"""Seconds of silence that count as a lost answer in front of ``llmock``: streams that stall are waited for so long."""


@pytest.fixture
def naps() -> Naps:
    return Naps()


@pytest_asyncio.fixture
async def server() -> AsyncIterator[CannedServer]:
    canned = CannedServer()
    await canned.start()
    yield canned
    await canned.stop()


@pytest_asyncio.fixture
async def responses(server: CannedServer, naps: Naps) -> AsyncIterator[RemoteModel]:
    model = responses_model("gpt-6-luna", base_url=server.url, api_key="sk-test-0123456789", timeout=20, sleep=naps)
    yield model
    await model.aclose()


@pytest_asyncio.fixture
async def chat(server: CannedServer, naps: Naps) -> AsyncIterator[RemoteModel]:
    model = chat_model("local-model", base_url=server.url, api_key="none", timeout=20, sleep=naps)
    yield model
    await model.aclose()


@pytest_asyncio.fixture
async def anthropic(server: CannedServer, naps: Naps) -> AsyncIterator[RemoteModel]:
    model = anthropic_model("claude-sonnet-5-5", base_url=server.url, api_key="sk-ant-0123", timeout=20, sleep=naps)
    yield model
    await model.aclose()


@pytest_asyncio.fixture(params=MAKERS)
async def mocked(request: pytest.FixtureRequest, llmock: Any, naps: Naps) -> AsyncIterator[RemoteModel]:
    """Each adapter in turn, in front of ``llmock``."""
    url = llmock.base_url("anthropic" if request.param == "anthropic" else "openai")
    model = MAKERS[request.param]("gpt-4o", base_url=url, api_key="x", timeout=MOCK_TIMEOUT, sleep=naps)
    yield model
    await model.aclose()


@pytest.fixture
def ask() -> Callable[..., Any]:
    """``await ask(model, messages, tools, settings)`` gives the deltas and the message of one request."""

    async def run(
        model: Model,
        messages: tuple[Message, ...] = PROMPT,
        tools: tuple[ToolSpec, ...] = TOOLS,
        settings: ModelSettings | None = None,
    ) -> tuple[list[Delta], Message]:
        items = [item async for item in model.stream(messages, tools, settings or ModelSettings())]
        *deltas, message = items
        assert isinstance(message, Message)
        assert not any(isinstance(delta, Message) for delta in deltas)
        return deltas, message

    return run


@pytest.fixture
def stage(request: pytest.FixtureRequest, tmp_path: Path, naps: Naps) -> Callable[..., Model]:
    """``stage(kind, replies)``: an adapter whose next replies are these, in the form of a script."""

    def scripted(replies: list[dict[str, Any]]) -> Model:
        path = tmp_path / "script.json"
        path.write_text(json.dumps(replies))
        return ScriptedModel("scripted:script.json", read_script(path), sleep=naps)

    def replay(replies: list[dict[str, Any]]) -> Model:
        written = scripted(replies)
        assert isinstance(written, ScriptedModel)
        events = [
            ModelReplied(turn=turn, message=written._message(reply, PROMPT), seq=turn)
            for turn, reply in enumerate(written._replies, start=1)
        ]
        path = tmp_path / "journal.jsonl"
        path.write_text("".join(event.model_dump_json() + "\n" for event in events))
        return ReplayModel("replay:x", read_replies(path))

    def over_http(replies: list[dict[str, Any]], kind: str) -> Model:
        server = request.getfixturevalue("server")
        server.add(*map(ANSWERS[kind], replies))
        model: Model = request.getfixturevalue(kind)
        return model

    def make(kind: str, replies: list[dict[str, Any]]) -> Model:
        if kind in ANSWERS:
            return over_http(replies, kind)
        return scripted(replies) if kind == "scripted" else replay(replies)

    # Asked for here, since a test that is already running in the event loop cannot set up fixtures that need it.
    if (kind := request.node.callspec.params["kind"]) in ANSWERS:
        request.getfixturevalue(kind)
    return make
