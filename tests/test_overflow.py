"""A conversation that does not fit is compacted, and the same turn asked again. The loop first, then whole sessions."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import pytest
from test_loop import PYTHON, ListedModel, calls, echoing, gate_of, only, says, types
from test_session import DONE, call, opened, results, script, send

from harness_nb import events as ev
from harness_nb.approval import DenyApprover
from harness_nb.cells import Cells
from harness_nb.context import Conversation
from harness_nb.context.compaction import SYSTEM
from harness_nb.errors import ContextOverflowError, ModelError, RefusalError
from harness_nb.loop import run
from harness_nb.models.estimate import estimate_request
from harness_nb.outputs import Firewall
from harness_nb.ports import Delta, ModelSettings
from harness_nb.record import list_sessions, read_record
from harness_nb.toolset import STANDARD_TOOLS, Toolset
from harness_nb.types import Limits, Message, ToolSpec, Usage
from harness_nb.work import Work

TOO_LONG = ContextOverflowError("maximum context length is 9000 tokens")


class Foreseen(ListedModel):
    """A listed model that says beforehand what a request takes, and what it costs: a dollar for a thousand tokens."""

    price_known, searches_web = True, False

    def __init__(
        self, *replies: Message | ModelError, window: int | None = None, name: str = "listed", summary: str = ""
    ) -> None:
        super().__init__(*replies)
        self.summary = summary
        self.context_window = window
        self.name = name
        self.settings: list[ModelSettings] = []

    def estimate(self, messages: Sequence[Message], tools: Sequence[ToolSpec], settings: ModelSettings) -> Usage:
        usage = estimate_request(messages, tools, settings)
        return usage.model_copy(update={"cost_usd": usage.total_tokens / 1000})

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> AsyncGenerator[Delta | Message]:
        self.settings.append(settings)
        if self.summary and messages[0].text == SYSTEM:
            yield says(self.summary)
            return
        async for item in super().stream(messages, tools, settings):
            yield item


async def work_with(
    model: ListedModel,
    small: ListedModel | None = None,
    *,
    steps: int = 0,
    window: int | None = None,
    limits: Limits = Limits(),  # noqa: B008 - frozen
) -> tuple[list[ev.Event], Conversation]:
    """Work on a prompt that has had ``steps`` of 2,000 characters already."""
    conversation = Conversation([ev.PromptAdded(prompt="Count to {ten}.")])
    for _ in range(steps):
        reply = calls(("python", {"code": "count()"}))
        conversation.apply(ev.ModelReplied(turn=1, message=reply))
        content = says("one " * 500).content
        done = ev.ResultAdded(call_id=reply.tool_calls[0].call_id, name="python", status="ok", content=content)
        conversation.apply(done)
    work = Work(
        system="system",
        model=model,
        cells=Cells(
            echoing(), lambda call, plot: Firewall(call.call_id, call.name, plot=plot), lambda: 0.0, lambda: ("", ())
        ),
        tools=Toolset(STANDARD_TOOLS, workspace="/home/me/project"),
        rules=(),
        approver=DenyApprover(),
        gate=gate_of(),
        clock=lambda: 0.0,
        limits=limits,
        settings=ModelSettings(cache_key="s", reasoning_effort="high"),
        small=small,
        window=window,
    )
    items = [item async for item in run(work, conversation)]
    return [item for item in items if isinstance(item, ev.EventBase)], conversation


async def test_an_overflow_in_the_middle_is_compacted_and_the_same_turn_asked_again() -> None:
    model = ListedModel(calls(PYTHON), calls(PYTHON), TOO_LONG, says("All was counted."), says("ten"))
    events, conversation = await work_with(model)
    assert types(events)[-6:] == [
        *("model_requested", "context_compacted", "model_requested", "model_replied", "finish_accepted"),
        "session_ended",
    ]
    assert [event.turn for event in only(events, ev.ModelRequested)] == [1, 2, 3, 3]
    (compacted,) = only(events, ev.ContextCompacted)
    assert "All was counted." in compacted.summary and compacted.model == "listed"
    asked, again = model.requests[3:]
    assert [message.role for message in asked] == ["system", "user"]
    assert asked[0].text == SYSTEM and "ran 1" in asked[1].text
    assert again[0].text == "system"
    assert "<task>\nCount to {ten}.\n</task>" in again[1].text
    assert events[-1].reason == "finished" and events[-1].turns == 3
    assert conversation.messages[0].text == compacted.summary


async def test_at_most_three_tries_and_then_a_clean_end() -> None:
    too_long = [TOO_LONG, says("short")] * 3
    model = ListedModel(*too_long, TOO_LONG)
    events, _ = await work_with(model, steps=40)
    assert types(events).count("context_compacted") == 3
    assert types(events)[-1] == "session_ended"
    assert events[-1].reason == "model_error"
    assert "was shortened 3 times and is still too long" in events[-1].text
    assert "maximum context length is 9000" in events[-1].text and "--model" in events[-1].text
    assert {event.turn for event in only(events, ev.ModelRequested)} == {1}
    sizes = [sum(len(message.text) for message in request) for request in model.requests if request[0].text == "system"]
    assert sizes == sorted(sizes, reverse=True) and len(sizes) == 4


async def test_tries_are_counted_a_turn() -> None:
    once = [TOO_LONG, says("short"), calls(PYTHON)]
    events, _ = await work_with(ListedModel(*once * 5, says("done")), steps=9)
    assert types(events).count("context_compacted") == 5
    assert events[-1].reason == "finished"


async def test_a_task_that_alone_is_too_long_ends_at_once() -> None:
    events, _ = await work_with(ListedModel(TOO_LONG))
    assert types(events) == ["model_requested", "session_ended"]
    assert "alone are too long for this model" in events[-1].text


async def test_the_small_model_summarises_and_both_count() -> None:
    summary = says("small words").model_copy(update={"usage": Usage(input_tokens=70, output_tokens=7, cost_usd=0.5)})
    end = says("done").model_copy(update={"usage": Usage(input_tokens=20, output_tokens=2, cost_usd=0.25)})
    small = Foreseen(summary, name="small")
    events, _ = await work_with(ListedModel(TOO_LONG, end), small, steps=5)
    (compacted,) = only(events, ev.ContextCompacted)
    assert (compacted.model, compacted.usage.cost_usd) == ("small", 0.5)
    assert small.settings == [ModelSettings()]
    assert events[-1].usage == Usage(input_tokens=90, output_tokens=9, cost_usd=0.75)
    assert events[-1].turns == 1


async def test_a_small_model_that_fails_is_told_and_the_model_itself_summarises() -> None:
    model = Foreseen(TOO_LONG, says("own words"), says("done"))
    events, _ = await work_with(model, ListedModel(RefusalError("no such text")), steps=5)
    (warned,) = only(events, ev.Warned)
    assert warned.text == "listed could not summarise the conversation: no such text"
    assert "own words" in only(events, ev.ContextCompacted)[0].summary
    assert model.settings[1] == ModelSettings(reasoning_effort="high")
    assert events[-1].reason == "finished"


async def test_without_any_summary_the_conversation_itself_is_shortened() -> None:
    events, conversation = await work_with(
        ListedModel(TOO_LONG, RefusalError("never"), says("done")), ListedModel(RefusalError("no")), steps=5
    )
    (compacted,) = only(events, ev.ContextCompacted)
    assert compacted.model == "" and compacted.usage == Usage()
    assert "No summary could be had" in compacted.summary and "[call c" in compacted.summary
    assert events[-1].reason == "finished"
    assert len(conversation.messages[0].text) < 10_000


async def test_a_transcript_that_is_too_long_itself_is_shortened() -> None:
    model = ListedModel(TOO_LONG, TOO_LONG, says("fits now"), says("done"))
    events, _ = await work_with(model, steps=60)
    first, second = model.requests[1][1].text, model.requests[2][1].text
    assert len(second) < 0.7 * len(first)
    assert "fits now" in only(events, ev.ContextCompacted)[0].summary


@pytest.mark.parametrize("by_person", [True, False])
async def test_a_known_window_is_kept_ahead_of_time(by_person: bool) -> None:
    model = Foreseen(calls(PYTHON), says("done"), window=None if by_person else 9000, summary="summed up")
    events, _ = await work_with(model, steps=20, window=9000 if by_person else None)
    assert types(events)[:2] == ["context_compacted", "model_requested"]
    assert types(events).count("context_compacted") == 1
    assert events[0].reason == "the next request would not fit into the context window"
    assert len(model.requests[0]) > 3, "the last steps are kept as they are"
    assert sum(len(message.text) for message in model.requests[0]) < 20 * 2000


async def test_what_never_fits_by_the_estimate_is_sent_all_the_same() -> None:
    model = Foreseen(calls(PYTHON), calls(PYTHON), says("done"), summary="summed up")
    events, _ = await work_with(model, steps=20, window=1000)
    assert types(events)[:3] == [*["context_compacted"] * 2, "model_requested"]
    assert types(events).count("context_compacted") == 2, "and none before later turns"
    assert types(events).count("model_replied") == 3
    assert events[-1].reason == "finished"


async def test_a_window_that_a_complaint_names_is_kept_from_then_on() -> None:
    said = ContextOverflowError("the available context size (12000 tokens) is exceeded")
    long = calls(("python", {"code": "x" * 20_000}))
    model = Foreseen(said, long, says("done"), summary="summed up")
    events, _ = await work_with(model, steps=22)
    reasons = [event.reason for event in only(events, ev.ContextCompacted)]
    assert reasons == [
        "the model said that the conversation is too long",
        "the next request would not fit into the context window",
    ]


async def test_no_summary_is_bought_that_the_limit_has_no_room_for() -> None:
    for more, bought in ((0.5, False), (50.0, True)):
        model = Foreseen(TOO_LONG, says("done"), summary="bought")
        asked = Foreseen(says("x"))
        await work_with(asked, steps=20)
        expected = asked.estimate(asked.requests[0], Toolset(STANDARD_TOOLS).specs, ModelSettings()).cost_usd or 0.0
        events, _ = await work_with(model, steps=20, limits=Limits(max_cost=expected + more))
        (compacted,) = only(events, ev.ContextCompacted)
        assert ("bought" in compacted.summary, "No summary could be had" in compacted.summary) == (bought, not bought)
        assert events[-1].reason == "finished"


OVERFLOW = {"error": {"kind": "overflow"}}
HANDOVER = {
    "text": "## Done\nThe file was read: 3 lines.",
    "usage": {"input_tokens": 40, "output_tokens": 4, "cost_usd": 0.25},
}


async def test_rules_and_instructions_hold_across_a_compaction(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Always use tabs.")
    (tmp_path / "kept.txt").write_text("as it was\n")
    skill = tmp_path / ".agents/skills/eda"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: eda\ndescription: Look at data.\n---\nPlot before you fit.\n")
    model = script(
        tmp_path,
        call("read_file", path=".agents/skills/eda/SKILL.md"),
        call("bash", command="echo once >> log.txt"),
        OVERFLOW,
        HANDOVER,
        call("write_file", path="kept.txt", content="changed"),
        call(
            "python",
            code="import os\nfor name in os.listdir():\n    if name[:2] == 'ke':\n        open(name, 'w').close()",
        ),
        DONE,
    )
    requests: list[Any] = []
    async with opened(tmp_path, model=model, read_only=("kept.txt",), kernel="harness-tools") as session:
        stream = session._models.main.stream
        session._models.main.stream = lambda *asked: (requests.append(asked[0]), stream(*asked))[1]
        events = await send(session, "Do {it} for $5.")
    after = requests[-1]
    assert after[0] == requests[0][0] and "Always use tabs." in after[0].text and "kept.txt" in after[0].text
    assert "<task>\nDo {it} for $5.\n</task>" in after[1].text
    assert "Plot before you fit." in after[1].text and "The file was read: 3 lines." in after[1].text
    assert after[2].tool_calls[0].arguments == {"command": "echo once >> log.txt"} and after[3].role == "tool"
    denied, undone, _ = results(events)[-3:]
    assert denied.status == "denied" and "put back" in undone.content[-1].text
    assert (tmp_path / "kept.txt").read_text() == "as it was\n"
    assert (tmp_path / "log.txt").read_text() == "once\n"
    assert events[-1].reason == "finished"


async def test_resume_sees_the_compacted_history_and_the_record_counts_the_summary(tmp_path: Path) -> None:
    lists = call("bash", command="ls")
    model = script(tmp_path, lists, lists, OVERFLOW, HANDOVER, lists, DONE)
    async with opened(tmp_path, model=model, max_turns=3) as session:
        events = await send(session, "first")
        before = session._conversation.messages
    assert events[-1].reason == "limit"
    assert (session.usage.input_tokens, session.turns) == (40, 3)
    (listed,) = list_sessions(tmp_path)
    assert (listed.turns, listed.cost_usd) == (3, 0.25)
    assert events[-1].usage.output_tokens == 4
    folded = Conversation(read_record(tmp_path, session.id)[0])
    assert folded.messages == before
    (tmp_path / f"harness_sessions/{session.id}/journal.jsonl").unlink()
    assert Conversation(read_record(tmp_path, session.id)[0]).messages == before
    async with opened(tmp_path, model=model, session=session.id) as again:
        events = [item async for item in again.resume() if isinstance(item, ev.EventBase)]
        assert [result.name for result in results(events)] == ["finish"], "the script goes on behind its summary"
        assert again._conversation.messages[: len(before)] == before


async def test_a_script_of_the_small_model_goes_on_too(tmp_path: Path) -> None:
    small = tmp_path / "small.json"
    small.write_text(json.dumps([{"text": "First."}, {"text": "Second."}]))
    model = script(tmp_path, call("bash", command="ls"), OVERFLOW, call("bash", command="pwd"), OVERFLOW, DONE)
    given = {"model": model, "small_model": f"scripted:{small}"}
    async with opened(tmp_path, **given, max_turns=2) as session:
        events = await send(session, "go")
    assert "First." in only(events, ev.ContextCompacted)[0].summary
    async with opened(tmp_path, **given, session=session.id) as again:
        events = [item async for item in again.resume() if isinstance(item, ev.EventBase)]
    assert "Second." in only(events, ev.ContextCompacted)[0].summary
    assert events[-1].reason == "finished"


async def test_after_three_tries_the_state_is_saved_and_another_model_goes_on(tmp_path: Path) -> None:
    model = script(tmp_path, call("bash", command="ls"), *[OVERFLOW, HANDOVER] * 3, OVERFLOW)
    async with opened(tmp_path, model=model) as session:
        events = await send(session, "go")
    assert (events[-1].reason, types(events).count("context_compacted")) == ("model_error", 2)
    assert "was shortened 2 times" in events[-1].text and "still too long" in events[-1].text
    (tmp_path / "larger.json").write_text(json.dumps([DONE]))
    async with opened(tmp_path, model=f"scripted:{tmp_path / 'larger.json'}", session=session.id) as again:
        events = [item async for item in again.resume() if isinstance(item, ev.EventBase)]
    assert "model_switched" in types(events) and events[-1].reason == "finished"


async def test_the_window_of_the_settings_is_kept(tmp_path: Path) -> None:
    long = call("bash", command="seq 1 1500")
    model = script(tmp_path, long, long, long, {"text": "## Done\nCounted."}, DONE)
    async with opened(tmp_path, model=model, context_window=9000) as session:
        events = await send(session, "go")
    (compacted,) = only(events, ev.ContextCompacted)
    assert "Counted." in compacted.summary and compacted.reason.startswith("the next request would not fit")
    assert events[-1].reason == "finished"


async def test_the_notebook_says_it_in_one_line_and_keeps_everything(tmp_path: Path) -> None:
    model = script(tmp_path, call("bash", command="ls"), OVERFLOW, HANDOVER, DONE)
    async with opened(tmp_path, model=model) as session:
        await send(session, "go")
    cells = json.loads(session.notebook_path.read_text())["cells"]
    (line,) = ["".join(cell["source"]) for cell in cells if cell["id"].endswith("-compacted")]
    assert "\n" not in line
    assert line.startswith("*For the model, the first 3 messages were summarised by `scripted:script.")
    assert "40 tokens in and 4 out" in line
    assert any("ls" in "".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
