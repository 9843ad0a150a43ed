"""What a terminal shows of a call's outputs, and when."""

from __future__ import annotations

from typing import Any

from harness_nb.events import CellOutput
from harness_nb.ui.written import LINES, WrittenOutputs


def stream(text: str, name: str = "stdout", **fields: Any) -> CellOutput:
    return event({"output_type": "stream", "name": name, "text": text}, **fields)


def shown(**data: str) -> dict[str, Any]:
    return {"output_type": "display_data", "data": {k.replace("_", "/"): v for k, v in data.items()}, "metadata": {}}


def event(output: dict[str, Any], **fields: Any) -> CellOutput:
    return CellOutput(call_id="c1", name="python", output=output, **fields)


def test_text_is_written_as_it_comes_by_whole_lines_and_once() -> None:
    written = WrittenOutputs()
    assert written.apply(stream("epoch 1\nepo")) == ["epoch 1"]
    assert written.unfinished == "epo"
    assert written.apply(stream("ch 2")) == []
    assert written.apply(stream("\nepoch 3\n")) == ["epoch 2\nepoch 3"]
    assert written.finish() == []


def test_the_line_that_was_not_ended_is_written_at_the_end() -> None:
    written = WrittenOutputs()
    written.apply(stream("a\nb"))
    assert written.finish() == ["b"]


def test_a_bar_is_redrawn_and_written_once_with_its_last_state() -> None:
    written = WrittenOutputs()
    assert written.apply(stream("10%|#", "stderr", transient=True)) == []
    assert written.apply(stream("50%|###", "stderr", op="set", index=0)) == []
    assert written.unfinished == "50%|###"
    assert written.apply(stream("done\n")) == ["50%|###", "done"]
    assert written.finish() == []


def test_a_display_is_written_when_another_output_follows_and_again_if_it_has_changed() -> None:
    written = WrittenOutputs()
    assert written.apply(event(shown(text_plain="0%"))) == []
    assert written.apply(stream("begun\n")) == ["0%", "begun"]
    assert written.apply(event(shown(text_plain="50%"), op="set", index=0)) == []
    written.apply(event(shown(text_plain="100%"), op="set", index=0, transient=True))
    assert written.finish() == ["100%"]


def test_what_was_rewritten_comes_once_more_at_the_end() -> None:
    written = WrittenOutputs()
    assert written.apply(stream("one\ntwo\n")) == ["one\ntwo"]
    assert written.apply(stream("1\n2\n", op="set", index=0)) == []
    assert written.finish() == ["1\n2"]


def test_after_clear_everything_is_new() -> None:
    written = WrittenOutputs()
    written.apply(stream("old\n"))
    assert written.apply(CellOutput(call_id="c1", name="python", op="clear")) == []
    assert written.apply(stream("old\n")) == ["old"]


def test_a_flood_is_bounded_and_pictures_are_named() -> None:
    written = WrittenOutputs()
    (text,) = written.apply(stream("".join(f"line {number}\n" for number in range(1000))))
    assert len(text.splitlines()) <= LINES + 1
    assert "line 0" in text and "line 999" in text and "left out" in text
    written.apply(event(shown(image_png="aGk=", text_plain="<Figure>")))
    assert written.finish() == ["[image/png: see the session notebook]"]
