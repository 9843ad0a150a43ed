"""``chat:``: what goes over the wire of Chat Completions, and what servers that speak it really send."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from canned_server import Answer, CannedServer, error_answer, json_answer, sse
from stand_ins import PICTURE, PROMPT, TOOLS, Naps
from wire import chat_chunk

from harness_nb.errors import ContextOverflowError, ModelError, RefusalError, TransientModelError
from harness_nb.models.chat import chat_model
from harness_nb.models.remote import RemoteModel
from harness_nb.ports import CallDelta, ModelSettings, ReasoningDelta, TextDelta, Withdrawn
from harness_nb.types import Message, TextPart, ToolCall, text_content

Ask = Callable[..., Any]
LS = '{"command": "ls"}'


def good(text: str = "Fine.") -> Answer:
    return Answer(sse(chat_chunk({"content": text}), chat_chunk({}, "stop"), done=True))


def calling(*pieces: dict[str, Any]) -> Answer:
    return Answer(
        sse(*[chat_chunk({"tool_calls": [piece]}) for piece in pieces], chat_chunk({}, "tool_calls"), done=True)
    )


def piece(arguments: Any = "", name: str | None = None, **more: Any) -> dict[str, Any]:
    function = {"arguments": arguments} if name is None else {"name": name, "arguments": arguments}
    return {"function": function, **more}


async def test_the_request_says_what_it_must(chat: RemoteModel, server: CannedServer, ask: Ask) -> None:
    server.add(good())
    settings = ModelSettings(max_output_tokens=500, temperature=0.0, reasoning_effort="low", cache_key="session-7")
    await ask(chat, settings=settings)
    (request,) = server.requests
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == "Bearer none"
    assert request.body == {
        "model": "local-model",
        "messages": [
            {"role": "system", "content": "You are careful."},
            {"role": "user", "content": "Count to three."},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "bash",
                    "description": "Run a command.",
                    "parameters": TOOLS[0].parameters,
                },
            }
        ],
        "max_tokens": 500,
        "temperature": 0.0,
        "reasoning_effort": "low",
    }


async def test_pictures_follow_behind_the_last_result(chat: RemoteModel, server: CannedServer, ask: Ask) -> None:
    server.add(good())
    calls = (ToolCall(call_id="c1", name="bash"), ToolCall(call_id="c2", name="bash", malformed="{oops"))
    reply = Message(role="assistant", tool_calls=calls)
    first = Message(role="tool", call_id="c1", content=(TextPart(text="plot"), PICTURE))
    second = Message(role="tool", call_id="c2", content=text_content("no"))
    await ask(chat, (*PROMPT, reply, first, second, PROMPT[1]))
    sent = server.bodies[0]["messages"]
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "tool", "tool", "user", "user"]
    assert sent[2]["content"] is None
    assert [call["id"] for call in sent[2]["tool_calls"]] == ["c1", "c2"]
    assert json.loads(sent[2]["tool_calls"][1]["function"]["arguments"]) == {"malformed_arguments": "{oops"}
    assert all(isinstance(message["content"], str) for message in sent[3:5])
    assert sent[3]["tool_call_id"] == "c1"
    title, picture = sent[5]["content"]
    assert "c1" in title["text"]
    assert picture == {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    assert sent[6]["content"] == "Count to three."


async def test_pictures_at_the_very_end_are_sent_too(chat: RemoteModel, server: CannedServer, ask: Ask) -> None:
    server.add(good())
    await ask(chat, (*PROMPT, Message(role="tool", call_id="c1", content=(PICTURE,))))
    assert [message["role"] for message in server.bodies[0]["messages"]] == ["system", "user", "tool", "user"]


PIECEMEAL = {
    "no index, no type": [piece("", "bash", id="c1"), piece('{"command"'), piece(': "ls"}')],
    "no id": [piece("", "bash", index=0), piece(LS, index=0)],
    "neither index nor id": [piece("", "bash"), piece(LS)],
    "an id in each piece": [
        piece("", "bash", index=0, id="c1"),
        piece('{"command"', index=0, id="c1"),
        piece(': "ls"}', index=0, id="c1"),
    ],
    "the name in each piece": [piece('{"command"', "bash", index=0, id="c1"), piece(': "ls"}', "bash", index=0)],
    "null fields": [piece(None, "bash", index=0, id="c1", type=None), piece(LS, index=0, id=None)],
    "an empty id": [piece(LS, "bash", index=0, id="")],
    "an object": [piece({"command": "ls"}, "bash", id="c1")],
}


@pytest.mark.parametrize("name", PIECEMEAL)
async def test_one_call_is_put_together(name: str, chat: RemoteModel, server: CannedServer, ask: Ask) -> None:
    server.add(calling(*PIECEMEAL[name]))
    _, message = await ask(chat)
    (call,) = message.tool_calls
    assert (call.name, call.arguments, call.malformed) == ("bash", {"command": "ls"}, None)
    assert call.call_id in ("c1", "call_2_0")


PARALLEL = {
    "interleaved": [
        piece("", "bash", index=0, id="c1"),
        piece("", "look", index=1, id="c2"),
        piece(LS, index=0),
        piece('{"a": 1}', index=1),
    ],
    "no index": [piece(LS, "bash", id="c1"), piece('{"a": 1}', "look", id="c2")],
    "no index, in pieces": [
        piece("", "bash", id="c1"),
        piece(LS),
        piece("", "look", id="c2"),
        piece('{"a"'),
        piece(": 1}"),
    ],
    "neither index nor id": [piece(LS, "bash"), piece("", "look"), piece('{"a": 1}')],
    "all under index 0": [piece(LS, "bash", index=0, id="c1"), piece('{"a": 1}', "look", index=0, id="c2")],
}


@pytest.mark.parametrize("name", PARALLEL)
async def test_two_calls_are_kept_apart(name: str, chat: RemoteModel, server: CannedServer, ask: Ask) -> None:
    server.add(calling(*PARALLEL[name]))
    _, message = await ask(chat)
    assert [(call.name, call.arguments) for call in message.tool_calls] == [
        ("bash", {"command": "ls"}),
        ("look", {"a": 1}),
    ]
    assert len({call.call_id for call in message.tool_calls}) == 2


async def test_the_same_tool_twice_without_index_and_id(chat: RemoteModel, server: CannedServer, ask: Ask) -> None:
    server.add(calling(piece(LS, "bash"), piece('{"command": "pwd"}', "bash")))
    _, message = await ask(chat)
    assert [call.arguments["command"] for call in message.tool_calls] == ["ls", "pwd"]
    assert [call.call_id for call in message.tool_calls] == ["call_2_0", "call_2_1"]


async def test_made_up_ids_do_not_meet_earlier_ones(chat: RemoteModel, server: CannedServer, ask: Ask) -> None:
    server.add(calling(piece(LS, "bash")))
    earlier = Message(role="assistant", tool_calls=(ToolCall(call_id="call_3_0", name="bash"),))
    _, message = await ask(chat, (*PROMPT, earlier))
    assert message.tool_calls[0].call_id == "call_4_0"


async def test_a_server_that_ignores_stream_is_understood(chat: RemoteModel, server: CannedServer, ask: Ask) -> None:
    reply = {
        "role": "assistant",
        "content": "All at once.",
        "reasoning_content": "Hm.",
        "tool_calls": [{"id": "c1", "function": {"name": "bash", "arguments": LS}}],
    }
    usage = {"prompt_tokens": 9, "completion_tokens": 4}
    choices = [{"message": reply, "finish_reason": "tool_calls"}]
    server.add(json_answer({"object": "chat.completion", "model": "served-name", "choices": choices, "usage": usage}))
    deltas, message = await ask(chat)
    assert deltas == [ReasoningDelta("Hm."), TextDelta("All at once."), CallDelta("bash", LS)]
    assert message.tool_calls == (ToolCall(call_id="c1", name="bash", arguments={"command": "ls"}),)
    assert (message.usage.input_tokens, message.usage.output_tokens) == (9, 4)
    assert message.model == "served-name"


async def test_odd_chunks_do_no_harm(chat: RemoteModel, server: CannedServer, ask: Ask) -> None:
    chunks = [
        {"choices": None, "prompt_filter_results": []},
        {"choices": []},
        {"choices": [{"delta": None}]},
        {"choices": [{"delta": {"content": None, "tool_calls": None, "refusal": None}}]},
        {"choices": [{"delta": {"content": "Fine"}}], "usage": None},
        {"choices": [{"delta": {"content": [{"type": "thinking", "thinking": []}, {"type": "text", "text": "."}]}}]},
        {"choices": [{"delta": {}, "finish_reason": "eos"}], "usage": {"prompt_tokens": "many"}},
    ]
    server.add(Answer([b": OPENROUTER PROCESSING\n\n", *sse(*chunks)]))
    _, message = await ask(chat)
    assert (message.text, message.finish_reason) == ("Fine.", "stop")
    assert message.usage.input_tokens is None


async def test_done_without_a_reason_is_an_end(chat: RemoteModel, server: CannedServer, ask: Ask) -> None:
    server.add(Answer(sse(chat_chunk({"content": "Fine."}), done=True)))
    _, message = await ask(chat)
    assert (message.text, message.finish_reason) == ("Fine.", "stop")


async def test_a_reason_without_done_is_an_end(chat: RemoteModel, server: CannedServer, ask: Ask) -> None:
    server.add(Answer(sse(chat_chunk({"content": "Fine."}), chat_chunk({}, "stop"))))
    _, message = await ask(chat)
    assert (message.text, message.finish_reason) == ("Fine.", "stop")


BROKEN = {
    "cut": Answer(sse(chat_chunk({"content": "Half an"}))),
    "cut in a call": Answer(sse(chat_chunk({"tool_calls": [piece(LS, "bash", id="c1")]}))),
    "cut at once": Answer([]),
    "dropped": Answer(sse(chat_chunk({"content": "Half an"})), end="drop"),
    "broken JSON": Answer([*sse(chat_chunk({"content": "Half an"})), b'data: {"choi\n\n', *good().chunks]),
    "error chunk": Answer(sse(chat_chunk({"content": "Half an"}), {"error": {"message": "upstream", "code": 502}})),
    "error text": Answer(sse({"error": "the model crashed"})),
    "error as a reason": Answer(sse(chat_chunk({"content": "Half an"}), chat_chunk({}, "error"), done=True)),
    "aborted": Answer(sse(chat_chunk({"content": "Half an"}), chat_chunk({}, "abort"), done=True)),
    "no machine left": Answer(sse(chat_chunk({"content": "H"}), chat_chunk({}, "insufficient_system_resource"))),
}


@pytest.mark.parametrize("name", BROKEN)
async def test_a_broken_stream_is_made_again_and_never_half_an_answer(
    name: str, chat: RemoteModel, server: CannedServer, ask: Ask, naps: Naps
) -> None:
    server.add(BROKEN[name], good("Whole."))
    deltas, message = await ask(chat)
    assert (message.text, message.tool_calls) == ("Whole.", ())
    assert sum(isinstance(delta, Withdrawn) for delta in deltas) == len(naps.seconds) == 1


LATE = {
    "dropped": Answer(sse(chat_chunk({"content": "Whole."}), chat_chunk({}, "stop")), end="drop"),
    "broken JSON": Answer([*sse(chat_chunk({"content": "Whole."}), chat_chunk({}, "stop")), b'data: {"usa\n\n']),
    "error chunk": Answer(sse(chat_chunk({"content": "Whole."}), chat_chunk({}, "stop"), {"error": "no figures"})),
}


@pytest.mark.parametrize("name", LATE)
async def test_an_answer_that_is_there_is_not_paid_for_again(
    name: str, chat: RemoteModel, server: CannedServer, ask: Ask
) -> None:
    server.add(LATE[name], good("Paid twice."))
    _, message = await ask(chat)
    assert (message.text, message.finish_reason) == ("Whole.", "stop")
    assert len(server.requests) == 1


async def test_a_full_context_window_is_an_overflow(chat: RemoteModel, server: CannedServer, ask: Ask) -> None:
    server.add(Answer(sse(chat_chunk({"content": "Ha"}), chat_chunk({}, "model_context_window_exceeded"), done=True)))
    with pytest.raises(ContextOverflowError, match="context window"):
        await ask(chat)
    assert len(server.requests) == 1


async def test_a_reply_that_said_nothing_is_not_sent_back(chat: RemoteModel, server: CannedServer, ask: Ask) -> None:
    """Mistral and others reject it."""
    server.add(good(""), good())
    _, empty = await ask(chat)
    assert (empty.text, empty.tool_calls) == ("", ())
    await ask(chat, (*PROMPT, empty, PROMPT[1]))
    assert [message["role"] for message in server.bodies[1]["messages"]] == ["system", "user", "user"]


async def test_a_stream_that_stays_cut_ends_in_a_typed_error(chat: RemoteModel, server: CannedServer, ask: Ask) -> None:
    server.add(*[BROKEN["cut"]] * 5)
    with pytest.raises(TransientModelError, match=r"before the answer was complete.*5 attempts"):
        await ask(chat)


async def test_a_web_page_points_to_the_base_url(chat: RemoteModel, server: CannedServer, ask: Ask) -> None:
    server.add(Answer([b"\n<html><title>Ollama</title></html>"], headers={"content-type": "text/html"}))
    with pytest.raises(ModelError, match=r"'Ollama'.*base URL"):
        await ask(chat)


@pytest.mark.parametrize(
    "answer",
    [
        Answer(sse(chat_chunk({"refusal": "I will "}), chat_chunk({"refusal": "not."}), chat_chunk({}, "stop"))),
        Answer(sse(chat_chunk({"content": "I wi"}), chat_chunk({}, "content_filter"), done=True)),
        Answer(sse(chat_chunk({"content": "I wi"}), chat_chunk({}, "sensitive"), done=True)),
    ],
    ids=["refusal", "filter", "filter in other words"],
)
async def test_a_refusal_is_an_error_and_not_a_text(
    answer: Answer, chat: RemoteModel, server: CannedServer, ask: Ask
) -> None:
    server.add(answer)
    with pytest.raises(RefusalError, match=r"I will not\.|content filter"):
        await ask(chat)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("the request exceeds the available context size, try increasing it", "exceed_context_size_error"),
        ("This model's maximum context length is 4096 tokens. However, you requested 5000 tokens", "BadRequestError"),
        ("Trying to keep the first 5000 tokens when context the overflows: greater than the context length", None),
    ],
)
async def test_overflow_is_known_in_the_words_of_local_servers(
    message: str, kind: str | None, chat: RemoteModel, server: CannedServer, ask: Ask
) -> None:
    server.add(json_answer({"error": {"message": message, "type": kind, "code": 400}}, 400))
    with pytest.raises(ContextOverflowError, match="context"):
        await ask(chat)
    assert len(server.requests) == 1


async def test_usage_in_the_stream_is_given_up_where_it_is_rejected(
    chat: RemoteModel, server: CannedServer, ask: Ask
) -> None:
    server.add(error_answer(422, "extra_forbidden: body.stream_options"), good(), good())
    _, message = await ask(chat)
    await ask(chat)
    assert ["stream_options" in body for body in server.bodies] == [True, False, False]
    assert message.usage.input_tokens is None


async def test_the_name_of_the_output_limit_is_learnt_and_the_limit_kept(
    chat: RemoteModel, server: CannedServer, ask: Ask
) -> None:
    complaint = "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."
    server.add(error_answer(400, complaint), good())
    await ask(chat, settings=ModelSettings(max_output_tokens=77))
    assert [body.get("max_tokens") for body in server.bodies] == [77, None]
    assert server.bodies[1]["max_completion_tokens"] == 77


async def test_a_server_that_takes_neither_name_is_not_asked_for_ever(
    chat: RemoteModel, server: CannedServer, ask: Ask
) -> None:
    server.add(*[error_answer(400, "no max_tokens, no max_completion_tokens")] * 9)
    with pytest.raises(ModelError, match="no max_tokens"):
        await ask(chat, settings=ModelSettings(max_output_tokens=77))
    assert len(server.requests) <= 3


async def test_a_server_that_cannot_stream_is_asked_without(chat: RemoteModel, server: CannedServer, ask: Ask) -> None:
    whole = {"choices": [{"message": {"content": "Whole."}, "finish_reason": "stop"}]}
    server.add(error_answer(400, "tools with stream=true are not supported"), json_answer(whole))
    _, message = await ask(chat)
    assert message.text == "Whole."
    assert [body["stream"] for body in server.bodies] == [True, False]


async def test_temperature_is_never_dropped_silently(chat: RemoteModel, server: CannedServer, ask: Ask) -> None:
    server.add(error_answer(400, "Unsupported value: 'temperature' does not support 0.3 with this model."))
    with pytest.raises(ModelError, match="temperature"):
        await ask(chat, settings=ModelSettings(temperature=0.3))
    assert len(server.requests) == 1


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
async def test_reasoning_is_shown_and_goes_back_only_where_it_is_asked_for(
    field: str, chat: RemoteModel, server: CannedServer, ask: Ask
) -> None:
    chunks = [chat_chunk({field: "Hm, "}), chat_chunk({field: "so."}), chat_chunk({"content": "Yes."}, "stop")]
    complaint = "The `reasoning_content` in the thinking mode must be passed back to the API."
    server.add(Answer(sse(*chunks, done=True)), error_answer(400, complaint), good())
    deltas, message = await ask(chat)
    assert "".join(delta.text for delta in deltas if isinstance(delta, ReasoningDelta)) == "Hm, so."
    assert message.text == "Yes."
    await ask(chat, (*PROMPT, message, PROMPT[1]))
    assert [field in body["messages"][-2] for body in server.bodies] == [False, False, True]
    assert server.bodies[2]["messages"][2] == {"role": "assistant", "content": "Yes.", field: "Hm, so."}


async def test_https_before_a_server_without_tls_says_so(naps: Naps, ask: Ask) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    plain = await asyncio.start_server(refuse, "127.0.0.1", 0)
    url = f"https://127.0.0.1:{plain.sockets[0].getsockname()[1]}/v1"
    model = chat_model("m", base_url=url, api_key="none", timeout=20, sleep=naps)
    with pytest.raises(ModelError, match="begins with http://"):
        await ask(model)
    assert naps.seconds == []
    await model.aclose()
    plain.close()
    await plain.wait_closed()
