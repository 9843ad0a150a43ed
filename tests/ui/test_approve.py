from __future__ import annotations

import asyncio

import pytest

from harness_nb.types import Approval, Decision, ToolCall
from harness_nb.ui.approve import CellApprover, can_answer

CALL = ToolCall(call_id="c1", name="bash", arguments={"command": "rm -rf x"})
ASK = Decision(verdict="ask", reason="it deletes folders", policy="p")


async def answered(approver: CellApprover, line: str | BaseException) -> Approval:
    """What the engine gets when the cell's thread reads this."""
    asked: list[str] = []

    def read(question: str) -> str:
        asked.append(question)
        if isinstance(line, BaseException):
            raise line
        return line

    task = asyncio.ensure_future(approver.ask(CALL, "%%bash\nrm -rf x", ASK))
    while not asked:
        await asyncio.sleep(0)
        await asyncio.to_thread(approver.answer_questions, read)
    assert "bash" in asked[0]
    return await task


async def test_nobody_can_answer_means_no_at_once() -> None:
    approver = CellApprover(answerable=False, refresh=lambda: pytest.fail("nothing to draw"))
    approval = await approver.ask(CALL, "", ASK)
    assert not approval.approved
    assert "it deletes folders" in approval.reason and "nobody" in approval.reason


async def test_the_cell_is_drawn_and_then_asked() -> None:
    drawn: list[bool] = []
    approver = CellApprover(answerable=True, refresh=lambda: drawn.append(True))
    assert (await answered(approver, "y")).approved
    assert drawn == [True]


async def test_only_a_clear_yes_is_one_and_a_word_goes_to_the_model() -> None:
    approver = CellApprover(answerable=True, refresh=lambda: None)
    assert not (await answered(approver, "")).approved
    refusal = await answered(approver, "n use trash instead")
    assert not refusal.approved
    assert "use trash instead" in refusal.reason


async def test_a_front_end_that_cannot_ask_means_no() -> None:
    approver = CellApprover(answerable=True, refresh=lambda: None)
    approval = await answered(approver, EOFError())
    assert not approval.approved and approval.by == "nobody"


async def test_an_interrupt_answers_no_and_goes_on() -> None:
    approver = CellApprover(answerable=True, refresh=lambda: None)
    task = asyncio.ensure_future(approver.ask(CALL, "", ASK))
    await asyncio.sleep(0)

    def interrupted(question: str) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        approver.answer_questions(interrupted)
    assert not (await task).approved


async def test_a_question_of_cancelled_work_is_not_asked() -> None:
    approver = CellApprover(answerable=True, refresh=lambda: None)
    task = asyncio.ensure_future(approver.ask(CALL, "", ASK))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    approver.answer_questions(lambda question: pytest.fail("asked"))
    assert task.cancelled()


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
