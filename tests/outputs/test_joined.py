"""The model's text beyond its budget: head, tail, and between them the exact way to what is left out."""

from __future__ import annotations

import random
import re

import pytest
from driven_cell import Cell
from said import cleared, err, figure, out, result, shown, updated

from harness_nb.outputs import result_content
from harness_nb.ports import ExecuteReply, Output
from harness_nb.types import Status, TextPart

OK = ExecuteReply(Status.OK, 1)
PATH = "harness_sessions/s/outputs/c1.txt"
ARTIST = "Text(0.5, 0.98, 'Loss')"


def text_of(cell: Cell) -> str:
    part = result_content(OK, cell.firewall, 0.4, True)[0]
    assert isinstance(part, TextPart)
    return part.text


def sentence(text: str) -> str:
    (found,) = [line for line in text.splitlines() if line.startswith("… ")]
    return found


def test_a_text_within_the_budget_is_whole_although_the_cell_is_cut() -> None:
    lines = "".join(f"{n:5d} line\n" for n in range(1400))
    cell = Cell().run([out(lines)])
    assert text_of(cell) == f"{lines}[ok, 0.4 s]"
    assert f"… 980 lines (10.8 KB) left out; whole output: {PATH} …" in cell.texts[0][1]


def test_what_read_file_prints_is_never_cut_and_makes_no_file() -> None:
    many = "".join(f"{n:6d}\tx\n" for n in range(1, 401)) + "(lines 1 to 400 of 5,000; go on with offset=401)\n"
    long = "".join(f"{n:6d}\t{'x' * 1990}\n" for n in range(1, 8)) + "x" * 900 + "\n(lines 1 to 8 of 9, cut at …)\n"
    for printed in (many, long):
        cell = Cell().run([out(printed)])
        assert text_of(cell) == f"{printed}[ok, 0.4 s]"
        assert (cell.sink.text, cell.firewall.offloaded) == ("", None)


def test_a_text_beyond_the_budget_has_head_tail_and_the_lines_between() -> None:
    lines = "".join(f"{n:5d} line\n" for n in range(1, 3001))
    cell = Cell().run([out(lines)])
    text = text_of(cell)
    assert len(text) < 16_300
    assert text.startswith("    1 line\n")
    assert text.endswith(" 3000 line\n[ok, 0.4 s]")
    assert sentence(text) == f"… lines 728 to 2273 (17.0 KB) left out; go on with read_file('{PATH}', offset=728) …"
    assert "\n  727 line\n… lines" in text
    assert "…\n 2274 line\n" in text
    assert cell.sink.text == lines


def test_the_file_is_written_when_only_the_model_needs_it() -> None:
    cell = Cell().run([out(("x" * 199 + "\n") * 150)])
    assert cell.sink.text == ""
    assert (
        sentence(text_of(cell)) == f"… lines 41 to 110 (14.0 KB) left out; go on with read_file('{PATH}', offset=41) …"
    )
    assert len(cell.sink.text) == 30_000
    assert cell.firewall.offloaded is not None


def test_one_huge_line_is_to_be_sliced() -> None:
    assert sentence(text_of(Cell().run([out("start\n" + "x" * 100_000 + "\n")]))) == (
        f"… 84,007 characters of line 2 left out; whole output: {PATH}; "
        "read_file cuts long lines, slice it with python …"
    )
    wide = Cell().run([out("".join("y" * 9000 + "\n" for _ in range(10)))])
    assert sentence(text_of(wide)) == (
        f"… lines 1 to 10 (74.0 KB) left out; whole output: {PATH}; read_file cuts long lines, slice it with python …"
    )


def test_a_little_of_one_line_is_within_reach_of_read_file() -> None:
    cell = Cell().run([out("a\n" * 10 + "x" * 16_100 + "\n" + "b\n" * 10)])
    assert sentence(text_of(cell)) == (
        f"… 141 characters of line 11 left out; go on with read_file('{PATH}', offset=11) …"
    )


