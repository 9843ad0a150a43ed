"""Which tasks of a notebook are played and in which session, with real kernels and a scripted model that is counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness_nb import events as ev
from harness_nb.approval import FixedApprover
from harness_nb.errors import MissingKeyError, UsageError
from harness_nb.settings import Settings
from harness_nb.types import Approval, Status
from harness_nb.ui.current import CurrentSession, Task


def call(tool: str, /, **arguments: Any) -> dict[str, Any]:
    return {"calls": [{"name": tool, "arguments": arguments}]}


DONE = call("finish", summary="Done.")


class Notebook:
    """A notebook's kernel: tasks are sent to one current session after the other."""

    def __init__(self, folder: Path, model: str | None = None, answers: tuple[Approval, ...] = ()) -> None:
        self.folder = folder
        self.current = CurrentSession()
        self.approver = FixedApprover(answers)
        self._environment = {"HARNESS_NB_MODEL": model} if model else {}

    async def task(self, prompt: str, cell: str = "", **given: Any) -> list[ev.Event]:
        options = self.current.options(given, self.folder)
        task = Task(prompt, Settings.load(self.folder, options, self._environment), given, options, cell)
        recording = await self.current.find(task)
        session = await self.current.take(task, self.approver, recording)
        items = [item async for item in session.send(prompt, given, recording)]
        return [item for item in items if isinstance(item, ev.EventBase)]

    @property
    def id(self) -> str:
        assert self.current.session is not None
        return self.current.session.id

    async def close(self) -> None:
        await self.current.aclose()


def script(folder: Path, *replies: dict[str, Any]) -> str:
    (folder / "script.json").write_text(json.dumps(replies))
    return f"scripted:{folder / 'script.json'}"


def models(events: list[ev.Event]) -> set[str]:
    return {event.model.split(":")[0] for event in events if isinstance(event, ev.ModelRequested)}


def ended(events: list[ev.Event]) -> ev.SessionEnded:
    assert isinstance(events[-1], ev.SessionEnded)
    return events[-1]


def printed(events: list[ev.Event]) -> str:
    outputs = [event.output for event in events if isinstance(event, ev.CellOutput) and event.output]
    return "".join(output.get("text", "") for output in outputs)


async def record(folder: Path, *tasks: str, **given: Any) -> str:
    """Record a session of these tasks: each adds one to ``n`` and prints it."""
    replies = [reply for _ in tasks for reply in (call("python", code="n = globals().get('n', 0) + 1; print(n)"), DONE)]
    notebook = Notebook(folder, script(folder, *replies))
    for task in tasks:
        assert models(await notebook.task(task, **given)) == {"scripted"}
    session = notebook.id
    await notebook.close()
    (folder / "script.json").unlink()
    return session


async def test_run_all_in_the_same_kernel_begins_again(tmp_path: Path) -> None:
    session = await record(tmp_path, "one", "two")
    notebook = Notebook(tmp_path)
    for _ in range(2):
        first, second = await notebook.task("one"), await notebook.task("two")
        assert (printed(first), printed(second)) == ("1\n", "2\n")
        assert models([*first, *second]) == {"replay"}
        assert notebook.id == f"{session}-replay"
    await notebook.close()


async def test_the_cell_that_began_a_session_begins_it_again_and_other_cells_go_on(tmp_path: Path) -> None:
    model = script(tmp_path, call("python", code="print('hi')"), DONE)
    notebook = Notebook(tmp_path, model)
    assert models(await notebook.task("go on", cell="a")) == {"scripted"}
    session = notebook.id
    assert models(await notebook.task("go on", cell="b")) == {"scripted"}
    assert notebook.id == session
    assert models(await notebook.task("go on", cell="a")) == {"replay"}
    assert notebook.id == f"{session}-replay"
    assert models(await notebook.task("go on", cell="b")) == {"replay"}
    await notebook.close()


async def test_options_of_the_line_decide_and_those_of_where_and_how_do_not(tmp_path: Path) -> None:
    session = await record(tmp_path, "one", max_turns=5)
    notebook = Notebook(tmp_path)
    with pytest.raises(MissingKeyError, match="There is no recording of this prompt with these options"):
        await notebook.task("one", max_turns=6)
    assert notebook.current.session is None
    assert models(await notebook.task("one", max_turns=5, new=True, base_url="http://localhost:1")) == {"replay"}
    assert notebook.id == f"{session}-replay"
    with pytest.raises(UsageError, match=r"after what came before it .* Leave --replay out"):
        await notebook.task("two", replay=True)
    await notebook.close()


async def test_a_task_for_an_earlier_session_is_played_after_what_came_before_it(tmp_path: Path) -> None:
    session = await record(tmp_path, "one")
    replies = (call("python", code="print(globals().get('n', 'lost'))"), DONE)
    notebook = Notebook(tmp_path, script(tmp_path, *replies))
    assert printed(await notebook.task("two", session=session)) == "lost\n"
    await notebook.close()
    (tmp_path / "script.json").unlink()
    for _ in range(2):
        notebook = Notebook(tmp_path)
        played = await notebook.task("two", session=session)
        assert (models(played), printed(played)) == ({"replay"}, "lost\n")
        assert "all as recorded" in ended(played).text
        assert notebook.id == f"{session}-replay"
        prompts = [e.prompt for e in notebook.current.session._past if isinstance(e, ev.PromptAdded)]  # type: ignore[union-attr]
        assert prompts == ["one"]
        await notebook.close()


