"""What the model gets of a call: exact texts, the budget, the images."""

from __future__ import annotations

import pytest
from driven_cell import Cell
from said import err, figure, out, raised, result, shown

from harness_nb.outputs import result_content
from harness_nb.ports import ExecuteReply
from harness_nb.types import ImagePart, Status, TextPart

OK = ExecuteReply(Status.OK, 1)


def text_of(cell: Cell, reply: ExecuteReply = OK, elapsed: float = 0.4, images: bool = True) -> str:
    part = result_content(reply, cell.firewall, elapsed, images)[0]
    assert isinstance(part, TextPart)
    return part.text


def test_outputs_come_in_order_without_decoration() -> None:
    cell = Cell().run([out("one\n"), err("\x1b[33mwarn\x1b[0m"), out("two\n"), result("3")])
    assert text_of(cell) == "one\nwarn\ntwo\n3\n[ok, 0.4 s]"


def test_no_output_is_said() -> None:
    assert text_of(Cell().run([])) == "(no output)\n[ok, 0.4 s]"
    assert text_of(Cell().run([out("\n")])) == "(no output)\n[ok, 0.4 s]"


def test_an_error_comes_with_its_traceback() -> None:
    reply = ExecuteReply(Status.ERROR, 2, "ValueError", "bad")
    cell = Cell().run([out("before\n"), raised()])
    assert text_of(cell, reply, 0.12) == "before\nValueError: bad\n[error: ValueError, 0.1 s]"


def test_an_error_that_nothing_shows_is_told_once() -> None:
    reply = ExecuteReply(Status.ERROR, 2, "UsageError", "Cell magic `%%x` not found.")
    assert text_of(Cell().run([]), reply) == "UsageError: Cell magic `%%x` not found.\n[error: UsageError, 0.4 s]"
    told = Cell().run([err("UsageError: Cell magic `%%x` not found.\n")])
    assert text_of(told, reply) == "UsageError: Cell magic `%%x` not found.\n[error: UsageError, 0.4 s]"


def test_images_follow_the_text_and_have_their_place_in_it() -> None:
    cell = Cell().run([out("before\n"), figure(1), out("after\n")])
    content = result_content(OK, cell.firewall, 0.4, True)
    assert content[0] == TextPart(text="before\n[image 1: 4x3 png]\nafter\n[ok, 0.4 s]")
    assert content[1:] == (ImagePart(media_type="image/png", data=figure(1).content["data"]["image/png"].strip()),)


def test_a_model_without_eyes_is_told_what_it_misses() -> None:
    cell = Cell().run([figure(1, 640, 480)])
    assert result_content(OK, cell.firewall, 0.4, False) == (
        TextPart(text="[image: 640x480 png; you cannot be shown pictures, print the numbers behind it]\n[ok, 0.4 s]"),
    )


def test_first_and_last_of_many_images_are_attached_and_the_rest_counted() -> None:
    cell = Cell().run(figure(n) for n in range(200))
    content = result_content(OK, cell.firewall, 0.4, True)
    expected = [figure(n).content["data"]["image/png"].strip() for n in (0, 1, 198, 199)]
    assert [part.data for part in content if isinstance(part, ImagePart)] == expected
    text = text_of(cell)
    assert "… 180 images left out …" in text
    assert text.endswith("[image 3: 4x3 png]\n[image 4: 4x3 png]\n[ok, 0.4 s; 4 of 200 images attached]")


def test_a_broken_image_is_said_to_be_one() -> None:
    cell = Cell().run([shown({"image/png": "AAAA"}), figure(1)])
    content = result_content(OK, cell.firewall, 0.4, True)
    assert content[0] == TextPart(
        text="[image: png, could not be read]\n[image 1: 4x3 png]\n[ok, 0.4 s; 1 of 2 images attached]"
    )
    assert len(content) == 2


def test_a_picture_that_arrives_smaller_says_so() -> None:
    content = result_content(OK, Cell().run([figure(1, 2400, 2250)]).firewall, 0.4, True)
    assert content[0] == TextPart(
        text="[image 1: 1024x960 png, scaled down from 2400x2250; crop it in python for detail]\n[ok, 0.4 s]"
    )


def test_a_viewed_picture_has_one_line_and_its_marker() -> None:
    viewed = [
        out("plot.png: PNG, 4 x 3 pixels, 70 bytes\n"),
        shown({"image/png": figure(1).content["data"]["image/png"]}),
    ]
    assert text_of(Cell().run(viewed)) == ("plot.png: PNG, 4 x 3 pixels, 70 bytes\n[image 1: 4x3 png]\n[ok, 0.4 s]")


def test_a_picture_that_is_not_attached_says_so() -> None:
    lines = text_of(Cell().run(figure(n) for n in range(6))).splitlines()
    assert lines[2:4] == ["[image: 4x3 png, not attached]"] * 2
    assert lines[-1] == "[ok, 0.4 s; 4 of 6 images attached]"


PLOTTED = [
    "Text(0.5, 0.98, 'Loss (train)')",
    "<matplotlib.legend.Legend at 0x7f1c2a3b4c50>",
    "[<matplotlib.lines.Line2D at 0x7f1c2a3b4c50>,\n <matplotlib.lines.Line2D at 0x7f1c2a3b4d10>]",
    "<Axes: title={'center': 'a > b'}, xlabel='epoch', ylabel=\"it's\">",
    "array([[<Axes: >, <Axes: >],\n       [<Axes: >, <Axes: >]], dtype=object)",
    "(<Figure size 640x480 with 1 Axes>, <Axes: xlabel='x'>)",
    "<BarContainer object of 10 artists>",
    "[Text(0, 0, 'a'), Text(1, 0, \"b's\")]",
]


@pytest.mark.parametrize("text", PLOTTED)
def test_what_a_plot_calls_itself_is_left_to_the_notebook(text: str) -> None:
    cell = Cell().run([out("before\n"), result(text), figure(1)])
    assert text_of(cell) == "before\n[image 1: 4x3 png]\n[ok, 0.4 s]"
    assert cell.record[1]["data"] == {"text/plain": text}
    assert text_of(Cell().run([result(text)])) == f"{text}\n[ok, 0.4 s]", "without a plot it is all there is"
    assert text_of(Cell().run([out(text), figure(1)])).startswith(text), "what was printed was meant to be read"


@pytest.mark.parametrize(
    "text",
    [
        "(array([3., 4.]), array([0., 1., 2.]), <BarContainer object of 2 artists>)",
        "Text of a book",
        "{'axes': <Axes: >}",
        "[0.93, 0.91]",
        "<torch.utils.data.DataLoader at 0x7f1c2a3b4c50>",
        "()",
    ],
)
def test_a_value_beside_a_plot_stays(text: str) -> None:
    assert text_of(Cell().run([result(text), figure(1)])) == f"{text}\n[image 1: 4x3 png]\n[ok, 0.4 s]"


def test_a_data_frame_is_read_as_text() -> None:
    frame = {"text/plain": "   a\n0  1", "text/html": "<table><tr><td>1</td></tr></table>"}
    cell = Cell().run([shown(frame)])
    assert text_of(cell) == "   a\n0  1\n[ok, 0.4 s]"
    assert cell.record[0]["data"] == frame
