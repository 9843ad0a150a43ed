"""The behaviour suite of the Kernel port: what the fake and the real kernel both do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from itertools import groupby
from pathlib import Path

import pytest
import pytest_asyncio
from kernel_cells import run_cell

from harness_nb.kernel import FakeKernel, ToolKernel
from harness_nb.ports import ExecuteReply, Kernel, Output
from harness_nb.types import Status

ENDLESS = "import time\nprint('on', flush=True)\ntime.sleep(600)"
FAKED = {
    "print('hello')": "hello\n",
    "1 + 1": Output("execute_result", {"data": {"text/plain": "2"}, "metadata": {}, "execution_count": 1}),
    "1 / 0": [
        Output("error", {"ename": "ZeroDivisionError", "evalue": "division by zero", "traceback": []}),
        ExecuteReply(Status.ERROR, ename="ZeroDivisionError", evalue="division by zero"),
    ],
    ENDLESS: [Output("stream", {"name": "stdout", "text": "on\n"}), ExecuteReply(Status.RUNNING)],
    "import os; os._exit(3)": ExecuteReply(
        Status.KERNEL_DIED, detail="it exited with status 3", extra={"names_lost": True}
    ),
}


@pytest_asyncio.fixture(params=["fake", "real"], loop_scope="module", scope="module")
async def subject(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Kernel]:
    folder: Path = tmp_path_factory.mktemp("kernel")
    made: Kernel = FakeKernel(FAKED) if request.param == "fake" else ToolKernel(directory=folder)
    yield made
    await made.aclose()


pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_outputs_come_first_and_one_reply_last(subject: Kernel) -> None:
    ran = await run_cell(subject, "print('hello')")
    assert ran.text() == "hello\n"
    assert ran.reply.status is Status.OK
    assert ran.reply.execution_count is not None


async def test_execution_counts_rise(subject: Kernel) -> None:
    first, second = await run_cell(subject, "1 + 1"), await run_cell(subject, "1 + 1")
    assert first.result == second.result == "2"
    assert second.reply.execution_count == (first.reply.execution_count or 0) + 1


async def test_an_error_is_a_reply(subject: Kernel) -> None:
    ran = await run_cell(subject, "1 / 0")
    assert ran.kinds == ["error"]
    assert (ran.reply.status, ran.reply.ename) == (Status.ERROR, "ZeroDivisionError")


async def test_a_timeout_keeps_the_partial_output(subject: Kernel) -> None:
    ran = await run_cell(subject, ENDLESS, timeout=0.5)
    assert ran.text() == "on\n"
    assert ran.reply.status is Status.TIMED_OUT
    assert ran.reply.extra["timeout"] == 0.5
    assert (await run_cell(subject, "1 + 1")).result == "2"


async def test_an_interrupt_ends_the_running_cell(subject: Kernel) -> None:
    running = asyncio.ensure_future(run_cell(subject, ENDLESS))
    await asyncio.sleep(0.5)
    await subject.interrupt()
    assert (await running).reply.status is Status.INTERRUPTED
    assert (await run_cell(subject, "1 + 1")).result == "2"


async def test_an_interrupt_of_an_idle_kernel_does_nothing(subject: Kernel) -> None:
    await subject.interrupt()
    assert (await run_cell(subject, "1 + 1")).reply.status is Status.OK


async def test_calls_never_run_at_the_same_time(subject: Kernel) -> None:
    order: list[str] = []

    async def note(source: str, timeout: float | None) -> None:
        async for item in subject.execute(source, timeout):
            order.append("reply" if isinstance(item, ExecuteReply) else source)

    await asyncio.gather(note(ENDLESS, 0.3), note("print('hello')", None))
    assert [name for name, _ in groupby(order)] == [ENDLESS, "reply", "print('hello')", "reply"]


async def test_closing_early_frees_the_kernel(subject: Kernel) -> None:
    async with aclosing(subject.execute(ENDLESS)) as items:
        async for _ in items:
            break
    assert (await run_cell(subject, "1 + 1")).result == "2"


async def test_death_is_a_status_and_the_next_call_works(subject: Kernel) -> None:
    ran = await run_cell(subject, "import os; os._exit(3)")
    assert ran.reply.status is Status.KERNEL_DIED
    assert "it exited with status 3" in ran.reply.detail
    assert ran.reply.extra["names_lost"]
    assert (await run_cell(subject, "1 + 1")).result == "2"


async def test_a_restart_counts_anew(subject: Kernel) -> None:
    await subject.restart()
    assert (await run_cell(subject, "1 + 1")).reply.execution_count == 1
