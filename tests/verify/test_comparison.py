"""What counts as the same: nbval's rules, tolerances, pictures, markup. Pure."""

from __future__ import annotations

import base64
import io
from typing import Any

import pytest
from PIL import Image, ImageDraw

from harness_nb.verify.comparison import Comparison, compare_outputs, gather
from harness_nb.verify.difference import describe_texts
from harness_nb.verify.numbers import compare_numbers, told_tolerance
from harness_nb.verify.pictures import THRESHOLD, compare_pictures
from harness_nb.verify.sanitise import DEFAULT


def stream(text: str, name: str = "stdout") -> dict[str, Any]:
    return {"output_type": "stream", "name": name, "text": text}


def data(**kinds: Any) -> dict[str, Any]:
    content = {kind.replace("_", "/", 1): value for kind, value in kinds.items()}
    return {"output_type": "display_data", "data": content, "metadata": {}}


def compare(recorded: list[dict[str, Any]], now: list[dict[str, Any]], tolerance: float = 0.0) -> Comparison:
    return compare_outputs(recorded, now, DEFAULT, tolerance)


def picture(draw: str = "line", size: tuple[int, int] = (640, 480), shift: int = 0, mode: str = "RGB") -> str:
    image = Image.new(mode, size, (0, 0, 0, 0) if mode == "RGBA" else "white")
    pen = ImageDraw.Draw(image)
    pen.rectangle((60, 40, size[0] - 60, size[1] - 40), outline="black")
    if draw == "line":
        pen.line((70 + shift, 400, 300 + shift, 250, 560 + shift, 60), fill="blue", width=2)
    elif draw == "other line":
        pen.line((70, 60, 300, 250, 560, 400), fill="blue", width=2)
    elif draw == "bars":
        pen.rectangle((100, 200, 180, 440), fill="green")
    buffer = io.BytesIO()
    image.save(buffer, "PNG", compress_level=1 + shift % 8)
    return base64.encodebytes(buffer.getvalue()).decode()


def test_streams_are_joined_by_name_and_their_order_among_each_other_does_not_count() -> None:
    recorded = [stream("a\n"), stream("warning\n", "stderr"), stream("b\n")]
    assert not compare(recorded, [stream("warning\n", "stderr"), stream("a\nb\n")]).difference
    assert compare(recorded, [stream("a\n"), stream("warning\n", "stderr")]).difference


def test_carriage_returns_leave_what_a_person_would_see() -> None:
    assert not compare([stream("10%\r50%\r100%\n")], [stream("20%\r100%\n")]).difference
    assert compare([stream("10%\r100%\n")], [stream("100%\r10%\n")]).difference


def test_the_order_counts_among_values_of_one_kind_only() -> None:
    text, html = data(text_plain="1"), data(text_html="<b>x</b>")
    assert not compare([text, html], [html, text]).difference
    assert compare([text, data(text_plain="2")], [data(text_plain="2"), text]).difference


def test_counts_metadata_tracebacks_and_widget_ids_do_not_count() -> None:
    one = {"output_type": "execute_result", "execution_count": 3, "metadata": {"a": 1}, "data": {"text/plain": "7"}}
    other = {"output_type": "execute_result", "execution_count": 9, "metadata": {}, "data": {"text/plain": "7"}}
    assert not compare([one], [other]).difference
    widget = "application/vnd.jupyter.widget-view+json"
    views = [{"output_type": "display_data", "metadata": {}, "data": {widget: {"model_id": i}}} for i in ("x", "y")]
    assert not compare([views[0]], [views[1]]).difference
    errors = [{"output_type": "error", "ename": "E", "evalue": "v", "traceback": [t]} for t in ("one", "two")]
    assert not compare([errors[0]], [errors[1]]).difference
    assert compare([errors[0]], [{**errors[0], "evalue": "w"}]).difference


def test_a_missing_and_an_unexpected_output_are_named() -> None:
    assert compare([stream("hello\n")], []).difference == "printed text is recorded and does not come now: hello"
    assert compare([], [stream("hello\n")]).difference == "printed text comes now and is not recorded: hello"
    assert compare([data(image_png=picture())], []).difference == "a picture is recorded and does not come now"
    twice = [data(text_plain="1"), data(text_plain="1")]
    assert compare(twice, twice[:1]).difference == "a value: 2 recorded, 1 now"


def test_a_number_that_differs_is_told_with_its_words_and_the_tolerance_that_would_pass() -> None:
    found = compare([stream("epoch 3: accuracy 0.9812\n")], [stream("epoch 3: accuracy 0.9754\n")])
    assert found.difference == "accuracy 0.9812 recorded, 0.9754 now; a tolerance of 0.0058 would pass"
    assert not compare([stream("accuracy 0.9812\n")], [stream("accuracy 0.9754\n")], 0.0058).difference
    assert compare([stream("accuracy 0.9812\n")], [stream("accuracy 0.9754\n")], 0.0057).difference


@pytest.mark.parametrize(
    ("recorded", "now", "tolerance", "same"),
    [
        ("loss 1200.5", "loss 1206.5", 0.01, True),  # above 1: a part of the recorded number
        ("loss 1200.5", "loss 1220.5", 0.01, False),
        ("x 0.001", "x 0.009", 0.01, True),  # up to 1: absolutely
        ("x -0.5", "x 0.5", 0.01, False),
        ("x nan", "x nan", 0.0, True),
        ("x nan", "x 0.5", 0.01, False),
        ("x 1e-3", "x 0.001", 0.001, True),
        ("x 1e-3", "x 0.001", 0.0, False),
        ("model v2 scored 0.5", "model v3 scored 0.5", 0.5, False),  # a digit in a word is no number
        ("  a   0.98\n", "  a 0.9754\n", 0.01, True),  # columns are as wide as their numbers
        ("accuracy 0.98", "precision 0.98", 0.5, False),
        ("1 2 3", "1 2", 0.5, False),
    ],
)
def test_a_tolerance_is_for_numbers_only(recorded: str, now: str, tolerance: float, same: bool) -> None:
    assert bool(compare([stream(recorded)], [stream(now)], tolerance).difference) is not same


