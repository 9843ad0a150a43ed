"""Interrupt, timeout and death on a real kernel: the cell always ends, and the reply says how."""

from __future__ import annotations

import asyncio
import random
import re
import time
from pathlib import Path

import pytest
from kernel_cells import Run, run_cell
from kernel_processes import gone

from harness_nb.kernel import ToolKernel
from harness_nb.types import Status

STUBBORN = """
import random
import time
print("on", flush=True)
while True:
    try:
        time.sleep(60)
    except BaseException:
        print("no", flush=True)
"""


async def interrupted(kernel: ToolKernel, source: str, times: int = 1) -> tuple[object, float]:
    """Run ``source``, interrupt it once it has printed; the reply and the seconds from the first interrupt on."""
    reply, began = None, 0.0
    async for item in kernel.execute(source, 120):
        if not began:
            await asyncio.sleep(0.3)
            began = time.monotonic()
            for _ in range(times):
                await kernel.interrupt()
                await asyncio.sleep(0.02)
        reply = item
    return reply, time.monotonic() - began


@pytest.mark.parametrize(
    "wait",
    [
        "time.sleep(600)",
        "await asyncio.sleep(600)",
        "subprocess.run(['sleep', '600'])",
        "threading.Event().wait()",
        "while True: time.sleep(0.001)",
    ],
)
async def test_an_interrupt_is_obeyed_and_names_are_kept(kernel: ToolKernel, run: Run, wait: str) -> None:
    source = f"import asyncio, subprocess, threading, time\nx = 7\nprint('on', flush=True)\n{wait}"
    reply, seconds = await interrupted(kernel, source)
    assert reply.status is Status.INTERRUPTED  # type: ignore[attr-defined]
    assert (reply.detail, "names_lost" in reply.extra) == ("", False)  # type: ignore[attr-defined]
    assert seconds < 20
    assert (await run("x")).result == "7"


async def test_code_that_swallows_interrupts_is_killed(kernel: ToolKernel, run: Run) -> None:
    """K7."""
    await run("x = 1")
    reply, seconds = await interrupted(kernel, STUBBORN)
    assert reply.status is Status.INTERRUPTED  # type: ignore[attr-defined]
    assert reply.detail == (  # type: ignore[attr-defined]
        "the code ignored the interrupt for 2 s, so the kernel was killed; all names and imports are lost: x (int); "
        "the next call starts a fresh kernel"
    )
    assert reply.extra["names_lost"]  # type: ignore[attr-defined]
    assert seconds < 30
    after = await run("'x' in globals()")
    assert (after.result, after.reply.detail) == ("False", "")


async def test_five_interrupts_in_a_row_leave_a_working_kernel(kernel: ToolKernel, run: Run) -> None:
    """K14."""
    await run("x = 3")
    reply, _ = await interrupted(kernel, "import time\nprint('on', flush=True)\ntime.sleep(600)", times=5)
    assert reply.status is Status.INTERRUPTED  # type: ignore[attr-defined]
    assert (await run("1 + 1")).result == "2"
    for _ in range(5):
        await interrupted(kernel, "print('on', flush=True)\nawait __import__('asyncio').sleep(600)")
    assert (await run("x + 1")).result == "4"


async def test_a_timeout_keeps_output_names_and_order(kernel: ToolKernel, run: Run) -> None:
    """K8: the timed-out call returns its partial output; the next one runs after it, alone."""
    source = "import time\nfor i in range(100):\n    print(i, flush=True)\n    time.sleep(0.2)"
    first, second = await asyncio.gather(run(source, 1), run("i"))
    assert first.reply.status is Status.TIMED_OUT
    assert (first.reply.detail, first.reply.extra["timeout"]) == ("", 1)
    lines = first.text().split()
    assert lines == [str(i) for i in range(len(lines))]
    assert second.result == lines[-1]


async def test_code_may_finish_its_work_when_it_is_stopped(run: Run) -> None:
    ran = await run("import time\ntry:\n    time.sleep(600)\nexcept KeyboardInterrupt:\n    print('saved')", 0.5)
    assert ran.reply.status is Status.TIMED_OUT
    assert ran.reply.detail == "the code handled the interrupt and ended by itself"
    assert ran.text() == "saved\n"


