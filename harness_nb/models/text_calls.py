"""Tool calls that a model writes into its text, because its server does not read them out of it. Pure.

``text_forms`` calls it, where the server gave no calls of its own. The forms are those of the models' chat templates
(Hermes and Qwen, Qwen Coder, GLM, Llama, Mistral, DeepSeek, Kimi, Granite, gpt-oss, MiniMax), as they turn up behind
vLLM without a parser (vllm#29725), Ollama (ollama#5796), LM Studio and llama.cpp. A text counts as a call only if it
names a tool that was offered; anything else stays text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness_nb.models.calls import mend, read_call
from harness_nb.types import JsonObject, ToolCall, ToolSpec

OPENERS = (
    "<tool_call>", "<tool_calls>", "<function_call>", "<function_calls>", "<function=", "<invoke name=",
    "<minimax:tool_call>", "<|tool_call|>", "<|python_tag|>", "[TOOL_CALLS]", "<|channel|>commentary to=",
    "<\uff5ctool▁calls▁begin\uff5c>", "<\uff5ctool▁call▁begin\uff5c>",
    "<|tool_calls_section_begin|>", "<|tool_call_begin|>",
)  # fmt: skip
"""What a call begins with; from there on a text is not shown before it is known what it is."""

_FORMS = tuple(
    re.compile(form.replace("END(", "(?P<end>\\Z|"), re.DOTALL)
    for form in (
        r"<invoke name=\"(?P<name>[^\"]+)\">(?P<body>.*?)END(</invoke>)",
        r"<\|tool_call_begin\|>\s*(?:functions\.)?(?P<name>[\w-]+)(?::\d+)?\s*<\|tool_call_argument_begin\|>"
        r"(?P<body>.*?)END(<\|tool_call_end\|>)",
        r"<\uff5ctool▁call▁begin\uff5c>function<\uff5ctool▁sep\uff5c>(?P<name>[\w-]+)\s*```json\s*(?P<body>.*?)```\s*"
        r"END(<\uff5ctool▁call▁end\uff5c>)",
        r"<\uff5ctool▁call▁begin\uff5c>(?P<name>[\w-]+)<\uff5ctool▁sep\uff5c>(?P<body>.*?)END(<\uff5ctool▁call▁end\uff5c>)",
        r"<\|channel\|>commentary to=(?:functions\.)?(?P<name>[\w-]+).*?<\|message\|>(?P<body>.*?)END(<\|call\|>)",
        r"<tool_call>(?P<body>.*?)END(</tool_call>)",
        r"<function=(?P<name>[^>\s]+)>(?P<body>.*?)END(</function>)",
        r"<function_call>(?P<body>.*?)END(</function_call>)",
        r"<\|tool_call\|>(?P<body>.*?)END(<\|/tool_call\|>)",
        r"<\|python_tag\|>(?P<body>.*?)END(<\|eom_id\|>|<\|eot_id\|>)",
        r"\[TOOL_CALLS\]\s*(?P<name>[\w-]+)(?:\[CALL_ID\]\w+)?(?:\[ARGS\])?(?P<body>\{.*?)END((?=\[TOOL_CALLS\])|</s>)",
        r"\[TOOL_CALLS\](?P<body>.*?)END(</s>)",
    )
)
_MARKUP = re.compile(
    r"</?(tool_calls?|function_calls?|minimax:tool_call)>|<\uff5ctool▁calls▁(begin|end)\uff5c>"
    r"|<\|tool_calls_section_(begin|end)\|>|<\|(im_end|eot_id|eom_id|end|call)\|>|<\uff5cend▁of▁sentence\uff5c>|</s>"
)
"""What stands around calls and is no text."""

_FUNCTION = re.compile(r"<function=(?P<name>[^>\s]+)>(?P<body>.*?)(</function>|\Z)", re.DOTALL)
_PARAMETER = re.compile(
    r"<parameter(?:=(?P<a>[^>\s]+)| name=\"(?P<b>[^\"]+)\")>(?P<value>.*?)(</parameter>|(?=<parameter)|\Z)", re.DOTALL
)
_PAIR = re.compile(r"<arg_key>(?P<key>.*?)</arg_key>\s*<arg_value>(?P<value>.*?)(</arg_value>|\Z)", re.DOTALL)
_FENCE = re.compile(r"\A```(?:json|tool_call)?\s*(?P<body>.*?)\s*(```)?\Z", re.DOTALL)
_NAME = re.compile(r"\"name\"\s*:\s*\"([^\"]+)\"")


@dataclass(frozen=True, slots=True)
class Found:
    """The calls in a text, and what is left of it."""

    calls: tuple[ToolCall, ...]
    rest: str


def find_calls(text: str, tools: Sequence[ToolSpec], *, cut: bool = False) -> Found:
    """The calls of ``tools`` that ``text`` has in one of the known forms. Ids are left empty.

    A call that begins rightly and cannot be read is malformed, with its text; so is the last one of a reply that was
    ``cut`` off, if it has no end.
    """
    offered = {tool.name: tool for tool in tools}
    for form in _FORMS:
        calls: list[ToolCall] = []
        rest, position = "", 0
        for match in form.finditer(text):
            read = _read_match(match, offered, cut=cut)
            if read:
                calls += read
                rest, position = rest + text[position : match.start()], match.end()
        if calls:
            rest += text[position:]
            return Found(tuple(calls), _MARKUP.sub("", rest).strip())
    bare = text.strip()
    if bare.startswith(("{", "[", "```")) and (calls := list(_read_json(_unfence(bare), offered, cut=cut, bare=True))):
        return Found(tuple(calls), "")
    return Found((), text)


def _read_match(match: re.Match[str], offered: Mapping[str, ToolSpec], *, cut: bool) -> list[ToolCall]:
    """The calls in one piece of markup; none if it names no tool that was offered."""
    name, body = match.groupdict().get("name"), match["body"].strip()
    open_end = cut and match.end() == len(match.string) and not match["end"]
    if name is None and (function := _FUNCTION.search(body)):
        name, body = function["name"], function["body"].strip()
    if name is None and "<arg_key>" in body:
        name = body.partition("<arg_key>")[0].strip()
    if name is None:
        return list(_read_json(_unfence(body), offered, cut=open_end))
    if name not in offered:
        return []
    if open_end:
        return [ToolCall(call_id="", name=name, malformed=body)]
    pairs = [(found["a"] or found["b"], found["value"]) for found in _PARAMETER.finditer(body)]
    pairs = pairs or [(found["key"], found["value"]) for found in _PAIR.finditer(body)]
    if pairs or not body:
        return [ToolCall(call_id="", name=name, arguments=_read_pairs(pairs, offered[name]))]
    return [read_call("", name, _first_value(_unfence(body)), cut=cut)]


def _read_json(text: str, offered: Mapping[str, ToolSpec], *, cut: bool, bare: bool = False) -> Iterator[ToolCall]:
    """The calls in JSON objects with a name and arguments, in a list or one behind the other.

    Where it stands ``bare``, without markup, the whole text must be such objects.
    """
    values, whole = _decode_all(text)
    calls = [call for value in values if (call := _read_object(value, offered))]
    if bare and not (whole and len(calls) == len(values)):
        return
    yield from calls
    name = _NAME.search(text)
    if not whole and name and name[1] in offered and (cut or not calls):
        yield ToolCall(call_id="", name=name[1], malformed=text)


def _decode_all(text: str) -> tuple[list[Any], bool]:
    """The JSON values in a text, lists opened, and whether there is nothing else in it."""
    values: list[Any] = []
    decoder, position = json.JSONDecoder(), 0
    while position < len(text):
        try:
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            return values, False
        values += value if isinstance(value, list) else [value]
        while position < len(text) and text[position] in " \t\r\n;,":
            position += 1
    return values, True


def _read_object(value: Any, offered: Mapping[str, ToolSpec]) -> ToolCall | None:
    value = value.get("function", value) if isinstance(value, dict) else value
    if not isinstance(value, dict) or value.get("name") not in offered:
        return None
    key = next((key for key in ("arguments", "parameters") if key in value), None)
    return read_call("", value["name"], value[key]) if key else None


def _read_pairs(pairs: Sequence[tuple[str, str]], tool: ToolSpec) -> JsonObject:
    """The arguments of a form that has texts only: what the schema calls a string stays one."""
    properties = tool.parameters.get("properties") or {}
    arguments: JsonObject = {}
    for key, text in pairs:
        value: Any = text.removeprefix("\n").removesuffix("\n")
        if not _takes_text(properties.get(key) or {}):
            try:
                value = json.loads(value)
            except (ValueError, RecursionError):
                value = value.strip()
        arguments[key] = value
    return dict(mend(arguments))


def _takes_text(schema: JsonObject) -> bool:
    kinds = [schema.get("type"), *(choice.get("type") for choice in schema.get("anyOf") or [])]
    return "string" in kinds


def _first_value(text: str) -> str:
    """The JSON value that a text begins with, without what stands behind it; the text if it begins with none."""
    try:
        _, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return text
    return text[:end]


def _unfence(text: str) -> str:
    match = _FENCE.match(text.strip())
    return match["body"] if match else text.strip()
