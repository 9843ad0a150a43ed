"""Rich outputs: the bundle that a cell keeps, and what a model reads of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness_nb.outputs.bounds import Bounds
from harness_nb.outputs.mime import bundle_text, clean_bundle, clean_json, html_to_text

NAN = float("nan")
TABLE = (
    "<style scoped>td {color: red}</style><table><thead><tr><th></th><th>a</th></tr></thead>"
    "<tbody><tr><th>0</th><td>1 &lt; 2</td></tr></tbody></table>"
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"loss": NAN, "max": float("inf"), "min": -float("inf"), "n": 1.5}, None),
        ([None, True, 3, "x"], [None, True, 3, "x"]),
        ({1: "a", "b\ud800": "c\0"}, {"1": "a", "b\ufffd": "c\ufffd"}),
        (b"\x00\xff", "AP8="),
        ((1, 2), [1, 2]),
        ({1.5}, "{1.5}"),
    ],
)
def test_any_value_becomes_strict_json(value: Any, expected: Any) -> None:
    cleaned = clean_json(value)
    json.dumps(cleaned, allow_nan=False).encode()
    assert cleaned == (expected or {"loss": "NaN", "max": "Infinity", "min": "-Infinity", "n": 1.5})


def test_a_bundle_keeps_its_forms_as_text_or_json() -> None:
    data = {
        "text/plain": ["a\n", "\x1b[31mb\x1b[0m"],
        "text/html": "<b>\ud800</b>",
        "image/png": "AAAA\nBBBB\n",
        "application/json": {"x": NAN},
        "application/vnd.x+json": [1],
        "application/unknown": {"not": "text"},
    }
    assert clean_bundle(data, Bounds()) == {
        "text/plain": "a\n\x1b[31mb\x1b[0m",
        "text/html": "<b>\ufffd</b>",
        "image/png": "AAAABBBB",
        "application/json": {"x": "NaN"},
        "application/vnd.x+json": [1],
        "application/unknown": '{"not": "text"}',
    }


def test_a_widget_keeps_its_text_form_only() -> None:
    view = {"application/vnd.jupyter.widget-view+json": {"model_id": "1"}, "text/plain": "  0%|   | 0/20"}
    assert clean_bundle(view, Bounds()) == {"text/plain": "  0%|   | 0/20"}
    del view["text/plain"]
    assert clean_bundle(view, Bounds()) == {"text/plain": "[a widget, not shown here]"}
    assert bundle_text(view) == "[a widget, shown in the notebook only]"


def test_a_huge_data_frame_loses_its_html_and_says_so() -> None:
    data = {"text/html": "<td>" * 100_000, "text/plain": "0  1\n" * 10}
    cleaned = clean_bundle(data, Bounds())
    assert set(cleaned) == {"text/plain"}
    assert cleaned["text/plain"].endswith("0  1\n\n[the text/html form is left out: 400.0 KB]")


def test_a_huge_plain_text_is_cut() -> None:
    cleaned = clean_bundle({"text/plain": "row\n" * 20_000}, Bounds())
    assert cleaned["text/plain"].count("\n") == 421
    assert "… 19,580 lines (78.3 KB) left out …" in cleaned["text/plain"]


def test_huge_other_forms_and_broken_images_are_left_out() -> None:
    cleaned = clean_bundle({"application/vnd.plotly.v1+json": {"x": "y" * 3_000_000}}, Bounds())
    assert cleaned == {"text/plain": "[the application/vnd.plotly.v1+json form is left out: 3.0 MB]"}
    cleaned = clean_bundle({"image/png": "A" * 5_000_000}, Bounds())
    assert cleaned == {"text/plain": "[image left out: png, 3.8 MB]"}
    assert clean_bundle({}, Bounds()) == {"text/plain": "[an empty display]"}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"text/plain": "\x1b[32m42\x1b[0m"}, "42"),
        ({"text/plain": "   a  b\n0  1  2", "text/html": TABLE}, "   a  b\n0  1  2"),
        ({"text/plain": "<IPython.core.display.HTML object>", "text/html": TABLE}, "a\n0  1 < 2"),
        ({"text/plain": "<IPython.core.display.Markdown object>", "text/markdown": "**bold**"}, "**bold**"),
        ({"text/plain": "x**2", "text/latex": "$x^2$"}, "$x^2$"),
        ({"text/plain": "<IPython.core.display.JSON object>", "application/json": {"a": NAN}}, '{"a": "NaN"}'),
        ({"text/plain": "<Figure size 640x480 with 1 Axes>", "image/png": "AAAA"}, ""),
        ({"text/plain": "<PIL.Image.Image image mode=RGB size=1x1 at 0x7F>", "image/png": "AAAA"}, ""),
        ({"text/plain": "a told thing", "image/png": "AAAA"}, "a told thing"),
        ({"image/svg+xml": "<svg/>"}, "[image/svg+xml, shown in the notebook only]"),
        ({"text/plain": "<my.Thing object at 0x7f00>"}, "<my.Thing object at 0x7f00>"),
        ({"application/javascript": "1"}, "[application/javascript, shown in the notebook only]"),
    ],
)
def test_what_a_model_reads(data: dict[str, Any], expected: str) -> None:
    assert bundle_text(data) == expected


def test_html_becomes_its_visible_text() -> None:
    html = "<head><title>t</title></head><p>one<br>two</p><script>x()</script><ul><li>a &amp; b</li></ul>"
    assert html_to_text(html) == "one\ntwo\na & b"