@pytest.mark.parametrize(
    ("source", "signal", "printed"),
    [
        ("print('last words')\nimport os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "SIGKILL", "last words\n"),
        ("print('a', flush=True)\nprint('b')\nimport os\nos._exit(7)", None, "a\nb\n"),
        ("print('before')\nimport ctypes\nctypes.string_at(0)", "SIGSEGV", "before\n"),
    ],
)
async def test_death_is_seen_with_its_cause_and_the_last_output(
    run: Run, source: str, signal: str | None, printed: str
) -> None:
    """K5."""
    await run("x = 1")
    began = time.monotonic()
    ran = await run(source)
    assert time.monotonic() - began < 10
    assert ran.reply.status is Status.KERNEL_DIED
    assert ran.text() == printed
    assert ran.reply.extra["signal"] == signal
    assert ran.reply.extra["peak_bytes"] > 10_000_000
    told, _, lost = ran.reply.detail.partition("; ")
    causes = {
        None: "it exited with status 7",
        "SIGKILL": r"killed by SIGKILL \(its memory had reached \d+ MB, so not for lack of memory\)",
        "SIGSEGV": "killed by SIGSEGV: a crash in native code",
    }
    assert re.fullmatch(causes[signal], told)
    assert lost == "all names and imports are lost: x (int); the next call starts a fresh kernel"
    words = ran.reply.extra["words"]
    assert words.endswith("line 3 in <module>") if signal == "SIGSEGV" else words == ""
    after = await run("'x' in globals()")
    assert (after.result, after.reply.detail, after.reply.execution_count) == ("False", "", 2)


async def test_a_death_between_two_calls_is_told_with_the_next(run: Run) -> None:
    await run("import os, threading\nthreading.Timer(0.3, os._exit, [9]).start()")
    await asyncio.sleep(1.5)
    ran = await run("1 + 1")
    assert ran.result == "2"
    assert "the kernel had died since the last call (it exited with status 9; all names" in ran.reply.detail
    assert "2 imported modules" in ran.reply.detail
    assert ran.reply.extra["names_lost"]


async def test_a_restart_ends_the_running_cell(kernel: ToolKernel, run: Run) -> None:
    await kernel.start()
    running = asyncio.ensure_future(run("import time\nx = 1\ntime.sleep(600)"))
    await asyncio.sleep(1)
    await kernel.restart()
    reply = (await running).reply
    assert (reply.status, reply.extra["names_lost"]) == (Status.INTERRUPTED, True)
    assert (await run("'x' in globals()")).result == "False"


async def test_a_cancelled_call_stops_the_cell(kernel: ToolKernel, run: Run) -> None:
    await kernel.start()
    running = asyncio.ensure_future(run("import time\nx = 5\ntime.sleep(600)"))
    await asyncio.sleep(1)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (await run("x")).result == "5"


async def test_a_cancelled_start_leaves_nothing_and_the_next_works(kernel: ToolKernel, run: Run) -> None:
    starting = asyncio.ensure_future(run("1"))
    await asyncio.sleep(0.1)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert (await run("1 + 1")).result == "2"


async def test_bash_is_stopped_with_all_that_it_started(kernel: ToolKernel, tmp_path: Path, run: Run) -> None:
    source = "%%bash\nsleep 611 & echo $! > a\nsetsid sleep 612 & echo $! > b\necho on\nsleep 613"
    reply, _ = await interrupted(kernel, source)
    assert reply.status is Status.INTERRUPTED  # type: ignore[attr-defined]
    assert await gone([int((tmp_path / name).read_text()) for name in "ab"])
    assert (await run("1 + 1")).result == "2"


async def test_closing_while_a_cell_runs_ends_it(tmp_path: Path) -> None:
    made = ToolKernel(directory=tmp_path, grace=1)
    await made.start()
    running = asyncio.ensure_future(run_cell(made, "import time\nprint('on')\ntime.sleep(600)"))
    await asyncio.sleep(1)
    await made.aclose()
    assert (await running).reply.status in (Status.KERNEL_DIED, Status.INTERRUPTED)


@pytest.mark.parametrize("seed", range(2))
async def test_calls_cancelled_at_any_moment_leave_a_kernel_that_works(kernel: ToolKernel, seed: int) -> None:
    chance = random.Random(seed)
    sources = ["1", "import time\ntime.sleep(60)", "%%bash\nwhile true; do sleep 0.05; done", "quit()"]
    for _ in range(8):
        call = asyncio.ensure_future(run_cell(kernel, chance.choice(sources)))
        await asyncio.sleep(chance.random() * chance.choice([0.02, 0.6]))
        for _ in range(chance.choice([1, 2])):
            call.cancel()
            await asyncio.sleep(chance.random() * 0.1)
        assert (await asyncio.wait({call}, timeout=30))[0]
        assert (await run_cell(kernel, "1 + 1")).result == "2"


async def test_no_reply_gets_stuck_when_interrupt_and_end_meet(run: Run) -> None:
    """A request sent in the moment in which a reply arrives must not hide it; some tries are needed to see that."""
    await run("import time")
    for _ in range(30):
        await run("print('on', flush=True)\ntime.sleep(60)", 0.03)
        began = time.monotonic()
        assert (await run("1 + 1", 20)).reply.status is Status.OK
        assert time.monotonic() - began < 15
