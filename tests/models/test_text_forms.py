"""Thinking and calls that come in the text: the forms of the models' templates, whole and in pieces."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from canned_server import Answer, CannedServer, sse
from stand_ins import PROMPT, TOOLS
from wire import chat_chunk, message_item, response_events

from harness_nb.models.chat import chat_model
from harness_nb.models.remote import RemoteModel
from harness_nb.models.text_calls import OPENERS, find_calls
from harness_nb.models.text_forms import TextForms
from harness_nb.ports import ReasoningDelta, TextDelta, Withdrawn
from harness_nb.types import Message, ToolSpec, text_content

Ask = Callable[..., Any]
WRITE = ToolSpec(
    name="write_file",
    description="Write.",
    parameters={
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "content": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "append": {"type": "boolean"},
        },
    },
)
BOTH = (*TOOLS, WRITE)
LS = {"command": "ls -l"}
BAR, GAP = "\uff5c", "▁"


def deepseek(name: str) -> str:
    return f"<{BAR}{name.replace(' ', GAP)}{BAR}>"


ONE_CALL = {
    "Hermes, Qwen": '<tool_call>\n{"name": "bash", "arguments": {"command": "ls -l"}}\n</tool_call>',
    "Hermes without an end": '<tool_call>\n{"name": "bash", "arguments": {"command": "ls -l"}}',
    "Qwen Coder": "<tool_call>\n<function=bash>\n<parameter=command>\nls -l\n</parameter>\n</function>\n</tool_call>",
    "Qwen Coder, bare": "<function=bash>\n<parameter=command>\nls -l\n</parameter>\n</function>\n</tool_call>",
    "GLM": "<tool_call>bash\n<arg_key>command</arg_key>\n<arg_value>ls -l</arg_value>\n</tool_call>",
    "Llama 3.1, tag": '<|python_tag|>{"name": "bash", "parameters": {"command": "ls -l"}}<|eom_id|>',
    "Llama 3.1, custom": '<function=bash>{"command": "ls -l"}</function>',
    "Llama 3.2, bare": '{"name": "bash", "parameters": {"command": "ls -l"}}',
    "bare, nested": '{"type": "function", "function": {"name": "bash", "arguments": "{\\"command\\": \\"ls -l\\"}"}}',
    "fenced": '```json\n{"name": "bash", "arguments": {"command": "ls -l"}}\n```',
    "Mistral": '[TOOL_CALLS][{"name": "bash", "arguments": {"command": "ls -l"}}]',
    "Mistral, newer": '[TOOL_CALLS]bash[CALL_ID]x1[ARGS]{"command": "ls -l"}',
    "DeepSeek R1": deepseek("tool calls begin") + deepseek("tool call begin") + "function" + deepseek("tool sep")
    + 'bash\n```json\n{"command": "ls -l"}\n```' + deepseek("tool call end") + deepseek("tool calls end"),
    "DeepSeek V3.1": deepseek("tool calls begin") + deepseek("tool call begin") + "bash" + deepseek("tool sep")
    + '{"command": "ls -l"}' + deepseek("tool call end") + deepseek("tool calls end"),
    "Kimi": "<|tool_calls_section_begin|><|tool_call_begin|>functions.bash:0<|tool_call_argument_begin|>"
    '{"command": "ls -l"}<|tool_call_end|><|tool_calls_section_end|>',
    "Granite": '<|tool_call|>[{"name": "bash", "arguments": {"command": "ls -l"}}]',
    "gpt-oss": '<|channel|>commentary to=functions.bash <|constrain|>json<|message|>{"command": "ls -l"}<|call|>',
    "MiniMax": '<minimax:tool_call>\n<invoke name="bash">\n<parameter name="command">ls -l</parameter>\n</invoke>\n'
    "</minimax:tool_call>",
}  # fmt: skip


@pytest.mark.parametrize("name", ONE_CALL)
def test_a_call_in_a_known_form_is_found(name: str) -> None:
    found = find_calls(ONE_CALL[name], BOTH)
    assert [(call.name, call.arguments, call.malformed) for call in found.calls] == [("bash", LS, None)]
    assert found.rest == ""


@pytest.mark.parametrize("name", ONE_CALL)
@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_nothing_of_a_call_is_shown_before_it_is_one(name: str, size: int) -> None:
    framed = not ONE_CALL[name].startswith(("{", "```"))
    text = ("Let me look. <b>\n" if framed else "") + ONE_CALL[name]
    forms = TextForms(BOTH)
    deltas = [delta for start in range(0, len(text), size) for delta in forms.feed(text[start : start + size])]
    deltas += forms.close(calls=True, cut=False)
    assert "".join(delta.text for delta in deltas) == forms.text == ("Let me look. <b>\n" if framed else "")
    assert [call.arguments for call in forms.calls] == [LS]


def test_several_calls_keep_their_order_and_the_text_between() -> None:
    pwd = '<tool_call>{"name": "bash", "arguments": {"command": "pwd"}}</tool_call>'
    found = find_calls(f"First.\n{ONE_CALL['Hermes, Qwen']}\nThen.\n{pwd}", BOTH)
    assert [call.arguments["command"] for call in found.calls] == ["ls -l", "pwd"]
    assert found.rest == "First.\n\nThen."


def test_arguments_get_the_types_of_the_schema() -> None:
    text = (
        "<tool_call><function=write_file><parameter=path>7</parameter><parameter=content>\n  x = {\n\n</parameter>"
        "<parameter=append>true</parameter></function></tool_call>"
    )
    (call,) = find_calls(text, BOTH).calls
    assert call.arguments == {"path": "7", "content": "  x = {\n", "append": True}


NO_CALL = {
    "a tool that is not offered": '<tool_call>{"name": "rm", "arguments": {}}</tool_call>',
    "JSON that is an answer": '{"name": "Ada", "born": 1815}',
    "an object of a tool's name without arguments": '{"name": "bash"}',
    "a bare object with words behind": '{"name": "bash", "arguments": {}} would list them.',
    "talk of tags": "Qwen writes <tool_call> and </tool_call> around its calls.",
    "a list": "[1] says so.",
    "code": "```python\nprint(1)\n```",
}


@pytest.mark.parametrize("name", NO_CALL)
@pytest.mark.parametrize("size", [1, 10_000])
def test_other_text_stays_text(name: str, size: int) -> None:
    text = NO_CALL[name]
    forms = TextForms(BOTH)
    deltas = [delta for start in range(0, len(text), size) for delta in forms.feed(text[start : start + size])]
    deltas += forms.close(calls=True, cut=False)
    assert (forms.calls, forms.text) == ((), text)
    assert "".join(delta.text for delta in deltas) == text


def test_without_tools_no_call_is_looked_for() -> None:
    forms = TextForms(())
    shown = "".join(delta.text for delta in forms.feed(ONE_CALL["Hermes, Qwen"]))
    assert shown == ONE_CALL["Hermes, Qwen"]
    assert list(forms.close(calls=True, cut=False)) == []
    assert forms.calls == ()


CUT = {
    "Hermes": '<tool_call>{"name": "write_file", "arguments": {"path": "a.py", "content": "x =',
    "Qwen Coder": "<tool_call><function=write_file><parameter=path>a.py</parameter><parameter=content>x =",
}


@pytest.mark.parametrize("name", CUT)
def test_a_call_that_was_cut_off_is_malformed(name: str) -> None:
    (call,) = find_calls(CUT[name], BOTH, cut=True).calls
    assert (call.name, call.arguments) == ("write_file", {})
    assert "a.py" in (call.malformed or "")


def test_a_call_whose_json_is_broken_is_malformed() -> None:
    (call,) = find_calls('<tool_call>{"name": "bash", "arguments": {"command": "ls}}</tool_call>', BOTH).calls
    assert (call.name, call.arguments) == ("bash", {})
    assert call.malformed


THOUGHTS = {
    "think": "<think>\nHm, so.\n</think>\n\nYes.",
    "thinking": "  <thinking>Hm, so.\n</thinking>Yes.",
    "Magistral": "[THINK]Hm, so.\n[/THINK]Yes.",
}


@pytest.mark.parametrize("name", THOUGHTS)
@pytest.mark.parametrize("size", [1, 4, 10_000])
def test_thinking_is_told_apart(name: str, size: int) -> None:
    text = THOUGHTS[name]
    forms = TextForms(TOOLS)
    deltas = [delta for start in range(0, len(text), size) for delta in forms.feed(text[start : start + size])]
    deltas += forms.close(calls=True, cut=False)
    assert "".join(delta.text for delta in deltas if isinstance(delta, ReasoningDelta)).strip() == "Hm, so."
    assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) == forms.text == "Yes."


@pytest.mark.parametrize("size", [1, 10_000])
def test_a_call_may_stand_behind_thinking_but_not_in_it(size: int) -> None:
    call = ONE_CALL["Llama 3.2, bare"]
    text = f"<think>I could say {ONE_CALL['Hermes, Qwen']}.</think>\n{call}"
    forms = TextForms(TOOLS)
    for start in range(0, len(text), size):
        assert not any(isinstance(delta, TextDelta) for delta in forms.feed(text[start : start + size]))
    assert list(forms.close(calls=True, cut=False)) == []
    assert [call.arguments for call in forms.calls] == [LS]


def test_every_opener_is_held_back() -> None:
    for opener in OPENERS:
        forms = TextForms(TOOLS)
        shown = "".join(delta.text for letter in f"a {opener}x" for delta in forms.feed(letter))
        assert shown == "a "


# ---- over HTTP ------------------------------------------------------------------------------------------------------


def spoken(text: str, finish: str = "stop") -> Answer:
    pieces = [text[start : start + 9] for start in range(0, len(text), 9)]
    return Answer(sse(*[chat_chunk({"content": piece}) for piece in pieces], chat_chunk({}, finish), done=True))


async def test_a_tool_loop_with_calls_in_the_text(chat: RemoteModel, server: CannedServer, ask: Ask) -> None:
    server.add(spoken(f"<think>Hm.</think>I look.\n{ONE_CALL['Hermes, Qwen']}"), spoken("Done."))
    deltas, first = await ask(chat)
    assert (first.text, first.finish_reason) == ("I look.\n", "tool_calls")
    assert [(call.call_id, call.arguments) for call in first.tool_calls] == [("call_2_0", LS)]
    assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) == first.text
    result = Message(role="tool", call_id="call_2_0", content=text_content("a.py"))
    _, second = await ask(chat, (*PROMPT, first, result))
    assert second.text == "Done."
    (call,) = server.bodies[1]["messages"][2]["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == LS


async def test_a_cut_call_in_the_text_is_not_run(chat: RemoteModel, server: CannedServer, ask: Ask) -> None:
    """M2 for servers without a parser."""
    server.add(spoken('<tool_call>{"name": "bash", "arguments": {"command": "rm -r /tmp/x', "length"))
    _, message = await ask(chat)
    assert message.finish_reason == "length"
    assert [(call.name, call.arguments) for call in message.tool_calls] == [("bash", {})]
    assert message.tool_calls[0].malformed is not None


async def test_calls_in_fields_come_before_calls_in_the_text(chat: RemoteModel, server: CannedServer, ask: Ask) -> None:
    call = {"index": 0, "id": "c1", "function": {"name": "bash", "arguments": '{"command": "pwd"}'}}
    chunks = [chat_chunk({"content": ONE_CALL["Hermes, Qwen"]}), chat_chunk({"tool_calls": [call]}, "tool_calls")]
    server.add(Answer(sse(*chunks, done=True)))
    _, message = await ask(chat)
    assert [call.arguments for call in message.tool_calls] == [{"command": "pwd"}]
    assert message.text == ONE_CALL["Hermes, Qwen"]


async def test_a_lost_attempt_leaves_nothing_held(chat: RemoteModel, server: CannedServer, ask: Ask) -> None:
    lost = Answer(spoken(f"I look.\n{ONE_CALL['Hermes, Qwen']}").chunks[:-3])
    server.add(lost, spoken("Fine."))
    deltas, message = await ask(chat)
    cut = next(k for k, delta in enumerate(deltas) if isinstance(delta, Withdrawn))
    assert (message.text, message.tool_calls) == ("Fine.", ())
    assert "".join(delta.text for delta in deltas[cut + 1 :]) == "Fine."


async def test_responses_of_a_server_without_a_parser(responses: RemoteModel, server: CannedServer, ask: Ask) -> None:
    """vllm#29725: calls as text, so the items do not go back as they came."""
    server.add(Answer(sse(*response_events([message_item(f"I look.\n{ONE_CALL['Qwen Coder']}")]), names=True)))
    _, message = await ask(responses)
    assert [call.arguments for call in message.tool_calls] == [LS]
    assert (message.text, message.provider_items) == ("I look.\n", ())


async def test_a_hosted_provider_is_taken_at_its_word(naps: Any) -> None:
    model = chat_model("gpt-6-luna", base_url="https://api.openai.com/v1", api_key="k", sleep=naps)
    assert model._endpoint.quirks.text_forms is False
    await model.aclose()
