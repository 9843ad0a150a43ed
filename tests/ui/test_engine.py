from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness_nb.ui.engine import Engine, engine


@pytest.fixture
def running() -> Iterator[Engine]:
    made = Engine()
    yield made
    made.close()


def test_a_coroutine_runs_in_the_engine_thread(running: Engine) -> None:
    async def where() -> str:
        return threading.current_thread().name

    handle = running.submit(where())
    assert handle.wait(10)
    assert handle.result() == "harness-nb engine"


def test_an_exception_reaches_the_caller(running: Engine) -> None:
    async def fail() -> None:
        raise ValueError("no")

    handle = running.submit(fail())
    assert handle.wait(10)
    with pytest.raises(ValueError, match="no"):
        handle.result()


def test_a_cancelled_handle_is_done_only_after_its_clean_up(running: Engine) -> None:
    entered, may_end, cleaned = threading.Event(), threading.Event(), threading.Event()

    async def work() -> None:
        entered.set()
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.to_thread(may_end.wait, 10)
            cleaned.set()

    handle = running.submit(work())
    assert entered.wait(10)
    handle.cancel()
    assert not handle.wait(0.2)
    may_end.set()
    assert handle.wait(10)
    assert cleaned.is_set()
    with pytest.raises(asyncio.CancelledError):
        handle.result()


def test_close_cancels_work_and_awaits_the_closers() -> None:
    made, seen, entered = Engine(), [], threading.Event()

    async def work() -> None:
        entered.set()
        try:
            await asyncio.sleep(60)
        finally:
            seen.append("work ended")

    async def closer() -> None:
        seen.append("closed")

    made.before_close(closer)
    made.submit(work())
    assert entered.wait(10)
    made.close()
    assert seen == ["work ended", "closed"]
    assert not made.alive


def test_there_is_one_engine_for_a_process() -> None:
    assert engine() is engine()
    assert engine().alive


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_the_exit_of_the_process_closes_and_a_forked_child_does_not(tmp_path: Path) -> None:
    script = tmp_path / "leave.py"
    script.write_text(
        "import os, sys\n"
        "from harness_nb.ui.engine import engine\n"
        "async def closer():\n"
        "    print('closed by', 'parent' if os.getpid() == parent else 'child', flush=True)\n"
        "parent = os.getpid()\n"
        "engine().before_close(closer)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    sys.exit(0)\n"
        "os.waitpid(child, 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(script)], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "closed by parent\n"
    assert done.stderr == ""
