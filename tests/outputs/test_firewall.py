"""The firewall: what a cell's outputs become, and what is left out of them."""

from __future__ import annotations

import json
import random
import tracemalloc
from collections.abc import Callable
from itertools import pairwise

import nbformat
import pytest
from driven_cell import Cell
from said import cleared, err, figure, out, raised, result, shown, updated

from harness_nb.outputs import Bounds, Offloaded
from harness_nb.outputs.masking import Masker
from harness_nb.ports import Output


@pytest.fixture
def cell() -> Cell:
    return Cell()


def assert_valid(cell: Cell) -> None:
    node = {"cell_type": "code", "execution_count": 1, "id": "a", "metadata": {}, "source": "", "outputs": cell.record}
    notebook = {"cells": [node], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    nbformat.validate(json.loads(json.dumps(notebook, allow_nan=False, ensure_ascii=False).encode()))


def test_each_output_keeps_its_kind_and_place(cell: Cell) -> None:
    cell.run([out("o0\n"), err("e0\n"), out("o1\n"), result("7", 3), raised(), out("after\n")])
    assert_valid(cell)
    assert [(o["output_type"], o.get("name"), o.get("execution_count")) for o in cell.record] == [
        ("stream", "stdout", None),
        ("stream", "stderr", None),
        ("stream", "stdout", None),
        ("execute_result", None, 3),
        ("error", None, None),
        ("stream", "stdout", None),
    ]


def test_stream_text_of_one_name_is_one_output(cell: Cell) -> None:
    cell.run([out("a"), out("b\n"), out("c\n")])
    assert cell.record == [{"output_type": "stream", "name": "stdout", "text": "ab\nc\n"}]


def test_a_progress_bar_leaves_its_last_state(cell: Cell) -> None:
    bar = (err(f"\r{number:5d}/20000 {'#' * (number // 2000)}") for number in range(1, 20_001))
    cell.run([*bar, out("done\n")], step=0.001)
    assert cell.texts == [("stderr", "20000/20000 ##########"), ("stdout", "done\n")]
    assert len(cell.events) < 400
    assert cell.firewall.offloaded is None


def test_a_bar_goes_on_in_its_place_when_lines_are_printed_between(cell: Cell) -> None:
    lines = [item for n in range(1, 4) for item in (err(f"\r{n}/3"), out(f"epoch {n}\n"))]
    cell.run([*lines, err("\r\n"), err("warning\n")])
    assert cell.texts == [("stderr", "3/3\n"), ("stdout", "epoch 1\nepoch 2\nepoch 3\n"), ("stderr", "warning\n")]


def test_a_bar_that_erases_its_line_goes_on_in_its_place_too(cell: Cell) -> None:
    cell.run([err("1/3"), out("x\n"), err("\x1b[2K"), err("\r2/3"), out("y\n"), err("\x1b[31m"), err("new\n")])
    assert cell.texts == [("stderr", "2/3"), ("stdout", "x\ny\n"), ("stderr", "\x1b[31mnew\x1b[0m\n")]


def test_clear_output_empties_the_cell_at_once_or_with_the_next_output(cell: Cell) -> None:
    cell.feed(out("old\n"), 1.0)
    cell.feed(cleared(), 1.0)
    assert cell.screen == []
    cell.feed(out("new\n"), 1.0)
    cell.feed(cleared(wait=True), 1.0)
    assert [output["text"] for output in cell.screen] == ["new\n"]
    cell.feed(result("9"), 1.0)
    assert [o["output_type"] for o in cell.screen] == ["execute_result"]
    cell.close()


def test_an_update_replaces_every_output_with_that_id(cell: Cell) -> None:
    cell.run(
        [
            shown({"text/plain": "a"}, "one"),
            shown({"text/plain": "b"}, "two"),
            shown({"text/plain": "c"}, "one"),
            updated({"text/plain": "A"}, "one"),
            updated({"text/plain": "lost"}, "none"),
        ]
    )
    assert cell.texts == [("display_data", "A"), ("display_data", "b"), ("display_data", "A")]
    assert_valid(cell)


def test_a_million_lines_keep_head_and_tail_and_are_whole_in_the_file(cell: Cell) -> None:
    chunks = ("".join(f"{n}\n" for n in range(start, start + 10_000)) for start in range(0, 1_000_000, 10_000))
    cell.run(out(chunk) for chunk in chunks)
    (text,) = [text for _, text in cell.texts]
    lines = text.split("\n")
    assert lines[209:212] == [
        "209",
        "… 999,580 lines (6.9 MB) left out; whole output: harness_sessions/s/outputs/c1.txt …",
        "999790",
    ]
    assert cell.sink.text == "".join(f"{n}\n" for n in range(1_000_000))
    assert cell.firewall.offloaded == Offloaded("harness_sessions/s/outputs/c1.txt", 6_888_890, 1_000_000)
    assert len(cell.events) < 60


def test_one_print_of_fifty_megabytes_stays_bounded(cell: Cell) -> None:
    cell.run([out("x" * 50_000_000)])
    assert len(cell.record[0]["text"]) < 65_000
    assert "… 49,936,000 characters left out; whole output:" in cell.record[0]["text"]
    assert len(cell.sink.text) == 50_000_001


def test_nothing_is_written_while_everything_is_in_the_cell(cell: Cell) -> None:
    cell.run([out("short\n" * 300)])
    assert (cell.sink.text, cell.firewall.offloaded) == ("", None)


def test_many_outputs_share_the_bound_of_the_cell(cell: Cell) -> None:
    cell.run([item for n in range(30) for item in (out("o\n" * 300), err("e\n" * 300))][:40])
    kept = [text.count("\n") for _, text in cell.texts]
    assert kept[:3] == [300, 121, 21]
    assert sum(kept) < 420 + 60 * 21


def test_of_200_figures_first_and_last_are_kept_and_the_rest_is_counted() -> None:
    saved: list[tuple[int, str]] = []

    def save(number: int, media_type: str, data: str) -> str:
        saved.append((number, media_type))
        return f"outputs/c1-{number:03d}.png"

    cell = Cell(save_image=save).run(figure(number) for number in range(1, 201))
    assert_valid(cell)
    assert [o["data"].get("image/png") for o in cell.record[:2]] == [
        figure(n).content["data"]["image/png"].strip() for n in (1, 2)
    ]
    assert cell.record[10]["data"] == {
        "text/plain": "… 180 images left out … Images: outputs/c1-011.png … outputs/c1-190.png"
    }
    assert [o["data"]["image/png"] for o in cell.record[11:]] == [
        figure(n).content["data"]["image/png"].strip() for n in range(191, 201)
    ]
    assert [number for number, _ in saved] == list(range(11, 191))


def test_many_small_outputs_are_counted(cell: Cell) -> None:
    cell.run(result(f"value {number}", number) for number in range(1000))
    assert len(cell.record) == 61
    assert cell.texts[30][1] == ("… 940 lines (9.3 KB) left out; whole output: harness_sessions/s/outputs/c1.txt …")
    assert cell.sink.text == "".join(f"value {number}\n" for number in range(1000))
    assert_valid(cell)


def test_a_long_result_is_whole_in_the_file(cell: Cell) -> None:
    rows = "".join(f"{number:6d}  0.5\n" for number in range(20_000))
    cell.run([result(rows)])
    text = cell.texts[0][1]
    assert text.count("\n") == 421
    assert "… 19,580 lines (235.0 KB) left out; whole output: harness_sessions/s/outputs/c1.txt …" in text
    assert cell.sink.text == rows


def test_memory_stays_flat_for_a_million_lines(cell: Cell) -> None:
    lines = "".join(f"{number:07d} some text of a line\n" for number in range(10_000))
    cell.sink.write = lambda text: None  # type: ignore[method-assign]
    cell.run([out(lines)])
    tracemalloc.start()
    cell.run(out(lines) for _ in range(100))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 * len(lines)
    assert cell.firewall.offloaded is not None
    assert cell.firewall.offloaded.lines == 1_010_000


def test_what_one_output_lost_to_the_bounds_is_in_the_file_in_order() -> None:
    cell = Cell(bounds=Bounds(cell_lines=4)).run([out("a\n" * 9), err("no newline"), out("b\n"), result("r")])
    assert cell.sink.text == "a\n" * 9 + "no newline\nb\nr\n"
    assert cell.firewall.offloaded == Offloaded(cell.sink.path, len(cell.sink.text), 12)


def test_secrets_do_not_pass() -> None:
    cell = Cell(masker=Masker({"KEY": "sk-very-secret", "WORD": "short"}))
    cell.run(
        [
            out("key sk-very"),
            out("-secret!\n"),
            result("{'k': 'sk-very-secret'}"),
            shown({"application/json": {"k": ["sk-very-secret"]}, "text/html": "<b>sk-very-secret</b>"}),
            raised(value="401 for sk-very-secret"),
            out("a short line\n" + "x\n" * 500),
        ]
    )
    for text in (json.dumps(cell.record), cell.sink.text, json.dumps([e.model_dump() for e in cell.events[-3:]])):
        assert "sk-very-secret" not in text
        assert "[secret KEY]" in text
    assert "a short line" in cell.sink.text


def test_wild_content_gives_valid_outputs(cell: Cell) -> None:
    cell.run(
        [
            out("\ud800\0\x1b[31mx"),
            shown({"application/json": {"loss": float("nan")}, "text/x-odd": ["a", "b"], "odd/\ud800": {"a": 1}}),
            Output("display_data", {}),
            Output("execute_result", {"data": {"text/plain": "x"}, "metadata": {"w": float("inf")}}),
            Output("error", {}),
            Output("stream", {"text": "no name"}),
            Output("clear_output", {"wait": True}),
        ]
    )
    assert_valid(cell)
    assert len(cell.record) == 6


def test_screen_and_record_are_not_flooded(cell: Cell) -> None:
    """2,000 states of a plot in 100 seconds: some ten states a second are shown, one in a few seconds is recorded."""
    for number in range(2000):
        cell.feed(cleared(wait=True), 0.0)
        cell.feed(figure(number), 0.05)
    cell.close()
    lasting = [event for event in cell.events if not event.transient]
    assert 100 < len(cell.events) <= 1001
    assert 15 <= len(lasting) <= 22


def test_plain_text_is_recorded_as_it_comes(cell: Cell) -> None:
    for number in range(10):
        cell.feed(out(f"epoch {number}\n"), 1.0)
    assert [(e.op, e.transient, (e.output or {})["text"]) for e in cell.events] == [
        ("append", False, f"epoch {number}\n") for number in range(10)
    ]


def test_drain_gives_nothing_before_the_interval_and_when_nothing_changed(cell: Cell) -> None:
    assert len(cell.feed(out("a"), 1.0)) == 1
    assert cell.feed(out("b"), 0.01) == []
    assert len(cell.take(cell.firewall.drain(2.0))) == 1
    assert cell.firewall.drain(100.0) == []


def test_output_after_the_close_still_lands_in_the_cell(cell: Cell) -> None:
    cell.run([out("a\n")])
    cell.feed(out("late\n"), 10.0)
    assert cell.close().texts == [("stdout", "a\nlate\n")]


MAKERS: list[Callable[[int], Output]] = [
    lambda n: out(f"line {n}\n"),
    lambda n: out("many\n" * n),
    lambda n: out(f"part {n} "),
    lambda n: err(f"\r{n} %"),
    lambda n: err(f"\x1b[31m{n}\x1b[0m\n"),
    lambda n: err("\x1b[A\x1b[2K"),
    lambda n: result(str(n), n),
    figure,
    lambda n: shown({"text/plain": f"d{n}"}, f"id{n % 3}"),
    lambda n: updated({"text/plain": f"u{n}" * n}, f"id{n % 3}"),
    lambda n: raised(value=str(n)),
    lambda n: cleared(wait=bool(n % 2)) if n % 7 == 0 else out("."),
]


@pytest.mark.parametrize("seed", range(60))
def test_both_folds_end_at_the_outputs_whatever_comes(seed: int) -> None:
    source = random.Random(seed)
    bounds = Bounds(cell_lines=20, cell_chars=800, model_chars=400, outputs=8, images=4)
    cell = Cell(bounds=bounds)
    for _ in range(source.randrange(1, 150)):
        cell.feed(source.choice(MAKERS)(source.randrange(30)), source.choice((0.0, 0.05, 1.0, 7.0)))
    cell.close()
    assert_valid(cell)
    assert len(cell.record) <= 9


@pytest.mark.parametrize("seed", range(30))
def test_any_chunking_of_the_streams_gives_the_same_outputs(seed: int) -> None:
    source = random.Random(seed)
    bounds = Bounds(cell_lines=20, cell_chars=800, model_chars=400, outputs=8, images=4)
    outputs = [source.choice(MAKERS)(source.randrange(30)) for _ in range(60)]
    whole, parts = Cell(bounds=bounds), Cell(bounds=bounds)
    for output in outputs:
        whole.feed(output)
        text = output.content.get("text", "")
        cuts = sorted({0, len(text), *(source.randrange(len(text) + 1) for _ in range(3))}) if text else []
        pieces = [Output("stream", {**output.content, "text": text[a:b]}) for a, b in pairwise(cuts)]
        for piece in pieces[:-1]:
            parts.firewall.feed(piece)
        parts.feed(pieces[-1] if pieces else output)
    assert parts.close().record == whole.close().record
    assert parts.sink.text == whole.sink.text
