"""run_bash: the real bash, live, and no longer than bash itself."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness_nb.tools import children
from harness_nb.tools.bash import run_bash


def gone(pid: int, seconds: float = 5.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not children._alive(pid):
            return True
        time.sleep(0.02)
    return False


def test_it_is_bash_in_the_current_directory(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run_bash('echo "${BASH_VERSION%%.*}" | grep -q "^[0-9]" && [[ 1 < 2 ]] && shopt -q expand_aliases; pwd')
    assert capfd.readouterr().out == f"{folder}\n"


def test_each_stream_keeps_its_kind(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_bash("echo out; sleep 0.05; echo err >&2; sleep 0.05; printf 'no newline'")
    captured = capsys.readouterr()
    assert captured.out == "out\nno newline"
    assert captured.err == "err\n"


def test_a_status_is_an_error_of_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(subprocess.CalledProcessError) as caught:
        run_bash("echo before; exit 3")
    assert str(caught.value) == "bash exited with status 3"
    assert caught.value.returncode == 3
    assert caught.value._render_traceback_() == [  # type: ignore[attr-defined]
        "CalledProcessError: bash exited with status 3"
    ]
    assert capsys.readouterr().out == "before\n"
    with pytest.raises(subprocess.CalledProcessError, match="bash was killed by SIGTERM"):
        run_bash("kill $$; sleep 5")


def left_behind(cell: str, capsys: pytest.CaptureFixture[str]) -> tuple[str, list[int]]:
    """Run ``cell``; its line about the background with ``PID`` for each pid, and the pids, which are ended."""
    run_bash(cell)
    line = capsys.readouterr().err
    pids = [int(pid) for pid in line.partition("with kill ")[2].split()]
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    for pid in pids:
        line = re.sub(rf"\b{pid}\b", "PID", line)
    return line, pids


def test_a_background_child_does_not_hold_the_cell_and_is_listed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    started = time.monotonic()
    line, (pid,) = left_behind("sleep 600 & echo done", capsys)
    assert time.monotonic() - started < 30
    assert line == (
        "still running: sleep 600 (pid PID); its further output is not shown (send it to a file to see it); "
        "end it with kill PID\n"
    )
    assert gone(pid)


def test_what_writes_to_a_file_is_not_told_to(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line, _ = left_behind("sleep 600 > log.txt 2>&1 & echo done", capsys)
    assert line == "still running: sleep 600 (pid PID); end it with kill PID\n"


def test_several_children_are_told_in_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line, pids = left_behind("sleep 600 &\nsetsid sleep 601 &\necho done", capsys)
    assert line.count("\n") == 1
    assert set(re.findall(r"sleep 60\d \(pid PID\)", line)) == {"sleep 600 (pid PID)", "sleep 601 (pid PID)"}
    assert line.endswith(
        "; their further output is not shown (send it to a file to see it); end them with kill PID PID\n"
    )
    assert len(pids) == 2


@pytest.mark.parametrize(
    ("cell", "named", "count"),
    [
        ("(sleep 600; echo x) &\nsecond='line'", "sleep 600", 2),
        ("for i in 1 2; do sleep 600; done > log.txt 2>&1 &\n", "sleep 600", 2),
        ("while :; do read -t 600 < <(sleep 601); done &", "sleep 601", 2),
        ("(while :; do :; done) &", "a part of this script", 1),
        ("timeout 600 sleep 601 &", "timeout 600 sleep 601", 2),
        ("sh -c 'sleep 600\n\n true' &", "sh -c sleep 600 true", 2),
        (f"/bin/sleep 600{' 0.1' * 30} &", f"sleep 600{' 0.1' * 12} 0…", 1),
    ],
)
def test_programs_are_named_and_not_the_shells_own_copies(
    folder: Path, capsys: pytest.CaptureFixture[str], cell: str, named: str, count: int
) -> None:
    line, pids = left_behind(cell, capsys)
    assert line.removeprefix("still running: ").partition(" (pid")[0] == named
    assert line.count("(pid ") == 1
    assert len(pids) == count


def test_many_children_are_counted_and_ended_as_a_group(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_bash("for i in $(seq 15); do sleep 600 & done")
    line = capsys.readouterr().err
    assert line.count("sleep 600 (pid ") == 5
    assert ", 10 more; their further output" in line
    group = int(line.rpartition("end them with kill -- -")[2])
    os.killpg(group, signal.SIGKILL)
    assert len(line) < 400


def test_a_background_child_that_prints_is_neither_stopped_nor_waited_for(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_bash("(for i in $(seq 200); do head -c 5000 /dev/zero; done; echo yes > finished) & echo done")
    assert "done\n" in capsys.readouterr().out
    deadline = time.monotonic() + 20
    while not (folder / "finished").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert (folder / "finished").exists()


def test_an_endless_printer_in_the_background_does_not_hold_the_cell(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_bash("yes & echo $! > pid; sleep 0.1")
    pid = int((folder / "pid").read_text())
    assert f"yes (pid {pid})" in capsys.readouterr().err
    os.kill(pid, signal.SIGKILL)
    assert gone(pid)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """SIGINT raises KeyboardInterrupt, as in a kernel, whatever earlier tests of this process have set."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before or signal.SIG_DFL)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_everything_the_cell_started(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    timer = threading.Timer(0.7, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        run_bash("trap '' INT; echo $$ > own; sleep 602 & echo $! > a; setsid sleep 603 & echo $! > b; echo on; wait")
    timer.join()
    assert capsys.readouterr().out == "on\n"
    assert all(gone(int((folder / name).read_text())) for name in ("own", "a", "b"))


def test_there_is_no_input_and_no_forced_colour(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    run_bash('read line; echo "$? [$line] [$FORCE_COLOR] $TERM"')
    assert capsys.readouterr().out == "1 [] [] dumb\n"


def test_long_scripts_and_many_bytes_come_through(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_bash("# " + "x" * 200_000 + "\nseq 100000\nprintf 'ü€\\xff'")
    out = capsys.readouterr().out
    assert out.startswith("1\n2\n")
    assert out.endswith("99999\n100000\nü€\ufffd")
    assert out.count("\n") == 100_000
    assert list(folder.iterdir()) == []


def test_without_bash_it_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(folder))
    with pytest.raises(FileNotFoundError, match="there is no bash on this machine; use python"):
        run_bash("echo")
