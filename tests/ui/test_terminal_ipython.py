from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from ui_cells import decided, finished, output, replied, result, started

from harness_nb import events as ev
from harness_nb.consent import INVALID
from harness_nb.ports import Delta, ReasoningDelta, TextDelta, Withdrawn
from harness_nb.types import Approval, Decision, Status, ToolCall
from harness_nb.ui.terminal import SOURCE_LINES, TerminalDisplay

ASK = Decision(verdict="ask", reason="it deletes folders", policy="p")
PNG = {"output_type": "display_data", "data": {"image/png": "aGk=", "text/plain": "<Figure>"}, "metadata": {}}


def written(items: Iterable[ev.Event | Delta], path: Path | None = None) -> str:
    display = TerminalDisplay(Console(file=io.StringIO(), width=100, highlight=False))
    if path is not None:
        display.open(path)
    for item in items:
        display.apply(item)
        display.draw()
    file = display._console.file
    assert isinstance(file, io.StringIO)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


def test_text_streams_and_is_not_repeated() -> None:
    shown = written([ReasoningDelta("hm "), TextDelta("I "), TextDelta("look."), replied("I look."), decided("x = 1")])
    assert shown.splitlines()[0] == "hm I look."
    assert shown.count("I look.") == 1


def test_outputs_are_written_when_they_do_not_change_any_more() -> None:
    run = [
        decided("x"),
        started("x"),
        output("10%", "stderr", transient=True),
        output("90%", "stderr", op="set", index=0, transient=True),
        output("then\n"),
        ev.CellOutput(call_id="c1", name="python", output=PNG),
        finished(),
        result(),
    ]
    shown = written(run)
    assert "10%" not in shown
    assert shown.index("90%") < shown.index("then") < shown.index("[image/png: see the session notebook]")
    assert shown.count("then") == 1
    assert "ok · 1.2 s" in shown


def test_long_source_is_cut_but_whole_where_a_person_is_asked() -> None:
    source = "\n".join(f"x{number} = {number}" for number in range(30))
    assert f"… {30 - SOURCE_LINES} more lines" in written([decided(source)])
    asked = written([decided(source, ASK), ev.ApprovalAsked(call_id="c1", name="python", decision=ASK)])
    assert "x29 = 29" in asked and "needs your approval: it deletes folders" in asked


def test_what_the_harness_says_is_there() -> None:
    no = Approval(approved=False, reason="a person said no")
    shown = written(
        [
            Withdrawn("rate limit"),
            ev.ApprovalAnswered(call_id="c1", name="bash", approval=no),
            ev.CheckFinished(command="pytest", passed=False, exit_code=1, output="", elapsed=1.0),
            ev.FinishRejected(reason="why"),
            ev.Nudged(reason="turns are running out", text="2 turns"),
            ev.Warned(text="careful"),
            ev.FinishAccepted(summary="In the end.", checks=0),
            ev.CellFinished(call_id="c1", name="bash", status=Status.KERNEL_DIED, elapsed=0.5),
            ev.SessionEnded(reason="limit", text="the limit is reached", turns=3, elapsed=2.0),
        ],
        Path("harness_sessions/s.ipynb"),
    )
    for words in ("rate limit", "a person said no", "check failed: pytest", "not accepted", "turns are running out"):
        assert words in shown
    assert "careful" in shown and "In the end." in shown and "kernel died · 0.5 s" in shown
    assert shown.splitlines()[-1] == (
        "limit: the limit is reached · 3 turns · tokens unknown · 2 s · harness_sessions/s.ipynb"
    )


def test_a_failed_check_shows_the_end_of_what_it_printed() -> None:
    output = "\n".join(f"line {number}" for number in range(20)) + "\nFAILED (errors=5)\n"
    shown = written([ev.CheckFinished(command="pytest", passed=False, exit_code=1, output=output, elapsed=1.0)])
    assert "line 19\nFAILED (errors=5)" in shown and "line 16" not in shown


