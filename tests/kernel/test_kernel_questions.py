"""``input`` and ``getpass`` in tool code, in a real kernel: answered, not answered, interrupted, too late."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from kernel_cells import run_cell

from harness_nb.approval import DenyApprover, FixedApprover
from harness_nb.kernel import ToolKernel
from harness_nb.kernel.questions import HIDDEN
from harness_nb.tools import SETUP_SOURCE
from harness_nb.types import Status

pytestmark = pytest.mark.asyncio(loop_scope="module")

ASK = "name = input('name? ')\nprint('hello', name)"
LATE = """
import threading, time
said = []
def ask(put=input):
    time.sleep(1)
    try:
        said.append(put('too late? '))
    except BaseException as error:
        said.append(f'{type(error).__name__}: {error}')
thread = threading.Thread(target=ask)
thread.start()
"""


class Slow:
    """Somebody who thinks for ``seconds`` before each answer, and may be gone then."""

    can_answer = True

    def __init__(self, line: str | None, seconds: float = 0.2) -> None:
        self.asked: list[tuple[str, bool]] = []
        self.heard = asyncio.Event()
        self.given_up = False
        self._line = line
        self._seconds = seconds

    async def answer(self, question: str, *, secret: bool) -> str | None:
        self.asked.append((question, secret))
        self.heard.set()
        try:
            await asyncio.sleep(self._seconds)
        except asyncio.CancelledError:
            self.given_up = True
            raise
        return self._line


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ToolKernel]:
    folder: Path = tmp_path_factory.mktemp("questions") / "harness_sessions"
    made = ToolKernel(directory=folder, setup=SETUP_SOURCE, grace=2.0)
    yield made
    await made.aclose()


async def test_input_gets_the_line_and_the_record_shows_both(shared: ToolKernel) -> None:
    shared.answers = who = Slow("Ada")
    ran = await run_cell(shared, "print('first')\n" + ASK)
    assert ran.reply.status is Status.OK
    assert ran.text() == "first\nname? Ada\nhello Ada\n"
    assert who.asked == [("name? ", False)]


async def test_getpass_gets_the_line_and_the_record_hides_it(shared: ToolKernel) -> None:
    shared.answers = who = Slow("s3cret")
    ran = await run_cell(shared, "import getpass\nword = getpass.getpass('word: ')\nlen(word)")
    assert ran.result == "6"
    assert ran.text() == f"word: {HIDDEN}\n"
    assert who.asked == [("word: ", True)]


async def test_several_questions_are_asked_in_order_and_an_empty_line_is_an_answer(shared: ToolKernel) -> None:
    shared.answers = who = FixedApprover(lines=["1", "", "3"])
    ran = await run_cell(shared, "[input(f'{n}? ') for n in range(3)]")
    assert ran.result == "['1', '', '3']"
    assert [question for question, _ in who.questions] == ["0? ", "1? ", "2? "]


@pytest.mark.parametrize("answers", [None, DenyApprover(), Slow(None)], ids=["none", "deny", "gone"])
async def test_where_nobody_answers_the_code_gets_a_clear_error_at_once(shared: ToolKernel, answers: object) -> None:
    shared.answers = answers  # type: ignore[assignment]
    ran = await asyncio.wait_for(run_cell(shared, ASK), 20)
    assert ran.reply.status is Status.ERROR
    assert ran.reply.ename == "StdinNotImplementedError"
    assert "nobody can answer input() to the question 'name?'" in (ran.reply.evalue or "")
    assert "hello" not in ran.text()


async def test_an_interrupt_ends_the_cell_while_the_question_is_open(shared: ToolKernel) -> None:
    shared.answers = who = Slow("never", seconds=600)
    running = asyncio.ensure_future(run_cell(shared, ASK))
    await asyncio.wait_for(who.heard.wait(), 20)
    await shared.interrupt()
    ran = await asyncio.wait_for(running, 20)
    assert ran.reply.status is Status.INTERRUPTED
    assert "names_lost" not in ran.reply.extra
    await asyncio.sleep(0)
    assert who.given_up
    shared.answers = Slow("Ada")
    assert (await run_cell(shared, ASK)).text() == "name? Ada\nhello Ada\n"


async def test_the_time_of_a_question_does_not_count(shared: ToolKernel) -> None:
    shared.answers = Slow("Ada", seconds=2.5)
    ran = await run_cell(shared, ASK, timeout=1.5)
    assert (ran.reply.status, ran.text()) == (Status.OK, "name? Ada\nhello Ada\n")
    ran = await run_cell(shared, ASK + "\nimport time\ntime.sleep(60)", timeout=1.5)
    assert (ran.reply.status, ran.text()) == (Status.TIMED_OUT, "name? Ada\nhello Ada\n")


async def test_a_question_after_its_cell_has_ended_gets_no_answer_and_does_not_hang(shared: ToolKernel) -> None:
    shared.answers = who = Slow("Ada")
    assert (await run_cell(shared, LATE)).reply.status is Status.OK
    await asyncio.sleep(1.5)
    ran = await run_cell(shared, "thread.join(10)\nsaid")
    assert ran.result is not None and "nobody can answer input()" in ran.result
    assert who.asked == []


async def test_a_question_that_is_open_when_its_cell_ends_gets_no_answer(shared: ToolKernel) -> None:
    shared.answers = who = Slow("Ada", seconds=600)
    assert (await run_cell(shared, LATE + "time.sleep(2)")).reply.status is Status.OK
    assert who.asked == [("too late? ", False)]
    ran = await run_cell(shared, "thread.join(10)\nsaid")
    assert ran.result is not None and "nobody can answer input()" in ran.result
    assert who.given_up


async def test_a_cell_that_swallows_the_end_of_its_questions_goes_on(shared: ToolKernel) -> None:
    shared.answers = Slow(None)
    ran = await run_cell(shared, "try:\n    input()\nexcept Exception as error:\n    print(type(error).__name__)")
    assert (ran.reply.status, ran.text()) == (Status.OK, "StdinNotImplementedError\n")
