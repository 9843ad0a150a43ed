"""What the model gets of a call: exact texts, the budget, the images."""

from __future__ import annotations

import pytest
from driven_cell import Cell
from said import err, figure, out, raised, result, shown

from harness_nb.outputs import format_seconds, result_content, status_line
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


@pytest.mark.parametrize(
    ("reply", "elapsed", "expected"),
    [
        (ExecuteReply(Status.OK), 0.04, "[ok, 0.0 s]"),
        (ExecuteReply(Status.OK, detail="2 children still run."), 61, "[ok, 61 s; 2 children still run]"),
        (ExecuteReply(Status.ERROR), 3, "[error, 3.0 s]"),
        (
            ExecuteReply(Status.TIMED_OUT, detail="the kernel was restarted, names are lost"),
            10.04,
            "[timed out after 10 s; the partial output is above; the kernel was restarted, names are lost]",
        ),
        (ExecuteReply(Status.RUNNING), 200, "[still running after 3 min 20 s; the output so far is above]"),
        (ExecuteReply(Status.INTERRUPTED), 7500, "[interrupted after 2 h 5 min; the output until then is above]"),
        (
            ExecuteReply(Status.KERNEL_DIED, detail="signal 9"),
            2,
            "[kernel died: signal 9; after 2.0 s, the last output is above]",
        ),
        (
            ExecuteReply(Status.KERNEL_DIED),
            2,
            "[kernel died: it ended without a reply; after 2.0 s, the last output is above]",
        ),
        (ExecuteReply(Status.DENIED), 0, "[denied: it was not run]"),
        (ExecuteReply(Status.UNKNOWN), 0, "[outcome unknown: no reply was recorded]"),
    ],
)
def test_the_last_line_says_how_it_ended(reply: ExecuteReply, elapsed: float, expected: str) -> None:
    assert status_line(reply, elapsed) == expected
    assert text_of(Cell().run([out("x")]), reply, elapsed) == f"x\n{expected}"


def test_a_text_within_the_budget_is_whole_although_the_cell_is_cut() -> None:
    lines = "".join(f"{n:5d} line\n" for n in range(1400))
    cell = Cell().run([out(lines)])
    assert text_of(cell) == f"{lines}[ok, 0.4 s]"
    assert "1,000 lines (11.0 KB) left out" in cell.texts[0][1]


def test_a_text_beyond_the_budget_has_head_tail_and_the_way_to_the_whole() -> None:
    lines = "".join(f"{n:5d} line\n" for n in range(3000))
    cell = Cell().run([out(lines)])
    text = text_of(cell)
    assert len(text) < 16_300
    assert text.startswith("    0 line\n")
    assert text.endswith(" 2999 line\n[ok, 0.4 s]")
    assert (
        "… 1,546 lines (17.0 KB) left out; whole output: harness_sessions/s/outputs/c1.txt, read it with read_file …"
        in text
    )
    assert cell.sink.text == lines


def test_a_short_line_count_beyond_the_budget_is_written_to_the_file_when_the_model_needs_it() -> None:
    cell = Cell().run([out(("x" * 199 + "\n") * 150)])
    assert cell.sink.text == ""
    assert "left out; whole output: harness_sessions/s/outputs/c1.txt" in text_of(cell)
    assert len(cell.sink.text) == 30_000
    assert cell.firewall.offloaded is not None


def test_a_million_lines_are_counted_exactly() -> None:
    cell = Cell().run(out("".join(f"{n}\n" for n in range(s, s + 50_000))) for s in range(0, 1_000_000, 50_000))
    text = text_of(cell)
    head, _, tail = text.partition("… ")
    left_out = int(tail.split(" lines")[0].replace(",", ""))
    assert head.count("\n") + left_out + tail.count("\n") - 1 == 1_000_000
    assert len(text) < 16_300


def test_gaps_of_several_outputs_become_one() -> None:
    many = "".join(f"row {n}\n" for n in range(20_000))
    text = text_of(Cell().run([out(many), err("between\n"), out(many)]))
    assert text.count("left out") == 1
    left_out = int(text.partition("… ")[2].split(" lines")[0].replace(",", ""))
    assert text.count("\n") - 1 + left_out == 40_001


def test_images_follow_the_text_and_have_their_place_in_it() -> None:
    cell = Cell().run([out("before\n"), figure(1), out("after\n")])
    content = result_content(OK, cell.firewall, 0.4, True)
    assert content[0] == TextPart(text="before\n[image 1: 4x3 png]\nafter\n[ok, 0.4 s]")
    assert content[1:] == (ImagePart(media_type="image/png", data=figure(1).content["data"]["image/png"].strip()),)


def test_a_model_without_eyes_is_told_what_it_misses() -> None:
    cell = Cell().run([figure(1, 640, 480)])
    assert result_content(OK, cell.firewall, 0.4, False) == (
        TextPart(text="[image: 640x480 png, not shown to this model]\n[ok, 0.4 s]"),
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


def test_a_data_frame_is_read_as_text() -> None:
    frame = {"text/plain": "   a\n0  1", "text/html": "<table><tr><td>1</td></tr></table>"}
    cell = Cell().run([shown(frame)])
    assert text_of(cell) == "   a\n0  1\n[ok, 0.4 s]"
    assert cell.record[0]["data"] == frame


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