def test_a_call_that_fits_no_tool_is_not_said_to_be_denied() -> None:
    wrong = Decision(verdict="deny", reason="file_path is not a parameter", policy=INVALID)
    shown = written([decided("", wrong, file_path="a")])
    assert '{"file_path": "a"}' in shown
    assert "✗ not run: file_path is not a parameter" in shown and "denied" not in shown
    assert "⊘ denied: no" in written([decided("x", Decision(verdict="deny", reason="no", policy="p"))])


def test_a_call_that_was_not_run_says_why_and_one_that_ran_does_not_say_it_twice() -> None:
    assert "✗ Not run, the kernel is busy." in written(
        [decided("x"), result(Status.ERROR, "Not run, the kernel is busy.")]
    )
    ran = [decided("x"), started("x"), finished(Status.ERROR), result(Status.ERROR, "told already")]
    assert "told already" not in written(ran)


def test_a_wait_that_ends_before_its_call_does_not_take_its_name() -> None:
    still = ev.ResultAdded(call_id="c2", name="wait", status=Status.RUNNING, content=())
    assert "▶ still running" in written([still]) and "c2" not in written([still])


def test_a_call_whose_title_says_it_all_is_written_once() -> None:
    short = ToolCall(call_id="c1", name="bash", arguments={"command": "ls data"})
    allow = Decision(verdict="allow", reason="", policy="p")
    event = ev.CallDecided(call_id="c1", name="bash", call=short, source="%%bash\nls data", decision=allow)
    assert written([event]).count("ls data") == 1
    asked = written([event.model_copy(update={"decision": ASK})])
    assert asked.count("ls data") == 2, "what a person is asked about is shown whole"


def test_a_failure_is_written() -> None:
    display = TerminalDisplay(Console(file=io.StringIO(), width=100))
    display.fail("the disk is full")
    file = display._console.file
    assert isinstance(file, io.StringIO)
    assert "stopped: the disk is full" in file.getvalue()


def test_late_output_of_an_earlier_call_says_whose_it_is() -> None:
    other = {"call_id": "c2", "name": "bash"}
    shown = written(
        [
            decided("x"),
            started("x"),
            output("early\n"),
            result(Status.RUNNING),
            ev.CellStarted(**other, source="%%bash\nls"),
            ev.CellFinished(**other, status=Status.OK, elapsed=0.5),
            output("late\n"),
            finished(),
        ]
    ).splitlines()
    assert shown.index("▶ c1 is still running") < shown.index("ok · 0.5 s") < shown.index("… python c1:")
    assert shown[shown.index("… python c1:") + 1 :] == ["late", "ok · 1.2 s"]


def test_a_bar_is_redrawn_in_place_on_a_terminal_and_then_written() -> None:
    console = Console(file=io.StringIO(), width=40, force_terminal=True, color_system=None)
    display = TerminalDisplay(console)
    items = [decided("x"), started("x")]
    items += [output(f"{n}%", "stderr", transient=True, op="set", index=0) for n in (10, 20)]
    for item in [*items, output("x" * 99, op="set", index=0, transient=True), output("20%", op="set", index=0)]:
        display.apply(item)
    display.apply(finished())
    file = console.file
    assert isinstance(file, io.StringIO)
    assert f"\r\x1b[2K10%\r\x1b[2K20%\r\x1b[2K{'x' * 39}\r\x1b[2K20%\r\x1b[2K20%\n" in file.getvalue()


def test_the_summary_can_be_left_to_somebody_else() -> None:
    accepted = ev.FinishAccepted(summary="In the end.", checks=0)
    for summary in (True, False):
        display = TerminalDisplay(Console(file=io.StringIO()), summary=summary)
        display.apply(accepted)
        file = display._console.file
        assert isinstance(file, io.StringIO)
        assert ("In the end." in file.getvalue()) is summary