def test_a_tolerance_reaches_into_json_and_html() -> None:
    one, other = {"scores": [0.981, 12], "name": "x"}, {"scores": [0.975, 12], "name": "x"}
    assert compare([data(application_json=one)], [data(application_json=other)]).difference
    assert not compare([data(application_json=one)], [data(application_json=other)], 0.01).difference
    renamed = {**other, "name": "y"}
    assert compare([data(application_json=one)], [data(application_json=renamed)], 0.01).difference
    assert compare([data(application_json={"a": True})], [data(application_json={"a": 0})], 1.0).difference
    row = "<table><tr><td>a</td><td>{}</td></tr></table>"
    tables = [[data(text_html=row.format(number))] for number in ("0.981", "0.975")]
    assert "0.981 recorded, 0.975 now" in compare(*tables).difference
    assert not compare(*tables, 0.01).difference


def test_a_large_gap_is_no_matter_of_tolerance() -> None:
    numbers = compare_numbers("count 4879", "count 2")
    assert numbers is not None
    assert str(numbers) == "count 4879 recorded, 2 now"
    assert told_tolerance(numbers.needed) == ""
    assert told_tolerance(0.00123) == "0.0013"


def test_html_tables_are_compared_by_text_when_only_their_markup_differs() -> None:
    one = '<table class="a"><tr><th>x</th><td>1</td></tr></table>'
    other = "<div><table><tbody><tr><th>x</th>\n  <td>1</td></tr></tbody></table></div>"
    found = compare([data(text_html=one)], [data(text_html=other)])
    assert not found.difference
    assert found.aside == ("markup of HTML",)
    wrong = compare([data(text_html=one)], [data(text_html=other.replace("x", "y"))])
    assert "-x | 1" in wrong.difference
    assert "+y | 1" in wrong.difference


def test_html_that_a_script_draws_is_compared_as_it_is() -> None:
    one, other = "<script>draw([1,a])</script>", "<script>draw([1,b])</script>"
    assert compare([data(text_html=one)], [data(text_html=other)]).difference


def test_ids_that_a_library_makes_up_do_not_count() -> None:
    style = "<style>#T_{0}_row0 {{}}</style><table id='T_{0}'><tr><td>1</td></tr></table>"
    assert not compare([data(text_html=style.format("1a2b3"))], [data(text_html=style.format("9f8e7"))]).difference
    svg = '<svg><dc:date>{1}</dc:date><path id="m{0}" d="M 0 0"/><use xlink:href="#m{0}" clip-path="url(#p{0})"/></svg>'
    ours, theirs = svg.format("0a1b2c3d4e", "2026-01-02T03:04:05.6"), svg.format("ffffffff00", "2026-11-30T10:00:00.1")
    assert not compare([data(**{"image_svg+xml": ours})], [data(**{"image_svg+xml": theirs})]).difference
    moved = theirs.replace("M 0 0", "M 0 9")
    assert compare([data(**{"image_svg+xml": ours})], [data(**{"image_svg+xml": moved})]).difference


def test_colours_do_not_count() -> None:
    assert not compare([stream("\x1b[31mred\x1b[0m\n")], [stream("red\n")]).difference


def test_pictures_that_look_the_same_are_the_same() -> None:
    assert compare_pictures(picture(), picture()) == ""
    assert compare_pictures(picture(), picture(shift=1)) == "", "a pixel"
    assert compare_pictures(picture(), picture(mode="RGBA")) == "", "transparent is white"
    assert compare_pictures(picture(), picture().replace("\n", "")) == ""
    assert not compare([data(image_png=picture())], [data(image_png=picture(shift=1))]).difference


@pytest.mark.parametrize("other", ["other line", "bars", "nothing"])
def test_pictures_that_look_different_differ(other: str) -> None:
    found = compare([data(image_png=picture())], [data(image_png=picture(other))]).difference
    assert found.startswith("the picture looks different (distance ")
    assert f"up to {THRESHOLD:g} passes" in found


def test_pictures_of_other_sizes_and_broken_ones_differ() -> None:
    found = compare_pictures(picture(), picture(size=(320, 240)))
    assert found == "a picture of 640 x 480 pixels recorded, of 320 x 240 now"
    assert "cannot be read" in compare_pictures(picture(), "bm8gcGljdHVyZQ==")
    assert "cannot be read" in compare_pictures(picture(), "%%%")


def test_a_long_difference_is_short_and_shows_the_place() -> None:
    recorded = "".join(f"line {n} is here\n" for n in range(5000))
    told = describe_texts(recorded, recorded.replace("line 4321 is", "line 4321 was"))
    assert "-line 4321 is here" in told
    assert "+line 4321 was here" in told
    assert len(told.splitlines()) <= 13
    wide = describe_texts("x" * 9000 + "a", "x" * 9000 + "b")
    assert max(map(len, wide.splitlines())) < 200
    assert wide.splitlines()[0].endswith("xa")


def test_the_values_that_were_compared_are_counted() -> None:
    assert compare([], []) == Comparison()
    assert compare([stream("a"), data(text_plain="1")], [stream("a"), data(text_plain="1")]).compared == 2
    assert gather([stream("a"), stream("b")]) == {"stdout": ["ab"]}
