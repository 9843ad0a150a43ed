"""``chat:``: what differs from server to server, by the table and by what a server rejects."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from canned_server import Answer, CannedServer, error_answer, sse
from stand_ins import PICTURE, PROMPT, TOOLS, Naps
from wire import chat_chunk

from harness_nb.errors import AuthenticationError, ModelError
from harness_nb.models import resolve_model
from harness_nb.models.address import read_address
from harness_nb.models.chat import chat_model
from harness_nb.models.chat_messages import SEEN, plain_schema, write_messages
from harness_nb.models.pictures import LEFT_OUT
from harness_nb.models.quirks import CHAT, Quirks, chat_quirks
from harness_nb.models.remote import RemoteModel
from harness_nb.ports import ModelSettings, Withdrawn
from harness_nb.types import Message, TextPart, ToolCall, ToolSpec, text_content, text_message

Ask = Callable[..., Any]
CALLS = (ToolCall(call_id="call_a", name="bash"), ToolCall(call_id="call_b", name="bash", arguments={"command": "ls"}))
RESULTS = tuple(Message(role="tool", call_id=call.call_id, content=text_content(call.call_id)) for call in CALLS)
LOOP = (*PROMPT, Message(role="assistant", tool_calls=CALLS), *RESULTS, text_message("user", "Two turns are left."))


def good(**more: Any) -> Answer:
    return Answer(sse(chat_chunk({"content": "Fine."}), chat_chunk({}, "stop", **more), done=True))


def roles(body: dict[str, Any]) -> list[str]:
    return [message["role"] for message in body["messages"]]


LEARNT: dict[str, tuple[int, str, Callable[[dict[str, Any]], Any], Any]] = {
    "Mistral's ids": (
        400,
        "Tool call id was call_a but must be a-z, A-Z, 0-9, with a length of 9.",
        lambda body: [len(message["tool_call_id"]) for message in body["messages"] if message["role"] == "tool"],
        [9, 9],
    ),
    "the same from a template": (
        500,
        "Tool call IDs should be alphanumeric strings with length 9! ... with a length of 9",
        lambda body: [len(call["id"]) for call in body["messages"][2]["tool_calls"]],
        [9, 9],
    ),
    "Mistral's order": (400, "Unexpected role 'user' after role 'tool'", lambda body: roles(body)[-2:],
                        ["assistant", "user"]),
    "alternating roles": (
        500,
        "Conversation roles must alternate user/assistant/user/assistant/...",
        lambda body: roles(body)[:2],
        ["user", "assistant"],
    ),
    "Gemma's template": (400, "System role not supported", roles, ["user", "assistant", "tool", "tool", "user"]),
    "o1-mini": (
        400,
        "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
        lambda body: body["messages"][0]["content"],
        "You are careful.\n\nCount to three.",
    ),
    "a developer's role": (400, "Use 'developer' instead of 'system'.", lambda body: roles(body)[0], "developer"),
    "Llama's template": (
        500,
        "This model only supports single tool-calls at once!",
        roles,
        ["system", "user", "assistant", "tool", "assistant", "tool", "user"],
    ),
    "arguments as objects": (
        500,
        "Can only get item pairs from a mapping.",
        lambda body: body["messages"][2]["tool_calls"][1]["function"]["arguments"],
        {"command": "ls"},
    ),
    "no null": (422, "messages.2.content: Input should be a valid string, got null",
                lambda body: body["messages"][2]["content"], ""),
    "plain schemas": (
        400,
        'Invalid JSON payload received. Unknown name "additionalProperties" at \'tools[0]\'',
        lambda body: "additionalProperties" in json.dumps(body["tools"]),
        False,
    ),
}  # fmt: skip
STRICT = ToolSpec(name="bash", description="Run.", parameters={**TOOLS[0].parameters, "additionalProperties": False})


@pytest.mark.parametrize("name", LEARNT)
async def test_what_a_server_rejects_is_done_its_way_from_then_on(
    name: str, chat: RemoteModel, server: CannedServer, ask: Ask, naps: Naps
) -> None:
    status, complaint, look, expected = LEARNT[name]
    server.add(error_answer(status, complaint), good(), good())
    deltas, message = await ask(chat, LOOP, (STRICT,))
    await ask(chat, LOOP, (STRICT,))
    assert message.text == "Fine."
    assert look(server.bodies[0]) != expected
    assert look(server.bodies[1]) == look(server.bodies[2]) == expected
    assert len(server.requests) == 3
    assert naps.seconds == []
    assert not any(isinstance(delta, Withdrawn) for delta in deltas)


async def test_a_server_error_teaches_nothing_but_layout(
    chat: RemoteModel, server: CannedServer, ask: Ask, naps: Naps
) -> None:
    server.add(error_answer(500, "stream_options failed, image worker is down"), good())
    await ask(chat, LOOP)
    assert "stream_options" in server.bodies[1]
    assert len(naps.seconds) == 1


@pytest.mark.parametrize(
    "complaint",
    [
        "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
        "Multimodal data provided, but model does not support multimodal requests.",
    ],
)
async def test_pictures_are_left_out_where_they_are_rejected_with_a_server_error(
    complaint: str, chat: RemoteModel, server: CannedServer, ask: Ask, naps: Naps
) -> None:
    """As llama.cpp does."""
    server.add(error_answer(500, complaint), good())
    result = Message(role="tool", call_id="c1", content=(TextPart(text="plot"), PICTURE))
    await ask(chat, (*PROMPT, result))
    assert "picture was left out" in server.bodies[1]["messages"][-1]["content"]
    assert (naps.seconds, chat.accepts_images) == ([], False)


def test_users_in_a_row_are_one_where_roles_must_alternate() -> None:
    picture = Message(role="tool", call_id="call_b", content=(TextPart(text="plot"), PICTURE))
    messages = (*LOOP[:4], picture, LOOP[-1])
    sent = write_messages(messages, Quirks(merge_users=True))
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "tool", "tool", "user"]
    assert [part["type"] for part in sent[-1]["content"]] == ["text", "image_url", "text"]
    assert sent[-1]["content"][-1]["text"] == "Two turns are left."


def test_a_call_alone_has_its_result_right_behind_it() -> None:
    sent = write_messages(LOOP, Quirks(single_calls=True))
    pairs = [(m["tool_calls"][0]["id"], r["tool_call_id"]) for m, r in pairwise(sent)
             if "tool_calls" in m]  # fmt: skip
    assert pairs == [("call_a", "call_a"), ("call_b", "call_b")]


def test_short_ids_stay_the_same_and_fitting_ones_are_kept() -> None:
    calls = (ToolCall(call_id="abcDEF123", name="bash"), ToolCall(call_id="call_a", name="bash"))
    first, second = (
        [c["id"] for c in write_messages((Message(role="assistant", tool_calls=calls),), Quirks(short_ids=True))[0]
         ["tool_calls"]]
        for _ in range(2)
    )  # fmt: skip
    assert first == second
    assert first[0] == "abcDEF123"
    assert first[1].isalnum()


def test_a_reply_stands_between_a_result_and_a_word() -> None:
    sent = write_messages(LOOP, Quirks(assistant_after_tool=True))
    assert sent[-2] == {"role": "assistant", "content": SEEN}


def test_a_plain_schema_says_what_matters() -> None:
    schema = {
        "type": "object",
        "additionalProperties": False,
        "$schema": "x",
        "properties": {
            "timeout": {"anyOf": [{"type": "null"}, {"type": "number", "exclusiveMinimum": 0}], "description": "s"},
            "names": {"type": ["array", "null"], "items": {"type": "string", "pattern": "x"}},
        },
        "required": ["names"],
    }
    assert plain_schema(schema) == {
        "type": "object",
        "properties": {
            "timeout": {"type": "number", "description": "s"},
            "names": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["names"],
    }


@pytest.mark.parametrize(
    ("complaint", "kept"),
    [
        ("At most 1 image(s) may be provided in one request.", 1),
        ("Too many images in request: 12 > 8", 8),
        ("messages.3.content.0: image dimensions exceed max allowed size for many-image requests: 2000 pixels", 8),
    ],
)
async def test_many_pictures_become_the_last_ones(
    complaint: str, kept: int, chat: RemoteModel, server: CannedServer, ask: Ask
) -> None:
    """M6: what is left out says so, and the session goes on."""
    server.add(error_answer(400, complaint), good())
    plots = tuple(Message(role="tool", call_id=f"c{k}", content=(PICTURE,)) for k in range(12))
    await ask(chat, (*PROMPT, *plots))
    assert [json.dumps(body).count('image_url": {') for body in server.bodies] == [12, kept]
    assert json.dumps(server.bodies[1]).count(LEFT_OUT) == 12 - kept
    assert chat.accepts_images


# ---- the table ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base_url", "model", "differs"),
    [
        ("http://localhost:11434/v1", "qwen3:8b", {}),
        ("https://api.openai.com/v1", "gpt-6-luna", {"cache_key": True, "max_tokens_name": "max_completion_tokens"}),
        ("https://gateway.example/v1", "openai/o4-mini", {"max_tokens_name": "max_completion_tokens"}),
        ("http://localhost:8000/v1", "mistralai/Devstral-Small", {"short_ids": True}),
        ("https://api.mistral.ai/v1", "x", {"short_ids": True, "assistant_after_tool": True}),
        ("https://openrouter.ai/api/v1", "x", {"effort_form": "reasoning", "cost_in_usage": True}),
        ("https://res.openai.azure.com/openai/v1", "mine", {"max_tokens_name": "max_completion_tokens"}),
        ("https://notopenrouter.ai/api/v1", "x", {}),
    ],
)
def test_the_table_knows_hosts_and_names(base_url: str, model: str, differs: dict[str, Any]) -> None:
    quirks = chat_quirks(base_url, model)
    assert {name: getattr(quirks, name) for name in differs} == differs
    assert (quirks == CHAT) == (not differs)


@pytest.mark.parametrize(
    ("quirks", "effort", "sent"),
    [
        (CHAT, "low", {"reasoning_effort": "low"}),
        (chat_quirks("https://openrouter.ai/api/v1"), "low", {"reasoning": {"effort": "low"}}),
        (chat_quirks("https://api.z.ai/api/paas/v4"), "none", {"thinking": {"type": "disabled"}}),
        (chat_quirks("https://dashscope.aliyuncs.com/compatible-mode/v1"), "high", {"enable_thinking": True}),
    ],
)
async def test_an_effort_is_asked_for_as_the_server_knows_it(
    quirks: Quirks, effort: str, sent: dict[str, Any], chat: RemoteModel, server: CannedServer, ask: Ask
) -> None:
    chat._endpoint.quirks = quirks
    server.add(good())
    await ask(chat, settings=ModelSettings(reasoning_effort=effort))
    names = ("reasoning_effort", "reasoning", "thinking", "enable_thinking")
    assert {name: server.bodies[0][name] for name in names if name in server.bodies[0]} == sent


async def test_openrouter_tells_the_price_and_gets_its_reasoning_back(
    chat: RemoteModel, server: CannedServer, ask: Ask
) -> None:
    chat._endpoint.quirks = chat_quirks("https://openrouter.ai/api/v1")
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "cost": 0.00123}
    pieces = [
        {"reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "Hm, "}]},
        {"reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "so.", "signature": "sig"}]},
        {"reasoning_details": [{"type": "reasoning.encrypted", "index": 1, "data": "abc"}]},
    ]
    server.add(Answer(sse(*map(chat_chunk, pieces), chat_chunk({"content": "Yes."}, "stop", usage=usage))), good())
    _, message = await ask(chat)
    assert message.usage.cost_usd == 0.00123
    await ask(chat, (*PROMPT, message, PROMPT[1]))
    assert server.bodies[1]["messages"][2]["reasoning_details"] == [
        {"type": "reasoning.text", "index": 0, "text": "Hm, so.", "signature": "sig"},
        {"type": "reasoning.encrypted", "index": 1, "data": "abc"},
    ]


async def test_a_price_is_believed_only_where_it_is_known_to_be_one(
    chat: RemoteModel, server: CannedServer, ask: Ask
) -> None:
    server.add(good(usage={"prompt_tokens": 10, "completion_tokens": 5, "cost": 0}))
    _, message = await ask(chat)
    assert (message.usage.input_tokens, message.usage.cost_usd) == (10, None)


async def test_the_signature_of_a_call_goes_back_with_it(chat: RemoteModel, server: CannedServer, ask: Ask) -> None:
    """Google's compatible endpoint rejects a call without it."""
    extra = {"google": {"thought_signature": "AY8="}}
    call = {"index": 0, "id": "c1", "function": {"name": "bash", "arguments": "{}"}, "extra_content": extra}
    server.add(Answer(sse(chat_chunk({"tool_calls": [call]}, "tool_calls"))), good())
    _, message = await ask(chat)
    stored = Message.model_validate_json(message.model_dump_json())
    await ask(chat, (*PROMPT, stored, Message(role="tool", call_id="c1", content=text_content("a"))))
    assert server.bodies[1]["messages"][2]["tool_calls"][0]["extra_content"] == extra
    assert "extra_content" not in server.bodies[1]["messages"][2]


