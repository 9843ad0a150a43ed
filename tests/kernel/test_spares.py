"""A kernel started ahead."""

from __future__ import annotations

import os
from pathlib import Path

from harness_nb.kernel import Spare, ToolKernel
from harness_nb.ports import ExecuteReply, Output
from harness_nb.types import Status


async def run(kernel: ToolKernel, source: str) -> tuple[str, ExecuteReply]:
    text, reply = "", ExecuteReply(Status.UNKNOWN)
    async for item in kernel.execute(source):
        if isinstance(item, Output):
            text += item.content.get("text", "") or str(item.content.get("data", {}).get("text/plain", ""))
        else:
            reply = item
    return text, reply


async def test_a_spare_is_handed_over_once_and_moves_to_its_place(tmp_path: Path) -> None:
    spare = Spare()
    spare.prepare(tmp_path)
    spare.prepare(tmp_path)
    first = ToolKernel(directory=tmp_path / "a", setup="x = 1", spare=spare)
    second = ToolKernel(directory=tmp_path / "b", setup="x = 2", spare=spare)
    try:
        text, reply = await run(first, "import os; print(x, os.getcwd())")
        assert text == f"1 {tmp_path / 'a'}\n"
        assert reply.execution_count == 2
        text, _ = await run(second, "import os; print(x, os.getcwd())")
        assert text == f"2 {tmp_path / 'b'}\n"
        assert await spare.take() is None
    finally:
        await first.aclose()
        await second.aclose()
        await spare.aclose()


async def test_a_dead_spare_is_not_handed_over(tmp_path: Path) -> None:
    spare = Spare()
    spare.prepare(tmp_path)
    await spare.ready()
    assert spare._starting is not None
    os.kill(spare._starting.result().process.pid, 9)
    await spare._starting.result().process.died
    kernel = ToolKernel(directory=tmp_path, spare=spare)
    try:
        assert (await run(kernel, "print(1)"))[0] == "1\n"
    finally:
        await kernel.aclose()


async def test_an_unused_spare_is_ended(tmp_path: Path) -> None:
    spare = Spare()
    spare.prepare(tmp_path)
    await spare.ready()
    assert spare._starting is not None
    process = spare._starting.result().process
    await spare.aclose()
    assert process.died.done()
