from __future__ import annotations

from pathlib import Path

from ui_cells import ALLOW, Cell, Clock, decided, finished, output, replied, result, shown, started

from harness_nb import events as ev
from harness_nb.ports import ReasoningDelta, TextDelta, Withdrawn
from harness_nb.types import Approval, Decision, Status, ToolCall, Usage, text_content
from harness_nb.ui.publish import Bundle, Canvas
from harness_nb.ui.screen import CellDisplay, Screen

ASK = Decision(verdict="ask", reason="it deletes folders", policy="ask_before_dangerous_commands")
DENY = Decision(verdict="deny", reason="x is outside", policy="deny_outside_workspace")
RUN = [
    ev.SessionStarted(session_id="s", format_version=1, harness_version="0", model="m", workspace="/w", kernel="k"),
    ev.CellStarted(call_id="setup", name="setup", source="%load_ext"),
    ev.CellFinished(call_id="setup", name="setup", status=Status.OK),
    ev.PromptAdded(prompt="Do it"),
    ev.ModelRequested(turn=1, model="m", messages=2),
    ReasoningDelta("think "),
    ReasoningDelta("twice"),
    TextDelta("I **look"),
    TextDelta("** first."),
    replied("I **look** first.", Usage(input_tokens=1000, output_tokens=20, cost_usd=0.5)),
    decided("# Look\nprint(1)"),
    started("# Look\nprint(1)"),
    output("1\n"),
    output("oh\n", "stderr"),
    ev.CellOutput(
        call_id="c1",
        name="python",
        output={"output_type": "display_data", "data": {"image/png": "aGk=", "text/plain": "<Figure>"}, "metadata": {}},
    ),
    finished(),
    result(),
    ev.FinishAccepted(summary="All **done**.", checks=2),
    ev.SessionEnded(
        reason="finished", turns=1, usage=Usage(input_tokens=1000, output_tokens=20, cost_usd=0.5), elapsed=3.0
    ),
]


def markdown(cell: Cell) -> list[str]:
    return [str(bundle.data["text/markdown"]) for bundle in cell.shown if "text/markdown" in bundle.data]


def test_a_summary_of_old_messages_is_one_line_and_counts() -> None:
    usage = Usage(input_tokens=500, output_tokens=5, cost_usd=0.25)
    compacted = ev.ContextCompacted(summary="All of it.", dropped=7, model="m", usage=usage)
    cell = shown([*RUN[:10], compacted, ev.ModelRequested(turn=2, model="m", messages=2)])
    lines = cell.text.splitlines()
    assert "▤ The conversation was too long for the model: 7 earlier messages were summarised." in lines
    assert "1,500 tokens in, 25 out · $0.7500" in lines[-1]


def test_a_run_reads_from_top_to_bottom() -> None:
    cell = shown(RUN)
    assert [bundle.data["text/plain"] for bundle in cell.shown] == [
        "✻ Reasoning\n    think twice",
        "I **look** first.",
        "[python] Look  (✓ 1.2 s)\n    # Look\n    print(1)",
        "1",
        "oh",
        "<Figure>",
        "All **done**.",
        "✓ finished · 2 checks passed · 1 turn · 1,000 tokens in, 20 out · $0.5000 · 3 s · harness_sessions/s.ipynb",
    ]
    assert markdown(cell) == ["I **look** first.", "All **done**."]
    assert cell.shown[5].data["image/png"] == "aGk="
    assert 'href="harness_sessions/s.ipynb"' in str(cell.shown[-1].data["text/html"])


def test_it_does_not_matter_how_often_it_is_drawn() -> None:
    assert shown(RUN, every=True).shown == shown(RUN).shown


def test_every_block_has_a_plain_twin_and_no_style_of_a_theme() -> None:
    for bundle in shown(RUN).shown:
        assert str(bundle.data["text/plain"]).strip()
        assert "var(--" not in str(bundle.data.get("text/html", ""))


def test_the_reply_streams() -> None:
    assert markdown(shown(RUN[:8])) == ["I **look"]


