"""The reader under any chunking, in bounded memory, and fed with what no program would print."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest
from training_logs import FULL, HEAVY, hugging_face, keras, lightning, mnist, plain, read, tqdm_state, transfer, xgboost

from harness_nb.outputs.metrics import MetricsReader
from harness_nb.outputs.metrics.table import html_table, text_table

LOGS: dict[str, Callable[[], Iterator[str]]] = {
    "plain": lambda: plain(12),
    "mnist": lambda: mnist(4),
    "keras": lambda: keras(4, 10),
    "hugging_face": lambda: hugging_face(320),
    "transfer": lambda: transfer(5, 25),
    "lightning": lambda: lightning(3),
    "xgboost": lambda: xgboost(40),
    "carriage return before newline": lambda: (line.replace("\n", "\r\n") for line in plain(12)),
    "tqdm": lambda: (tqdm_state(n, 100, f"loss={1 / (n + 1):.3f}") for n in range(46)),
}


@pytest.mark.parametrize("name", LOGS)
@pytest.mark.parametrize("seed", range(5))
def test_any_chunking_gives_the_same_result(name: str, seed: int) -> None:
    source = random.Random(seed)
    text = "".join(LOGS[name]())
    cuts = sorted({0, len(text), *(source.randrange(len(text)) for _ in range(300))})
    whole, parts = MetricsReader(), MetricsReader()
    whole.feed(text, 5.0)
    for start, end in pairwise(cuts):
        parts.feed(text[start:end], 5.0)
    whole.finish(5.0)
    parts.finish(5.0)
    assert parts.series() == whole.series()
    assert whole.points > 3
    assert parts.summary(9.0) == whole.summary(9.0)
    assert (parts.last_line, parts.anomalies) == (whole.last_line, whole.anomalies)


PIECES = [
    *(
        "epoch",
        "Epoch:",
        "step=",
        "loss:",
        "acc=",
        "val_loss:",
        "lr",
        "Test set:",
        "perplexity",
        "{'loss': '0.5'}",
        "best",
    ),
    *(
        "[",
        "]",
        "(",
        ")",
        "/",
        "of",
        "%",
        "%|",
        "|",
        FULL * 5,
        HEAVY * 6,
        "===",
        "it/s",
        "[00:10<00:12,",
        "ETA: 3s",
        "1/2",
    ),
    *(
        "nan",
        "inf",
        "-inf",
        "1e400",
        "1e-400",
        "0",
        "1",
        "-1",
        "3",
        "1.5",
        "1,000",
        "\u0663",
        "\u00bd",
        "3/0",
        "0/0",
        "1e5%",
    ),
    *("9" * 300, "0." + "0" * 200 + "1", "9" * 30 + ":00:00", "9" * 40 + "it/s]", "ETA: " + "9" * 300 + "s", "0:00:12"),
    *("\r", "\n", "\n", "\x1b[A", "\b\b", "\x1b[1m", "\x1b", "45%|##|", "45/100 [===>..] -", "[3, 5]", "it [00:10]"),
]


@pytest.mark.parametrize("seed", range(200))
def test_nothing_that_is_printed_makes_it_fail(seed: int) -> None:
    source = random.Random(seed)
    lines = [" ".join(source.choice(PIECES) for _ in range(source.randrange(1, 9))) for _ in range(4)]
    reader, now = MetricsReader(), 0.0
    for _ in range(50):
        now += source.choice((0.0, 0.1, 5.0))
        line = source.choice(lines).replace("1", str(source.randrange(100)))
        reader.feed(line + source.choice(("\n", "\r", "")), now, source.choice(("stdout", "stderr")))
        assert isinstance(reader.summary(now), str)
    reader.finish(now)
    series = reader.series()
    assert (series is None) == (reader.points == 0)
    if series is not None:
        assert text_table(series, reader.labels).count("\n") == html_table(series, reader.labels).count("<tr>") - 1


def test_streams_do_not_mix() -> None:
    reader = MetricsReader()
    for n in range(1, 6):
        reader.feed(f"epoch {n} lo", 1.0)
        reader.feed(tqdm_state(n, 5, ""), 1.0, "stderr")
        reader.feed(f"ss 0.{n}\n", 1.0)
    assert reader.points == 5


@pytest.mark.parametrize(
    "line",
    ["step {n} loss 0.{n}\n", "\rstep {n} loss 0.{n}", "x" * 40 + "{n}\n", "loss{n} 0.5\n", "x" * 4000],
    ids=["metrics", "overwritten", "other lines", "ever new names", "no newline"],
)
def test_memory_stays_flat(line: str) -> None:
    """Of 8,000 lines some rows are kept, and what is remembered of 256 names."""

    def feed(reader: MetricsReader, start: int, count: int) -> None:
        for at in range(start, start + count, 1000):
            reader.feed("".join(line.format(n=n) for n in range(at, at + 1000)), float(at))

    reader = MetricsReader()
    feed(reader, 0, 5000)
    tracemalloc.start()
    feed(reader, 5000, 8000)
    kept = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert kept < (1_500_000 if "{n} 0" in line else 150_000)
    assert len(reader.series().rows if reader.series() else ()) < 600  # type: ignore[union-attr]


def test_of_many_rows_first_last_and_best_are_kept() -> None:
    reader = read([f"step {n} acc {0.5 if n != 5003 else 0.9}\n" for n in range(20_000)], step=0.01)
    series = reader.series()
    assert series is not None
    assert (series.points, series.rows[0].step, series.last.step) == (20_000, 0, 19_999)
    assert [row.step for row in series.rows if row.values["acc"] == 0.9] == [5003]
    gaps = {
        round(after.step - before.step)
        for before, after in pairwise(series.rows)
        if after.step and before.step is not None
    }
    assert max(gaps) <= 128


def test_a_training_after_a_flood_is_found() -> None:
    reader = read(["train\n" * 30_000, *(line for line in plain(100))], step=0.1)
    assert reader.points > 10
    assert reader.last_line.startswith("epoch 100 ")
