"""What users of other notebook agents lost, row by row: the record of a session, end to end.

R1 is ``tests/kill``. Each test is named after its row.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import nbformat
import pytest

from harness_nb import events as ev
from harness_nb.approval import DenyApprover
from harness_nb.kernel import FakeKernel
from harness_nb.ports import Approver, Delta, ExecuteReply, ModelSettings
from harness_nb.session import Session
from harness_nb.settings import Settings
from harness_nb.types import Approval, Decision, Message, Status, ToolCall, ToolSpec, text_content


class Listed:
    """A model that gives its replies in order and keeps the requests."""

    name = "listed"
    accepts_images = True

    def __init__(self, *replies: Message) -> None:
        self._replies = list(replies)
        self.requests: list[tuple[Message, ...]] = []

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> AsyncGenerator[Delta | Message]:
        self.requests.append(tuple(messages))
        yield self._replies.pop(0)

    async def aclose(self) -> None:
        """Nothing is open."""


def reply(*calls: ToolCall) -> Message:
    return Message(role="assistant", tool_calls=calls, finish_reason="tool_calls")


def call(call_id: str, name: str = "python", **arguments: Any) -> ToolCall:
    return ToolCall(call_id=call_id, name=name, arguments=arguments)


def done(call_id: str) -> Message:
    return reply(call(call_id, "finish", summary="Done."))


@asynccontextmanager
async def opened(
    workspace: Path, model: Listed, kernel: FakeKernel | None = None, approver: Approver | None = None, **options: Any
) -> AsyncGenerator[Session]:
    settings = Settings.load(workspace, options, {})
    session = await Session.open(settings, approver or DenyApprover(), model=model, kernel=kernel or FakeKernel())
    try:
        yield session
    finally:
        await session.aclose()


async def send(session: Session, prompt: str) -> list[ev.Event]:
    return [item async for item in session.send(prompt) if isinstance(item, ev.EventBase)]


def assert_accepted(messages: Sequence[Message]) -> None:
    """A provider would take them: each call has its one result before anybody else speaks."""
    owed: list[str] = []
    for message in messages:
        if message.role == "tool":
            assert message.call_id in owed
            owed.remove(str(message.call_id))
        else:
            assert not owed, f"no result for {owed}"
            owed = [each.call_id for each in message.tool_calls]
    assert not owed


def told(model: Listed) -> str:
    """The results in the first request."""
    return "".join(message.text for message in model.requests[0] if message.role == "tool")


def journal_of(session: Session) -> Path:
    return session.workspace / "harness_sessions" / session.id / "journal.jsonl"


def lines_of(session: Session) -> list[dict[str, Any]]:
    return [json.loads(line) for line in journal_of(session).read_text().splitlines()]


async def two_steps(workspace: Path) -> Session:
    model = Listed(reply(call("c1", code="a")), reply(call("c2", code="b")), done("c3"))
    async with opened(workspace, model, FakeKernel({"a": "one\n", "b": "two\n"})) as session:
        await send(session, "Take two steps.")
    return session


def line_about(session: Session, kind: str, call_id: str) -> int:
    events = lines_of(session)
    return next(n for n, event in enumerate(events) if event["type"] == kind and event.get("call_id") == call_id)


def break_line(session: Session, number: int) -> bytes:
    """Half of a line is gone, as a bad disk leaves it; what is left of it."""
    lines = journal_of(session).read_bytes().splitlines()
    lines[number] = lines[number][: len(lines[number]) // 2]
    journal_of(session).write_bytes(b"\n".join(lines) + b"\n")
    return lines[number]


async def go_on(session: Session) -> tuple[Listed, list[ev.Event]]:
    model = Listed(reply(call("c4", code="c")), done("c5"))
    async with opened(session.workspace, model, FakeKernel({"c": "three\n"}), session=session.id) as again:
        events = await send(again, "And a third.")
    return model, events


def assert_whole(session: Session, effects: list[str]) -> None:
    """The record is one again: numbered, readable line by line, and its notebook valid, without conflicts."""
    assert [line["seq"] for line in lines_of(session)] == list(range(1, len(lines_of(session)) + 1))
    notebook = nbformat.read(session.notebook_path, as_version=4)
    nbformat.validate(notebook)
    printed = [out["text"] for cell in notebook.cells for out in cell.get("outputs", []) if out.get("name") == "stdout"]
    assert printed == effects
    assert [path.name for path in session.notebook_path.parent.glob("*.ipynb")] == [session.notebook_path.name]


async def test_r2_a_torn_last_line_is_set_aside_with_a_warning_and_the_rest_loads(tmp_path: Path) -> None:
    session = await two_steps(tmp_path)
    lines = lines_of(session)
    torn = break_line(session, len(lines) - 1)
    journal_of(session).write_bytes(journal_of(session).read_bytes().rstrip(b"\n"))
    session.notebook_path.unlink()
    model, events = await go_on(session)
    (warned,) = [event.text for event in events if isinstance(event, ev.Warned) and "set aside" in event.text]
    assert f"line {len(lines)} is set aside" in warned
    kept = [{key: value for key, value in line.items() if key != "seq"} for line in lines_of(session)]
    assert kept[: len(lines) - 1] == [{k: v for k, v in line.items() if k != "seq"} for line in lines[:-1]]
    assert torn in journal_of(session).with_name("journal.set-aside.txt").read_bytes()
    assert_accepted(model.requests[0])
    assert "two\n" in told(model)
    assert_whole(session, ["one\n", "two\n", "three\n"])


@pytest.mark.parametrize("kind", ["result_added", "cell_started", "call_decided", "cell_finished", "cell_output"])
@pytest.mark.parametrize("notebook", [True, False])
async def test_r2_a_broken_line_in_the_middle_is_set_aside_and_the_rest_loads(
    tmp_path: Path, kind: str, notebook: bool
) -> None:
    session = await two_steps(tmp_path)
    number = line_about(session, kind, "c1")
    broken = break_line(session, number)
    if not notebook:
        session.notebook_path.unlink()
    model, events = await go_on(session)
    assert any(isinstance(e, ev.Warned) and f"line {number + 1} is set aside" in e.text for e in events)
    assert broken in journal_of(session).with_name("journal.set-aside.txt").read_bytes()
    assert_accepted(model.requests[0])
    assert "two\n" in told(model) and ("one\n" in told(model) or not notebook)
    lost = kind == "cell_output" and not notebook
    assert_whole(session, ["two\n", "three\n"] if lost else ["one\n", "two\n", "three\n"])


async def test_r2_the_notebook_alone_goes_on(tmp_path: Path) -> None:
    session = await two_steps(tmp_path)
    for path in sorted(journal_of(session).parent.rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    journal_of(session).parent.rmdir()
    model, events = await go_on(session)
    assert not any(isinstance(event, ev.SessionStarted) for event in events)
    assert_accepted(model.requests[0])
    assert "one\n" in told(model) and "two\n" in told(model)
    assert_whole(session, ["one\n", "two\n", "three\n"])


class Absent:
    """A person who never answers."""

    can_answer = True

    def __init__(self, asked: asyncio.Event) -> None:
        self._asked = asked

    async def ask(self, call: ToolCall, source: str, decision: Decision) -> Approval:
        self._asked.set()
        await asyncio.sleep(600)
        raise AssertionError

    async def answer(self, question: str, *, secret: bool) -> str | None:
        return None


@pytest.mark.parametrize("at", ["cell", "approval"])
async def test_r7_an_interrupt_between_call_and_result_leaves_a_valid_history(tmp_path: Path, at: str) -> None:
    first = call("c1", code="forever") if at == "cell" else call("c1", "bash", command="rm -r build")
    model = Listed(reply(first, call("c2", code="never")), done("c3"))
    kernel, reached = FakeKernel({"forever": ExecuteReply(Status.RUNNING)}), asyncio.Event()

    async def work(session: Session) -> None:
        async with aclosing(session.send("Go.")) as items:
            async for item in items:
                if isinstance(item, ev.CellStarted) and item.call_id == "c1":
                    reached.set()

    async with opened(tmp_path, model, kernel, Absent(reached)) as session:
        task = asyncio.ensure_future(work(session))
        await asyncio.wait_for(reached.wait(), 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert session.ending is not None and session.ending.reason == "interrupted"
        await send(session, "Go on.")
    assert "never" not in kernel.executed
    results = [line for line in lines_of(session) if line["type"] == "result_added"]
    assert [(line["call_id"], line["status"]) for line in results[:2]] == [("c1", "interrupted"), ("c2", "interrupted")]
    assert_accepted(model.requests[-1])
    said = {message.call_id: message.text for message in model.requests[-1] if message.role == "tool"}
    assert said.keys() == {"c1", "c2"} and all("nterrupted" in text for text in said.values())


async def test_r7_a_result_twice_and_a_call_without_one_are_repaired_when_read(tmp_path: Path) -> None:
    session = await two_steps(tmp_path)
    lines = lines_of(session)
    twice = lines[line_about(session, "result_added", "c1")]
    kept = [line for line in lines if not (line["type"] == "result_added" and line["call_id"] == "c2")]
    kept.insert(kept.index(twice) + 1, {**twice, "content": [part.model_dump() for part in text_content("again")]})
    journal_of(session).write_text("".join(json.dumps(line) + "\n" for line in kept))
    session.notebook_path.unlink()
    model, _ = await go_on(session)
    assert_accepted(model.requests[0])
    assert "again" not in told(model)


async def test_r8_each_widget_has_a_twin_that_needs_no_kernel(tmp_path: Path) -> None:
    code = (
        "import ipywidgets as w\n"
        "from tqdm.notebook import tqdm\n"
        "for _ in tqdm(range(3), desc='epochs'): pass\n"
        "display(w.HBox([w.IntSlider(7, description='rate'), w.HTML('<b>bold</b>')]))"
    )
    model = Listed(reply(call("c1", code=code)), done("c2"))
    settings = Settings.load(tmp_path, {}, {})
    session = await Session.open(settings, DenyApprover(), model=model)
    await send(session, "Show widgets.")
    await session.aclose()
    notebook = nbformat.read(session.notebook_path, as_version=4)
    nbformat.validate(notebook)
    outputs = [out for cell in notebook.cells for out in cell.get("outputs", []) if "data" in out]
    assert len(outputs) >= 2
    for output in outputs:
        assert {"text/html", "text/markdown", "text/plain"} & set(output.data), output
    shown = json.dumps(outputs)
    assert "epochs" in shown and "3/3" in shown and "rate" in shown
    assert "Loading widget" not in shown and "HBox(children" not in shown


@pytest.mark.parametrize("state", ["missing", "older", "whole"])
async def test_r1_a_notebook_that_a_crash_left_behind_is_whole_once_the_session_was_opened(
    tmp_path: Path, state: str
) -> None:
    session = await two_steps(tmp_path)
    whole = session.notebook_path.read_bytes()
    if state == "missing":
        session.notebook_path.unlink()
    elif state == "older":
        notebook = json.loads(whole)
        ending = notebook["cells"].pop()
        notebook["metadata"]["harness_nb"]["last_seq"] -= len(ending["metadata"]["harness_nb"]["events"])
        session.notebook_path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")
    before = session.notebook_path.stat().st_ino if state == "whole" else None
    async with opened(tmp_path, Listed(), session=session.id):
        pass
    assert session.notebook_path.read_bytes() == whole
    assert before in (None, session.notebook_path.stat().st_ino)
    assert_whole(session, ["one\n", "two\n"])
