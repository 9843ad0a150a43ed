"""The fold: valid at every moment, readable, and as cheap as what has changed."""

from __future__ import annotations

import json
from typing import Any

import nbformat
import pytest
from story import ALLOW, PLOT, PROMPT, Story, begin, call, display, stream, tell

from harness_nb import events as ev
from harness_nb.notebook import FORMAT_VERSION, NotebookFold
from harness_nb.types import Decision, Message, Status, ToolCall, Usage, text_content

SKIPPED = ["raises-exception", "skip-execution", "nbval-skip"]
IDS: dict[str, Any] = {"call_id": "c1", "name": "python"}


def folded(*events: ev.Event) -> dict[str, Any]:
    fold = NotebookFold("s")
    for event in events:
        fold.apply(event)
    return fold.notebook()


def is_valid(notebook: dict[str, Any]) -> bool:
    """Raises what nbformat or the encoder raises, which says more than False."""
    text = json.dumps(notebook, allow_nan=False, ensure_ascii=False).encode("utf-8")
    parsed = json.loads(text)
    nbformat.validate(parsed)
    ids = [cell["id"] for cell in parsed["cells"]]
    return len(set(ids)) == len(ids) and nbformat.reads(text.decode(), as_version=4).nbformat_minor == 5


def sources(notebook: dict[str, Any], kind: str = "markdown") -> list[str]:
    return [cell["source"] for cell in notebook["cells"] if cell["cell_type"] == kind]


def test_the_notebook_is_valid_at_every_moment() -> None:
    fold = NotebookFold("s")
    assert is_valid(fold.notebook())
    for event in tell():
        fold.apply(event)
        assert is_valid(fold.notebook())


def test_every_event_is_in_the_machine_data_at_every_moment() -> None:
    fold = NotebookFold("s")
    seen = []
    for event in tell():
        fold.apply(event)
        seen += [event.seq] if event.type != "cell_output" else []
        cells = fold.notebook()["cells"]
        kept = [e["seq"] for cell in cells for e in cell["metadata"].get("harness_nb", {}).get("events", ())]
        assert sorted(kept) == seen


def test_wild_content_gives_a_valid_notebook() -> None:
    wild = "\ud800 \0 ``` {x} $5 \\( <b> \N{GRINNING FACE}\r\n# no"
    wild_call = ToolCall(
        call_id="c/1 \xfc", name="we/ird \ud800 n\xe4me", arguments={"a": float("nan"), "\ud800": wild}
    )
    story = Story()
    story.add(ev.PromptAdded(prompt=wild))
    story.reply(wild, wild_call)
    output = display(
        {"application/json": {"x": float("inf")}, "text/x-odd": "odd", "text/plain": wild, "image/png": PLOT},
        {"image/png": {"width": float("nan")}},
    )
    story.ran(wild_call, wild, output, stream("stdout", wild), content=text_content(wild))
    story.add(
        ev.Nudged(reason=wild, text=wild),
        ev.PlanUpdated(steps=({"step": wild, "status": "done"}, {"text": "two"}, {})),
        ev.CheckFinished(command=wild, passed=False, exit_code=None, output=wild, elapsed=0),
        ev.FinishRejected(reason=wild, final=True),
        ev.FinishAccepted(summary=wild, checks=0),
        ev.LimitReached(limit="turns", text=wild),
        ev.Warned(text=wild),
        ev.ContextCompacted(summary=wild, dropped=3),
        ev.SessionEnded(reason="limit", text=wild),
    )
    fold = NotebookFold(wild)
    for event in story.events:
        fold.apply(event)
        assert is_valid(fold.notebook())


def test_the_prompt_is_kept_byte_for_byte_and_shown_as_typed() -> None:
    notebook = folded(ev.PromptAdded(prompt=PROMPT, seq=1))
    (event,) = notebook["cells"][1]["metadata"]["harness_nb"]["events"]
    assert event == {"type": "prompt_added", "seq": 1, "prompt": PROMPT}
    assert notebook["cells"][1]["source"].startswith(
        "## Task\n\n> Train a small classifier on `digits.csv`. The columns `p0` to `p63` are grey values, {label} is"
    )


def test_title_setup_and_task_come_first_in_that_order() -> None:
    story = Story()
    begin(story)
    cells = folded(*story.events)["cells"]
    assert [cell["id"] for cell in cells] == ["step-0000-title", "step-0001-setup", "step-0002-task"]
    assert cells[0]["source"].startswith("# Train a small classifier on `digits.csv`\n\n*Session of harness_nb with")
    assert "2026-11-14 09:00 UTC" in cells[0]["source"]
    assert (cells[1]["source"], cells[1]["execution_count"]) == ('%load_ext harness_nb.tools\nworkspace("..")', 1)
    assert "tags" not in cells[1]["metadata"]


def test_the_title_cell_names_a_script_without_its_folder() -> None:
    for model, shown in [("scripted:/a/b.json", "scripted:b.json"), ("openai:org/gpt-6", "openai:org/gpt-6")]:
        started = ev.SessionStarted(
            session_id="s", format_version=1, harness_version="1", model=model, workspace="w", kernel="k"
        )
        assert f"with `{shown}`." in sources(folded(started))[0]