def test_a_million_lines_are_counted_exactly() -> None:
    cell = Cell().run(out("".join(f"{n}\n" for n in range(s, s + 50_000))) for s in range(1, 1_000_000, 50_000))
    text = text_of(cell)
    first, last = re.findall(r"lines (\d+) to (\d+) ", text)[0]
    before, _, after = text.partition(sentence(text))
    assert before.endswith(f"\n{int(first) - 1}\n")
    assert after.startswith(f"\n{int(last) + 1}\n")
    assert len(text) < 16_300


def test_images_left_out_are_counted_with_the_lines() -> None:
    cell = Cell().run(item for n in range(40) for item in (out(f"{n}\n" * 300), figure(n)))
    assert re.fullmatch(
        rf"… lines \d+ to \d+ \(\d+\.\d KB\) and 20 images left out; go on with read_file\('{PATH}', offset=\d+\) …",
        sentence(text_of(cell)),
    )


def random_outputs(source: random.Random) -> list[Output]:
    kinds = [
        lambda: out("".join(f"o{source.random():.{source.randrange(2, 9)}f}\n" for _ in range(source.randrange(900)))),
        lambda: err("e" * source.randrange(300) + "\n" * source.randrange(1, 3)),
        lambda: out("no newline"),
        lambda: result("r" + "\nrow" * source.randrange(700)),
        lambda: result(ARTIST),
        lambda: figure(source.randrange(9)),
    ]
    return [source.choice(kinds)() for _ in range(source.randrange(3, 90))]


def without_end(lines: list[str]) -> list[str]:
    """The lines that the model is told: no artists, no blank lines at the very end."""
    return "\n".join(line for line in lines if line != ARTIST).rstrip("\n").split("\n")


@pytest.mark.parametrize("seed", range(40))
def test_the_lines_that_are_named_are_the_lines_of_the_file(seed: int) -> None:
    source = random.Random(seed)
    cell = Cell().run([out("first\n" * source.randrange(2000, 3000)), figure(0), *random_outputs(source)])
    text = text_of(cell)
    whole = cell.sink.text.split("\n")
    *said, _ = [line for line in text.split("\n") if not line.startswith("[image")]
    named = re.search(r"^… lines (\d+) to (\d+) .*offset=(\d+)\) …$", text, re.M)
    assert named is not None
    first, last, offset = map(int, named.groups())
    gap = said.index(sentence(text))
    assert first == offset
    assert said[:gap] == [line for line in whole[: first - 1] if line != ARTIST]
    assert said[gap + 1 :] == without_end(whole[last:])


def test_a_cut_right_before_an_image_names_the_line_behind_it() -> None:
    cell = Cell().run([out(("x" * 79 + "\n") * 100), figure(1), out(("y" * 79 + "\n") * 200)])
    assert (
        sentence(text_of(cell)) == f"… lines 101 to 200 (8.0 KB) left out; go on with read_file('{PATH}', offset=101) …"
    )


def test_line_numbers_that_cannot_be_known_are_not_told() -> None:
    rows = "".join(f"{n}\n" for n in range(9000))
    cell = Cell().run([out(rows), cleared(), out(rows)])
    assert re.fullmatch(
        rf"… \d,\d{{3}} lines \(\d+\.\d KB\) left out; whole output: {PATH}, read it with read_file …",
        sentence(text_of(cell)),
    )
    changed = Cell().run([shown({"text/plain": "a"}, "d"), out(rows), updated({"text/plain": "a\nb"}, "d")])
    assert "whole output: " in sentence(text_of(changed))


def test_gaps_of_several_outputs_become_one() -> None:
    many = "".join(f"row {n}\n" for n in range(20_000))
    text = text_of(Cell().run([out(many), err("between\n"), out(many)]))
    first, last = map(int, re.findall(r"lines (\d+) to (\d+) ", sentence(text))[0])
    assert text.count("left out") == 1
    assert text.count("\n") - 1 + last - first + 1 == 40_001
