"""docs/format.md against the code: every type, field, default, tag and example on it.

The last test reads a notebook with nothing but what the page says.
"""

from __future__ import annotations

import json
import re
import types
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from harness_nb import events as ev
from harness_nb import types as values
from harness_nb.notebook import FORMAT_VERSION, NotebookFold, events_of
from harness_nb.types import Status

PAGE = (Path(__file__).parent.parent / "docs" / "format.md").read_text("utf-8")

VALUES: dict[str, type[BaseModel]] = {
    "Message": values.Message,
    "Tool call": values.ToolCall,
    "Decision": values.Decision,
    "Judgement": values.Judgement,
    "Approval": values.Approval,
    "Usage": values.Usage,
    "File change": ev.FileChange,
}
PARTS: dict[str, type[BaseModel]] = {"text": values.TextPart, "image": values.ImagePart}
NAMES = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null", Status: "status"} | {
    model: name.lower() for name, model in VALUES.items()
}
EVENTS: dict[str, type[BaseModel]] = {
    model.model_fields["type"].default: model for model in get_args(get_args(ev.Event)[0])
}


def section(title: str, level: int = 2) -> str:
    """What stands under a heading, to the next one of the same or a higher level."""
    match = re.search(
        rf"^{'#' * level} {re.escape(title)}\n(.*?)(?=^#{{1,{level}}} |\Z)", PAGE, re.MULTILINE | re.DOTALL
    )
    assert match, f"docs/format.md has no section {title!r}"
    return match[1]


def rows(text: str) -> list[list[str]]:
    """The rows of the first table in a text, without its head."""
    table = re.search(r"^\|.*\n\|[-|]+\n((?:\|.*\n)+)", text, re.MULTILINE)
    assert table, f"no table in: {text[:80]}"
    return [[column.strip() for column in line.strip("|").split("|")] for line in table[1].splitlines()]