def test_a_withdrawn_reply_is_marked_and_a_new_one_follows() -> None:
    cell = shown([TextDelta("Half an"), Withdrawn("rate limit, trying again in 2 s"), TextDelta("Whole")])
    assert "Withdrawn: rate limit, trying again in 2 s.\n    Half an" in cell.text
    assert markdown(cell) == ["Whole"]


def test_html_in_a_reply_is_inert() -> None:
    assert "<script" not in markdown(shown([TextDelta("<script>alert(1)</script>")]))[0]


def test_the_last_line_says_what_is_going_on_and_since_when() -> None:
    clock = Clock()
    items = [*RUN[:10], decided("x"), started("x")]
    assert shown(items, clock).text.splitlines()[-1].startswith("● running python … · turn 1 · 1,000 tokens in")
    cell = Cell()
    screen, canvas = Screen(clock), Canvas(cell)
    for item in items:
        screen.apply(item)
    canvas.draw(screen.bundles())
    before = cell.messages
    clock.now += 0.4
    canvas.draw(screen.bundles())
    assert cell.messages == before
    clock.now += 75
    canvas.draw(screen.bundles())
    assert cell.messages == before + 1
    assert "running python 1 min 15 s" in cell.text


def test_outputs_change_in_place_and_can_be_cleared() -> None:
    first = [decided("x"), started("x"), output("10%\n", "stderr", transient=True)]
    cell = shown([*first, output("90%", "stderr", op="set", index=0, transient=True)])
    assert "90%" in cell.text and "10%" not in cell.text
    cell = shown([*first, output(op="clear", output=None), output("new\n"), finished()])
    assert "10%" not in cell.text and "new" in cell.text


def test_late_output_of_an_earlier_call_stands_below_that_call() -> None:
    other = {"call_id": "c2", "name": "bash"}
    items = [
        decided("x"),
        started("x"),
        output("early\n"),
        result(Status.RUNNING, "early"),
        ev.CellStarted(**other, source="%%bash\nls"),
        ev.CellFinished(**other, status=Status.OK),
        output("late\n", "stderr"),
    ]
    cell = shown(items, every=True)
    assert cell.text.index("early") < cell.text.index("late") < cell.text.index("[bash]")
    assert "▶ still running" in cell.text
    watch = ToolCall(call_id="c3", name="wait", arguments={"call": "c1", "until": "acc", "seconds": 60})
    items += [
        ev.CallDecided(call_id="c3", name="wait", call=watch, source="", decision=ALLOW),
        output("last\n"),
        finished(Status.ERROR),
        ev.ResultAdded(call_id="c3", name="wait", status=Status.ERROR, content=text_content("last\nTraceback")),
    ]
    cell = shown(items, every=True)
    assert cell.text.index("late") < cell.text.index("last") < cell.text.index("[bash]")
    assert "(✗ error · 1.2 s)" in cell.text and "still running" not in cell.text
    assert "[wait] c1 until 'acc', at most 60 s  (✗ error)" in cell.text
    assert "Traceback" not in cell.text


def test_a_denied_call_says_why() -> None:
    cell = shown([decided("open('../x')", DENY), result(Status.DENIED, "BLOCKED: x is outside.")])
    assert "(⊘ denied)" in cell.text
    assert "x is outside" in cell.text


def test_a_call_that_was_never_judged_shows_its_result() -> None:
    cell = shown([result(Status.DENIED, "Not run: the work was finished by the call before.")])
    assert "Not run: the work was finished" in cell.text


def test_a_question_stands_last_until_it_is_answered() -> None:
    asked = [decided("rm", ASK), ev.ApprovalAsked(call_id="c1", name="python", decision=ASK)]
    assert shown(asked, every=True).text.splitlines()[-1] == "? Needs your approval: it deletes folders"
    answer = Approval(approved=True, by="person")
    cell = shown([*asked, ev.ApprovalAnswered(call_id="c1", name="python", approval=answer), started("rm")])
    assert "✓ Allowed by person: it deletes folders" in cell.text
    no = Approval(approved=False, reason="a person said no: use trash")
    cell = shown([*asked, ev.ApprovalAnswered(call_id="c1", name="python", approval=no), result(Status.DENIED)])
    assert "⊘ a person said no: use trash" in cell.text