def test_a_reason_that_starts_with_a_path_is_left_as_it_is() -> None:
    asked = call("c1", "python")
    for reason in ("tests/a.py is read-only", "~/x is outside"):
        deny = Decision(verdict="deny", reason=reason, policy="p")
        cells = folded(ev.CallDecided(**IDS, call=asked, source="x", decision=deny))["cells"]
        assert cells[0]["source"] == f"**Not run** (`python`): {reason.replace('~', chr(92) + '~')}"


@pytest.mark.parametrize(
    ("status", "tags"),
    [
        (Status.OK, None),
        (Status.ERROR, ["raises-exception"]),
        (Status.TIMED_OUT, SKIPPED),
        (Status.INTERRUPTED, SKIPPED),
        (Status.KERNEL_DIED, SKIPPED),
        (Status.UNKNOWN, SKIPPED),
        (Status.RUNNING, SKIPPED),
    ],
)
def test_the_status_of_a_cell_is_in_its_tags(status: Status, tags: list[str] | None) -> None:
    cells = folded(
        ev.CellStarted(**IDS, source="x"), ev.CellFinished(**IDS, status=status, execution_count=4), ev.Warned(text="")
    )["cells"]
    assert cells[0]["metadata"].get("tags") == tags
    assert cells[0]["metadata"]["harness_nb"]["status"] == str(status)
    assert cells[0]["execution_count"] == 4


def test_a_call_goes_from_decided_to_running_to_done() -> None:
    fold = NotebookFold("s")
    ask = Decision(verdict="ask", reason="why", policy="p")
    asked = call("c1", "python", code="1+1")
    steps: list[tuple[ev.Event, str]] = [
        (ev.CallDecided(**IDS, call=asked, source="1+1", decision=ask), "not started"),
        (ev.ApprovalAsked(**IDS, decision=ask), "not started"),
        (ev.ApprovalAnswered.model_validate({**IDS, "approval": {"approved": True}}), "not started"),
        (ev.CellStarted(**IDS, source="1+1"), "running"),
        (ev.CellFinished(**IDS, status=Status.OK, execution_count=2), "ok"),
    ]
    for event, status in steps:
        fold.apply(event)
        (cell,) = fold.notebook()["cells"]
        assert (cell["cell_type"], cell["metadata"]["harness_nb"]["status"]) == ("code", status)
        assert (cell["metadata"].get("tags") == SKIPPED) == (status != "ok")


def test_a_call_that_was_not_run_is_a_raw_cell_behind_its_reason() -> None:
    notebook = folded(*tell())
    cells = notebook["cells"]
    raw = [index for index, cell in enumerate(cells) if cell["cell_type"] == "raw"]
    assert [cells[index]["source"] for index in raw] == [
        "%%bash\ncat ../answers.csv",
        'write_file {"path": "train.py", "content": "import',
    ]
    assert [cells[index]["metadata"]["raw_mimetype"] for index in raw] == ["text/plain"] * 2
    assert [cells[index - 1]["source"] for index in raw] == [
        "**Not run** (`bash`): Nobody can be asked, and the path is outside the workspace",
        "**Not run** (`write_file`): The arguments of write\\_file are not a whole JSON object, so the call was "
        "not run.",
    ]


def test_a_call_behind_a_finish_and_an_interrupted_one_are_not_run_either() -> None:
    calls = (call("a", "python", code="1"), call("b", "bash", command="ls"))
    message = Message(role="assistant", tool_calls=calls)
    cells = folded(
        ev.ModelReplied(turn=1, message=message),
        ev.CallDecided(call_id="a", name="python", call=calls[0], source="1", decision=ALLOW),
        ev.ResultAdded(call_id="a", name="python", status=Status.INTERRUPTED, content=text_content("Interrupted: x.")),
        ev.ResultAdded(call_id="b", name="bash", status=Status.DENIED, content=text_content("Not run: done before.")),
    )["cells"]
    assert [(cell["cell_type"], cell["source"]) for cell in cells[1:]] == [
        ("markdown", "**Not run** (`python`): Interrupted: x."),
        ("raw", "1"),
        ("markdown", "**Not run** (`bash`): Done before."),
        ("raw", 'bash {\n  "command": "ls"\n}'),
    ]


def test_a_call_id_that_comes_again_is_a_new_cell() -> None:
    story = Story()
    for code in ("1", "2"):
        again = call("same", "python", code=code)
        story.reply("", again)
        story.ran(again, code, stream("stdout", code))
    cells = [cell for cell in folded(*story.events)["cells"] if cell["cell_type"] == "code"]
    assert [(cell["source"], cell["outputs"][0]["text"]) for cell in cells] == [("1", "1"), ("2", "2")]


