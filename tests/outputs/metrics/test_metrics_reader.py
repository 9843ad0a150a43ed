"""The reader: what it says of whole logs, whatever the chunks, and what it costs."""

from __future__ import annotations

import io

import pytest
import tqdm
from rich.console import Console
from rich.progress import Progress
from training_logs import keras, lightning, mnist, plain, read, tqdm_state, transfer, xgboost

from harness_nb.outputs.metrics import MetricsReader


def test_nothing_is_said_of_nothing() -> None:
    reader = read(["Loading data\n", "done in 3 s\n"])
    assert (reader.summary(9.0), reader.series(), reader.points, reader.last_line) == ("", None, 0, "")


def test_three_lines_make_a_series() -> None:
    assert read(plain(2)).series() is None
    series = read(plain(3)).series()
    assert series is not None
    assert [(row.epoch, row.values) for row in series.rows] == [
        (1, {"loss": 2.0, "acc": 0.1}),
        (2, {"loss": 1.0, "acc": 0.55}),
        (3, {"loss": 0.667, "acc": 0.7}),
    ]
    assert (series.points, series.label, series.xs) == (3, "epoch", (1, 2, 3))


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (
            list(plain(12, 30)),
            "epoch 12 of 30: loss 0.167, acc 0.925; best acc 0.925 at epoch 12; 2.0 s per epoch, 25 s elapsed, "
            "about 35 s to the end",
        ),
        (
            list(plain(4)),
            "epoch 4: loss 0.5, acc 0.775; best acc 0.775 at epoch 4; 2.0 s per epoch, 9.0 s elapsed, "
            "time to the end unknown",
        ),
        (
            list(xgboost(40)),
            "iteration 39: train-rmse 0.2846, eval-rmse 0.5451; best eval-rmse 0.5451 at iteration 39; "
            "2.0 s per iteration, 81 s elapsed, time to the end unknown",
        ),
        (
            list(transfer(5, 25)),
            "epoch 4 of 24: train_loss 0.2, train_acc 0.9, val_loss 0.22, val_acc 0.88; best val_acc 0.88 at epoch 4; "
            "6.0 s per epoch, 31 s elapsed, about 113 s to the end",
        ),
        (
            [tqdm_state(n, 100, f"loss={1 / (n + 1):.3f}") for n in range(46)],
            "step 45 of 100: loss 0.022; best loss 0.022 at step 45; 2.0 s per step, 93 s elapsed, "
            "about 109 s to the end",
        ),
    ],
)
def test_the_summary_says_where_it_is_and_how_long_it_takes(log: list[str], words: str) -> None:
    assert read(log, step=2.0).summary(2.0 * len(log) + 1) == words


def test_after_the_end_nothing_is_said_of_the_end() -> None:
    reader = read(plain(12, 30), finish=True)
    assert reader.summary(13.0) == (
        "epoch 12 of 30: loss 0.167, acc 0.925; best acc 0.925 at epoch 12; 1.0 s per epoch"
    )


@pytest.mark.parametrize(
    ("line", "step", "pace"),
    [
        ("epoch {n} loss 0.5", 90.0, "90 s per epoch"),
        ("epoch {n} loss 0.5", 0.4, "0.4 s per epoch"),
        ("epoch {n} loss 0.5", 0.01, "100 epochs/s"),
        ("step {n} loss 0.5", 0.4, "2.5 steps/s"),
        ("step {n} loss 0.5", 3.0, "3.0 s per step"),
    ],
)
def test_the_pace_is_told_by_the_slower_unit(line: str, step: float, pace: str) -> None:
    reader = read([f"{line.format(n=n)}\n" for n in range(9)], step=step, finish=True)
    assert reader.summary().endswith(f"; {pace}")


def test_training_and_validation_lines_of_one_epoch_are_one_row() -> None:
    series = read(transfer(4, 25)).series()
    assert series is not None
    assert [sorted(row.values) for row in series.rows] == [["train_acc", "train_loss", "val_acc", "val_loss"]] * 4
    assert series.xs == (0, 1, 2, 3)


def test_a_line_without_a_counter_is_where_the_line_before_was() -> None:
    series = read(mnist(3)).series()
    assert series is not None
    tests = [row for row in series.rows if "test_accuracy" in row.values]
    assert [(row.epoch, row.step, row.values["test_accuracy"]) for row in tests] == [
        (1, 57600, 0.972),
        (2, 57600, 0.974),
        (3, 57600, 0.976),
    ]
    assert series.label == "epoch"
    assert series.xs[0] == 0.0
    assert series.xs[-1] == pytest.approx(2.96)


def test_the_states_of_a_bar_are_passing_and_its_end_is_whole() -> None:
    series = read(keras(4, 10), finish=True).series()
    assert series is not None
    whole = [row for row in series.rows if not row.passing]
    assert [(row.epoch, row.step) for row in whole] == [(1, 100), (2, 100), (3, 100), (4, 100)]
    assert all("val_accuracy" in row.values for row in whole)
    assert [series.rows[index] for index in series.steady] == whole