def test_checks_refusals_nudges_and_warnings_are_one_line_each() -> None:
    check = ev.CheckFinished(command="pytest -q", passed=False, exit_code=1, output="1 failed", elapsed=1.0)
    cell = shown(
        [
            check,
            ev.FinishRejected(reason="The check failed: 1 failed"),
            ev.Nudged(reason="finish refused", text="The check failed: 1 failed"),
            ev.Nudged(reason="turns are running out", text="2 turns are left"),
            ev.Warned(text="The price is unknown."),
            ev.ContextOffloaded(call_id="c1", name="bash", path="harness_sessions/s/outputs/c1.txt", bytes=9, lines=3),
            ev.PlanUpdated(steps=({"step": "look", "status": "completed"}, {"step": "train", "status": "pending"})),
        ]
    )
    assert "✗ check failed: pytest -q\n    1 failed" in cell.text
    assert cell.text.count("The check failed") == 1
    assert "↪ Told the model: turns are running out." in cell.text
    assert "⚠ The price is unknown." in cell.text
    assert "▤ 3 lines (9 B) in full: harness_sessions/s/outputs/c1.txt" in cell.text
    assert 'href="harness_sessions/s/outputs/c1.txt"' in "".join(str(each.data.get("text/html")) for each in cell.shown)
    assert "☑ look\n☐ train" in cell.text


def test_a_summary_that_repeats_the_reply_is_shown_once() -> None:
    cell = shown([replied("All done."), ev.FinishAccepted(summary="All done.", checks=0)])
    assert cell.text.count("All done.") == 1


def test_an_interrupted_run_leaves_nothing_running() -> None:
    items = [TextDelta("Now"), replied("Now"), decided("x"), started("x"), ev.SessionEnded(reason="interrupted")]
    cell = shown(items)
    assert "● running" not in cell.text
    assert "(■ interrupted)" in cell.text
    assert cell.text.splitlines()[-1].startswith("■ interrupted")


def test_a_setup_that_fails_is_shown() -> None:
    setup = {"call_id": "setup", "name": "setup"}
    bad = [ev.CellStarted(**setup, source="%load_ext x"), ev.CellFinished(**setup, status=Status.ERROR)]
    assert "[setup]" in shown(bad).text
    assert "[setup]" not in shown(RUN).text


def test_unknown_figures_are_not_counted_as_zero() -> None:
    cell = shown([ev.SessionEnded(reason="limit", text="the limit of 2 turns is reached", turns=2, elapsed=61.0)])
    assert cell.text.startswith("■ stopped: the limit of 2 turns is reached · 2 turns · tokens unknown · 1 min 1 s")


def test_a_question_of_the_code_stands_last_and_its_source_is_open() -> None:
    cell, screen = Cell(), Screen(Clock(), None)
    canvas = Canvas(cell)
    source = "name = input('name? ')\n" + "# more\n" * 20
    for item in (decided(source), started(source), output("Welcome\n")):
        screen.apply(item)
    canvas.draw(screen.bundles())
    assert "<details style" in str(cell.shown[0].data["text/html"])
    screen.ask(True)
    screen.apply(output("and", transient=True))
    canvas.draw(screen.bundles())
    assert "(? waiting for your answer)" in cell.text
    assert "<details open" in str(cell.shown[0].data["text/html"])
    assert cell.text.rstrip().endswith("Welcome\nand")
    screen.ask(False)
    canvas.draw(screen.bundles())
    assert "(● running)" in cell.text and "● running python" in cell.text
    screen.apply(finished())
    canvas.draw(screen.bundles())
    assert "waiting for your answer" not in cell.text


def test_what_comes_after_a_question_is_shown_below_it() -> None:
    cell = Cell()
    display = CellDisplay(Screen(Clock(), None), Canvas(cell), Path())
    for item in (decided("input()"), started("input()")):
        display.apply(item)
    display.draw()
    display.ask(True)
    cell.block(Bundle({"text/plain": "the front-end's own box"}))
    display.ask(False)
    display.apply(output("hello\n"))
    display.draw()
    display.apply(finished())
    display.draw()
    texts = cell.text.splitlines()
    assert texts.index("hello") > texts.index("the front-end's own box") > 0
    assert texts[-1].startswith("● running python")
