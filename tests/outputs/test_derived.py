"""The plot and table that a cell gets which trains: when, where it stands, and that the folds do not mind."""

from __future__ import annotations

import base64
import random
from collections.abc import Callable
from typing import Any

import nbformat
import pytest
from driven_cell import Cell
from said import cleared, err, figure, out, raised, result, shown, updated

from harness_nb.events import CellOutput
from harness_nb.outputs import Bounds, apply_output, is_derived, result_content
from harness_nb.outputs.fold import MARK
from harness_nb.outputs.masking import Masker
from harness_nb.ports import ExecuteReply, Output
from harness_nb.types import Status, TextPart


@pytest.fixture
def draws(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The plots are a few bytes; how many points each had."""
    points: list[int] = []

    def draw(series: Any) -> bytes:
        points.append(series.points)
        return b"\x89PNG %d" % series.points

    monkeypatch.setattr("harness_nb.outputs.derived.draw_chart", draw)
    return points


def epochs(first: int, last: int) -> list[Output]:
    return [out(f"epoch {n}/50 loss {2 / n:.3f}\n") for n in range(first, last + 1)]


def derived(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [output for output in outputs if is_derived(output)]


def test_a_cell_that_trains_ends_with_a_plot_and_a_table() -> None:
    cell = Cell().run([out("start\n"), *epochs(1, 5), result("7")], step=1.0)
    assert [output["output_type"] for output in cell.record] == ["stream", "execute_result", "display_data"]
    output = cell.record[-1]
    assert output["metadata"] == {MARK: {"derived": "metrics"}}
    assert sorted(output["data"]) == ["image/png", "text/html", "text/plain"]
    assert base64.b64decode(output["data"]["image/png"]).startswith(b"\x89PNG\r\n")
    assert f"base64,{output['data']['image/png']}" in output["data"]["text/html"]
    assert output["data"]["text/plain"].split("\n") == [
        "epoch 5 of 50: loss 0.4; best loss 0.4 at epoch 5; 1.0 s per epoch",
        "",
        "epoch   loss",
        "    1  2.000",
        "    2  1.000",
        "    3  0.667",
        "    4  0.500",
        "    5  0.400*",
    ]
    node = {"cell_type": "code", "execution_count": 1, "id": "a", "metadata": {}, "source": "", "outputs": cell.record}
    nbformat.validate({"cells": [node], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def test_a_cell_that_does_not_train_has_nothing_of_it(draws: list[int]) -> None:
    cell = Cell().run(
        [out("loss 0.5\n"), *epochs(1, 2), err("45%|####     | 45/100 [00:10<00:12, 4.4it/s]"), result("7")]
    )
    assert derived(cell.record) == []
    assert draws == []


def test_while_it_runs_the_plot_is_shown_and_rarely_recorded(draws: list[int]) -> None:
    cell = Cell()
    for number in range(1, 301):
        cell.feed(out(f"epoch {number} loss 0.5\n"), 1.0)
    sets = [event for event in cell.events if event.output and is_derived(event.output)]
    assert [event.transient for event in sets].count(False) == 2
    assert 35 <= len(sets) <= 42
    assert [is_derived(output) for output in cell.screen] == [False, True]
    cell.close()
    assert derived(cell.record)[0]["data"]["text/plain"].startswith("epoch 300: ")
    assert draws[-1] == 300


def test_text_is_recorded_as_it_comes_although_a_plot_stands_behind_it(draws: list[int]) -> None:
    cell = Cell()
    for output in epochs(1, 20):
        cell.feed(output, 1.0)
    own = [event for event in cell.events if not (event.output and is_derived(event.output))]
    assert [(event.op, event.transient) for event in own] == [("append", False)] * 20
    assert len(own) < len(cell.events)
    cell.feed(result("7"), 1.0)
    assert [is_derived(output) for output in cell.screen] == [False, False, True]


def test_the_words_of_the_last_state_are_those_of_the_end(draws: list[int]) -> None:
    cell = Cell()
    for output in [*epochs(1, 9), out("saving\n")]:
        cell.feed(output, 2.0)
    assert " s to the end" in derived(cell.screen)[0]["data"]["text/plain"]
    cell.close()
    assert " s to the end" not in derived(cell.record)[0]["data"]["text/plain"]


def test_drawing_takes_a_small_share_of_the_time(draws: list[int]) -> None:
    """Each reading of the stopwatch is 0.4 s after the one before it, so that a drawing costs 0.4 s."""
    readings = iter(range(1_000_000))
    cell = Cell(stopwatch=lambda: 0.4 * next(readings))
    for number in range(1, 1001):
        cell.feed(out(f"epoch {number} loss 0.5\n"), 0.1)
    assert 4 <= len(draws) <= 6


def test_a_short_cell_is_drawn_once_at_its_end(draws: list[int]) -> None:
    Cell().run(epochs(1, 50), step=0.03)
    assert draws == [50]


def test_beside_a_live_plot_of_the_cell_there_is_no_second_one(draws: list[int]) -> None:
    picture = figure(1).content["data"]
    cell = Cell()
    cell.feed(shown(picture, "plot"), 1.0)
    for number, output in enumerate(epochs(1, 9)):
        cell.feed(output, 3.0)
        if number == 5:
            assert len(derived(cell.screen)) == 1
    cell.feed(updated(figure(2).content["data"], "plot"), 1.0)
    assert derived(cell.screen) == []
    cell.run(epochs(10, 20), step=1.0)
    assert derived(cell.record) == []
    assert cell.firewall.metrics.points == 20


def test_a_plot_that_was_recorded_is_taken_back_too(draws: list[int]) -> None:
    cell = Cell()
    cell.feed(shown(figure(1).content["data"], "plot"), 1.0)
    for output in epochs(1, 50):
        cell.feed(output, 3.0)
    assert len(derived(cell.record)) == 1
    cell.feed(updated(figure(2).content["data"], "plot"), 1.0)
    cell.close()
    assert [output["output_type"] for output in cell.record] == ["display_data", "stream"]


def test_a_plot_that_is_cleared_and_shown_again_is_a_live_one(draws: list[int]) -> None:
    cell = Cell()
    for number, output in enumerate(epochs(1, 12)):
        cell.feed(cleared(wait=True), 0.0)
        cell.feed(figure(number), 0.0)
        cell.feed(output, 3.0)
    assert derived(cell.close().record) == []
    assert cell.firewall.metrics.points == 12


def test_one_plot_at_the_end_does_not_count_as_live(draws: list[int]) -> None:
    cell = Cell().run([*epochs(1, 9), figure(1)], step=1.0)
    assert len(derived(cell.record)) == 1


def drawn_and_waited(seconds: float) -> Cell:
    """A cell whose plot shows all that was printed, and was recorded if enough seconds have passed."""
    cell = Cell()
    for output in epochs(1, 9):
        cell.feed(output, 2.0)
    for _ in range(20):
        cell.now += seconds / 20
        cell.take(cell.firewall.drain(cell.now))
    return cell


def test_after_clear_output_the_plot_is_there_again(draws: list[int]) -> None:
    cell = drawn_and_waited(20.0)
    count = len(draws)
    cell.feed(cleared(), 2.0)
    cell.feed(out("on\n"), 2.0)
    assert [is_derived(output) for output in cell.screen] == [False, True]
    assert cell.close().texts[0] == ("stdout", "on\n")
    assert len(draws) == count


def test_a_recorded_plot_is_recorded_again_after_a_clear(draws: list[int]) -> None:
    cell = drawn_and_waited(130.0)
    assert len(derived(cell.record)) == 1
    cell.feed(cleared(), 9.0)
    assert [event.transient for event in cell.events[-2:]] == [False, True]
    cell.feed(out("on\n"), 9.0)
    assert [is_derived(output) for output in cell.close().record] == [False, True]


def test_without_plots_the_metrics_are_read_all_the_same(draws: list[int]) -> None:
    cell = Cell(plot=False).run(epochs(1, 9))
    assert derived(cell.record) == []
    assert cell.firewall.metrics.summary().startswith("epoch 9 of 50: loss 0.222;")
    assert draws == []


def test_a_plot_that_fails_leaves_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(series: Any) -> bytes:
        raise RuntimeError("no LaTeX")

    monkeypatch.setattr("harness_nb.outputs.derived.draw_chart", fail)
    output = Cell().run(epochs(1, 9)).record[-1]
    assert sorted(output["data"]) == ["text/html", "text/plain"]
    assert "<table" in output["data"]["text/html"]


def test_the_mark_of_a_kernel_does_not_count(draws: list[int]) -> None:
    forged = Output("display_data", {"data": {"text/plain": "x"}, "metadata": {MARK: {"derived": "metrics"}, "a": 1}})
    cell = Cell().run([forged, out("after\n")])
    assert [output.get("metadata") for output in cell.record] == [{"a": 1}, None]


def test_secrets_do_not_pass_into_it() -> None:
    cell = Cell(masker=Masker({"HUSH": "hush_hush"}))
    cell.run(out(f"epoch {n} loss 0.5 hush_hush: 0.{n}\n") for n in range(1, 5))
    data = derived(cell.record)[0]["data"]
    assert "hush_hush" not in data["text/html"] + data["text/plain"]
    assert "[secret HUSH]" in data["text/plain"]


def text_of(cell: Cell, reply: ExecuteReply, **options: Any) -> list[str]:
    part = result_content(reply, cell.firewall, 9.0, True, **options)[0]
    assert isinstance(part, TextPart)
    return part.text.split("\n")


def test_the_model_gets_the_summary_and_no_picture_of_it(draws: list[int]) -> None:
    cell = Cell().run(epochs(1, 4), step=2.0)
    assert text_of(cell, ExecuteReply(Status.OK))[4:] == [
        "[metrics: epoch 4 of 50: loss 0.5; best loss 0.5 at epoch 4; 2.0 s per epoch]",
        "[ok, 9.0 s]",
    ]
    assert len(result_content(ExecuteReply(Status.OK), cell.firewall, 9.0, True)) == 1


def test_the_model_gets_the_time_to_the_end_of_what_still_runs(draws: list[int]) -> None:
    cell = Cell()
    for output in epochs(1, 4):
        cell.feed(output, 2.0)
    later = Cell(plot=False).run(epochs(4, 4))
    words = text_of(later, ExecuteReply(Status.RUNNING), metrics=cell.firewall.metrics)[1]
    assert words == (
        "[metrics: epoch 4 of 50: loss 0.5; best loss 0.5 at epoch 4; 2.0 s per epoch, 6.0 s elapsed, "
        "about 92 s to the end]"
    )


def test_the_model_is_told_of_anomalies(draws: list[int]) -> None:
    cell = Cell().run([*epochs(1, 4), out("epoch 5/50 loss nan\n")], step=2.0)
    assert text_of(cell, ExecuteReply(Status.OK))[-2] == (
        "[anomaly: loss is nan at epoch 5; the line: epoch 5/50 loss nan]"
    )
    early = Cell().run([out("epoch 1 loss inf\n")])
    assert text_of(early, ExecuteReply(Status.OK))[1] == (
        "[anomaly: loss is inf at epoch 1; the line: epoch 1 loss inf]"
    )


MAKERS: list[Callable[[int], Output]] = [
    *[lambda n: out(f"epoch {n} loss 0.{n} acc 0.5\n")] * 4,
    lambda n: out(f"line {n}\n"),
    lambda n: out(f"part {n} "),
    lambda n: err(f"\r {n}%|##  | {n}/100 [00:10<00:12, 4.4it/s, loss=0.{n}]"),
    lambda n: result(str(n), n),
    figure,
    lambda n: shown({"text/plain": f"d{n}"}, f"id{n % 3}"),
    lambda n: updated({"text/plain": f"u{n}" * n}, f"id{n % 3}"),
    lambda n: raised(value=str(n)),
    lambda n: cleared(wait=bool(n % 2)) if n % 7 == 0 else out("."),
    lambda n: shown(figure(n).content["data"], "plot") if n % 11 == 0 else out("."),
    lambda n: updated(figure(n).content["data"], "plot") if n % 11 == 0 else out("."),
]


@pytest.mark.parametrize("seed", range(60))
def test_both_folds_end_at_the_outputs_with_the_plot_in_play(seed: int, draws: list[int]) -> None:
    source = random.Random(seed)
    bounds = Bounds(cell_lines=20, cell_chars=800, outputs=8, images=4, derived_lasting_interval=20.0)
    cell = Cell(bounds=bounds)
    for _ in range(source.randrange(1, 150)):
        cell.feed(source.choice(MAKERS)(source.randrange(30)), source.choice((0.0, 0.05, 1.0, 7.0)))
        assert [is_derived(output) for output in cell.screen[:-1]].count(True) == 0
        assert [is_derived(output) for output in cell.record[:-1]].count(True) == 0
    cell.close()
    if draws:
        cell.feed(out("late\n"), 9.0)
        cell.feed(result("late"), 9.0)
        cell.close()


def test_a_derived_output_stands_last_whatever_comes_after_it() -> None:
    mark = {"output_type": "display_data", "data": {}, "metadata": {MARK: {"derived": "metrics"}}}
    text = {"output_type": "stream", "name": "stdout", "text": "a"}
    outputs: list[dict[str, Any]] = []

    def apply(op: str, output: dict[str, Any] | None, index: int | None = None) -> list[dict[str, Any]]:
        event = CellOutput.model_validate({"call_id": "c", "name": "p", "op": op, "output": output, "index": index})
        apply_output(outputs, event)
        return outputs

    assert apply("append", text) == [text]
    assert apply("set", mark, 1) == [text, mark]
    assert apply("append", text) == [{**text, "text": "aa"}, mark]
    assert apply("set", text, 0) == [text, mark]
    assert apply("set", text, 1) == [text, text, mark]
    assert apply("set", {**mark, "data": {"text/plain": "x"}}, 0)[2]["data"] == {"text/plain": "x"}
    assert apply("append", mark) == [text, text, mark]
    assert apply("clear", None) == []
