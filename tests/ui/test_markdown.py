from __future__ import annotations

import pytest

from harness_nb.ui.markdown import WORD_JOINER, inert_markdown


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
