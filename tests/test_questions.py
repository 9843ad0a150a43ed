"""Questions of tool code in a session: whom they reach, and the time that they take."""

from __future__ import annotations

import asyncio
import time

import pytest

from harness_nb import events as ev
from harness_nb.approval import DenyApprover, FixedApprover
from harness_nb.cells import Cells
from harness_nb.kernel import FakeKernel
from harness_nb.outputs import Firewall
from harness_nb.ports import ExecuteReply
from harness_nb.questions import Questions
from harness_nb.types import Status, ToolCall


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness_nb.questions.SHOW_SECONDS", 0)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class Waiting:
    can_answer = True

    def __init__(self) -> None:
        self.line: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()

    async def answer(self, question: str, *, secret: bool) -> str | None:
        return await self.line


async def test_the_working_time_stands_still_while_a_question_is_open() -> None:
    clock, who = Clock(), Waiting()
    questions = Questions(who, clock)
    clock.now += 1
    assert questions.working_time() == 101
    asked = asyncio.ensure_future(questions.answer("q", secret=False))
    await asyncio.sleep(0.05)
    clock.now += 50
    assert questions.working_time() == 101
    who.line.set_result("a")
    assert await asked == "a"
    clock.now += 2
    assert questions.working_time() == 103


async def test_two_questions_at_once_count_once_and_a_cancelled_one_is_over() -> None:
    clock, who = Clock(), Waiting()
    questions = Questions(who, clock)
    first, second = (asyncio.ensure_future(questions.answer(name, secret=False)) for name in "ab")
    await asyncio.sleep(0.05)
    clock.now += 5
    first.cancel()
    await asyncio.wait({first, second})
    clock.now += 5
    assert questions.working_time() == 105


async def test_they_reach_whoever_answers_now() -> None:
    questions = Questions(DenyApprover(), Clock())
    assert not questions.can_answer
    assert await questions.answer("q", secret=False) is None
    questions.answers = person = FixedApprover(lines=["yes"])
    assert questions.can_answer
    assert await questions.answer("q", secret=True) == "yes"
    assert person.questions == [("q", True)]


async def test_a_call_is_not_left_running_while_its_question_is_open() -> None:
    endless = FakeKernel(lambda source: ExecuteReply(Status.RUNNING))
    working = Clock()
    cells = Cells(
        endless, lambda call, plot: Firewall(call.call_id, call.name), time.monotonic, lambda: ("", ()), working
    )
    call = ToolCall(call_id="c1", name="python", arguments={"code": "input()"})

    async def statuses() -> list[Status]:
        events = cells.run(call, "input()", timeout=0.2, keep=True, images=False)
        return [event.status async for event in events if isinstance(event, ev.ResultAdded)]

    running = asyncio.ensure_future(statuses())
    await asyncio.sleep(0.6)
    assert not running.done()
    working.now += 1
    assert await asyncio.wait_for(running, 5) == [Status.RUNNING]
    assert [event async for event in cells.end_all()]
