"""Nothing outlives its kernel, and no kernel its harness, however either ends."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from kernel_cells import Run
from kernel_processes import gone

from harness_nb.kernel import ToolKernel
from harness_nb.kernel.guardian import below, is_zombie, marked
from harness_nb.types import Status

FAMILY = '''
import multiprocessing, os, subprocess, sys
detach = """
import os, time
os.fork() and os._exit(0)
os.setsid()
os.fork() and os._exit(0)
open("d", "w").write(str(os.getpid()))
time.sleep(600)
"""
child = subprocess.Popen(["sleep", "621"])
session = subprocess.Popen(["sleep", "622"], start_new_session=True, env={})
subprocess.run([sys.executable, "-c", detach], env={})
worker = multiprocessing.get_context("fork").Process(target=__import__("time").sleep, args=(623,))
worker.start()
import time, pathlib
while not pathlib.Path("d").exists() or not pathlib.Path("d").read_text():
    time.sleep(0.02)
print(os.getpid(), child.pid, session.pid, worker.pid, pathlib.Path("d").read_text(), flush=True)
'''


async def family(run: Run) -> list[int]:
    """The kernel, a child, a child in a session of its own, a worker, and a daemon that has detached itself twice."""
    pids = [int(pid) for pid in (await run(FAMILY)).text().split()]
    assert len(pids) == 5
    assert not any(is_zombie(pid) for pid in pids)
    return pids


async def test_a_restart_ends_the_whole_tree(kernel: ToolKernel, run: Run) -> None:
    """K9."""
    pids = await family(run)
    await kernel.restart()
    assert all(is_zombie(pid) for pid in pids)


async def test_the_death_of_the_kernel_ends_the_whole_tree(run: Run) -> None:
    """K9."""
    pids = await family(run)
    assert (await run("os.kill(os.getpid(), 9)")).reply.status is Status.KERNEL_DIED
    assert all(is_zombie(pid) for pid in pids)


async def test_closing_ends_the_whole_tree(kernel: ToolKernel, run: Run) -> None:
    pids = await family(run)
    await kernel.aclose()
    assert all(is_zombie(pid) for pid in pids)


async def test_closing_lets_exit_handlers_run(kernel: ToolKernel, run: Run, tmp_path: Path) -> None:
    await run("import atexit\n_ = atexit.register(lambda: open('exited', 'w').close())")
    await kernel.aclose()
    assert (tmp_path / "exited").exists()


async def test_a_stopped_cell_ends_what_it_started_and_nothing_older(kernel: ToolKernel, run: Run) -> None:
    ran = await run("import subprocess\nsubprocess.Popen(['sleep', '631'], start_new_session=True).pid")
    older = int(ran.result or 0)
    await asyncio.sleep(0.1)
    source = (
        "p = subprocess.Popen(['sleep', '632'], start_new_session=True)\nprint(p.pid, flush=True)\n"
        "import time\ntime.sleep(600)"
    )
    ran = await run(source, 1)
    assert ran.reply.status is Status.TIMED_OUT
    assert await gone([int(ran.text())])
    assert not is_zombie(older)


HARNESS = """
import asyncio, pathlib, sys
from harness_nb.kernel import ToolKernel

async def main():
    kernel = ToolKernel(directory=pathlib.Path(sys.argv[1]))
    async for item in kernel.execute(pathlib.Path(sys.argv[2]).read_text(), 60):
        if getattr(item, "kind", "") == "stream":
            print(kernel.connection_file.parent, item.content["text"], flush=True)
            break
    else:
        raise SystemExit("no output")
    await asyncio.sleep(600)

{start}
"""
STARTS = {
    "main": "asyncio.run(main())",
    "thread": "import threading, time\n"
    "threading.Thread(target=lambda: asyncio.run(main()), daemon=True).start()\ntime.sleep(600)",
}


@pytest.mark.parametrize("start", STARTS)
async def test_kill_9_of_the_harness_leaves_nothing(tmp_path: Path, start: str) -> None:
    """K9. The kernel hangs in C code that holds the interpreter, so that it cannot notice anything by itself."""
    (tmp_path / "cell.py").write_text(FAMILY + "\nsum(range(10**12))\n")
    script = tmp_path / "harness.py"
    script.write_text(HARNESS.format(start=STARTS[start]).replace("            break\n", ""))
    harness = subprocess.Popen(  # noqa: ASYNC220 - starting is quick
        [sys.executable, str(script), str(tmp_path / "work"), str(tmp_path / "cell.py")], stdout=subprocess.PIPE
    )
    try:
        assert harness.stdout is not None
        line = await asyncio.wait_for(asyncio.to_thread(harness.stdout.readline), 60)
        private, *pids = line.decode().split()
        family = [int(pid) for pid in pids]
        guardians = below(harness.pid)
        assert set(family) & set(guardians)
        harness.send_signal(signal.SIGKILL)
        harness.wait(30)
        assert await gone(sorted({*family, *guardians}))
        assert not Path(private).exists()
    finally:
        harness.kill()
        harness.wait()
        assert harness.stdout is not None
        harness.stdout.close()


async def test_a_killed_guardian_takes_the_kernel_along(kernel: ToolKernel, run: Run) -> None:
    ran = await run(
        "import os, subprocess\nc = subprocess.Popen(['sleep', '641'])\nprint(os.getpid(), os.getppid(), c.pid)"
    )
    pids = [int(pid) for pid in ran.text().split()]
    private = kernel.connection_file.parent  # type: ignore[union-attr]
    died = kernel._started.process.died  # type: ignore[union-attr]
    os.kill(pids[1], signal.SIGKILL)
    assert await gone(pids[:1])
    await asyncio.wait({died}, timeout=20)
    ran = await run("1 + 1")
    assert ran.result == "2"
    assert "had died since the last call" in ran.reply.detail
    assert all(is_zombie(pid) for pid in pids)
    assert not private.exists()


def test_marks_are_found_and_nothing_else() -> None:
    mark = "mark-of-a-test"
    process = subprocess.Popen(["sleep", "30"], env={"HARNESS_NB_KERNEL": mark})
    try:
        assert marked(mark) == [process.pid]
        assert marked("another") == []
    finally:
        process.kill()
        process.wait()
