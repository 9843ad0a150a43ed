"""The finish gate: checks in fresh processes, and read-only files that stay as they were."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

from harness_nb.events import CheckFinished
from harness_nb.gate import Gate
from harness_nb.pristine import KEPT_BYTES, Pristine, put_back_note


async def checks(gate: Gate) -> list[CheckFinished]:
    return [check async for check in gate.run()]


async def test_exit_codes_decide_and_the_output_is_kept(tmp_path: Path) -> None:
    gate = Gate(tmp_path, ["echo fine", "echo out; echo err >&2; exit 3", "pwd"], Pristine(tmp_path, []), os.environ)
    passed, failed, where = await checks(gate)
    assert (passed.passed, passed.exit_code, passed.output) == (True, 0, "fine\n")
    assert (failed.passed, failed.exit_code, failed.output) == (False, 3, "out\nerr\n")
    assert where.output == f"{tmp_path}\n"


async def test_checks_run_in_the_given_environment_without_input(tmp_path: Path) -> None:
    gate = Gate(
        tmp_path, ["echo [$SECRET][$SEEN]; cat"], Pristine(tmp_path, []), {"PATH": os.environ["PATH"], "SEEN": "yes"}
    )
    (check,) = await checks(gate)
    assert check.output == "[][yes]\n"


async def test_a_check_leaves_no_processes_behind(tmp_path: Path) -> None:
    gate = Gate(tmp_path, ["sleep 300 & echo $!"], Pristine(tmp_path, []), os.environ)
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
    gate = Gate(tmp_path, [], Pristine(tmp_path, ["tests/**"]), os.environ)
    assert [check.passed for check in await checks(gate)] == [True]
    (tests / "test_a.py").write_text("")
    (tests / "test_b.py").unlink()
    (tests / "conftest.py").write_text("raise SystemExit(0)\n")
    (check,) = await checks(gate)
    assert not check.passed
    named = "tests/conftest.py (added), tests/test_a.py (edited), tests/test_b.py (deleted)"
    assert named in check.output


async def test_caches_do_not_count_as_touched(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    gate = Gate(tmp_path, [], Pristine(tmp_path, ["tests/**"]), os.environ)
    (tmp_path / "tests" / "__pycache__").mkdir()
    (tmp_path / "tests" / "__pycache__" / "x.pyc").write_text("")
    assert [check.passed for check in await checks(gate)] == [True]


async def test_a_long_output_is_bounded(tmp_path: Path) -> None:
    (check,) = await checks(Gate(tmp_path, ["seq 1 100000"], Pristine(tmp_path, []), os.environ))
    assert len(check.output) < 8000
    assert check.output.startswith("1\n2\n")
    assert check.output.endswith("100000\n")


def test_what_code_did_to_read_only_files_is_undone(tmp_path: Path) -> None:
    tests = tmp_path / "tests"
    tests.mkdir()
    (tests / "test_a.py").write_text("assert True\n")
    (tests / "test_b.py").write_text("assert True\n")
    (tests / "run").write_text("#!/bin/sh\n")
    (tests / "run").chmod(0o755)
    pristine = Pristine(tmp_path, ["tests/**"])
    assert pristine.put_back() == ([], [])
    (tests / "test_a.py").write_text("assert True \n")
    (tests / "test_b.py").unlink()
    (tests / "run").unlink()
    (tests / "conftest.py").write_text("")
    restored, left = pristine.put_back()
    assert restored == ["tests/run", "tests/test_a.py", "tests/test_b.py"]
    assert left == ["tests/conftest.py"]
    assert (tests / "test_a.py").read_text() == (tests / "test_b.py").read_text() == "assert True\n"
    assert (tests / "run").stat().st_mode & 0o777 == 0o755
    assert pristine.touched() == ["tests/conftest.py"]
    note = put_back_note(restored, left)
    assert "put back as they were: tests/run, tests/test_a.py, tests/test_b.py" in note
    assert "tests/conftest.py" in note
    assert put_back_note([], []) == ""


def test_a_large_file_is_watched_but_not_kept(tmp_path: Path) -> None:
    (tmp_path / "data.bin").write_bytes(b"0" * (KEPT_BYTES + 1))
    pristine = Pristine(tmp_path, ["*.bin"])
    (tmp_path / "data.bin").write_bytes(b"1" * (KEPT_BYTES + 1))
    assert pristine.put_back() == ([], ["data.bin"])


def test_a_folder_in_the_place_of_a_file_is_told_not_deleted(tmp_path: Path) -> None:
    (tmp_path / "a.lock").write_text("x")
    pristine = Pristine(tmp_path, ["a.lock"])
    (tmp_path / "a.lock").unlink()
    (tmp_path / "a.lock").mkdir()
    (tmp_path / "a.lock" / "inside").write_text("y")
    assert pristine.put_back()[1] == ["a.lock", "a.lock/inside"]
    assert (tmp_path / "a.lock" / "inside").exists()
