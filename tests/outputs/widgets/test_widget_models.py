"""The state of widget models, and what output widgets capture, from made-up messages."""

from __future__ import annotations

from typing import Any

import pytest
from comm_messages import closed, models_of, opened, said, updated, view

from harness_nb.outputs.widgets import WidgetModels, models, render_widget
from harness_nb.outputs.widgets.captured import MOST_CHARS, MOST_OUTPUTS
from harness_nb.ports import Output


def printed(text: str, name: str = "stdout") -> Output:
    return Output("stream", {"name": name, "text": text})


def displayed(display_id: str | None = None, kind: Any = "display_data", **data: str) -> Output:
    return Output(kind, {"data": {key.replace("_", "/"): value for key, value in data.items()}}, display_id)


def cleared(wait: bool = False) -> Output:
    return Output("clear_output", {"wait": wait})


@pytest.fixture
def capturing() -> WidgetModels:
    """The output widget ``out`` captures what the request ``cell`` shows."""
    return models_of(opened("out", "Output", outputs=[], msg_id=""), updated("out", msg_id="cell"))


def text(found: WidgetModels) -> str:
    return render_widget(found, "out").text


def test_states_follow_the_messages_and_are_never_changed_in_place() -> None:
    found = models_of(opened("a", "Label", value="1", description="d"))
    before = found.states["a"]
    found.take(updated("a", value="2"))
    assert (before["value"], found.states["a"]["value"], found.states["a"]["description"]) == ("1", "2", "d")
    found.take(closed("a"))
    assert "a" not in found.states


def test_other_comms_and_unknown_models_are_passed_over() -> None:
    other = opened("x", "Label")
    other["content"]["target_name"] = "jupyter.widget.control"
    found = models_of(other, updated("y", value=1), closed("z"))
    assert (dict(found.states), found.revision) == ({}, 0)


def test_changes_are_known_by_revision() -> None:
    found = models_of(opened("a", "Label"), opened("b", "Label"))
    seen = found.revision
    found.take(updated("a", value="2"))
    assert found.changed_since(["a", "b"], seen) and not found.changed_since(["b"], seen)
    seen = found.revision
    found.take(closed("b"))
    assert found.changed_since(["b"], seen) and not found.changed_since(["a"], seen)


def test_binary_values_are_put_in_their_places() -> None:
    message = updated("a", nested={"list": [None]})
    message["content"]["data"]["buffer_paths"] = [["nested", "list", 0], ["gone", "astray"]]
    message["buffers"] = [memoryview(b"one"), memoryview(b"two")]
    assert models_of(opened("a", "Any"), message).states["a"]["nested"] == {"list": [b"one"]}


def test_custom_messages_change_nothing() -> None:
    found = models_of(opened("a", "Any", value=1))
    seen = found.revision
    data = {"method": "custom", "content": {"value": 2}}
    found.take({"msg_type": "comm_msg", "content": {"comm_id": "a", "data": data}})
    assert (found.revision, found.states["a"]["value"]) == (seen, 1)


def test_the_oldest_models_go_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "MOST_MODELS", 3)
    found = models_of(*(opened(name, "Label", value=name) for name in "abcde"))
    assert list(found.states) == ["c", "d", "e"]


def test_an_output_widget_takes_the_outputs_of_its_request_only(capturing: WidgetModels) -> None:
    assert capturing.capture("cell", printed("in\n"))
    assert not capturing.capture("other", printed("elsewhere\n"))
    assert capturing.capture("cell", displayed(text_plain="shown"))
    capturing.take(updated("out", msg_id=""))
    assert not capturing.capture("cell", printed("out\n"))
    assert text(capturing) == "in\nshown"


def test_the_innermost_of_two_takes_them(capturing: WidgetModels) -> None:
    capturing.take(opened("inner", "Output", outputs=[], msg_id=""))
    capturing.take(updated("inner", msg_id="cell"))
    capturing.capture("cell", printed("deep"))
    capturing.take(updated("inner", msg_id=""))
    capturing.capture("cell", printed("shallow"))
    assert text(capturing) == "shallow"
    assert render_widget(capturing, "inner").text == "deep"


def test_text_is_joined_by_stream_and_folded(capturing: WidgetModels) -> None:
    for piece in (printed("10%"), printed("\r20%\n"), printed("warn\n", "stderr"), printed("end")):
        capturing.capture("cell", piece)
    assert len(capturing.states["out"]["outputs"]) == 3
    assert text(capturing) == "20%\nwarn\nend"


def test_clear_output_clears_the_widget_now_or_with_the_next_output(capturing: WidgetModels) -> None:
    capturing.capture("cell", printed("old"))
    assert capturing.capture("cell", cleared())
    assert text(capturing) == ""
    capturing.capture("cell", printed("old"))
    assert capturing.capture("cell", cleared(wait=True))
    assert text(capturing) == "old"
    capturing.capture("cell", printed("new"))
    assert text(capturing) == "new"


def test_an_update_reaches_a_captured_display_and_is_not_taken_from_the_cell(capturing: WidgetModels) -> None:
    capturing.capture("cell", displayed("d1", text_plain="one"))
    capturing.capture("cell", displayed("d2", text_plain="two"))
    assert not capturing.capture("later", displayed("d1", "update_display_data", text_plain="ONE"))
    assert text(capturing) == "ONE\ntwo"


def test_an_error_in_it_reads_like_one(capturing: WidgetModels) -> None:
    trace = ["\x1b[31m---\x1b[0m", "\x1b[31mZeroDivisionError\x1b[0m: division by zero"]
    error = {"ename": "ZeroDivisionError", "evalue": "division by zero", "traceback": trace}
    capturing.capture("cell", Output("error", error))
    assert text(capturing).endswith("ZeroDivisionError: division by zero")
    assert "\x1b" not in text(capturing)


def test_images_and_tables_in_it_are_kept_as_they_are(capturing: WidgetModels) -> None:
    capturing.capture("cell", printed("the plot:\n"))
    capturing.capture("cell", displayed(image_png="aGk=", text_plain="<Figure>"))
    capturing.capture("cell", displayed(text_html="<table>", text_plain="   a\n0  1"))
    twin = render_widget(capturing, "out")
    assert twin.text == "the plot:"
    assert [set(bundle) - {"text/plain"} for bundle in twin.rich] == [{"image/png"}, {"text/html"}]


def test_a_widget_shown_in_it_is_read(capturing: WidgetModels) -> None:
    capturing.take(opened("label", "Label", value="nested"))
    capturing.capture("cell", view("label"))
    assert text(capturing) == "nested"
    assert "label" in render_widget(capturing, "out").model_ids


def test_floods_in_it_stay_small(capturing: WidgetModels) -> None:
    for number in range(3000):
        capturing.capture("cell", printed(f"line {number} {'x' * 40}\n"))
    (output,) = capturing.states["out"]["outputs"]
    assert len(output["text"]) < 1.1 * MOST_CHARS
    assert "line 0 " in output["text"] and "line 2999 " in output["text"] and "left out" in output["text"]
    for number in range(500):
        capturing.capture("cell", displayed(text_plain=str(number)))
    assert len(capturing.states["out"]["outputs"]) == MOST_OUTPUTS


def test_outputs_that_the_code_sets_itself_are_shown() -> None:
    outputs = [{"output_type": "stream", "name": "stdout", "text": "appended"}]
    assert said("out", opened("out", "Output", outputs=[], msg_id=""), updated("out", outputs=outputs)) == "appended"
