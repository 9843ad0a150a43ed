"""The finish gate: checks in fresh processes, and read-only files that stay as they were."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

from harness_nb.events import CheckFinished
from harness_nb.gate import Gate


async def checks(gate: Gate) -> list[CheckFinished]:
    return [check async for check in gate.run()]


async def test_exit_codes_decide_and_the_output_is_kept(tmp_path: Path) -> None:
    gate = Gate(tmp_path, ["echo fine", "echo out; echo err >&2; exit 3", "pwd"], [], os.environ)
    passed, failed, where = await checks(gate)
    assert (passed.passed, passed.exit_code, passed.output) == (True, 0, "fine\n")
    assert (failed.passed, failed.exit_code, failed.output) == (False, 3, "out\nerr\n")
    assert where.output == f"{tmp_path}\n"


async def test_checks_run_in_the_given_environment_without_input(tmp_path: Path) -> None:
    gate = Gate(tmp_path, ["echo [$SECRET][$SEEN]; cat"], [], {"PATH": os.environ["PATH"], "SEEN": "yes"})
    (check,) = await checks(gate)
    assert check.output == "[][yes]\n"


async def test_a_check_leaves_no_processes_behind(tmp_path: Path) -> None:
    gate = Gate(tmp_path, ["sleep 300 & echo $!"], [], os.environ)
    (check,) = await checks(gate)
    pid = int(check.output)
    deadline = time.monotonic() + 10
    while Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes():
        assert time.monotonic() < deadline, "the background process lives on"
        await asyncio.sleep(0.05)


async def test_a_touched_read_only_file_fails_and_is_named(tmp_path: Path) -> None:
    tests = tmp_path / "tests"
    tests.mkdir()
    for name in ("test_a.py", "test_b.py"):
        (tests / name).write_text("assert True\n")
    gate = Gate(tmp_path, [], ["tests/**"], os.environ)
    assert [check.passed for check in await checks(gate)] == [True]
    (tests / "test_a.py").write_text("")
    (tests / "test_b.py").unlink()
    (tests / "conftest.py").write_text("raise SystemExit(0)\n")
    (check,) = await checks(gate)
    assert not check.passed
    assert check.output.endswith("tests/conftest.py, tests/test_a.py, tests/test_b.py")


async def test_caches_do_not_count_as_touched(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    gate = Gate(tmp_path, [], ["tests/**"], os.environ)
    (tmp_path / "tests" / "__pycache__").mkdir()
    (tmp_path / "tests" / "__pycache__" / "x.pyc").write_text("")
    assert [check.passed for check in await checks(gate)] == [True]


async def test_a_long_output_is_bounded(tmp_path: Path) -> None:
    (check,) = await checks(Gate(tmp_path, ["seq 1 100000"], [], os.environ))
    assert len(check.output) < 8000
    assert check.output.startswith("1\n2\n")
    assert check.output.endswith("100000\n")
