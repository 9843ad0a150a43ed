"""Lines of metrics, as frameworks print them, and lines that are none."""

from __future__ import annotations

import math

import pytest

from harness_nb.outputs.metrics.lines import Counter, read_line


def epoch(value: float, total: float | None = None, label: str = "epoch") -> Counter:
    return Counter("epoch", label, value, total)


def step(value: float, total: float | None = None, label: str = "step") -> Counter:
    return Counter("step", label, value, total)


READ = [
    ("epoch 3 loss 0.41 acc 0.87", [epoch(3)], {"loss": 0.41, "acc": 0.87}),
    ("Epoch 3/30 - loss: 0.4123 - val_acc: 0.87", [epoch(3, 30)], {"loss": 0.4123, "val_acc": 0.87}),
    ("Epoch [3/30], Step [100/600], Loss: 0.4", [epoch(3, 30), step(100, 600)], {"loss": 0.4}),
    ("Epoch 3 of 30: loss -1.25e-3", [epoch(3, 30)], {"loss": -0.00125}),
    ("Epoch #3 loss .5", [epoch(3)], {"loss": 0.5}),
    ("Epoch 00003: val_loss: 0.5", [epoch(3)], {"val_loss": 0.5}),
    ("epoch 1.50 loss 0.934 acc 0.512 lr 0.103", [epoch(1.5)], {"loss": 0.934, "acc": 0.512, "lr": 0.103}),
    ("[3,  2000] loss: 1.2", [epoch(3), step(2000)], {"loss": 1.2}),
    ("loss: 0.4 - accuracy: 0.87", [], {"loss": 0.4, "accuracy": 0.87}),
    ("{'loss': 0.5, 'learning_rate': 5e-05, 'epoch': 0.1}", [epoch(0.1)], {"loss": 0.5, "learning_rate": 5e-5}),
    ("{'loss': '0.5', 'epoch': '0.1'}", [epoch(0.1)], {"loss": 0.5}),
    ('{"step": 100, "loss": 0.31, "tokens_per_second": 1234}', [step(100)], {"loss": 0.31}),
    ("step=100 | lr=3e-4 | loss=0.25", [step(100)], {"lr": 3e-4, "loss": 0.25}),
    ("step 1,000 loss 0.5", [step(1000)], {"loss": 0.5}),
    ("step 3 kl=0.25", [step(3)], {"kl": 0.25}),
    (
        "[10]\ttrain-rmse:0.5\teval-rmse:0.6",
        [step(10, label="iteration")],
        {"train-rmse": 0.5, "eval-rmse": 0.6},
    ),
    (
        "[10]\ttraining's rmse: 0.5\tvalid_1's rmse: 0.6",
        [step(10, label="iteration")],
        {"train_rmse": 0.5, "valid_1_rmse": 0.6},
    ),
    (
        "0:\tlearn: 0.69\ttest: 0.68\tbest: 0.67 (0)\ttotal: 50ms\tremaining: 1m 2s",
        [step(0, label="iteration")],
        {"learn": 0.69, "test": 0.68},
    ),
    ("Train Epoch: 1 [640/60000 (1%)]\tLoss: 2.300039", [epoch(1), step(640, 60000)], {"train_loss": 2.300039}),
    (
        "Test set: Average loss: 0.0480, Accuracy: 9844/10000 (98%)",
        [],
        {"test_average_loss": 0.048, "test_accuracy": 0.9844},
    ),
    ("loss: 2.303494  [   64/60000]", [step(64, 60000)], {"loss": 2.303494}),
    (" Accuracy: 70.8%, Avg loss: 0.784000 ", [], {"accuracy": 70.8, "avg_loss": 0.784}),
    (
        "Epoch: [0]  [  10/5000]  eta: 0:12:34  lr: 0.001000  loss: 4.54 (4.60)  time: 0.27  data: 0.01  max mem: 99",
        [epoch(0), step(10, 5000)],
        {"lr": 0.001, "loss": 4.54},
    ),
    (
        "Epoch: [3][10/391]\tTime 0.100 (0.200)\tData 0.001 (0.002)\tLoss 1.2e+00 (1.3e+00)\tAcc@1  50.00 ( 45.00)",
        [epoch(3), step(10, 391)],
        {"loss": 1.2, "acc@1": 50.0},
    ),
    (
        "| epoch   1 |   200/ 2928 batches | lr 5.00 | ms/batch 12.34 | loss  7.12 | ppl  1234.56",
        [epoch(1), step(200, 2928, "batch")],
        {"lr": 5.0, "loss": 7.12, "ppl": 1234.56},
    ),
    ("step 100: train loss 2.4012, val loss 2.5001", [step(100)], {"train_loss": 2.4012, "val_loss": 2.5001}),
    ("iter 100: loss 2.4012, time 30.20ms, mfu 1.20%", [step(100, label="iter")], {"loss": 2.4012}),
    (
        "step    1/18865 | loss 10.95 (+nanz)| norm 15.3 (+nanz)| lr 8.57e-07 | 300 ms | 12.3% bf16 MFU | 163456 tok/s",
        [step(1, 18865)],
        {"loss": 10.95, "lr": 8.57e-7},
    ),
    (
        "Epoch 3 | Train Loss: 0.512 | Train Acc: 81.20% | Val. Loss: 0.43 | Val. Acc: 84.10%",
        [epoch(3)],
        {"train_loss": 0.512, "train_acc": 81.2, "val_loss": 0.43, "val_acc": 84.1},
    ),
    (
        "Epoch 3: train: loss 0.4 acc 0.8 lr 0.1, val: loss 0.5 acc 0.7",
        [epoch(3)],
        {"train_loss": 0.4, "train_acc": 0.8, "lr": 0.1, "val_loss": 0.5, "val_acc": 0.7},
    ),
    ("100/100 - 2s - 20ms/step - accuracy: 0.87 - loss: 0.4", [step(100, 100)], {"accuracy": 0.87, "loss": 0.4}),
    ("Iteration 5, loss = 0.34512345", [step(5, label="iteration")], {"loss": 0.34512345}),
    (
        "Episode 10\tLast reward: 26.00\tAverage reward: 16.00",
        [step(10, label="episode")],
        {"last_reward": 26.0, "average_reward": 16.0},
    ),
    ("Policy loss: 0.3, value loss: 0.1, step: 3", [step(3)], {"policy_loss": 0.3, "value_loss": 0.1}),
    ("INFO:tensorflow:loss = 0.3, step = 100 (0.5 sec)", [step(100)], {"loss": 0.3}),
    ("2024-05-01 10:00:00,123 - trainer - INFO - Epoch 3 loss 0.4", [epoch(3)], {"loss": 0.4}),
    ("[2024-05-01 10:00:00][INFO] epoch=3 loss=0.4 val_loss=0.5", [epoch(3)], {"loss": 0.4, "val_loss": 0.5}),
    ("2024-05-01 10:00:00.123 | INFO     | train:main:12 - epoch 3 loss 0.4", [epoch(3)], {"loss": 0.4}),
    ("I0501 10:00:00.123456 1234 train.py:33] step 5, loss 0.5", [step(5)], {"loss": 0.5}),
    ("epoch 3 loss 0.4 (best)", [epoch(3)], {"loss": 0.4}),
    ("Epoch 3/10", [epoch(3, 10)], {}),
    ("===== Epoch 3 =====", [epoch(3)], {}),
]


