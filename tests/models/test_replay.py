"""``replay:``: finding a record, reading it and playing it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from stand_ins import PROMPT

from harness_nb.errors import ModelError, UsageError
from harness_nb.events import ModelReplied, PromptAdded, SessionStarted
from harness_nb.models.replay import ReplayModel, find_record, read_replies
from harness_nb.notebook import NotebookFold
from harness_nb.types import Message, TextPart, ToolCall, Usage

Ask = Callable[..., Any]


def reply(text: str, **more: Any) -> Message:
    return Message(role="assistant", content=(TextPart(text=text),), usage=Usage(input_tokens=7, cost_usd=0.5), **more)


def events(*replies: Message) -> list[Any]:
    start = SessionStarted(
        session_id="s1", format_version=1, harness_version="0", model="openai:m", workspace="/w", kernel="k"
    )
    turns = [ModelReplied(turn=turn, message=message) for turn, message in enumerate(replies, start=1)]
    return [start, PromptAdded(prompt="Do it."), *turns]


def journal(path: Path, *replies: Message, tail: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(event.model_dump_json() + "\n" for event in events(*replies)) + tail)
    return path


async def test_recorded_replies_are_played_at_no_cost(tmp_path: Path, ask: Ask) -> None:
    call = ToolCall(call_id="c1", name="bash", arguments={"command": "ls"})
    items = ({"type": "reasoning", "encrypted_content": "x"},)
    recorded = reply("One.", tool_calls=(call,), provider="openai-responses", provider_items=items)
    path = journal(tmp_path / "journal.jsonl", recorded, reply("Two."))
    model = ReplayModel("replay:s1", read_replies(path))
    _, first = await ask(model)
    _, second = await ask(model)
    assert first == recorded.model_copy(update={"usage": Usage(input_tokens=7, cost_usd=0.0)})
    assert second.text == "Two."


async def test_a_record_that_is_used_up_says_so(tmp_path: Path, ask: Ask) -> None:
    model = ReplayModel("replay:s1", read_replies(journal(tmp_path / "journal.jsonl", reply("One."))))
    with pytest.raises(AssertionError, match=r'1 of 1 replies were not played; next would be .*"One\."'):
        model.assert_used_up()
    await ask(model)
    model.assert_used_up()
    with pytest.raises(ModelError, match=r"replay:s1: the record is used up.*1 replies"):
        await ask(model)


async def test_ids_that_the_conversation_has_are_made_anew(tmp_path: Path, ask: Ask) -> None:
    recorded = reply("", tool_calls=(ToolCall(call_id="c1", name="bash"),), provider_items=({"call_id": "c1"},))
    model = ReplayModel("replay:s1", [recorded])
    _, message = await ask(model, (*PROMPT, recorded))
    assert message.tool_calls[0].call_id == "call_3_0"
    assert message.provider_items == ()


@pytest.mark.parametrize("tail", ['{"type": "model_repl', '{"type": "model_replied", "turn": 3}', "\x00\x00", "[]"])
def test_a_torn_last_line_is_passed_over(tmp_path: Path, tail: str) -> None:
    path = journal(tmp_path / "journal.jsonl", reply("One."), reply("Two."), tail=tail)
    assert [message.text for message in read_replies(path)] == ["One.", "Two."]


def test_a_line_broken_in_the_middle_is_told_with_its_number(tmp_path: Path) -> None:
    path = journal(tmp_path / "journal.jsonl", reply("One."), reply("Two."))
    lines = path.read_text().splitlines()
    lines[2] = lines[2][:40]
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(UsageError, match="broken at line 3"):
        read_replies(path)


def test_events_of_other_versions_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text('{"type": "of_tomorrow", "x": 1}\n')
    with path.open("a") as file:
        file.write(ModelReplied(turn=1, message=reply("One.")).model_dump_json() + "\n")
    assert [message.text for message in read_replies(path)] == ["One."]


def test_a_record_without_replies_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no reply"):
        read_replies(journal(tmp_path / "journal.jsonl"))


@pytest.mark.parametrize(
    "named",
    ["s1", "harness_sessions/s1", "harness_sessions/s1/journal.jsonl", "{tmp}/harness_sessions/s1"],
)
def test_a_session_is_found_by_id_folder_and_path(tmp_path: Path, named: str) -> None:
    path = journal(tmp_path / "harness_sessions" / "s1" / "journal.jsonl", reply("One."))
    assert find_record(named.format(tmp=tmp_path), tmp_path) == path


@pytest.mark.parametrize("named", ["s1", "harness_sessions/s1.ipynb", "harness_sessions/s1"])
def test_the_notebook_is_enough(tmp_path: Path, named: str) -> None:
    path = tmp_path / "harness_sessions" / "s1.ipynb"
    path.parent.mkdir()
    path.write_text("{}")
    assert find_record(named, tmp_path) == path


def test_an_unknown_session_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no record of a session 's9'.*harness-nb sessions"):
        find_record("s9", tmp_path)


def test_a_session_notebook_gives_the_same_replies(tmp_path: Path) -> None:
    fold = NotebookFold("s1")
    for seq, event in enumerate(events(reply("One."), reply("Two.")), start=1):
        fold.apply(event.model_copy(update={"seq": seq, "time": "2026-11-30T00:00:00Z"}))
    path = tmp_path / "s1.ipynb"
    path.write_text(json.dumps(fold.notebook()))
    assert [message.text for message in read_replies(path)] == ["One.", "Two."]


def test_a_file_that_is_no_notebook_is_told(tmp_path: Path) -> None:
    path = tmp_path / "other.ipynb"
    path.write_text("{]")
    with pytest.raises(UsageError, match="not a session notebook"):
        read_replies(path)
