"""Cutting text to head and tail, with exact counts."""

from __future__ import annotations

import random

import pytest

from harness_nb.outputs import Amount, format_bytes, head_and_tail
from harness_nb.outputs.bounds import Kept, cut_middle, describe_gap, measure


def lines(first: int, last: int) -> str:
    return "".join(f"line {number}\n" for number in range(first, last + 1))


@pytest.mark.parametrize("text", ["", "short", lines(1, 10), "x" * 100, "no newline\nat the end"])
def test_what_fits_stays_as_it_is(text: str) -> None:
    assert head_and_tail(text, 100, 10) == text


def test_whole_lines_are_left_out_of_the_middle() -> None:
    assert head_and_tail(lines(1, 1000), 10_000, 4) == (
        "line 1\nline 2\n… 996 lines (8.9 KB) left out …\nline 999\nline 1000\n"
    )
    assert head_and_tail(lines(1, 1000), 40) == (
        "line 1\nline 2\n… 996 lines (8.9 KB) left out …\nline 999\nline 1000\n"
    )


def test_the_sentence_says_where_the_whole_is() -> None:
    cut = head_and_tail(lines(1, 100), 40, path="outputs/c1.txt")
    assert cut.split("\n")[2] == "… 96 lines (761 B) left out; whole output: outputs/c1.txt …"


def test_a_long_line_is_cut_within() -> None:
    assert head_and_tail("a" * 500 + "b" * 500, 20) == "aaaaaaaaaa\n… 980 characters left out …\nbbbbbbbbbb"
    short_ends = "start\n" + "m" * 1000 + "\nend"
    assert head_and_tail(short_ends, 40) == (
        "start\nmmmmmmmmmmmmmm\n… 970 characters left out …\nmmmmmmmmmmmmmmmm\nend"
    )


def test_a_cut_does_not_leave_a_colour_open() -> None:
    cut = head_and_tail("\x1b[31m" + "r" * 200 + "\x1b[0m", 40)
    assert cut.startswith("\x1b[31m" + "r" * 15 + "\x1b[0m\n… 1")
    inside = head_and_tail("abcdefgh\x1b[31m" + "r" * 200 + "\x1b[0m", 20)
    assert inside.split("\n")[0] == "abcdefgh"


def test_head_and_tail_never_overlap_and_counts_are_exact() -> None:
    source = random.Random(5)
    for _ in range(300):
        text = "".join(source.choice(["\n", "word ", "\N{SNOWMAN}", "x" * 30]) for _ in range(source.randrange(1, 80)))
        chars = source.randrange(10, 200)
        cut, left_out = cut_middle(text, Amount(), "", chars=chars, lines=source.randrange(1, 30))
        if not left_out:
            assert cut == text
            continue
        first, _, last = cut.partition(describe_gap(left_out) + "\n")
        heads = [head for head in (first, first.removesuffix("\n")) if text.startswith(head)]
        assert text.endswith(last)
        assert left_out in [measure(text[len(head) : len(text) - len(last)]) for head in heads]
        assert len(first) + len(last) <= chars + 1


@pytest.mark.parametrize("seed", range(10))
def test_kept_text_adds_up_however_it_comes(seed: int) -> None:
    source = random.Random(seed)
    text = "".join(source.choice(["\n", "word ", "\x1b[31mred\x1b[0m\n", "x" * 50, "\N{SNOWMAN}"]) for _ in range(4000))
    whole, parts = Kept(500), Kept(500)
    whole.add(text)
    position = 0
    for piece in text.splitlines(keepends=True):
        parts.add(piece)
        position += len(piece)
        assert len(parts.head) + len(parts.tail) <= 3 * 500 + len(piece)
    for kept in (whole, parts):
        assert kept.head == whole.head
        assert text.startswith(kept.head)
        assert text.endswith(kept.tail)
        assert len(kept.tail) >= 450
        assert measure(kept.head) + kept.dropped + measure(kept.tail) == measure(text)


def test_amounts_are_of_the_text_without_colours() -> None:
    assert measure("\x1b[31mr\xe9d\x1b[0m\nx") == Amount(lines=1, chars=5, bytes=6)
    assert not Amount()
    assert Amount(images=1) + Amount(images=2, outputs=1) == Amount(images=3, outputs=1)


@pytest.mark.parametrize(
    ("count", "expected"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 KB"), (1_234_567, "1.2 MB"), (5_000_000_000, "5.0 GB")],
)
def test_bytes_for_people(count: int, expected: str) -> None:
    assert format_bytes(count) == expected


@pytest.mark.parametrize(
    ("amount", "expected"),
    [
        (Amount(lines=12345, chars=9, bytes=1_200_000), "… 12,345 lines (1.2 MB) left out …"),
        (Amount(lines=1, chars=80, bytes=80), "… 80 characters left out …"),
        (Amount(lines=1, chars=1, bytes=1), "… 1 character left out …"),
        (Amount(images=1, outputs=1), "… 1 image left out …"),
        (Amount(lines=2, chars=4, bytes=4, images=180, outputs=190), "… 2 lines (4 B) and 180 images left out …"),
        (Amount(outputs=3), "… 3 outputs left out …"),
    ],
)
def test_gaps_are_described(amount: Amount, expected: str) -> None:
    assert describe_gap(amount) == expected
