"""Another model in the middle of a session: it is recorded, and what only the earlier provider knows is dropped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from test_session import DONE, call, opened, results, script, send

from harness_nb import events as ev
from harness_nb.approval import DenyApprover
from harness_nb.context import Conversation
from harness_nb.opening import switching_events
from harness_nb.past import options_of
from harness_nb.record import read_record
from harness_nb.settings import Settings
from harness_nb.types import Message, Status, ToolCall, text_content

ITEMS = ({"type": "reasoning", "encrypted_content": "gAAA"}, {"type": "function_call", "call_id": "c1"})


def replied(**more: Any) -> ev.ModelReplied:
    call = ToolCall(call_id="c1", name="bash", arguments={"command": "ls"})
    message = Message(role="assistant", content=text_content("Look."), tool_calls=(call,), **more)
    return ev.ModelReplied(turn=1, message=message)


def test_the_fold_drops_what_only_the_provider_understands_and_keeps_the_rest() -> None:
    listed = ev.ResultAdded(call_id="c1", name="bash", status=Status.OK, content=text_content("a.txt"))
    events: list[ev.Event] = [
        *(ev.PromptAdded(prompt="go"), ev.ModelRequested(turn=1, model="openai:a", messages=2)),
        *(replied(provider="openai-responses", provider_items=ITEMS), listed),
    ]
    conversation = Conversation(events)
    before = conversation.messages
    assert before[1].provider_items == ITEMS and conversation.model == "openai:a"
    conversation.apply(ev.ModelSwitched(model="openai:b", before="openai:a"))
    after = conversation.messages
    assert [message.provider_items for message in after] == [()] * 3
    assert after[1].tool_calls == before[1].tool_calls and after[1].text == "Look." and after[2] == before[2]
    assert conversation.model == "openai:b"
    again = Conversation([*events, ev.ModelSwitched(model="openai:b", before="openai:a"), events[2]])
    assert again.messages[-1].provider_items == ITEMS, "replies of the new model keep theirs"


def test_a_switch_is_another_model_or_another_place(tmp_path: Path) -> None:
    def said(model: str, conversation: Conversation, **given: Any) -> list[ev.Event]:
        return switching_events(conversation, model, Settings.load(tmp_path, given, {}))

    fresh = Conversation([ev.PromptAdded(prompt="go", options={"base_url": "http://a/v1"})])
    assert said("chat:b", fresh) == []
    fresh.apply(ev.ModelRequested(turn=1, model="chat:a", messages=2))
    assert said("chat:a", fresh, base_url="http://a/v1") == []
    assert said("chat:b", fresh, base_url="http://a/v1") == [
        ev.ModelSwitched(model="chat:b", before="chat:a", base_url="http://a/v1")
    ]
    (moved,) = said("chat:a", fresh, base_url="http://b/v1")
    fresh.apply(moved)
    assert said("chat:a", fresh, base_url="http://b/v1") == []
    assert len(said("chat:a", fresh)) == 1


async def test_a_session_that_is_continued_with_another_model_says_so(tmp_path: Path) -> None:
    one = script(tmp_path, call("bash", command="ls"), DONE)
    async with opened(tmp_path, model=one) as session:
        await send(session, "first")
    (tmp_path / "other.json").write_text(json.dumps([call("bash", command="pwd"), DONE]))
    two = f"scripted:{tmp_path / 'other.json'}"
    async with opened(tmp_path, model=two, session=session.id) as again:
        events = await send(again, "second")
        assert [event.type for event in events].index("model_switched") < [e.type for e in events].index("prompt_added")
        (switched,) = [event for event in events if isinstance(event, ev.ModelSwitched)]
        assert (switched.model, switched.before) == (two, one)
        more = await send(again, "third")
        assert not [event for event in more if isinstance(event, ev.ModelSwitched)]
        await again.use(Settings.load(tmp_path, {"model": one}, {}), DenyApprover())
        back = await send(again, "fourth")
        assert [event.model for event in back if isinstance(event, ev.ModelSwitched)] == [one]
        assert {result.status for result in results(back)} == {Status.OK}
    cells = json.loads(session.notebook_path.read_text())["cells"]
    lines = ["".join(cell["source"]) for cell in cells if cell["id"].endswith("-model")]
    assert lines == ["*From here on with `scripted:other.json`.*", "*From here on with `scripted:script.json`.*"]


async def test_work_that_is_resumed_with_another_model_stays_with_it(tmp_path: Path) -> None:
    one = script(tmp_path, call("bash", command="ls"))
    async with opened(tmp_path, model=one, max_turns=1) as session:
        await send(session, "first")
    (tmp_path / "other.json").write_text(json.dumps([call("bash", command="pwd"), call("bash", command="ls"), DONE]))
    two = f"scripted:{tmp_path / 'other.json'}"
    async with opened(tmp_path, model=two, session=session.id, max_turns=1) as again:
        events = [item async for item in again.resume() if isinstance(item, ev.EventBase)]
        assert [event.before for event in events if isinstance(event, ev.ModelSwitched)] == [one]
        assert events[-1].reason == "limit"
    options = options_of(read_record(tmp_path, session.id)[0])
    assert (options["model"], options["base_url"], options["max_turns"]) == (two, None, 1)
