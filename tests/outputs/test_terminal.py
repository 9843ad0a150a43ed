"""Terminal text: each cleaning rule with its exact result, and the same result for any chunking."""

from __future__ import annotations

import random

import pytest

from harness_nb.outputs import clean_text
from harness_nb.outputs.terminal import WIDTH, WINDOW, Terminal, restyle, strip_colors


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain\n  indented\ttab\n", "plain\n  indented\ttab\n"),
        ("one\r\ntwo\r\n", "one\ntwo\n"),
        (" 10%\r 50%\r100%", "100%"),
        ("longer text\rshort", "shortr text"),
        ("longer text\rshort      \n", "short\n"),
        ("kept spaces   \n", "kept spaces   \n"),
        ("abc\b\bX", "aXc"),
        ("\b\bX", "X"),
        ("a\0b\x01c", "a\ufffdb\ufffdc"),
        ("bell\x07 form\x0cfeed", "bell formfeed"),
        ("\ud800 and \udfff", "\ufffd and \ufffd"),
        ("pair \ud83d\ude00", "pair \ufffd\ufffd"),
        ("smile \N{GRINNING FACE}", "smile \N{GRINNING FACE}"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPq#0;2;0;0;0\x1b\\after", "after"),
        ("\x1b(Bascii\x1b7\x1b8", "ascii"),
        ("\x1b[?25lhidden cursor\x1b[?25h", "hidden cursor"),
        ("broken \x1b[3", "broken "),
        ("lone \x1b\xe9", "lone \xe9"),
        ("wrong\r\x1b[Kright", "right"),
        ("wrong\x1b[2K\rright", "right"),
        ("abcdef\x1b[3D\x1b[K", "abc"),
        ("abcdef\x1b[1K|", "      |"),
        ("one\ntwo\x1b[A\rONE\n\rTWO", "ONE\nTWO"),
        ("one\ntwo\nthree\x1b[2A\r\x1b[Jgone", "gone"),
        ("seen\n\x1b[H\x1b[2Jcleared", "cleared"),
        ("ab\x1b[5Gcd", "ab  cd"),
        ("\x1b[3Cx", "   x"),
        ("x\x85y\u2028z", "x\ufffdy\u2028z"),
    ],
)
def test_text_is_what_a_terminal_would_have_left(text: str, expected: str) -> None:
    assert clean_text(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[1;31mred\x1b[m plain", "\x1b[1;31mred\x1b[0m plain"),
        ("\x1b[32mone\ntwo\x1b[39m", "\x1b[32mone\x1b[0m\n\x1b[32mtwo\x1b[0m"),
        ("\x1b[31mold\rnew", "\x1b[31mnew\x1b[0m"),
        ("\x1b[31mred\x1b[0m\rb", "b\x1b[31med\x1b[0m"),
        ("\x1b[38;5;208mx\x1b[38;2;1;2;3my\x1b[0m", "\x1b[38;5;208mx\x1b[0m\x1b[38;2;1;2;3my\x1b[0m"),
        ("\x1b[8mhidden\x1b[0m", "hidden"),
        ("\x1b[31m\x1b[0m", ""),
    ],
)
def test_colours_are_kept_in_a_canonical_form(text: str, expected: str) -> None:
    cleaned = clean_text(text, colors=True)
    assert cleaned == expected
    assert strip_colors(cleaned) == clean_text(text)


@pytest.mark.parametrize(
    ("style", "params", "expected"),
    [
        ("", "1", "1"),
        ("1", "31", "1;31"),
        ("1;31", "22", "31"),
        ("1;31", "0;4", "4"),
        ("31", "", ""),
        ("31", "32", "32"),
        ("38;5;1", "39", ""),
        ("", "38;5", ""),
        ("", "38", ""),
        ("", "58;5;3", ""),
        ("", "48;2;1;2;3;1", "48;2;1;2;3;1"),
        ("", "97;101", "101;97"),
        ("", "99", ""),
    ],
)
def test_styles_add_up(style: str, params: str, expected: str) -> None:
    assert restyle(style, params) == expected


def test_a_nested_progress_bar_ends_as_two_lines() -> None:
    text = "".join(
        f"\router {outer}/2" + "".join(f"\n\rinner {inner}/3\x1b[A" for inner in range(1, 4)) for outer in range(1, 3)
    )
    assert clean_text(text) == "outer 2/2\ninner 3/3"


def test_rows_beyond_the_window_are_settled() -> None:
    terminal = Terminal()
    settled = "".join(terminal.feed(f"line {number}\n") for number in range(WINDOW + 10))
    assert settled == "".join(f"line {number}\n" for number in range(11))
    terminal.feed("\x1b[1000A\rEDIT")
    assert terminal.text.split("\n")[0] == "EDIT 11"


def test_a_long_line_is_settled_in_pieces_and_loses_nothing() -> None:
    terminal = Terminal()
    text = "".join(f"{number} " for number in range(100_000))
    settled = "".join(terminal.feed(text[start : start + 1000]) for start in range(0, len(text), 1000))
    assert len(terminal.text) <= WINDOW * WIDTH
    assert settled + terminal.text == text


def test_settling_keeps_the_unfinished_row() -> None:
    terminal = Terminal()
    assert terminal.feed("done\n 50%") == ""
    assert terminal.settle() == "done\n"
    assert (terminal.text, terminal.open, terminal.returned) == (" 50%", True, False)
    terminal.feed("\r")
    assert terminal.returned
    terminal.feed("100%\n")
    assert (terminal.text, terminal.open) == ("100%\n", False)


PIECES = [
    *(
        "word",
        " ",
        "\n",
        "\n",
        "\r",
        "\b",
        "\t",
        "\x1b[31m",
        "\x1b[0m",
        "\x1b[1;38;5;9m",
        "[0m",
        "\0",
        "\ud800",
        "\xe9",
    ),
    *("\x1b[K", "\x1b[2K", "\x1b[A", "\x1b[2A", "\x1b[B", "\x1b[3D", "\x1b[C", "\x1b[J", "\x1b[2J", "\x1b[", "\x1b"),
    *("\x1b]0;t\x07", "\x1b]8;;u\x1b\\", "\x1b(B", "long " * 300, "x" * (WIDTH + 7), "many\n" * (WINDOW + 3)),
]


@pytest.mark.parametrize("seed", range(60))
def test_any_chunking_gives_the_same_text(seed: int) -> None:
    source = random.Random(seed)
    text = "".join(source.choice(PIECES) for _ in range(source.randrange(1, 60)))
    terminal, settled, position = Terminal(), "", 0
    while position < len(text):
        step = source.choice((1, 2, 7, 100, 5000))
        settled += terminal.feed(text[position : position + step])
        position += step
    assert settled + terminal.text == clean_text(text, colors=True)