# ---- addresses and keys ---------------------------------------------------------------------------------------------

AZURE = "https://res.openai.azure.com"


@pytest.mark.parametrize(
    ("base_url", "expected", "query"),
    [
        ("http://localhost:11434/v1/", "http://localhost:11434/v1", {}),
        ("http://gateway.example/v1?team=7", "http://gateway.example/v1", {"team": "7"}),
        (AZURE, f"{AZURE}/openai/v1", {}),
        (f"{AZURE}/openai/v1/", f"{AZURE}/openai/v1", {}),
        (f"{AZURE}/?api-version=2025-04-01", f"{AZURE}/openai/deployments/mine", {"api-version": "2025-04-01"}),
        (f"{AZURE}/openai/deployments/other/chat/completions?api-version=2025-04-01",
         f"{AZURE}/openai/deployments/other", {"api-version": "2025-04-01"}),
        ("https://res.services.ai.azure.com/openai", "https://res.services.ai.azure.com/openai/v1", {}),
    ],
)  # fmt: skip
def test_a_base_url_is_read_as_people_write_it(base_url: str, expected: str, query: dict[str, str]) -> None:
    address = read_address(base_url, "k", "mine")
    assert (address.base_url, address.query) == (expected, query)


async def test_azure_sees_the_key_in_its_own_header(server: CannedServer, ask: Ask, naps: Naps) -> None:
    model = chat_model("mine", base_url=f"{AZURE}?api-version=2025-04-01", api_key="azure-key", sleep=naps)
    library: Any = model._endpoint._client.library  # type: ignore[attr-defined]
    library.base_url = f"{server.url}/openai/deployments/mine"
    server.add(good(), error_answer(404, "The API deployment for this resource does not exist.", "DeploymentNotFound"))
    await ask(model)
    with pytest.raises(ModelError, match="name of your deployment"):
        await ask(model)
    await model.aclose()
    request = server.requests[0]
    assert request.path == "/v1/openai/deployments/mine/chat/completions?api-version=2025-04-01"
    assert request.headers["api-key"] == "azure-key"
    assert "authorization" not in request.headers


