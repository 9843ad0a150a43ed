"""Work that was cut off and goes on: what is read back, what is called unknown, what is not run again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import nbformat
import pytest

from harness_nb import events as ev
from harness_nb.approval import DenyApprover
from harness_nb.context import Conversation
from harness_nb.errors import UsageError
from harness_nb.forking import carry_out, plan_fork
from harness_nb.kernel import FakeKernel
from harness_nb.past import closing_events
from harness_nb.ports import ExecuteReply
from harness_nb.record import read_record
from harness_nb.session import Session
from harness_nb.settings import Settings
from harness_nb.types import Status


def python(code: str) -> dict[str, Any]:
    return {"name": "python", "arguments": {"code": code}}


SCRIPT = [
    {"text": "I start.", "calls": [python("x = 1")]},
    {"calls": [python("x += 1"), python("print(x)")]},
    {"calls": [{"name": "finish", "arguments": {"summary": "It is done."}}]},
]


@asynccontextmanager
async def opened(workspace: Path, kernel: FakeKernel, **overrides: Any) -> AsyncGenerator[Session]:
    (workspace / "script.json").write_text(json.dumps(overrides.pop("script", SCRIPT)))
    settings = Settings.load(workspace, {"model": "scripted:script.json", **overrides}, {})
    session = await Session.open(settings, DenyApprover(), kernel=kernel)
    try:
        yield session
    finally:
        await session.aclose()


async def whole_session(workspace: Path) -> list[ev.Event]:
    async with opened(workspace, FakeKernel({"print(x)": "2\n"})) as session:
        return [item async for item in session.send("count") if isinstance(item, ev.EventBase)]


def journal_of(workspace: Path) -> Path:
    (found,) = (workspace / "harness_sessions").glob("*/journal.jsonl")
    return found


def cut_journal(workspace: Path, lines: int, tail: str = "") -> str:
    """Leave the first ``lines`` of the journal, and no notebook; the session's id."""
    journal = journal_of(workspace)
    kept = journal.read_text().splitlines(keepends=True)[:lines]
    journal.write_text("".join(kept) + tail)
    (workspace / "harness_sessions" / f"{journal.parent.name}.ipynb").unlink(missing_ok=True)
    return journal.parent.name


async def resume(workspace: Path, session_id: str, kernel: FakeKernel) -> list[ev.Event]:
    async with opened(workspace, kernel, session=session_id) as session:
        return [item async for item in session.resume() if isinstance(item, ev.EventBase)]


def statuses(events: Sequence[ev.Event]) -> list[Status]:
    return [event.status for event in events if isinstance(event, ev.ResultAdded)]


async def test_a_journal_cut_after_each_line_is_resumed_and_nothing_runs_twice(tmp_path: Path) -> None:
    (tmp_path / "0").mkdir()
    events = await whole_session(tmp_path / "0")
    prompt = next(n for n, event in enumerate(events, start=1) if isinstance(event, ev.PromptAdded))
    assert events[-1].type == "session_ended"
    for lines in range(prompt, len(events)):
        workspace = tmp_path / str(lines)
        workspace.mkdir()
        await whole_session(workspace)
        session_id = cut_journal(workspace, lines, tail='{"seq": 99, "type": "cell_out')
        kernel = FakeKernel({"print(x)": "2\n"})
        await resume(workspace, session_id, kernel)
        whole, warnings = read_record(workspace, session_id)
        assert not warnings
        assert [event.seq for event in whole] == list(range(1, len(whole) + 1))
        started = [event.source for event in whole if isinstance(event, ev.CellStarted) and event.name == "python"]
        assert sorted(started) == sorted(set(started)), f"run twice after a cut at line {lines}"
        before = {event.source for event in events[:lines] if isinstance(event, ev.CellStarted)}
        assert not before & set(kernel.executed), f"a step ran again after a cut at line {lines}"
        assert isinstance(whole[-1], ev.SessionEnded) and whole[-1].reason == "finished"
        assert not closing_events(whole) and not Conversation(whole).open_calls
        assert whole[-1].turns == sum(isinstance(event, ev.ModelReplied) for event in whole) <= 4
        notebook = nbformat.read(workspace / "harness_sessions" / f"{session_id}.ipynb", as_version=4)
        nbformat.validate(notebook)


