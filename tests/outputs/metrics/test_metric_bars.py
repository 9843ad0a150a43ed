"""Progress bars, and what looks like one and is none."""

from __future__ import annotations

import time

import pytest
from training_logs import FULL, HEAVY

from harness_nb.outputs.metrics.bars import Bar, clock_seconds, find_bar
from harness_nb.outputs.metrics.lines import read_line

TQDM = f" 45%|{FULL * 4}     | "


BARS = [
    (TQDM + "45/100 [00:10<00:12,  4.4it/s, loss=0.3]", Bar("loss=0.3", "", 45, 100, 0.45, 12, 4.4, "it")),
    (
        f"Epoch 3: {TQDM}45/100 [00:10<01:00:12,  4.40it/s, v_num=0, train_loss=0.312]",
        Bar("Epoch 3: v_num=0, train_loss=0.312", "Epoch 3", 45, 100, 0.45, 3612, 4.4, "it"),
    ),
    ("45it [00:10,  4.40it/s, loss=0.3]", Bar("loss=0.3", "", 45, None, None, None, 4.4, "it")),
    ("  0%|          | 0/100 [00:00<?, ?it/s]", Bar("", "", 0, 100, 0, None, None, "it")),
    ("  3%|3         | 1/30 [00:31<15:02, 40.00s/it]", Bar("", "", 1, 30, 1 / 30, 902, 0.025, "it")),
    (
        f" 34%|{FULL}  | 34/100 [01:10<02:12,  2.00s/batch, epoch=2, loss=0.31]",
        Bar("epoch=2, loss=0.31", "", 34, 100, 0.34, 132, 0.5, "batch"),
    ),
    (
        f"model.bin:  50%|{FULL}  | 1.2G/2.4G [00:10<00:12, 120MB/s]",
        Bar("model.bin:", "model.bin", 1.2e9, 2.4e9, 0.5, 12, 120, "MB"),
    ),
    (
        f"100%|{FULL * 10}| 30/30 [00:10<00:00,  2.9it/s]{{'loss': 0.5}}",
        Bar("{'loss': 0.5}", "", 30, 30, 1, 0, 2.9, "it"),
    ),
    (
        " 45/100 [============>.................] - ETA: 12s - loss: 0.4",
        Bar("-  - loss: 0.4", "", 45, 100, 0.45, 12, None, "step"),
    ),
    (
        "100/100 [==============================] - 2s 20ms/step - loss: 0.4 - val_loss: 0.5",
        Bar("- loss: 0.4 - val_loss: 0.5", "", 100, 100, 1, None, None, "step"),
    ),
    (
        f" 45/100 {HEAVY * 20} 1s 10ms/step - accuracy: 0.8 - loss: 0.4",
        Bar("- accuracy: 0.8 - loss: 0.4", "", 45, 100, 0.45, 1, None, "step"),
    ),
    (f"Training {HEAVY * 9}\u2578{HEAVY * 9}  45% 0:00:12", Bar("Training 0:00:12", "Training", None, None, 0.45, 12)),
    ("[####      ] 45%", Bar("", "", None, None, 0.45)),
    ("[=====>    ] 45/100", Bar("", "", 45, 100, 0.45)),
    ("[          ] 0%", Bar("", "", None, None, 0.0)),
    (
        " 45% (45 of 100) |#####      | Elapsed Time: 0:00:10 ETA:   0:00:12",
        Bar("Elapsed Time: 0:00:10", "", None, None, 0.45, 12),
    ),
]


@pytest.mark.parametrize(("line", "bar"), BARS, ids=[line[:40] for line, _ in BARS])
def test_bars_are_found(line: str, bar: Bar) -> None:
    assert find_bar(line) == bar


@pytest.mark.parametrize(
    "line",
    [
        "|-----|-----|",
        "| 45% | 3/4 |",
        "====== 5% ======",
        "======== 5 passed in 0.12s ========",
        "tests/test_x.py ....  [ 25%]",
        "[-----] 3",
        "==> 3/5 done",
        "### 3/5 Chapter",
        "| a         | 45% |",
        "value      0.5      45%",
        "[0, 1, 2]     3/4",
        "[00:10] 45/100",
        "100% of 3/4",
        "",
    ],
)
def test_other_text_is_no_bar(line: str) -> None:
    assert find_bar(line) is None


def test_clocks_are_seconds() -> None:
    assert [clock_seconds(text) for text in ("01:02", "1:00:02", "2 days, 0:00:01", "?", "x:y")] == [
        62,
        3602,
        172_801,
        None,
        None,
    ]


@pytest.mark.parametrize(
    "line",
    [
        "1" * 490 + "it/s",
        "1/" * 240 + "     ",
        HEAVY * 500,
        "[" + " " * 490,
        "| " * 240 + "     ",
        "|" + "=" * 480,
        "%|" * 240,
        "1:" * 240,
        "[0" * 240,
        "1.1.1" * 90 + "     ",
        "loss: " * 80 + "1",
        "a-b." * 120,
        "1," * 240,
    ],
)
def test_no_line_takes_long(line: str) -> None:
    """Ten repetitions in a second: a thousandth of what an expression that runs wild would take."""
    began = time.process_time()
    for _ in range(10):
        find_bar(line)
        read_line(line)
    assert time.process_time() - began < 1.0