def blocks(language: str, text: str = PAGE) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def type_of(annotation: Any) -> str:
    """A type as the page says it."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation in NAMES:
        return NAMES[annotation]
    if origin is Annotated:
        return type_of(arguments[0])
    if origin is dict:
        return "object"
    if origin is tuple:
        return f"array of {type_of(arguments[0])}"
    if origin is Literal:
        return "one of " + ", ".join(f"`{value}`" for value in arguments)
    assert origin in (Union, types.UnionType), annotation
    if set(arguments) == set(PARTS.values()):
        return "part"
    return " or ".join(type_of(each) for each in arguments)


def default_of(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    plain = value.model_dump(exclude_defaults=True) if isinstance(value, BaseModel) else value
    return f"`{json.dumps(plain)}`"


def fields_of(model: type[BaseModel], but: tuple[str, ...] = ("seq", "time", "type")) -> list[list[str]]:
    return [
        [f"`{name}`", type_of(field.annotation), default_of(field)]
        for name, field in model.model_fields.items()
        if name not in but
    ]


def test_the_version_is_that_of_the_code() -> None:
    assert re.findall(r"^Format version: \*\*(\d+)\*\*$", PAGE, re.MULTILINE) == [str(FORMAT_VERSION)]


def test_every_event_type_has_its_section_in_the_order_of_the_union() -> None:
    assert re.findall(r"^### `(\w+)`$", section("The events"), re.MULTILINE) == list(EVENTS)


@pytest.mark.parametrize("name", EVENTS)
def test_the_fields_of_an_event_are_those_of_its_class(name: str) -> None:
    told = rows(section(f"`{name}`", 3))
    assert [row[:3] for row in told] == fields_of(EVENTS[name])
    assert all(row[3] for row in told)


def test_what_all_events_carry_is_said_once() -> None:
    assert [row[:3] for row in rows(section("The journal"))] == [
        *fields_of(ev.EventBase, ()),
        ["`type`", "string", "required"],
    ]


@pytest.mark.parametrize("name", VALUES)
def test_the_fields_of_a_value_are_those_of_its_class(name: str) -> None:
    assert [row[:3] for row in rows(section(name, 3))] == fields_of(VALUES[name])


def test_parts_are_told_by_their_type() -> None:
    told = section("Part", 3)
    assert re.findall(r'^With `"type": "(\w+)"`:$', told, re.MULTILINE) == list(PARTS)
    for name, model in PARTS.items():
        assert [row[:3] for row in rows(told.split(f'"{name}"`:')[1])] == fields_of(model)


IDS: dict[str, Any] = {"call_id": "c1", "name": "bash"}
CALL: dict[str, Any] = {"call_id": "c1", "name": "bash", "arguments": {"command": "ls"}}
ASK: dict[str, Any] = {"verdict": "ask", "reason": "it may do harm", "policy": "p"}
PICTURE = {"output_type": "display_data", "data": {"image/png": "QUJD"}, "metadata": {}}
STREAM = {"output_type": "stream", "name": "stdout", "text": "a\nb\n"}
TOLD: list[dict[str, Any]] = [
    {"type": "session_started", "session_id": "s", "format_version": 2, "harness_version": "0", "model": "m:x"}
    | {"workspace": "/w", "kernel": "k", "origin": {"kind": "fork", "session": "r", "step": 3}},
    {"type": "prompt_added", "prompt": "Say it.", "options": {"new": True}, "fingerprint": "ab"},
    {"type": "model_switched", "model": "m:x", "before": "m:w"},
    {"type": "model_requested", "turn": 1, "model": "m:x", "messages": 2},
    {
        "type": "model_replied",
        "turn": 1,
        "message": {"role": "assistant", "content": [{"type": "text", "text": "I look."}], "tool_calls": [CALL]},
    },
    {"type": "call_decided", **IDS, "call": CALL, "source": "%%bash\nls", "decision": ASK},
    {"type": "approval_asked", **IDS, "decision": ASK},
    {"type": "approval_answered", **IDS, "approval": {"approved": True}},
    {"type": "cell_started", **IDS, "source": "%%bash\nls"},
    {"type": "cell_output", **IDS, "output": STREAM},
    {"type": "cell_output", **IDS, "op": "set", "index": 1, "output": {**STREAM, "text": "c"}},
    {"type": "cell_output", **IDS, "output": PICTURE},
    {"type": "cell_finished", **IDS, "status": "ok", "execution_count": 2, "names": [{"name": "x"}]},
    {"type": "files_changed", **IDS, "changes": [{"path": "a", "before": "ab", "kept": False}]},
    {"type": "network_used", **IDS, "host": "example.org", "port": 443, "allowed": True, "connections": 1},
    {"type": "context_offloaded", **IDS, "path": "o", "bytes": 2, "lines": 1},
    {
        "type": "result_added",
        **IDS,
        "status": "ok",
        "content": [{"type": "text", "text": "a"}, {"type": "image", "media_type": "image/png", "data": "QUJD"}],
    },
    {"type": "context_compacted", "summary": "s", "dropped": 1},
    {"type": "plan_updated", "steps": [{"step": "one", "status": "completed"}]},
    {"type": "nudged", "reason": "r", "text": "t"},
    {"type": "warned", "text": "w"},
    {"type": "check_finished", "command": "true", "passed": True, "exit_code": 0, "output": "", "elapsed": 0.1},
    {"type": "finish_rejected", "reason": "no"},
    {"type": "finish_accepted", "summary": "done", "checks": 1},
    {"type": "limit_reached", "limit": "turns", "text": "enough"},
    {"type": "session_ended", "reason": "limit", "usage": {"input_tokens": 3}},
]
"""One event of each type at least."""

ALL_EVENTS = [
    ev.parse_event({**event, "seq": seq, "time": f"2026-11-30T09:00:{seq:02d}+00:00"})
    for seq, event in enumerate(TOLD, start=1)
]


def folded(events: list[ev.Event]) -> dict[str, Any]:
    fold = NotebookFold("s")
    for event in events:
        fold.apply(event)
    notebook: dict[str, Any] = json.loads(json.dumps(fold.notebook()))
    return notebook


def test_the_example_of_this_test_has_every_type() -> None:
    assert {event.type for event in ALL_EVENTS} == set(EVENTS)


def test_each_event_makes_the_cell_that_the_table_says() -> None:
    told = {row[0].strip("`"): row[1:] for row in rows(section("Which event makes which cell", 3))}
    before = 0
    for count, event in enumerate(ALL_EVENTS, start=1):
        cells = folded(ALL_EVENTS[:count])["cells"]
        made, before = cells[before:], len(cells)
        if event.type not in told or event.type in ("session_ended", "cell_started"):
            assert not made, f"{event.type} makes a cell, and the page does not say so"
            continue
        (cell,) = made
        text, kind = told[event.type]
        assert cell["cell_type"] == text.split(":")[0]
        kind = "bash" if kind == "the tool's name" else kind.strip("`")
        assert cell["id"] == f"step-{before - 1:04d}-{kind}"
    setup = ev.CellStarted(call_id="setup", name="setup", source="x")
    assert folded([ALL_EVENTS[0], setup])["cells"][1]["id"] == "step-0001-setup"
    (_, end) = folded([ALL_EVENTS[0], ALL_EVENTS[-1]])["cells"]
    assert (end["cell_type"], end["id"]) == ("markdown", "step-0001-end")
    assert set(told) <= set(EVENTS)


def test_events_without_a_cell_of_their_own_are_named() -> None:
    text = section("Which event makes which cell", 3)
    assert [name for name in EVENTS if f"`{name}`" not in text] == []


def test_the_statuses_have_the_tags_that_the_page_says() -> None:
    told = {row[0].strip("`"): re.findall(r"`([^`]+)`", row[2]) for row in rows(section("Status", 3))}
    assert list(told) == [str(status) for status in Status]
    for status, tags in told.items():
        if status == "denied":
            continue
        events = [*ALL_EVENTS[:11], ev.CellFinished(**IDS, status=Status(status))]
        assert folded(events)["cells"][-1]["metadata"].get("tags", []) == tags
    (raw,) = [cell for cell in folded(refused())["cells"] if cell["cell_type"] == "raw"]
    assert told["denied"] == [] and "tags" not in raw["metadata"]


def refused() -> list[ev.Event]:
    denied = {"type": "result_added", **IDS, "status": "denied", "content": [{"type": "text", "text": "no"}]}
    answered = {"type": "approval_answered", **IDS, "approval": {"approved": False, "reason": "no"}}
    return [*ALL_EVENTS[:6], ev.parse_event(answered), ev.parse_event(denied)]


def test_a_call_that_was_not_run_is_a_raw_cell_after_its_reason() -> None:
    reason, raw = folded(refused())["cells"][-2:]
    assert (reason["cell_type"], raw["cell_type"]) == ("markdown", "raw")
    assert reason["id"] == f"{raw['id']}-why" and reason["metadata"] == {}


def test_the_example_journal_is_what_the_store_writes() -> None:
    (journal,) = blocks("jsonl", section("An example"))
    lines = journal.splitlines()
    assert len(lines) == 10
    for line in lines:
        event = ev.parse_event(json.loads(line))
        fields = {"seq": event.seq, "time": event.time, "type": event.type, **event.model_dump(mode="json")}
        assert json.dumps(fields) == line


def test_the_example_journal_becomes_the_example_cell() -> None:
    (journal,), (cell,) = blocks("jsonl", section("An example")), blocks("json", section("An example"))
    notebook = folded([ev.parse_event(json.loads(line)) for line in journal.splitlines()])
    assert notebook["cells"][2] == json.loads(cell)
    (machine,) = blocks("json", section("The notebook"))
    example = json.loads(machine)
    assert set(example) == set(notebook["metadata"]["harness_nb"]) and example["format_version"] == FORMAT_VERSION


def test_every_json_example_parses() -> None:
    inline = re.findall(r'`(\{"[^`]*\})`', PAGE)
    assert len(inline) >= 3
    for example in [*blocks("json"), *inline]:
        assert json.loads(re.sub(r": (ID|N|M)\b", ": 1", example))


# A reader made from the page alone: its tables, and what it says of reading. It must not import harness_nb.


def defaults(text: str) -> dict[str, Any]:
    return {name.strip("`"): json.loads(value.strip("`")) for name, _, value, _ in rows(text) if value != "required"}


def filled(value: dict[str, Any], title: str) -> dict[str, Any]:
    """An object with the defaults of its table, at any depth."""
    text = section(title, 3)
    if title == "Part":
        return {"type": value["type"], **{key: each for key, each in value.items() if key != "type"}}
    whole = {**defaults(text), **value}
    for name, kind, _, _ in rows(text):
        key, kind = name.strip("`"), kind.removesuffix(" or null").removeprefix("array of ")
        title = "Part" if kind == "part" else kind.capitalize()
        if title in (*VALUES, "Part") and whole.get(key) is not None:
            many = isinstance(whole[key], list)
            parts = [filled(part, title) for part in (whole[key] if many else [whole[key]])]
            whole[key] = parts if many else parts[0]
    return whole


def read_by_the_page(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    assert notebook["metadata"]["harness_nb"]["format_version"] <= 2
    found = [
        (data, cell.get("outputs", []))
        for cell in notebook["cells"]
        for data in cell["metadata"].get("harness_nb", {}).get("events", [])
    ]
    found.sort(key=lambda pair: pair[0]["seq"])
    calls: dict[str, Any] = {}
    sources: dict[str, str] = {}
    events = []
    for data, outputs in found:
        event = dict(data)
        if event["type"] == "model_replied":
            calls = {call["call_id"]: call for call in event["message"].get("tool_calls", [])}
        if event["type"] == "call_decided":
            event.setdefault("call", calls.get(event["call_id"]))
            sources[event["call_id"]] = event["source"]
        if event["type"] == "cell_started":
            event.setdefault("source", sources.get(event["call_id"]))
        for part in event.get("content", []):
            if "output" in part:
                part["data"] = outputs[part.pop("output")]["data"][part["media_type"]]
        events.append({"seq": 0, "time": "", **filled(event, f"`{event['type']}`")})
    return events


def test_a_reader_made_from_the_page_reads_what_the_code_reads() -> None:
    notebook = folded(ALL_EVENTS)
    expected = [event.model_dump(mode="json") for event in events_of(notebook) if event.type != "cell_output"]
    assert read_by_the_page(notebook) == expected
    assert expected == [event.model_dump(mode="json") for event in ALL_EVENTS if event.type != "cell_output"]
