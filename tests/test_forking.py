"""Forks and rewinding: the conversation, the files and the kernel as they were after a step."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from test_session import DONE, call, opened, script, send

from harness_nb import events as ev
from harness_nb.errors import UsageError
from harness_nb.forking import carry_out, plan_fork
from harness_nb.past import closing_events, steps_of
from harness_nb.record import read_record
from harness_nb.types import Status

WORK = [
    call("python", code="x = 1"),
    call("write_file", path="notes.txt", content="first\n"),
    {
        "calls": [
            {"name": "python", "arguments": {"code": "x += 1\nprint('x is', x)"}},
            {"name": "bash", "arguments": {"command": "echo more >> notes.txt; echo other > other.txt"}},
        ]
    },
    call("search_replace", path="notes.txt", search="first", replace="second"),
    DONE,
]


async def recorded(workspace: Path) -> str:
    async with opened(workspace, model=script(workspace, *WORK)) as session:
        await send(session, "count and note")
    assert (workspace / "notes.txt").read_text() == "second\nmore\n"
    return session.id


async def test_a_fork_has_files_conversation_and_kernel_of_its_step(tmp_path: Path) -> None:
    session_id = await recorded(tmp_path)
    before = (tmp_path / "harness_sessions" / session_id / "journal.jsonl").read_bytes()
    plan = plan_fork(tmp_path, session_id, 3)
    assert plan.files.changes_files
    assert "Written as they were then: notes.txt." in plan.describe()
    assert "Deleted, for they were not there then: other.txt." in plan.describe()
    fork, restored = carry_out(plan)
    assert not restored.failed
    assert (tmp_path / "notes.txt").read_text() == "first\n" and not (tmp_path / "other.txt").exists()
    assert (tmp_path / "harness_sessions" / session_id / "journal.jsonl").read_bytes() == before
    events, warnings = read_record(tmp_path, fork)
    assert not warnings and not closing_events(events)
    assert [step.call.name for step in steps_of(events)] == ["python", "write_file", "python"]
    cut = [event for event in events if isinstance(event, ev.ResultAdded)][-1]
    assert cut.name == "bash" and "this session was forked before it" in cut.content[0].text  # type: ignore[union-attr]
    async with opened(tmp_path, model=script(tmp_path, call("python", code="x"), DONE), session=fork) as session:
        after = await send(session, "go on")
    (told,) = [event for event in after if isinstance(event, ev.Nudged)]
    assert "rebuilt by running 2 earlier python cells again" in told.text
    shown = next(event for event in after if isinstance(event, ev.ResultAdded))
    assert shown.status is Status.OK and "2" in shown.content[0].text  # type: ignore[union-attr]
    assert not [event for event in after if isinstance(event, ev.Warned)]
    nbformat.validate(nbformat.read(tmp_path / "harness_sessions" / f"{fork}.ipynb", as_version=4))


async def test_step_zero_is_the_task_alone_and_resume_asks_the_model_anew(tmp_path: Path) -> None:
    session_id = await recorded(tmp_path)
    fork, _ = carry_out(plan_fork(tmp_path, session_id, 0))
    assert not (tmp_path / "notes.txt").exists()
    async with opened(tmp_path, model=script(tmp_path, {"text": "Nothing to do."}), session=fork) as session:
        events = [item async for item in session.resume() if isinstance(item, ev.EventBase)]
    assert isinstance(events[-1], ev.SessionEnded) and events[-1].reason == "finished" and events[-1].turns == 1


async def test_a_fork_into_another_folder_leaves_everything_here_as_it_is(tmp_path: Path) -> None:
    workspace, copy = tmp_path / "here", tmp_path / "there"
    workspace.mkdir()
    session_id = await recorded(workspace)
    fork, _ = carry_out(plan_fork(workspace, session_id, 2, into=copy))
    assert (workspace / "notes.txt").read_text() == "second\nmore\n"
    assert (copy / "notes.txt").read_text() == "first\n" and not (copy / "other.txt").exists()
    started = read_record(copy, fork)[0][0]
    assert isinstance(started, ev.SessionStarted)
    assert started.origin == {"kind": "fork", "session": session_id, "step": 2, "events": started.origin["events"]}
    with pytest.raises(UsageError, match="not an empty folder"):
        plan_fork(workspace, session_id, 2, into=copy)


async def test_what_comes_out_differently_when_the_kernel_is_rebuilt_is_said(tmp_path: Path) -> None:
    (tmp_path / "number.txt").write_text("1")
    code = "number = open('number.txt').read()\nprint('the number is', number)"
    async with opened(tmp_path, model=script(tmp_path, call("python", code=code), DONE)) as session:
        await send(session, "read")
    (tmp_path / "number.txt").write_text("7")
    fork, _ = carry_out(plan_fork(tmp_path, session.id, 1))
    async with opened(tmp_path, model=script(tmp_path, DONE), session=fork) as again:
        events = await send(again, "go on")
    told = [event.text for event in events if isinstance(event, ev.Warned)]
    step = "Step 1 (number = open('number.txt').read())"
    assert told == [f"{step} printed 'the number is 1' and prints 'the number is 7' now."]


async def test_a_step_that_is_not_there_is_named(tmp_path: Path) -> None:
    session_id = await recorded(tmp_path)
    with pytest.raises(UsageError, match="no step 9 in that session; it has the steps 0 to 5"):
        plan_fork(tmp_path, session_id, 9)