async def test_an_open_step_is_unknown_and_one_that_had_not_begun_was_not_run(tmp_path: Path) -> None:
    events = await whole_session(tmp_path)
    started = [n for n, event in enumerate(events, start=1) if isinstance(event, ev.CellStarted)]
    session_id = cut_journal(tmp_path, started[2])  # setup, x = 1, x += 1
    resumed = await resume(tmp_path, session_id, FakeKernel())
    assert statuses(resumed) == [Status.UNKNOWN, Status.INTERRUPTED, Status.OK]
    (word,) = [event for event in resumed if isinstance(event, ev.Nudged)]
    assert word.reason == "work resumed" and "is unknown: look before you repeat it" in word.text


async def test_the_notebook_alone_resumes(tmp_path: Path) -> None:
    limited = [*SCRIPT[:2], {"calls": [python("print(x)")]}, SCRIPT[2]]
    async with opened(tmp_path, FakeKernel({"print(x)": "2\n"}), script=limited, max_turns=3) as session:
        before = [item async for item in session.send("count") if isinstance(item, ev.EventBase)]
    assert isinstance(before[-1], ev.SessionEnded) and before[-1].reason == "limit"
    journal = journal_of(tmp_path)
    text = journal.read_text()
    journal.unlink()
    journal.parent.joinpath(".lock").unlink(missing_ok=True)
    kernel = FakeKernel()
    async with opened(tmp_path, kernel, script=limited, session=session.id) as again:
        after = [item async for item in again.resume() if isinstance(item, ev.EventBase)]
    assert isinstance(after[-1], ev.SessionEnded) and after[-1].reason == "finished"
    assert kernel.executed == []
    healed = journal.read_text().splitlines()
    was = [json.loads(line) for line in text.splitlines()]
    now = [json.loads(line) for line in healed[: len(was)]]
    assert [line["type"] for line in was] == [line["type"] for line in now]
    assert [line for line in was if line["type"] != "cell_output"] == [
        line for line in now if line["type"] != "cell_output"
    ]


async def test_a_finished_session_has_nothing_to_resume(tmp_path: Path) -> None:
    await whole_session(tmp_path)
    session_id = journal_of(tmp_path).parent.name
    with pytest.raises(UsageError, match="is finished, there is nothing to resume"):
        await resume(tmp_path, session_id, FakeKernel())


async def test_turns_before_the_crash_count(tmp_path: Path) -> None:
    events = await whole_session(tmp_path)
    replied = [n for n, event in enumerate(events, start=1) if isinstance(event, ev.ModelReplied)]
    session_id = cut_journal(tmp_path, replied[1])
    async with opened(tmp_path, FakeKernel(), session=session_id, max_turns=2) as session:
        resumed = [item async for item in session.resume() if isinstance(item, ev.EventBase)]
    assert isinstance(resumed[-1], ev.SessionEnded)
    assert (resumed[-1].reason, resumed[-1].turns) == ("limit", 2)


async def test_work_that_was_stopped_before_the_first_reply_goes_on_in_the_same_process(tmp_path: Path) -> None:
    async with opened(tmp_path, FakeKernel({"print(x)": "2\n"})) as session:
        items = session.send("count")
        async for item in items:
            if isinstance(item, ev.ModelRequested):
                break
        await items.aclose()
        assert session.turns == 0
        resumed = [item async for item in session.resume() if isinstance(item, ev.EventBase)]
    assert (resumed[-1].reason, session.turns) == ("finished", 3)  # type: ignore[union-attr]
    assert not [event for event in resumed if isinstance(event, ev.PromptAdded)]


async def test_a_fork_whose_kernel_was_being_rebuilt_when_it_was_stopped_is_rebuilt_by_the_next_try(
    tmp_path: Path,
) -> None:
    await whole_session(tmp_path)
    fork, _ = carry_out(plan_fork(tmp_path, journal_of(tmp_path).parent.name, 3))
    slow, begun = True, asyncio.Event()

    def answer(source: str) -> Any:
        if slow and source == "x += 1":
            begun.set()
            return ExecuteReply(Status.RUNNING)
        return "2\n" if source == "print(x)" else ()

    kernel = FakeKernel(answer)
    async with opened(tmp_path, kernel, session=fork) as session:
        stopped = asyncio.ensure_future(anext(session.resume()))
        await begun.wait()
        stopped.cancel()
        with pytest.raises(asyncio.CancelledError):
            await stopped
        slow, kernel.executed = False, []
        events = [item async for item in session.resume() if isinstance(item, ev.EventBase)]
    assert [source for source in kernel.executed if "x" in source] == ["x = 1", "x += 1", "print(x)"]
    (told,) = [event for event in events if isinstance(event, ev.Nudged)]
    assert "rebuilt by running 3 earlier python cells again" in told.text
    assert events[-1].reason == "finished"  # type: ignore[union-attr]
