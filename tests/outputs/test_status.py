"""The last line of a result: how the call ended, what is left of it, and what can be done."""

from __future__ import annotations

import pytest
from driven_cell import Cell
from said import err, out, raised

from harness_nb.outputs import format_seconds, result_content, status_line
from harness_nb.ports import ExecuteReply, Output
from harness_nb.tools import bash
from harness_nb.toolset import MAX_TIMEOUT
from harness_nb.types import Status, TextPart

LOST = "all names and imports are lost: x (int); the next call starts a fresh kernel"
BASH_ENDED = "bash and what it had started were ended"


def stopped(status: Status, detail: str = "", evalue: str = "", **extra: object) -> ExecuteReply:
    return ExecuteReply(status, ename="KeyboardInterrupt", evalue=evalue, detail=detail, extra=extra)


def text_of(cell: Cell, reply: ExecuteReply, elapsed: float = 0.24) -> str:
    part = result_content(reply, cell.firewall, elapsed, True)[0]
    assert isinstance(part, TextPart)
    return part.text


ENDINGS = [
    (ExecuteReply(Status.OK), 0.04, "[ok, 0.0 s]"),
    (ExecuteReply(Status.OK, detail="2 children still run."), 61, "[ok, 61 s; 2 children still run]"),
    (ExecuteReply(Status.OK, detail="two\nlines"), 1, "[ok, 1.0 s; two lines]"),
    (ExecuteReply(Status.ERROR), 3, "[error, 3.0 s]"),
    (
        stopped(Status.TIMED_OUT, timeout=3.0),
        3.04,
        "[timed out after 3 s; the output so far is above; the kernel lives on with its names; "
        "pass a larger timeout (at most 3600) if it needs longer]",
    ),
    (
        stopped(
            Status.TIMED_OUT,
            f"the code ignored the interrupt for 3 s, so the kernel was killed; {LOST}",
            names_lost=True,
        ),
        10.04,
        "[timed out after 10 s; the output so far is above; "
        f"the code ignored the interrupt for 3 s, so the kernel was killed; {LOST}; "
        "pass a larger timeout (at most 3600) if it needs longer]",
    ),
    (
        stopped(Status.TIMED_OUT, evalue=BASH_ENDED, timeout=0.5),
        0.6,
        "[timed out after 0.5 s and was ended, with all it had started; the output so far is above; "
        "pass a larger timeout (at most 3600) if it needs longer]",
    ),
    (
        ExecuteReply(Status.RUNNING, detail="call id c1, use wait to watch or stop it"),
        200,
        "[still running after 3 min 20 s; its new output is above; call id c1, use wait to watch or stop it]",
    ),
    (
        stopped(Status.INTERRUPTED),
        7500,
        "[interrupted after 2 h 5 min; the output until then is above; the kernel lives on with its names]",
    ),
    (
        stopped(Status.INTERRUPTED, "the code handled the interrupt and ended by itself"),
        3,
        "[interrupted after 3.0 s; the output until then is above; "
        "the code handled the interrupt and ended by itself; the kernel lives on with its names]",
    ),
    (
        stopped(Status.INTERRUPTED, f"the kernel was restarted while the cell ran; {LOST}", names_lost=True),
        3,
        "[interrupted after 3.0 s; the output until then is above; "
        f"the kernel was restarted while the cell ran; {LOST}]",
    ),
    (
        stopped(Status.INTERRUPTED, evalue=BASH_ENDED),
        3,
        "[interrupted after 3.0 s and was ended, with all it had started; the output until then is above]",
    ),
    (
        ExecuteReply(Status.KERNEL_DIED, detail=f"killed by SIGTERM; {LOST}"),
        2,
        f"[kernel died after 2.0 s; the last output is above; killed by SIGTERM; {LOST}]",
    ),
    (ExecuteReply(Status.KERNEL_DIED), 2, "[kernel died after 2.0 s; the last output is above]"),
    (ExecuteReply(Status.DENIED), 0, "[denied: it was not run]"),
    (ExecuteReply(Status.UNKNOWN), 0, "[outcome unknown: no reply was recorded]"),
]


@pytest.mark.parametrize(("reply", "elapsed", "expected"), ENDINGS)
def test_the_last_line_says_how_it_ended(reply: ExecuteReply, elapsed: float, expected: str) -> None:
    assert status_line(reply, elapsed, tool="python") == expected
    assert text_of(Cell().run([out("x")]), reply, elapsed) == f"x\n{expected}"


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (
            ExecuteReply(Status.RUNNING, detail="call id c1"),
            "[still running after 5.0 s; no new output; call id c1]",
        ),
        (stopped(Status.INTERRUPTED), "(no output)\n[interrupted after 5.0 s; the kernel lives on with its names]"),
        (ExecuteReply(Status.KERNEL_DIED, detail=LOST), f"(no output)\n[kernel died after 5.0 s; {LOST}]"),
        (
            stopped(Status.TIMED_OUT, evalue=BASH_ENDED, timeout=5),
            "(no output)\n[timed out after 5 s and was ended, with all it had started; "
            "pass a larger timeout (at most 3600) if it needs longer]",
        ),
    ],
)
def test_without_output_the_line_does_not_point_at_any(reply: ExecuteReply, expected: str) -> None:
    assert text_of(Cell().run([]), reply, 5) == expected


def test_what_to_do_after_a_timeout_depends_on_the_tool() -> None:
    reply = stopped(Status.TIMED_OUT, timeout=120)
    advised = {
        tool: status_line(reply, 120, tool=tool).rpartition("; ")[2] for tool in ("python", "bash", "search_files", "")
    }
    assert advised == {
        "python": f"pass a larger timeout (at most {MAX_TIMEOUT:g}) if it needs longer]",
        "bash": f"pass a larger timeout (at most {MAX_TIMEOUT:g}) if it needs longer]",
        "search_files": "ask for less at once]",
        "": "the kernel lives on with its names]",
    }