async def test_recorded_answers_are_honoured_and_nobody_is_asked(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    replies = (call("bash", command="rm -rf a && echo gone"), call("bash", command="rm -rf b"), DONE)
    answers = (Approval(approved=True), Approval(approved=False, reason="keep b"))
    notebook = Notebook(tmp_path, script(tmp_path, *replies), answers)
    recorded = await notebook.task("clean up")
    await notebook.close()
    (tmp_path / "a").mkdir()
    again = Notebook(tmp_path)
    played = await again.task("clean up")
    await again.close()
    assert again.approver.asked == []
    assert not (tmp_path / "a").exists() and (tmp_path / "b").is_dir()
    statuses = [[e.status for e in events if isinstance(e, ev.ResultAdded)] for events in (recorded, played)]
    assert statuses[0] == statuses[1] == [Status.OK, Status.DENIED, Status.OK]
    assert "2 calls, all as recorded" in ended(played).text


async def test_a_limit_is_reached_again_and_the_checks_are_run_again(tmp_path: Path) -> None:
    notebook = Notebook(tmp_path, script(tmp_path, call("python", code="print(1)")))
    await notebook.task("never done", max_turns=2)
    await notebook.close()
    checked = Notebook(tmp_path, script(tmp_path, DONE))
    (tmp_path / "fine").touch()
    await checked.task("checked", check=("test -e fine",))
    await checked.close()
    (tmp_path / "fine").unlink()
    again = Notebook(tmp_path)
    limited = ended(await again.task("never done", max_turns=2))
    assert (limited.reason, limited.turns) == ("limit", 2)
    assert "the limit of 2 turns is reached" in limited.text and "all as recorded" in limited.text
    refused = ended(await again.task("checked", check=("test -e fine",), new=True))
    assert refused.reason == "rejected"
    assert "the work: finished → rejected" in refused.text
    await again.close()


async def test_a_replay_that_was_stopped_can_be_begun_again(tmp_path: Path) -> None:
    session = await record(tmp_path, "one")
    notebook = Notebook(tmp_path)
    task = Task("one", Settings.load(tmp_path, {}, {}))
    recording = await notebook.current.find(task)
    opened = await notebook.current.take(task, notebook.approver, recording)
    items = opened.send("one", {}, recording)
    async for item in items:
        if isinstance(item, ev.CellOutput):
            break
    await items.aclose()
    assert opened.ending is not None and opened.ending.reason == "interrupted"
    played = await notebook.task("one")
    assert models(played) == {"replay"} and ended(played).reason == "finished"
    assert printed(played) == "1\n"
    assert notebook.id == f"{session}-replay"
    await notebook.close()


async def test_work_that_was_stopped_and_resumed_is_played_as_one_and_what_was_stopped_is_not_run(
    tmp_path: Path,
) -> None:
    slow = "open('slow.txt', 'w').close(); print('slowly', flush=True); import time; time.sleep(300)"
    calls = [
        {"name": "python", "arguments": {"code": "x = 1; print(x)"}},
        {"name": "python", "arguments": {"code": slow}},
        {"name": "bash", "arguments": {"command": "touch never.txt"}},
    ]
    notebook = Notebook(tmp_path, script(tmp_path, {"calls": calls}, call("python", code="print('then', x)"), DONE))
    task = Task("one", Settings.load(tmp_path, {"model": f"scripted:{tmp_path / 'script.json'}"}, {}))
    session = await notebook.current.take(task, notebook.approver)
    items = session.send("one")
    async for item in items:
        if isinstance(item, ev.CellOutput) and "slowly" in str(item.output):
            break
    await items.aclose()
    resumed = [item async for item in session.resume() if isinstance(item, ev.EventBase)]
    assert (ended(resumed).reason, printed(resumed)) == ("finished", "then 1\n")
    await notebook.close()
    (tmp_path / "slow.txt").unlink()

    again = Notebook(tmp_path)
    played = await again.task("one")
    await again.close()
    assert (models(played), ended(played).reason, printed(played)) == ({"replay"}, "finished", "1\nthen 1\n")
    assert "4 calls (2 that were stopped then not run), all as recorded" in ended(played).text
    statuses = [event.status for event in played if isinstance(event, ev.ResultAdded)]
    assert statuses == [Status.OK, Status.INTERRUPTED, Status.INTERRUPTED, Status.OK, Status.OK]
    assert not (tmp_path / "slow.txt").exists() and not (tmp_path / "never.txt").exists()


async def test_what_was_left_running_when_the_work_was_stopped_does_not_run_on_in_the_replay(tmp_path: Path) -> None:
    left = call("python", code="print('on', flush=True); import time; time.sleep(300)", timeout=1)
    replies = (left, call("bash", command="sleep 300"), call("python", code="print('free')"), DONE)
    notebook = Notebook(tmp_path, script(tmp_path, *replies))
    task = Task("one", Settings.load(tmp_path, {"model": f"scripted:{tmp_path / 'script.json'}"}, {}))
    session = await notebook.current.take(task, notebook.approver)
    items = session.send("one")
    async for item in items:
        if isinstance(item, ev.CellStarted) and item.name == "bash":
            break
    await items.aclose()
    assert printed([item async for item in session.resume() if isinstance(item, ev.EventBase)]) == "free\n"
    await notebook.close()

    again = Notebook(tmp_path)
    played = await again.task("one")
    await again.close()
    assert (ended(played).reason, printed(played)) == ("finished", "on\nfree\n")
    assert "3 calls (1 that was stopped then not run), all as recorded" in ended(played).text
