"""``--web`` on the wire: the provider's own search is offered where the API has one, and its use is counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from canned_server import Answer, CannedServer, error_answer, sse
from stand_ins import PROMPT, TOOLS
from wire import anthropic_events, chat_answer, message_item, response_events

from harness_nb.errors import ModelError
from harness_nb.models.remote import RemoteModel
from harness_nb.models.scripted import ScriptedModel, ScriptedReply
from harness_nb.ports import Foreseeable, ModelSettings
from harness_nb.types import Usage

Ask = Callable[..., Any]
WEB = ModelSettings(web_search=True)
SEARCHED = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "x"}}


async def test_responses_offers_its_search_and_counts_it(
    responses: RemoteModel, server: CannedServer, ask: Ask
) -> None:
    items = [SEARCHED, message_item("Found.")]
    events = response_events(items, {"input_tokens": 1000, "output_tokens": 10})
    server.add(*[Answer(sse(*events, names=True))] * 2)
    assert responses.searches_web and isinstance(responses, Foreseeable)
    _, message = await ask(responses, settings=WEB)
    assert server.bodies[0]["tools"][-1] == {"type": "web_search"}
    assert (message.text, message.usage.searches) == ("Found.", 1)
    assert SEARCHED in message.provider_items
    await ask(responses, (*PROMPT, message), (), settings=WEB)
    assert server.bodies[1]["tools"] == [{"type": "web_search"}]
    assert SEARCHED in server.bodies[1]["input"]


async def test_anthropic_offers_its_search_and_counts_it(
    anthropic: RemoteModel, server: CannedServer, ask: Ask
) -> None:
    events = anthropic_events([{"type": "text", "text": "Found."}], {"input_tokens": 9, "output_tokens": 1})
    events[-2]["usage"] = {"output_tokens": 1, "server_tool_use": {"web_search_requests": 2}}
    server.add(Answer(sse(*events, names=True)))
    assert anthropic.searches_web
    _, message = await ask(anthropic, settings=WEB)
    search = server.bodies[0]["tools"][-1]
    assert search["name"] == "web_search" and search["type"].startswith("web_search_")
    assert len(server.bodies[0]["tools"]) == len(TOOLS) + 1
    assert message.usage.searches == 2


async def test_nothing_is_offered_without_the_option(
    responses: RemoteModel, anthropic: RemoteModel, server: CannedServer, ask: Ask
) -> None:
    server.add(Answer(sse(*response_events([message_item("Fine.")]), names=True)))
    server.add(Answer(sse(*anthropic_events([{"type": "text", "text": "Fine."}]), names=True)))
    for model in (responses, anthropic):
        _, message = await ask(model)
        assert message.usage.searches is None
    assert "web_search" not in str(server.bodies)


async def test_chat_and_scripts_have_none(chat: RemoteModel, server: CannedServer, ask: Ask) -> None:
    server.add(chat_answer({"text": "Fine."}))
    await ask(chat, settings=WEB)
    assert not chat.searches_web and "web_search" not in str(server.bodies)
    scripted = ScriptedModel("scripted:x", [ScriptedReply(text="Fine.")])
    assert isinstance(scripted, Foreseeable) and not scripted.searches_web
    assert scripted.estimate(PROMPT, TOOLS, WEB) != Usage()


async def test_a_server_that_does_not_know_it_is_told_with_the_way_out(
    responses: RemoteModel, server: CannedServer, ask: Ask
) -> None:
    server.add(error_answer(400, "tools[1].type: 'web_search' is not one of ['function']"))
    with pytest.raises(ModelError, match="leave --web out"):
        await ask(responses, settings=WEB)
    assert len(server.requests) == 1, "what the user asked for is not dropped silently"