@pytest.mark.parametrize(
    ("evalue", "expected"),
    [
        ("bash exited with status 3", "[exit status 3, 0.2 s]"),
        ("bash was killed by SIGTERM", "[bash was killed by SIGTERM, 0.2 s]"),
        ("bash was killed by signal 40", "[bash was killed by signal 40, 0.2 s]"),
    ],
)
def test_a_failed_script_is_told_once_and_not_in_python(evalue: str, expected: str) -> None:
    reply = ExecuteReply(Status.ERROR, 1, "CalledProcessError", evalue)
    cell = Cell().run([out("before\n"), err("no such file\n"), raised("CalledProcessError", evalue)])
    assert text_of(cell, reply) == f"before\nno such file\n{expected}"
    assert cell.record[-1]["ename"] == "CalledProcessError", "the notebook keeps the error that stops a re-run"
    silent = Cell().run([raised("CalledProcessError", evalue)])
    assert text_of(silent, reply) == f"(no output)\n{expected}"


def test_the_words_of_the_bash_magic_are_known() -> None:
    status = status_line(ExecuteReply(Status.ERROR, 1, "CalledProcessError", str(bash.CalledProcessError(1, ""))), 0.2)
    killed = status_line(ExecuteReply(Status.ERROR, 1, "CalledProcessError", str(bash.CalledProcessError(-9, ""))), 0.2)
    assert (status, killed) == ("[exit status 1, 0.2 s]", "[bash was killed by SIGKILL, 0.2 s]")
    assert bash.ENDED == BASH_ENDED


def test_other_failing_processes_keep_their_traceback() -> None:
    evalue = "Command '['ls', 'nowhere']' returned non-zero exit status 2."
    reply = ExecuteReply(Status.ERROR, 1, "CalledProcessError", evalue)
    cell = Cell().run([raised("CalledProcessError", evalue)])
    assert text_of(cell, reply) == f"CalledProcessError: {evalue}\n[error: CalledProcessError, 0.2 s]"


def test_a_stopped_script_does_not_speak_of_a_keyboard() -> None:
    reply = stopped(Status.INTERRUPTED, evalue=BASH_ENDED)
    cell = Cell().run([out("on\n"), raised("KeyboardInterrupt", BASH_ENDED)])
    assert text_of(cell, reply) == (
        "on\n[interrupted after 0.2 s and was ended, with all it had started; the output until then is above]"
    )
    python = Cell().run([out("on\n"), raised("KeyboardInterrupt", "")])
    assert text_of(python, stopped(Status.INTERRUPTED)).startswith("on\nKeyboardInterrupt\n[interrupted after")


REFUSAL = "search matches 0 times in a.py; nothing was changed. The nearest lines are:\n     1\tx = 1"


def test_a_file_tool_refuses_in_its_own_words() -> None:
    reply = ExecuteReply(Status.ERROR, 1, "ValueError", REFUSAL)
    refused = [raised("ValueError", REFUSAL)]
    assert text_of(Cell("search_replace").run(refused), reply) == f"{REFUSAL}\n[error, 0.2 s]"
    assert text_of(Cell("python").run(refused), reply) == f"ValueError: {REFUSAL}\n[error: ValueError, 0.2 s]"


def test_a_fault_of_a_file_tool_keeps_its_traceback() -> None:
    parts = ["File /tools/reading.py:3, in read_file()\n----> 3 x.y\n", "AttributeError: y"]
    fault = Output("error", {"ename": "AttributeError", "evalue": "y", "traceback": parts})
    reply = ExecuteReply(Status.ERROR, 1, "AttributeError", "y")
    assert text_of(Cell("read_file").run([fault]), reply) == (
        "File /tools/reading.py:3, in read_file()\n----> 3 x.y\nAttributeError: y\n[error, 0.2 s]"
    )


def test_a_file_tool_that_is_stopped_shows_nothing_of_its_inside() -> None:
    parts = ["File /tools/searching.py:3, in search_files()\n----> 3 x.y\n", "KeyboardInterrupt: "]
    inside = Output("error", {"ename": "KeyboardInterrupt", "evalue": "", "traceback": parts})
    cell = Cell("search_files").run([out("a.py:1: x\n"), inside])
    assert text_of(cell, stopped(Status.TIMED_OUT, timeout=120)) == (
        "a.py:1: x\n[timed out after 120 s; the output so far is above; the kernel lives on with its names; "
        "ask for less at once]"
    )


def test_the_last_words_of_a_kernel_stand_above_the_line() -> None:
    words = 'Fatal Python error: Segmentation fault\n  File "a.py", line 3 in <module>\n'
    reply = ExecuteReply(Status.KERNEL_DIED, detail=f"killed by SIGSEGV; {LOST}", extra={"words": words})
    assert text_of(Cell().run([out("before\n")]), reply) == (
        f"before\nThe kernel's last words:\n{words}[kernel died after 0.2 s; the last output is above; "
        f"killed by SIGSEGV; {LOST}]"
    )
    assert text_of(Cell().run([]), reply) == (
        f"The kernel's last words:\n{words}[kernel died after 0.2 s; killed by SIGSEGV; {LOST}]"
    )


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, "0.0 s"),
        (9.94, "9.9 s"),
        (9.96, "10 s"),
        (119.4, "119 s"),
        (120, "2 min"),
        (3725, "62 min 5 s"),
        (7200, "2 h 0 min"),
    ],
)
def test_durations_for_people(seconds: float, expected: str) -> None:
    assert format_seconds(seconds) == expected