def test_the_newest_state_of_a_bar_counts_before_the_next_one_comes() -> None:
    states = [tqdm_state(n, 100, f"loss={1 / (n + 1):.3f}") for n in range(6)]
    assert read(states).summary(6.0).startswith("step 5 of 100: loss 0.167;")


def test_a_bar_alone_is_progress_without_a_series() -> None:
    reader = read(tqdm_state(n, 200, "", "Loading: ", left=200 - n) for n in range(31))
    assert reader.series() is None
    assert reader.summary(31.0) == "Loading: 30 of 200 (15%); 4.4 it/s, 31 s elapsed, about 2 min 50 s to the end"
    assert reader.last_line.startswith("Loading: 14%|")


def test_a_carriage_return_before_the_newline_does_not_matter() -> None:
    pieces = [piece for line in plain(9) for piece in (line.replace("\n", "\r"), "\n")]
    series = read(pieces, finish=True).series()
    assert series is not None
    assert [row.passing for row in series.rows] == [False] * 9


def test_a_state_that_is_printed_again_counts_once() -> None:
    states = [tqdm_state(n, 5, f"loss=0.{n}") for n in (1, 2, 3, 3, 3, 4, 5, 5, 5)]
    assert read([*states, "\n"], finish=True).points == 5


def test_a_bar_that_is_left_for_another_line_is_not_at_its_end() -> None:
    pieces = [piece for n in range(1, 6) for piece in (tqdm_state(n, 9, f"loss=0.{n}"), "\n", "\rother", "\x1b[A")]
    series = read(pieces, finish=True).series()
    assert series is not None
    assert [row.passing for row in series.rows] == [True] * 5


def test_the_time_that_a_bar_gives_runs_on() -> None:
    reader = read([tqdm_state(45, 100, "", left=50)])
    assert [reader.summary(now).split(", ")[-1] for now in (1.0, 11.0, 99.0)] == [
        "about 50 s to the end",
        "about 40 s to the end",
        "about 0.0 s to the end",
    ]


def test_nested_bars_are_judged_by_the_outer_one() -> None:
    pieces = []
    for outer in range(3):
        pieces.append(tqdm_state(outer, 10, "", "files: ", left=600 - 60 * outer))
        for inner in range(0, 51, 10):
            pieces += ["\n", tqdm_state(inner, 50, "", "rows: ", left=50 - inner), "\x1b[A"]
    progress = read(pieces, step=0.1).progress(5.5)
    assert progress is not None
    assert progress.where == "files: 2 of 10 (20%)"
    assert progress.left is not None
    assert 470 < progress.left < 481


def test_a_bar_within_an_epoch_tells_the_end_of_the_epoch_only() -> None:
    pieces = [*lightning(2), *(tqdm_state(n, 45, "train_loss=0.2", "Epoch 2: ", left=45 - n) for n in range(0, 10, 3))]
    summary = read(pieces).summary(len(pieces))
    assert summary.startswith("epoch 2, step 9 of 45: train_loss 0.2;")
    assert summary.endswith("about 36 s to the end of the epoch")


NO_SERIES = {
    "results of models, one after the other": ["svm\n", "accuracy: 0.9\n", "forest\n", "accuracy: 0.8\n"] * 4,
    "models by name": [f"{name} acc 0.9\n" for name in ("svm", "forest", "boosting", "bayes")],
    "folds": [f"Fold {n} accuracy: 0.9{n}\n" for n in range(9)],
    "a dump of settings": ["lr: 0.1\n", "epochs: 10\n", "batch_size: 32\n", "loss: mse\n", "val_split: 0.2\n"] * 3,
    "learning rates": [f"lr: 0.{n}\n" for n in range(9)],
    "errors": ["Error 404: Not Found\n", "error 404\n"] * 9,
    "a table of numbers": [f"{n}  0.{n}  1.{n}  2.{n}\n" for n in range(30)],
    "a table with a header": ["   epoch  loss   acc\n"] + [f"{n}      {n}  0.{n}  0.8\n" for n in range(30)],
    "a Markdown table": ["| epoch | loss |\n", "|---|---|\n"] + [f"| {n} | 0.{n} |\n" for n in range(30)],
    "comma separated values": ["epoch,loss,acc\n"] + [f"{n},0.{n},0.8\n" for n in range(30)],
    "steps of work": [f"Step {n}: read {7 * n} files in {n} s\n" for n in range(1, 20)],
    "a classification report": [f"           {n}       0.99      0.98      0.97        88\n" for n in range(10)]
    + ["    accuracy                           0.98       450\n"],
    "value counts": ["loss     45\n", "acc      44\n", "val      41\n", "Name: kind, dtype: int64\n"],
    "tests": [f"tests/test_{n}.py::test_loss PASSED [ {n}%]\n" for n in range(10, 99)],
    "a build": [f"[ {n}%] Building CXX object loss_{n}.o\n" for n in range(10, 99)],
    "requests": [f"10:00:{n} GET /train?epoch={n} 200 {n}ms\n" for n in range(10, 59)],
    "grid search": [f"[CV 1/5] END C={n}, gamma=0.1;, score=0.9{n} total time=   0.{n}s\n" for n in range(9)],
    "prose": [f"In chapter {n} the loss is {n} times as large, see page {n + 10}.\n" for n in range(20)],
    "single numbers": [f"0.{n}\n" for n in range(30)],
    "counts": [f"processed {n} rows\n" for n in range(30)],
    "saved models": [f"Epoch {n}: val_loss improved from 0.5 to 0.{n}, saving model to best.h5\n" for n in range(9)],
    "headlines": [f"Epoch {n}/9\n" for n in range(9)],
}


