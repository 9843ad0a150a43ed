"""The list of models of a server: what it says, in the forms that servers have, and when it says nothing."""

from __future__ import annotations

from typing import Any

import pytest
from canned_server import Answer, CannedServer, error_answer, json_answer

from harness_nb.errors import AuthenticationError, ModelError, TransientModelError
from harness_nb.models.offered import read_offers
from harness_nb.models.remote import RemoteModel
from harness_nb.ports import Listing, Offer

VLLM = {"object": "list", "data": [{"id": "qwen", "object": "model", "max_model_len": 8192}, {"id": "other"}]}


@pytest.mark.parametrize(
    ("listing", "offers"),
    [
        (VLLM, (Offer("qwen", 8192), Offer("other"))),
        ({"data": [{"id": "a/b", "context_length": 131072}]}, (Offer("a/b", 131072),)),
        ({"data": [{"id": "x.gguf", "meta": {"n_ctx_train": 2048}}]}, (Offer("x.gguf", 2048),)),
        ({"data": [{"id": "claude", "type": "model", "max_input_tokens": 200000}]}, (Offer("claude", 200000),)),
        ({"models": [{"name": "models/gemini"}]}, (Offer("gemini"),)),
        (
            {"data": [{"id": 3}, {}, None, "plain", {"id": "y", "meta": None, "max_model_len": None}]},
            (Offer("plain"), Offer("y")),
        ),
        ({"data": None}, ()),
        ({"data": {"a": 1}}, ()),
        ({}, ()),
    ],
)
def test_lists_are_read_in_the_forms_of_servers(listing: dict[str, Any], offers: tuple[Offer, ...]) -> None:
    assert read_offers(listing) == offers


async def test_each_api_asks_where_its_list_is(
    responses: RemoteModel, chat: RemoteModel, anthropic: RemoteModel, server: CannedServer
) -> None:
    server.add(*[json_answer(VLLM)] * 3)
    for model in (responses, chat, anthropic):
        assert isinstance(model, Listing)
        assert await model.offered() == (Offer("qwen", 8192), Offer("other"))
    assert [request.path for request in server.requests] == ["/v1/models", "/v1/models", "/v1/models?limit=1000"]
    assert server.requests[0].headers["authorization"] == "Bearer sk-test-0123456789"


async def test_a_server_without_a_list_is_told(responses: RemoteModel, server: CannedServer) -> None:
    server.add(error_answer(404, "no such path"), error_answer(401, "bad key sk-test-0123456789"))
    server.add(Answer([b"<html><title>Hello</title></html>"]), Answer([b'{"data": [{"id"']))
    with pytest.raises(ModelError, match="404"):
        await responses.offered()
    with pytest.raises(AuthenticationError) as refused:
        await responses.offered()
    assert "sk-test-0123456789" not in str(refused.value) and "OPENAI_API_KEY" in str(refused.value)
    with pytest.raises(ModelError, match="a web page titled 'Hello'"):
        await responses.offered()
    with pytest.raises(TransientModelError, match="not whole JSON"):
        await responses.offered()


async def test_a_server_that_is_not_there_is_told(responses: RemoteModel, server: CannedServer) -> None:
    await server.stop()
    with pytest.raises(TransientModelError, match="connection to 127"):
        await responses.offered()
