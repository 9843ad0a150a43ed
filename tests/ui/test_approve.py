from __future__ import annotations

import asyncio

import pytest

from harness_nb.types import Approval, Decision, ToolCall
from harness_nb.ui.approve import CellApprover, can_answer

CALL = ToolCall(call_id="c1", name="bash", arguments={"command": "rm -rf x"})
ASK = Decision(verdict="ask", reason="it deletes folders", policy="p")


class Display:
    """Keeps what it was told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def draw(self) -> None:
        self.told.append("draw")

    def ask(self, open: bool) -> None:
        self.told.append("asked" if open else "answered")

    def buttons(self, shown: bool) -> None:
        self.told.append("buttons" if shown else "typed")


async def read_once(approver: CellApprover, line: str | BaseException) -> tuple[str, bool]:
    """What is asked, and whether secretly, when the cell's thread reads this."""
    asked: list[tuple[str, bool]] = []

    def read(question: str, secret: bool) -> str:
        asked.append((question, secret))
        if isinstance(line, BaseException):
            raise line
        return line

    while not asked:
        await asyncio.sleep(0)
        await asyncio.to_thread(approver.answer_questions, read)
    return asked[0]


async def answered(approver: CellApprover, line: str | BaseException) -> Approval:
    """What the engine gets when it asks for an approval."""
    task = asyncio.ensure_future(approver.ask(CALL, "%%bash\nrm -rf x", ASK))
    assert "bash" in (await read_once(approver, line))[0]
    return await task


async def test_nobody_can_answer_means_no_at_once() -> None:
    display = Display()
    approver = CellApprover(answerable=False, shown=display)
    approval = await approver.ask(CALL, "", ASK)
    assert not approval.approved
    assert "it deletes folders" in approval.reason and "nobody" in approval.reason
    assert not approver.can_answer
    assert display.told == []


async def test_the_cell_is_drawn_and_then_asked() -> None:
    display = Display()
    assert (await answered(CellApprover(answerable=True, shown=display), "y")).approved
    assert display.told == ["draw", "typed"]


async def test_only_a_clear_yes_is_one_and_a_word_goes_to_the_model() -> None:
    approver = CellApprover(answerable=True, shown=Display())
    assert not (await answered(approver, "")).approved
    refusal = await answered(approver, "n use trash instead")
    assert not refusal.approved
    assert "use trash instead" in refusal.reason


async def test_a_front_end_that_cannot_ask_means_no() -> None:
    approver = CellApprover(answerable=True, shown=Display())
    approval = await answered(approver, EOFError())
    assert not approval.approved and approval.by == "nobody"


async def test_an_interrupt_answers_no_and_goes_on() -> None:
    approver = CellApprover(answerable=True, shown=Display())
    task = asyncio.ensure_future(approver.ask(CALL, "", ASK))
    with pytest.raises(KeyboardInterrupt):
        await read_once(approver, KeyboardInterrupt())
    assert (await task).reason == "the person interrupted"


async def test_a_question_of_cancelled_work_is_not_asked() -> None:
    approver = CellApprover(answerable=True, shown=Display())
    task = asyncio.ensure_future(approver.ask(CALL, "", ASK))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    approver.answer_questions(lambda question, secret: pytest.fail("asked"))
    assert task.cancelled()


@pytest.mark.parametrize("secret", [False, True])
async def test_a_question_of_the_code_is_asked_in_the_cell_and_says_who_asks(secret: bool) -> None:
    display = Display()
    approver = CellApprover(answerable=True, shown=display)
    task = asyncio.ensure_future(approver.answer("name? ", secret=secret))
    assert await read_once(approver, " Ada ") == ("The running code asks: name? ", secret)
    assert await task == " Ada "
    assert display.told == ["asked", "answered"]


async def test_a_front_end_that_cannot_ask_gives_no_answer() -> None:
    approver = CellApprover(answerable=True, shown=Display())
    task = asyncio.ensure_future(approver.answer("name? ", secret=False))
    await read_once(approver, EOFError())
    assert await task is None


async def test_an_interrupt_is_no_answer_and_the_code_waits_for_its_own() -> None:
    display = Display()
    approver = CellApprover(answerable=True, shown=display)
    task = asyncio.ensure_future(approver.answer("name? ", secret=False))
    with pytest.raises(KeyboardInterrupt):
        await read_once(approver, KeyboardInterrupt())
    await asyncio.sleep(0.05)
    assert not task.done()
    task.cancel()
    await asyncio.wait({task})
    assert display.told == ["asked", "answered"]


@pytest.mark.parametrize(
    ("request_", "environment", "expected"),
    [
        ({"content": {"allow_stdin": True}, "metadata": {"cellId": "x"}}, {}, True),
        ({"content": {"allow_stdin": True}, "metadata": {}}, {"JPY_SESSION_NAME": "/a/b.ipynb"}, True),
        ({"content": {"allow_stdin": True}, "metadata": {}}, {}, False),
        ({"content": {"allow_stdin": False}, "metadata": {"cellId": "x"}}, {"JPY_SESSION_NAME": "/a/b.ipynb"}, False),
        ({}, {}, False),
    ],
)
def test_who_can_answer(request_: dict[str, object], environment: dict[str, str], expected: bool) -> None:
    assert can_answer(request_, environment) is expected