@pytest.mark.parametrize(("line", "counters", "values"), READ, ids=[line[:40] for line, _, _ in READ])
def test_lines_of_frameworks_are_read(line: str, counters: list[Counter], values: dict[str, float]) -> None:
    reading = read_line(line)
    assert reading is not None
    assert list(reading.counters) == counters
    assert reading.values == pytest.approx(values)


NOT_METRICS = """
The loss 0.4 is lower than 0.5 at epoch 3
the accuracy of 0.9 was reached after 3 epochs
HTTP Error 404: Not Found
error 404
error: 2
ERROR 3 files failed
Epoch 3: val_loss improved from 0.41234 to 0.39876, saving model to best.h5
Epoch 00010: reducing learning rate of group 0 to 1.0000e-03.
Restoring model weights from the end of the best epoch: 7.
step 3 took 12.3 s
Step 1: found 45 files
Step 1 of 3: downloading
Loaded 500 rows in 0.3 s
    accuracy                           0.98       450
           0       0.99      0.99      0.99        88
   macro avg       0.97      0.97      0.97       450
lr: 0.001
learning_rate=0.1
epochs: 10
batch_size: 32, epochs: 10, seed: 0
acc_steps=4 batch_size=32
loss_scale: 65536.0
[CV 1/5] END ....C=1, gamma=0.1;, score=0.970 total time=   0.0s
Fold 1 accuracy: 0.9
tests/test_x.py ....  [ 25%]
tests/test_loss.py::test_accuracy PASSED [ 50%]
======== 5 passed in 0.12s ========
0.12s call     tests/test_train.py::test_step
[ 45%] Building CXX object loss.o
GET /loss?epoch=3 200 12ms
2024-05-01 10:00:00 GET /train 200 12ms
| 3 | 0.5 | 0.9 |
| epoch | loss |
epoch  loss  acc
3,0.5,0.9
0  3  0.5  0.9
dtype: float64
Name: accuracy, Length: 3, dtype: float64
accelerate 0.21.0
torch==2.1.0
Progress: 45%
mean 0.5 std 0.1
x = 3, y = 4
a: 1 b: 2 c: 3
In [3]: loss
Epoch 3 finished in 12 s, next comes the validation of 5 files
192.168.0.1 - - [01/May/2024:10:00:00 +0000] "GET / HTTP/1.1" 200 45
total loss of 3 units, 4 workers, 5 parts
Downloading train-images: 26421880 bytes
(3, 32, 32)
0.41
""".strip("\n").split("\n")


