"""ToolKernel on a real process: what a cell gets, in which order, and what becomes of questions and odd code.

One kernel serves them all, so each test also sees that the ones before have left it in order.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from jupyter_client.asynchronous.client import AsyncKernelClient
from kernel_cells import Ran, Run, run_cell

from harness_nb.kernel import ToolKernel
from harness_nb.tools import SETUP_SOURCE
from harness_nb.types import Status

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def kernel(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ToolKernel]:
    made = ToolKernel(directory=tmp_path_factory.mktemp("work") / "harness_sessions", setup=SETUP_SOURCE, grace=2.0)
    yield made
    await made.aclose()


@pytest.fixture(scope="module")
def run(kernel: ToolKernel) -> Run:
    async def run_source(source: str, timeout: float | None = 60) -> Ran:
        return await run_cell(kernel, source, timeout)

    return run_source


async def test_streams_results_and_errors_keep_type_and_order(run: Run) -> None:
    """K13."""
    ran = await run(
        "import sys\nfor i in range(3):\n    print('o', i)\n    print('e', i, file=sys.stderr)\n"
        "display({'text/plain': 'shown'}, raw=True)\nprint('after')\n'result'"
    )
    assert ran.kinds == ["stdout", "stderr"] * 3 + ["display_data", "stdout", "execute_result"]
    assert ran.text() == "o 0\no 1\no 2\nafter\n"
    count = ran.reply.execution_count
    ran = await run("print('first')\n1/0")
    assert ran.kinds == ["stdout", "error"]
    assert (ran.reply.status, ran.reply.ename) == (Status.ERROR, "ZeroDivisionError")
    assert ran.reply.execution_count == (count or 0) + 1


async def test_displays_keep_their_id_and_can_be_updated(run: Run) -> None:
    ran = await run(
        "h = display('a', display_id='d1')\nh.update('b')\nfrom IPython.display import clear_output\nclear_output(True)"
    )
    assert ran.kinds == ["display_data", "update_display_data", "clear_output"]
    assert [output.display_id for output in ran.outputs] == ["d1", "d1", None]
    assert "transient" not in ran.outputs[0].content


async def test_questions_fail_at_once_with_a_clear_error(run: Run) -> None:
    """K4, without anybody who could answer."""
    ran = await asyncio.wait_for(run("input('name? ')"), 30)
    assert (ran.reply.status, ran.reply.ename) == (Status.ERROR, "StdinNotImplementedError")
    assert "nobody can answer input() to the question 'name?'" in (ran.reply.evalue or "")
    assert len(ran.outputs[0].content["traceback"]) == 1
    ran = await asyncio.wait_for(run("import getpass\ngetpass.getpass('key: ')"), 30)
    assert "nobody can answer getpass() to the question 'key:'" in (ran.reply.evalue or "")
    ran = await asyncio.wait_for(run("import sys, subprocess\nsubprocess.run(['cat'])\nsys.stdin.read()"), 30)
    assert ran.result == "''"


async def test_a_breakpoint_does_not_hang(run: Run) -> None:
    ran = await asyncio.wait_for(run("def f():\n    breakpoint()\n    return 5\nf()"), 30)
    assert ran.reply.status in (Status.OK, Status.ERROR)
    assert (await run("1 + 1")).result == "2"


async def test_code_that_expects_no_answer_can_catch_the_error(run: Run) -> None:
    ran = await run(
        "from ipykernel.kernelbase import StdinNotImplementedError\n"
        "try:\n    input()\nexcept StdinNotImplementedError:\n    print('default')"
    )
    assert ran.text() == "default\n"


async def test_sys_exit_is_an_error_and_the_kernel_lives(run: Run) -> None:
    assert (await run("x = 1\nimport sys\nsys.exit(3)")).reply.ename == "SystemExit"
    assert (await run("x")).result == "1"


async def test_an_unknown_magic_is_an_error_although_no_error_output_comes(run: Run) -> None:
    ran = await run("%nosuchmagic")
    assert (ran.reply.status, ran.reply.ename) == (Status.ERROR, "UsageError")
    assert "nosuchmagic" in ran.text("stderr")


async def test_help_is_an_output(run: Run) -> None:
    ran = await run("len?")
    assert "Return the number of items" in ran.outputs[0].content["data"]["text/plain"]


async def test_a_semicolon_suppresses_the_result(run: Run) -> None:
    assert (await run("1 + 1;")).outputs == ()


async def test_late_output_of_a_thread_is_in_no_other_cell(run: Run) -> None:
    """K8, the part about late output."""
    await run(
        "import threading, time, concurrent.futures\n"
        "def late():\n    time.sleep(0.6)\n    print('late')\n"
        "threading.Thread(target=late).start()\n"
        "pool = concurrent.futures.ThreadPoolExecutor(1)\npool.submit(int).result()"
    )
    ran = await run("pool.submit(print, 'from the pool').result()\ntime.sleep(1.2)\nprint('second')")
    assert ran.text() == "from the pool\nsecond\n"


async def test_a_second_client_and_this_one_both_get_their_replies(kernel: ToolKernel, run: Run) -> None:
    """K12."""
    await kernel.start()
    other = AsyncKernelClient()
    other.load_connection_file(str(kernel.connection_file))
    other.start_channels(hb=False)
    try:
        await other.wait_for_ready(timeout=30)
        mine, theirs = await asyncio.gather(run("40 + 2"), other.execute("print('theirs')", reply=True, timeout=30))
        assert mine.result == "42"
        assert theirs["content"]["status"] == "ok"
        again = await run("'again'")
        assert (again.kinds, again.result) == (["execute_result"], "'again'")
    finally:
        other.stop_channels()


async def test_many_messages_come_through_complete(run: Run) -> None:
    ran = await run("for i in range(3000):\n    display({'text/plain': str(i)}, raw=True)\nprint('end')")
    shown = [output.content["data"]["text/plain"] for output in ran.outputs if output.kind == "display_data"]
    assert shown == [str(i) for i in range(3000)]
    assert ran.text() == "end\n"


async def test_odd_text_neither_hangs_nor_kills(run: Run) -> None:
    ran = await run("print('a\\ud800b\\0c')\nimport sys\nsys.stdout.write('end')\nNone")
    assert ran.reply.status is Status.OK
    assert ran.text() == "a?b\0c\nend"
    assert (await run("1 + 1")).result == "2"


async def test_what_forked_workers_print_arrives_once(run: Run) -> None:
    source = (
        "import multiprocessing\nprint('before')\n"
        "def work(number):\n    print('worker', number)\n    return number\n"
        "with multiprocessing.get_context('fork').Pool(2) as pool:\n    done = pool.map(work, range(4))\n"
        "import time; time.sleep(0.5)\nprint('after', sum(done))"
    )
    text = (await run(source)).text()
    workers = "".join(f"worker {number}\n" for number in range(4))
    assert text.startswith("before\n") and text.endswith("after 6\n")
    assert sorted(text) == sorted(f"before\n{workers}after 6\n"), "ipykernel sends pieces of forked workers mixed"


async def test_the_manifest_follows_the_cells_also_when_they_fail(kernel: ToolKernel, run: Run) -> None:
    await kernel.restart()
    assert kernel.names == ()
    await run("import math\ntable = {'a': 1}")
    await run("x = 1\n1/0")
    assert [(row["name"], row["type"], row["size"], row["cell"]) for row in kernel.names] == [
        ("x", "int", "", 3),
        ("math", "module", "", 2),
        ("table", "dict", "1", 2),
    ]
    await kernel.restart()
    assert kernel.names == ()