@pytest.mark.parametrize("name", NO_SERIES)
def test_other_logs_make_no_series(name: str) -> None:
    reader = read(NO_SERIES[name], finish=True)
    assert reader.series() is None
    assert reader.anomalies == ()


def test_lines_without_a_counter_must_follow_each_other() -> None:
    assert read([f"loss {n / 7:.3f}\n\n" for n in range(3)]).points == 3
    assert read([f"loss {n / 7:.3f}\nmodel saved\n" for n in range(9)]).points == 0


def test_a_training_amid_other_lines_is_found() -> None:
    reader = read(
        f"{line}checkpoint written to run/{n}.pt, {n} MB\nWARNING: slow disk\n" for n, line in enumerate(plain(9))
    )
    assert reader.points == 9


def test_a_second_training_in_one_cell_goes_by_lines() -> None:
    series = read([*plain(5), *plain(5)]).series()
    assert series is not None
    assert (series.label, series.xs) == ("line", tuple(range(1, 11)))
    assert read([*plain(5), *plain(5)]).summary(10).endswith("10 s elapsed, time to the end unknown")


def test_nan_infinity_and_explosions_are_told_with_their_lines() -> None:
    losses = ["0.5", "0.4", "0.6", "0.3", "7.5", "8.5", "nan", "nan", "inf"]
    reader = read(f"epoch {n} loss {loss} acc 0.1\n" for n, loss in enumerate(losses, 1))
    assert [(anomaly.kind, str(anomaly), anomaly.line) for anomaly in reader.anomalies] == [
        (
            "exploded",
            "loss is 7.5 at epoch 5, more than ten times what it was at the start",
            "epoch 5 loss 7.5 acc 0.1",
        ),
        ("nan", "loss is nan at epoch 7", "epoch 7 loss nan acc 0.1"),
        ("inf", "loss is inf at epoch 9", "epoch 9 loss inf acc 0.1"),
    ]
    series = reader.series()
    assert series is not None
    assert series.columns[0].best is not None
    assert series.columns[0].best.values["loss"] == 0.3


def test_a_nan_is_told_before_there_is_a_series() -> None:
    assert str(read(["epoch 1 loss nan\n"]).anomalies[0]) == "loss is nan at epoch 1"


def test_what_is_no_loss_may_be_nan() -> None:
    assert read(f"step {n} loss 0.5 reward nan acc nan\n" for n in range(5)).anomalies == ()


def test_secrets_do_not_get_into_the_texts() -> None:
    reader = MetricsReader(lambda text: text.replace("hush", "[secret removed]"))
    reader.feed("epoch 1 loss nan hush\n", 1.0)
    assert reader.last_line == reader.anomalies[0].line == "epoch 1 loss nan [secret removed]"


def rich_writes() -> list[str]:
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=80)
    with Progress(console=console, auto_refresh=False, get_time=lambda: 10.0) as progress:
        task = progress.add_task("Training", total=40)
        for _ in range(30):
            progress.update(task, advance=1, refresh=True)
        return [file.getvalue()]


def test_a_real_bar_of_rich_is_read() -> None:
    assert read([*rich_writes(), "\r"]).summary(1.0).startswith("Training: 75%; 1.0 s elapsed")


def test_real_bars_of_tqdm_are_read() -> None:
    file = io.StringIO()
    for epoch in range(3):
        bar = tqdm.tqdm(range(20), file=file, desc=f"Epoch {epoch}", mininterval=0)
        for number in bar:
            bar.set_postfix(loss=1 / (1 + number + epoch), acc=0.5)
    reader = read([file.getvalue()], finish=True)
    assert reader.summary().startswith("epoch 2, step 20 of 20: acc 0.5, loss 0.0455; best acc 0.5 at epoch 0, step")
    series = reader.series()
    assert series is not None
    assert [(row.epoch, row.step) for row in series.rows if not row.passing] == [(0, 20), (1, 20), (2, 20)]
