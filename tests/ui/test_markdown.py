from __future__ import annotations

import pytest

from harness_nb.ui.markdown import PIECE_LENGTH, WORD_JOINER, inert_markdown, pieces


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "a <img src=x onerror=alert(1)> b",
        "- item\n  ```\n<script>alert(1)</script>",
        " ```\n```\n<script>alert(1)</script>",
        "```\n  ```\n<script>alert(1)</script>\n```",
        "```\n```~~\n<script>alert(1)</script>\n```",
        "1. ```\n<script>alert(1)</script>\n```\n",
        "| ` | <script>x</script> ` |",
        "`a\nb` <script>x</script> `c`",
        "> ```\n<b>x</b>",
        "<!-- x --> <?php ?> </b>",
        "<https://a.b/\" onclick='x'>",
    ],
)
def test_no_tag_begins_where_there_is_any_doubt(text: str) -> None:
    shown = inert_markdown(text)
    assert not any(f"<{character}" in shown for character in "sib!?/h")
    assert shown.replace(WORD_JOINER, "") == text


def test_plain_text_code_and_mathematics_stay_as_they_are() -> None:
    text = "# Title\n\na < b, $x<5$, `list[int]` <https://example.org/a?b=c>\n\n```html\n<b>bold</b>\n```\nend"
    assert inert_markdown(text) == text


def test_code_outside_is_escaped_although_code_inside_is_not() -> None:
    shown = inert_markdown("```\n~~~\n<b>\n```\n<i>")
    assert "<b>" in shown
    assert "<i>" not in shown


def test_an_open_fence_is_closed() -> None:
    assert inert_markdown("~~~~html\n<b>") == "~~~~html\n<b>\n~~~~"
    assert inert_markdown("$$\n```\n$$\n<script>") == "$$\n```\n$$\n<script>\n```"


def test_pictures_are_shown_only_from_relative_paths() -> None:
    assert inert_markdown("![plot](plots/loss.png)") == "![plot](plots/loss.png)"
    assert inert_markdown("![x](https://example.org/?secret)") == "[x](https://example.org/?secret)"
    assert inert_markdown("![x](//example.org/x)") == "[x](//example.org/x)"
    assert inert_markdown("![x](&#104;ttp://a.b)") == "[x](&#104;ttp://a.b)"
    assert inert_markdown("![x][1]\n\n[1]: http://a.b") == "[x][1]\n\n[1]: http://a.b"


LONG = "word " * (PIECE_LENGTH // 5 + 1)


def test_a_long_text_is_parted_before_paragraphs_and_headings() -> None:
    assert pieces("short\n\nshort") == ["short\n\nshort"]
    text = f"{LONG}\n\nNext\n\n{LONG}\n\n# Title"
    assert pieces(text) == [f"{LONG}\n", f"Next\n\n{LONG}\n", "# Title"]
    assert "\n".join(pieces(text)) == text


@pytest.mark.parametrize("end", ["- item", "2. item", "  more", "| a |", "> quote"])
def test_it_is_not_parted_inside_of_lists_tables_and_quotes(end: str) -> None:
    assert len(pieces(f"{LONG}\n\n{end}")) == 1


@pytest.mark.parametrize("opening", ["```python", "$$", "~~~~"])
def test_it_is_not_parted_inside_of_code_and_formulas(opening: str) -> None:
    fence = opening.removesuffix("python")
    assert len(pieces(f"{opening}\n{LONG}\n\nx = 1\n{fence}\n")) == 1
    assert len(pieces(f"{opening}\n{LONG}\n{fence}\n\nNext")) == 2


def test_the_parts_stay_where_they_are_while_the_text_grows() -> None:
    text = f"{LONG}\n\nNext `x`\n\n```\n{LONG}\n\na\n```\n\nEnd {LONG}\n\nLast"
    whole = pieces(text)
    assert len(whole) == 4
    for length in range(0, len(text), 97):
        grown = pieces(text[:length])
        assert grown[:-1] == whole[: len(grown) - 1]
