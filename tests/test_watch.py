"""What ends a wait."""

from __future__ import annotations

import pytest

from harness_nb.ports import Output
from harness_nb.watch import SILENCE, Watch, pattern_problem


def printed(text: str) -> Output:
    return Output("stream", {"name": "stdout", "text": text})


def test_a_pattern_is_found_across_pieces() -> None:
    watch = Watch(r"val_acc: (0\.[89])", 0.0)
    for piece in ("epoch 1 val_acc: 0.7\nepoch 2 val_", "acc: 0.8", "1\n"):
        assert watch.reason(1.0) == "" or piece == "1\n"
        watch.feed(printed(piece))
    assert watch.reason(2.0) == "the pattern matched: val_acc: 0.8"


def test_displays_count_by_their_plain_text() -> None:
    watch = Watch("45/100", 0.0)
    watch.feed(Output("display_data", {"data": {"image/png": "", "text/plain": "<Figure>"}}, display_id="d"))
    assert watch.reason(1.0) == ""
    watch.feed(Output("update_display_data", {"data": {"text/plain": " 45%|####| 45/100"}}, display_id="d"))
    assert watch.reason(1.0) == "the pattern matched: 45/100"


@pytest.mark.parametrize(
    "line", ["loss: nan", "train_loss=inf", "{'loss': nan, 'lr': 0.1}", "epoch 3 loss NaN acc 0.1", "val/loss -inf"]
)
def test_a_loss_that_is_lost_is_a_bad_sign(line: str) -> None:
    watch = Watch(None, 0.0)
    watch.feed(printed(line + "\n"))
    assert watch.reason(1.0).startswith("a bad sign")


@pytest.mark.parametrize(
    "line", ["loss: 0.3", "information", "NaN values were dropped", "no error info", "loss of nanoseconds"]
)
def test_ordinary_lines_are_none(line: str) -> None:
    watch = Watch(None, 0.0)
    watch.feed(printed(line + "\n"))
    assert watch.reason(1.0) == ""


def test_a_bad_sign_is_told_once() -> None:
    watch = Watch(None, 0.0, signs=False)
    watch.feed(printed("loss: nan\n"))
    assert watch.reason(1.0) == "" and not watch.warned


def test_silence_is_counted_from_the_last_output() -> None:
    watch = Watch(None, 100.0)
    assert watch.reason(100.0 + SILENCE - 1) == ""
    watch.feed(printed("x"))
    assert watch.reason(100.0 + SILENCE) == ""
    assert watch.reason(100.0 + 2 * SILENCE - 1) == ""
    assert watch.reason(100.0 + 2 * SILENCE) == "there was no output for 10 minutes"


def test_a_wrong_pattern_is_explained() -> None:
    problem = pattern_problem("val_acc(")
    assert problem is not None and "until is not a regular expression" in problem and "val_acc(" in problem
    assert pattern_problem(None) is None
    assert pattern_problem("a|b") is None
