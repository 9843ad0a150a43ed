"""The Markdown of the notebook, with exact expected values."""

from __future__ import annotations

import pytest

from harness_nb.notebook.prose import count, demote_headings, escape_line, fenced, inline_code, quote, title_of

DOLLAR = "<span>&#36;</span>"


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("Fix the bug", "Fix the bug"),
        ("\n\n  ## Sort the list\nof names", "Sort the list"),
        ("Train a model on `x.csv`. Then plot.", "Train a model on `x.csv`"),
        ("Fix it. Now. Please look at v1.2 too.", "Fix it. Now. Please look at v1.2 too"),
        ("What is wrong in the parser? Tell me.", "What is wrong in the parser?"),
        ("Compare models, e.g. trees. Plot.", "Compare models, e.g. trees"),
        ("word " * 40, "word " * 15 + "word…"),
        ("x" * 200, "x" * 80 + "…"),
        ("", "Session"),
        ("###", "Session"),
        ("a <b> & $x$ *y*", f"a &lt;b&gt; &amp; {DOLLAR}x{DOLLAR} \\*y\\*"),
    ],
)
def test_titles(prompt: str, expected: str) -> None:
    assert title_of(prompt) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("plain {braces} text, 3.5 % - ok!", "plain {braces} text, 3.5 % - ok!"),
        ("`a_b` and __init__", "`a_b` and \\_\\_init\\_\\_"),
        ("``two ` ticks`` and one `", "``two ` ticks`` and one \\`"),
        ("\\(x\\) C:\\temp", "<span>&#92;</span>(x<span>&#92;</span>) C:\\\\temp"),
        ("\\begin{a}", "<span>&#92;</span>begin{a}"),
        ("[a](b) <i> a|b ~~c~~", "\\[a\\](b) &lt;i&gt; a\\|b \\~\\~c\\~\\~"),
    ],
)
def test_a_line_shows_what_was_typed(line: str, expected: str) -> None:
    assert escape_line(line) == expected


def test_a_quote_keeps_lists_code_and_line_breaks() -> None:
    typed = "One line\nand the next:\n\n* a *star*\n- b\n  1. c\n\n```python\nx = '<b> $1'\n```\nend\n"
    assert quote(typed) == (
        "> One line  \n> and the next:\n>\n> * a \\*star\\*\n> - b\n>   1. c\n>\n"
        "> ```python\n> x = '<b> $1'\n> ```\n> end"
    )


def test_a_quote_makes_blocks_inert() -> None:
    typed = "# heading\ntext\n===\nmore\n---\n> quoted\n\n    indented <b>\n#hashtag"
    assert quote(typed).split("\n") == [
        "> \\# heading  ",
        "> text  ",
        "> \\===  ",
        "> more  ",
        "> \\---  ",
        "> &gt; quoted",
        ">",
        "> &nbsp;&nbsp;&nbsp;&nbsp;indented &lt;b&gt;  ",
        "> #hashtag",
    ]


@pytest.mark.parametrize("fence", ["```", "~~~", "`````"])
def test_a_fence_in_a_quote_ends_where_it_was_ended(fence: str) -> None:
    assert quote(f"{fence}\n$a$\n``\n{fence}\n$b$").split("\n")[1:] == [
        "> $a$",
        "> ``",
        f"> {fence}",
        f"> {DOLLAR}b{DOLLAR}",
    ]


def test_an_empty_quote_is_a_quote() -> None:
    assert quote("") == ">"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("no headings\n#hashtag", "no headings\n#hashtag"),
        ("# One\n## Two\ntext", "### One\n#### Two\ntext"),
        ("### Three\n##### Five", "### Three\n##### Five"),
        ("# One\n###### Six", "### One\n###### Six"),
        ("```\n# comment\n```\n## Two", "```\n# comment\n```\n### Two"),
        ("~~~\n```\n# c\n~~~\n# One", "~~~\n```\n# c\n~~~\n### One"),
        ("  # indented", "### indented"),
        ("#", "###"),
    ],
)
def test_headings_move_below_those_of_the_notebook(text: str, expected: str) -> None:
    assert demote_headings(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("make test", "`make test`"),
        ("echo `date`", "`` echo `date` ``"),
        ("a ``b`` c", "`a ``b`` c`"),
        ("two\nlines", "`two lines`"),
        ("", "`  `"),
    ],
)
def test_code_spans_hold_any_text(text: str, expected: str) -> None:
    assert inline_code(text) == expected


def test_a_fence_is_longer_than_any_in_the_text() -> None:
    assert fenced("plain\n\n") == "```text\nplain\n```"
    assert fenced("````\nx", "bash") == "`````bash\n````\nx\n`````"


def test_counts() -> None:
    assert [count(0, "turn"), count(1, "turn"), count(12345, "token")] == ["0 turns", "1 turn", "12,345 tokens"]
