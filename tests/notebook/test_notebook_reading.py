"""The way back: a session notebook, as any program of Jupyter saved it, gives its events again."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import nbformat
import pytest
from story import PLOT, tell

from harness_nb import events as ev
from harness_nb.context import Conversation
from harness_nb.errors import StoreError
from harness_nb.notebook import FORMAT_VERSION, NotebookFold, events_of
from harness_nb.outputs import apply_output
from harness_nb.types import ImagePart, Message, TextPart, ToolCall, text_content

SESSION = "20261114-090000-abcd"


def folded(events: list[ev.Event]) -> dict[str, Any]:
    fold = NotebookFold(SESSION)
    for event in events:
        fold.apply(event)
    notebook: dict[str, Any] = json.loads(json.dumps(fold.notebook()))
    return notebook


def as_jupyter_saves(notebook: dict[str, Any]) -> dict[str, Any]:
    """Texts as lists of lines, base64 with a newline at its end."""
    saved: dict[str, Any] = json.loads(nbformat.writes(nbformat.from_dict(notebook)))
    for cell in saved["cells"]:
        for output in cell.get("outputs", ()):
            if "image/png" in output.get("data", {}):
                output["data"]["image/png"] += "\n"
    assert any(isinstance(cell["source"], list) for cell in saved["cells"])
    return saved


def lasting(events: list[ev.Event]) -> list[ev.Event]:
    return [event for event in events if event.type != "cell_output"]


@pytest.mark.parametrize("saved", [lambda notebook: notebook, as_jupyter_saves])
def test_the_events_come_back(saved: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    events = tell()
    back = events_of(saved(folded(events)))
    assert lasting(back) == lasting(events)
    assert Conversation(back).messages == Conversation(events).messages


def test_the_outputs_come_back_as_appends_in_their_place() -> None:
    events = tell()
    back = events_of(folded(events))
    assert [event.type for event in back] == [event.type for event in events]
    outputs: dict[str, list[dict[str, Any]]] = {}
    for event in back:
        if isinstance(event, ev.CellOutput):
            assert (event.op, event.transient) == ("append", False)
            apply_output(outputs.setdefault(event.call_id, []), event)
    assert [output["output_type"] for output in outputs["c4"]] == ["stream", "stream", "display_data"]


def test_a_notebook_folded_from_its_own_events_is_the_same() -> None:
    notebook = folded(tell())
    assert folded(events_of(notebook)) == notebook


def test_every_prefix_can_be_resumed() -> None:
    events = tell()
    fold = NotebookFold(SESSION)
    for count, event in enumerate(events, start=1):
        fold.apply(event)
        back = events_of(json.loads(json.dumps(fold.notebook())))
        assert lasting(back) == lasting(events[:count])


def test_two_streams_of_one_name_stay_two() -> None:
    ids: dict[str, Any] = {"call_id": "c", "name": "python"}
    texts = [{"output_type": "stream", "name": "stdout", "text": text} for text in ("a", "b")]
    notebook = folded(
        [
            ev.CellStarted(**ids, source="x"),
            ev.CellOutput(**ids, output=texts[0]),
            ev.CellOutput(**ids, op="set", index=1, output=texts[1]),
        ]
    )
    assert notebook["cells"][0]["outputs"] == texts
    assert folded(events_of(notebook)) == notebook


def test_an_image_that_is_in_no_output_is_kept_and_one_that_is_lost_is_said() -> None:
    ids: dict[str, Any] = {"call_id": "c", "name": "python"}
    small = ImagePart(media_type="image/png", data="c21hbGw=")
    same = ImagePart(media_type="image/png", data=PLOT)
    display = {"output_type": "display_data", "data": {"image/png": PLOT}, "metadata": {}}
    notebook = folded(
        [
            ev.CellStarted(**ids, source="x"),
            ev.CellOutput(**ids, output=display),
            ev.ResultAdded.model_validate({**ids, "status": "ok", "content": (small, same)}),
        ]
    )
    assert json.dumps(notebook).count(PLOT) == 1
    (result,) = [event for event in events_of(notebook) if isinstance(event, ev.ResultAdded)]
    assert result.content == (small, same)
    notebook["cells"][0]["outputs"] = []
    (result,) = [event for event in events_of(notebook) if isinstance(event, ev.ResultAdded)]
    assert result.content == (small, TextPart(text="[an image that is no longer in the notebook]"))


def test_a_call_that_differs_from_the_reply_is_kept_whole() -> None:
    replied = ToolCall(call_id="c", name="bash", arguments={"command": "ls"})
    decided = ToolCall(call_id="c", name="bash", arguments={"command": "ls -l"})
    decision = {"verdict": "allow", "reason": "", "policy": "p"}
    events = [
        ev.ModelReplied(turn=1, message=Message(role="assistant", tool_calls=(replied,))),
        ev.CallDecided.model_validate(
            {"call_id": "c", "name": "bash", "call": decided, "source": "%%bash\nls -l", "decision": decision}
        ),
    ]
    assert events_of(folded(events)) == events


def test_cells_of_a_person_are_passed_over_and_moved_or_copied_ones_do_no_harm() -> None:
    events = tell()
    notebook = folded(events)
    cells = notebook["cells"]
    cells.insert(2, {"cell_type": "markdown", "id": "mine", "metadata": {}, "source": "my own words"})
    cells.insert(0, cells.pop(6))
    cells.append({**cells[4], "id": "copied"})
    assert lasting(events_of(notebook)) == lasting(events)


def test_unstamped_events_keep_the_order_of_the_cells() -> None:
    events: list[ev.Event] = [
        ev.PromptAdded(prompt="one"),
        ev.ModelReplied(turn=1, message=Message(role="assistant", content=text_content("two"))),
        ev.Warned(text="three"),
    ]
    assert events_of(folded(events)) == events


@pytest.mark.parametrize(
    ("notebook", "message"),
    [
        ({}, "was not written by harness_nb"),
        ({"cells": [], "metadata": {"kernelspec": {}}}, "was not written by harness_nb"),
        ({"cells": [], "metadata": {"harness_nb": "x"}}, "was not written by harness_nb"),
        ({"cells": [], "metadata": {"harness_nb": {"format_version": FORMAT_VERSION + 1}}}, "Update harness-nb"),
        ({"cells": [], "metadata": {"harness_nb": {"session_id": "s"}}}, "format version None"),
        ({"cells": {}, "metadata": None}, "was not written by harness_nb"),
    ],
)
def test_other_notebooks_are_refused_with_a_sentence(notebook: dict[str, Any], message: str) -> None:
    with pytest.raises(StoreError, match=message):
        events_of(notebook)


@pytest.mark.parametrize(
    "damaged",
    [
        "no object",
        {"type": "never_heard_of", "seq": 3},
        {"type": "prompt_added", "seq": 3},
        {"type": "result_added", "content": 5, "seq": 3},
        {},
    ],
)
def test_damaged_machine_data_names_the_cell(damaged: Any) -> None:
    notebook = folded(tell())
    notebook["cells"][3]["metadata"]["harness_nb"]["events"][0] = damaged
    with pytest.raises(StoreError, match="cell 'step-0003-text' is damaged"):
        events_of(notebook)