@pytest.mark.parametrize("line", NOT_METRICS)
def test_prose_data_and_settings_are_not_metrics(line: str) -> None:
    reading = read_line(line)
    assert reading is None or not reading.values


def test_nan_and_infinities_are_numbers() -> None:
    reading = read_line("Epoch 3: train loss=inf, val loss=-inf, loss nan, acc NaN")
    assert reading is not None
    assert reading.values["train_loss"] == math.inf
    assert reading.values["val_loss"] == -math.inf
    assert math.isnan(reading.values["val_acc"])


def test_percent_signs_are_kept_with_the_names() -> None:
    reading = read_line("epoch 3 loss 0.5 acc 87%")
    assert reading is not None
    assert reading.percents == {"acc"}


def test_lines_of_one_make_have_one_shape_and_others_another() -> None:
    lines = ["epoch 3 loss 0.5", "epoch  12 loss nan", "EPOCH 4/9 - loss: 1e-3", "epoch 5 loss 0.5 (best)"]
    readings = [read_line(line) for line in [*lines, "epoch 3 loss 0.5 acc 0.9"]]
    shapes = [reading.shape for reading in readings if reading]
    assert shapes[:4] == [shapes[0]] * 4
    assert shapes[4] != shapes[0]


def test_lines_without_a_counter_differ_by_their_other_words() -> None:
    readings = [read_line(f"{model} acc 0.9") for model in ("svm", "svm", "forest")]
    shapes = [reading.shape for reading in readings if reading]
    assert shapes[0] == shapes[1] != shapes[2]


def test_a_counter_that_is_known_otherwise_makes_weak_names_metrics() -> None:
    assert read_line("kl=0.25") is None
    reading = read_line("kl=0.25", (step(3),))
    assert reading is not None
    assert (reading.counters, reading.values) == ((step(3),), {"kl": 0.25})


def test_very_long_lines_are_passed_over() -> None:
    assert read_line("epoch 3 loss 0.5 " + "x" * 10_000) is None
