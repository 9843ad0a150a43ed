"""What widgets say as text, from made-up comm messages."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from comm_messages import closed, models_of, opened, references, said, tqdm, updated

from harness_nb.outputs.widgets import render_widget

SPACE = "\N{FIGURE SPACE}"


def test_a_bar_of_tqdm_reads_like_its_text_form() -> None:
    bar = tqdm(f"epoch:{SPACE}{SPACE}55%", 11, f"{SPACE}11/20{SPACE}[00:01&lt;00:00,{SPACE}9.9it/s]")
    assert said("box", *bar) == "epoch: 55%|███████████         | 11/20 [00:01<00:00, 9.9it/s]"
    bar = tqdm("", 1, f"{SPACE}12/?{SPACE}[00:00&lt;00:00]", style="info", most=1)
    assert said("box", *bar) == "12/? [00:00<00:00]"


def test_a_bar_without_words_has_figures() -> None:
    assert said("a", opened("a", "IntProgress", value=3, min=0, max=4, description="Load:")) == (
        "Load: |███████████████     | 3/4"
    )
    assert said("a", opened("a", "FloatProgress", value=7.5, min=5.0, max=10.0)) == (
        "|██████████          | 7.5 (5 … 10)"
    )
    box = opened("b", "HBox", children=references("l", "a"))
    words = opened("l", "Label", value="busy")
    assert said("b", words, opened("a", "IntProgress", value=1, min=0, max=2), box) == (
        "busy |██████████          | 1/2"
    )


@pytest.mark.parametrize(("value", "filled"), [(-5, 0), (0, 0), (1, 0), (50, 10), (99.9, 19), (100, 20), (700, 20)])
def test_a_bar_is_as_full_as_its_value(value: float, filled: int) -> None:
    text = said("a", opened("a", "FloatProgress", value=value, min=0.0, max=100.0))
    assert text.count("█") == filled
    assert text.index("|", 1) == 21


@pytest.mark.parametrize(
    ("name", "state", "text"),
    [
        ("HTML", {"value": "<b>a</b> &amp; b<br>c"}, "a & b\nc"),
        ("Label", {"value": "\x1b[31mred\x1b[0m", "description": "is"}, "is: red"),
        ("IntSlider", {"value": 3, "min": 0, "max": 9, "description": "n"}, "n: 3 (0 … 9)"),
        ("FloatSlider", {"value": 0.1234567, "min": 0.0, "max": 1.0}, "0.123457 (0 … 1)"),
        ("IntRangeSlider", {"value": [2, 5], "min": 0, "max": 9}, "2 to 5 (0 … 9)"),
        ("FloatLogSlider", {"value": 10.0, "min": 0.0, "max": 4.0}, "10"),
        ("Text", {"value": "", "description": "Name:"}, "Name: (empty)"),
        ("Textarea", {"value": "a\nb"}, "a\nb"),
        ("Password", {"value": "secret", "description": "Key"}, "Key: ········"),
        ("IntText", {"value": 0}, "0"),
        ("DatePicker", {"value": {"year": 2026, "month": 10, "date": 1}}, "2026-10-1"),
        ("Checkbox", {"value": True, "description": "on"}, "[x] on"),
        ("ToggleButton", {"value": False, "description": "on", "disabled": True}, "[ ] on (disabled)"),
        ("Valid", {"value": False, "readout": "Invalid"}, "✗ Invalid"),
        ("Button", {"description": "Go", "icon": "play"}, "[Go]"),
        ("Button", {"description": "", "icon": "play"}, "[play]"),
        ("Dropdown", {"_options_labels": ["a", "b"], "index": 1, "description": "pick"}, "pick: b (of a, b)"),
        ("RadioButtons", {"_options_labels": ["a"], "index": None}, "(none) (of a)"),
        ("SelectMultiple", {"_options_labels": list("abc"), "index": [0, 2]}, "a, c (of a, b, c)"),
        ("Select", {"_options_labels": list("abcdefghijk"), "index": 10}, "k (of a, b, c, d, e, f, g, h, …)"),
        ("Audio", {"value": b"x"}, "[audio]"),
        ("Fancy", {"value": 4, "layout": "IPY_MODEL_l", "_view_name": "F", "label": "x"}, "Fancy(value=4, label='x')"),
        ("Any", {"_anywidget_id": "my.module.Counter", "count": 2, "_esm": "export"}, "Counter(count=2)"),
        ("Fancy", {"text": "x" * 1000, "ok": True}, "Fancy(ok=True, …)"),
    ],
)
def test_each_control_says_what_it_shows(name: str, state: dict[str, Any], text: str) -> None:
    assert said("a", opened("a", name, **state)) == text


@pytest.mark.parametrize(
    "name", ["IntProgress", "IntSlider", "HTML", "Select", "SelectMultiple", "Text", "VBox", "Tab"]
)
@pytest.mark.parametrize("value", [None, "x", [1], {"a": 1}, float("nan")])
def test_state_of_any_kind_is_read(name: str, value: Any) -> None:
    state = dict.fromkeys(["value", "min", "max", "index", "children", "titles", "description", "outputs"], value)
    assert isinstance(said("a", opened("a", name, **state)), str)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_bar_of_no_number_is_a_bar(value: float) -> None:
    assert said("a", opened("a", "FloatProgress", value=value, min=0.0, max=1.0)).startswith("|")


def test_a_bar_is_drawn_in_html_too_and_nothing_else_of_the_text_is_markup() -> None:
    bar = tqdm("<i>a</i> &lt;b&gt; 50%", 10, "10/20")
    bundle = render_widget(models_of(*bar), "box").bundle
    assert bundle["text/plain"] == "a <b> 50%|██████████          | 10/20"
    assert "a &lt;b&gt; 50%<span" in bundle["text/html"] and "</span> 10/20" in bundle["text/html"]
    assert "width:50%" in bundle["text/html"] and "█" not in bundle["text/html"]
    assert set(render_widget(models_of(opened("a", "Label", value="x")), "a").bundle) == {"text/plain"}


@pytest.mark.parametrize(("value", "percent"), [(0, "0"), (7, "35"), (20, "100")])
def test_a_drawn_bar_is_as_full_as_its_value(value: float, percent: str) -> None:
    drawn = render_widget(models_of(*tqdm("", value, "1")), "box").bundle["text/html"]
    assert f"display:block;width:{percent}%;" in drawn
    assert ("#238b4e" in drawn) is (value == 20)


def test_boxes_stack_and_rows_stand_side_by_side() -> None:
    leaves = [opened(name, "Label", value=name) for name in "abcd"]
    row = opened("row", "HBox", children=references("a", "b"))
    column = opened("column", "VBox", children=references("row", "c", "d"))
    assert said("column", *leaves, row, column) == "a b\nc\nd"
    tall = opened("tall", "HBox", children=references("column", "d"))
    assert said("tall", *leaves, row, column, tall) == "a b\nc\nd\nd"


def test_tabs_show_every_page_under_its_title() -> None:
    leaves = [opened(name, "Label", value=name) for name in "ab"]
    tab = opened("tab", "Tab", children=references("a", "b"), titles=["One"], selected_index=0)
    assert said("tab", *leaves, tab) == "▸ One\n  a\n▸ 2\n  b"
    stack = opened("stack", "Stack", children=references("a", "b"), selected_index=1)
    assert said("stack", *leaves, stack) == "b"
    assert said("stack", *leaves, stack, updated("stack", selected_index=None)) == ""


def test_what_is_hidden_or_closed_says_nothing() -> None:
    bar = tqdm("10%", 2, "2/20")
    assert said("box", *bar, updated("layout", visibility="hidden")) == ""
    assert said("box", *bar, updated("layout", display="none")) == ""
    assert said("box", *bar, closed("box")) == ""
    assert said("box", *bar, closed("left")).strip() == "|██                  | 2/20"


def test_a_box_that_holds_itself_ends() -> None:
    assert said("a", opened("a", "VBox", children=references("a", "b")), opened("b", "Label", value="b")) == "b"


def test_an_image_is_kept_as_one() -> None:
    message = opened("a", "Image", format="png", value=None)
    message["content"]["data"]["buffer_paths"] = [["value"]]
    message["buffers"] = [memoryview(b"picture")]
    twin = render_widget(models_of(message), "a")
    assert twin.text == ""
    assert [bundle["image/png"] for bundle in twin.rich] == [base64.b64encode(b"picture").decode()]


def test_a_twin_names_what_it_was_made_of() -> None:
    twin = render_widget(models_of(*tqdm("", 1, "")), "box")
    assert twin.model_ids == {"box", "left", "bar", "right", "layout"}