def test_transient_outputs_are_passed_over_and_lasting_ones_add_up() -> None:
    def change(op: str, text: str = "", **more: Any) -> ev.CellOutput:
        output = stream("stdout", text) if text else None
        return ev.CellOutput.model_validate({**IDS, "op": op, "output": output, **more})

    cells = folded(
        ev.CellStarted(**IDS, source="x"),
        change("append", "a"),
        change("set", "shown only", index=0, transient=True),
        change("append", "b"),
        change("set", "c", index=1),
        change("set", "d", index=1),
    )["cells"]
    assert [output["text"] for output in cells[0]["outputs"]] == ["ab", "d"]


def test_a_finish_is_prose_and_its_refusal_says_what_was_claimed() -> None:
    texts = sources(folded(*tell()))
    assert "**Finish refused.**\n\nThe model had said:\n\n> Accuracy is \\*96.8 %\\*." in texts
    assert texts[-2].startswith("## Result\n\n### Summary\n\nThe network reaches **96.8 %**")
    line, _, _ = texts[-1].partition("\n\n| written |")
    assert line == "*Finished: 7 turns, 18,900 tokens in (6,000 cached) and 480 out, 0.0123 USD, 74 s.*"


def test_a_last_reply_without_calls_becomes_the_result() -> None:
    notebook = folded(
        ev.PromptAdded(prompt="p"),
        ev.ModelReplied(turn=1, message=Message(role="assistant", content=text_content("# Done\nAll is well.\n"))),
        ev.CheckFinished(command="make `x`", passed=True, exit_code=0, output="", elapsed=61),
        ev.FinishAccepted(summary="# Done\nAll is well.\n", checks=1),
        ev.SessionEnded(reason="finished", turns=1, elapsed=3.25, usage=Usage(input_tokens=5)),
    )
    assert sources(notebook)[2:] == [
        "## Result\n\n### Done\nAll is well.",
        "**Check passed:** `` make `x` `` (61 s)",
        "*Finished: 1 turn, 5 tokens in and unknown out, cost unknown, 3.2 s.*",
    ]


def test_a_limit_is_told_once_with_the_end() -> None:
    notebook = folded(
        ev.LimitReached(limit="turns", text="50 turns are used up"),
        ev.SessionEnded(reason="limit", text="50 turns are used up", turns=50, elapsed=8000),
    )
    assert sources(notebook) == [
        "**Stopped at a limit:** 50 turns are used up\n\n*50 turns, tokens unknown, cost unknown, 2 h 13 min.*"
    ]


def test_a_nudge_that_repeats_a_refusal_is_not_shown_twice() -> None:
    notebook = folded(
        ev.FinishRejected(reason="The reply was empty."),
        ev.Nudged(reason="finish refused", text="The reply was empty."),
        ev.Nudged(reason="empty reply", text="Go on."),
    )
    assert sources(notebook) == [
        "**Finish refused:** The reply was empty.",
        "**Note to the model** (empty reply):\n\n> Go on.",
    ]


def test_a_plan_stays_one_cell_of_its_task() -> None:
    def plan(*statuses: str) -> ev.PlanUpdated:
        return ev.PlanUpdated(steps=tuple({"step": f"s{n}", "status": s} for n, s in enumerate(statuses)))

    notebook = folded(
        ev.PromptAdded(prompt="one"),
        plan("in_progress", "pending"),
        ev.Warned(text="note"),
        plan("completed", "in_progress"),
        ev.PromptAdded(prompt="two"),
        plan("pending"),
    )
    assert [text for text in sources(notebook) if text.startswith("**Plan")] == [
        "**Plan**\n\n- [x] s0\n- [ ] s1 *(in progress)*",
        "**Plan**\n\n- [ ] s0",
    ]


def test_finished_cells_are_built_once() -> None:
    fold = NotebookFold("s")
    events = tell()
    for event in events[:-1]:
        fold.apply(event)
    before = fold.notebook()["cells"]
    fold.apply(events[-1])
    after = fold.notebook()["cells"]
    assert len(after) == len(before) + 1
    assert all(old is new for old, new in zip(before, after, strict=False))


def test_machine_data_says_nothing_twice() -> None:
    text = json.dumps(folded(*tell()))
    assert text.count(PLOT) == 1
    assert text.count("fit(frame.drop(columns=") == 3  # the cell, the decision, and the model's own arguments
    machine = folded(*tell())["metadata"]["harness_nb"]
    assert machine == {
        "format_version": FORMAT_VERSION,
        "session_id": "s",
        "last_seq": tell()[-1].seq,
        "harness_version": "0.1.0",
        "model": "scripted:story.json",
    }


def test_events_of_unknown_cells_do_not_break_the_fold() -> None:
    story = Story()
    story.add(
        ev.ResultAdded(call_id="x", name="python", status=Status.OK, content=text_content("late")),
        ev.ContextOffloaded(call_id="y", name="bash", path="p", bytes=1, lines=1),
        ev.ModelRequested(turn=1, model="m", messages=1),
    )
    assert is_valid(folded(*story.events))
    assert len(folded(*story.events)["cells"]) == 3