def test_a_token_is_no_key_for_azure() -> None:
    address = read_address(AZURE, "eyJ0.eyJh.sig", "mine")
    assert (address.bearer, address.headers) == (True, {})


@pytest.mark.parametrize(
    ("base_url", "environment", "key"),
    [
        (AZURE, {"AZURE_OPENAI_API_KEY": "a", "OPENAI_API_KEY": "o"}, "a"),
        (AZURE, {"OPENAI_API_KEY": "o"}, "o"),
        ("https://openrouter.ai/api/v1", {"OPENROUTER_API_KEY": "r", "OPENAI_API_KEY": "o"}, "r"),
        ("http://localhost:1/v1", {"OPENROUTER_API_KEY": "r"}, "none"),
    ],
)
async def test_a_hosts_own_key_comes_first(
    base_url: str, environment: dict[str, str], key: str, tmp_path: Path
) -> None:
    model: Any = resolve_model("chat:mine", directory=tmp_path, base_url=base_url, environment=environment)
    assert model._endpoint._client.library.api_key == key
    await model.aclose()


async def test_a_refused_key_is_named_as_it_is_set(server: CannedServer, ask: Ask, naps: Naps) -> None:
    server.add(error_answer(401, "No."))
    model = chat_model("m", base_url=server.url, api_key="k", key_name="OPENROUTER_API_KEY", sleep=naps)
    with pytest.raises(AuthenticationError, match="OPENROUTER_API_KEY"):
        await ask(model)
    await model.aclose()


# ---- complaints that say what to do ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "complaint", "advice"),
    [
        (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set', "Start vLLM"),
        (500, "tools param requires --jinja flag", "Start llama-server"),
        (400, "registry.ollama.ai/library/gemma:2b does not support tools", "model that can call tools"),
        (404, "model 'qwen9' not found, try pulling it first", "ollama pull"),
        (404, "No models loaded. Please load a model in the developer page.", "Load a model"),
    ],
)
async def test_known_complaints_come_with_the_way_out(
    status: int, complaint: str, advice: str, chat: RemoteModel, server: CannedServer, ask: Ask
) -> None:
    server.add(*[error_answer(status, complaint)] * 5)
    with pytest.raises(ModelError, match=advice):
        await ask(chat)
