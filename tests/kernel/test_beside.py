"""Cells beside a running cell."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from kernel_cells import Ran, Run
from kernel_processes import gone, written

from harness_nb.kernel import ToolKernel
from harness_nb.ports import ExecuteReply, Output
from harness_nb.types import Status

BUSY = "import time\nprint('main', flush=True)\nfor _ in range(1000):\n    sum(range(3 * 10**7))"


async def beside(kernel: ToolKernel, source: str, timeout: float | None = 60) -> Ran:
    items = [item async for item in kernel.execute(source, timeout, beside=True)]
    reply = items[-1]
    assert isinstance(reply, ExecuteReply)
    return Ran(tuple(item for item in items if isinstance(item, Output)), reply)


async def test_a_cell_runs_beside_one_that_holds_the_interpreter(kernel: ToolKernel, run: Run, tmp_path: Path) -> None:
    await kernel.start()
    main = asyncio.ensure_future(run(BUSY))
    await asyncio.sleep(0.5)
    ran = await beside(kernel, "%%bash\npwd; echo err >&2; exit 3")
    assert not main.done()
    assert (ran.text(), ran.text("stderr")) == (f"{tmp_path}\n", "err\n")
    assert (ran.reply.status, ran.reply.ename, ran.reply.execution_count) == (Status.ERROR, "CalledProcessError", None)
    await kernel.interrupt()
    ended = await main
    assert (ended.reply.status, ended.text()) == (Status.INTERRUPTED, "main\n")


async def test_several_run_at_once_and_their_processes_are_used_again(kernel: ToolKernel) -> None:
    async with asyncio.TaskGroup() as group:
        cells = [
            group.create_task(
                beside(kernel, f"%%bash\ntouch {own}\nwhile [ ! -e {other} ]; do sleep 0.05; done\necho $PPID")
            )
            for own, other in (("a", "b"), ("b", "a"))
        ]
    first = {cell.result().text() for cell in cells}
    assert len(first) == 2
    assert (await beside(kernel, "%%bash\necho $PPID")).text() in first


async def test_ending_one_leaves_the_main_cell_alone_and_nothing_behind(
    kernel: ToolKernel, run: Run, tmp_path: Path
) -> None:
    await kernel.start()
    main = asyncio.ensure_future(run("import time\nfor i in range(600):\n    time.sleep(0.1)", 120))
    side = asyncio.ensure_future(beside(kernel, "%%bash\nsleep 651 & echo $! > pid; wait"))
    pid = int(await written(tmp_path / "pid"))
    side.cancel()
    with pytest.raises(asyncio.CancelledError):
        await side
    assert await gone([pid])
    assert not main.done()
    await kernel.interrupt()
    assert (await main).reply.status is Status.INTERRUPTED


async def test_closing_ends_those_beside_as_well(kernel: ToolKernel) -> None:
    ran = await beside(kernel, "%%bash\nsleep 661 > /dev/null & echo $! $PPID")
    pids = [int(pid) for pid in ran.text().split()]
    await kernel.aclose()
    assert await gone(pids)
