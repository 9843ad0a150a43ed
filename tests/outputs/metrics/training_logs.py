"""Logs as training programs print them, one function for each kind, and a reader that was fed one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import exp

from harness_nb.outputs.metrics import MetricsReader

FULL = "\u2588"
HEAVY = "\u2501"


def read(pieces: Iterable[str], step: float = 1.0, finish: bool = False) -> MetricsReader:
    """A reader that was fed a piece every ``step`` seconds, from second ``step`` on."""
    reader = MetricsReader()
    reader.tick(0.0)
    now = 0.0
    for piece in pieces:
        now += step
        reader.feed(piece, now)
    if finish:
        reader.finish(now)
    return reader


def plain(epochs: int, total: int | None = None) -> Iterator[str]:
    for epoch in range(1, epochs + 1):
        of = f"/{total}" if total else ""
        yield f"epoch {epoch}{of} loss {2 / epoch:.3f} acc {1 - 0.9 / epoch:.3f}\n"


def mnist(epochs: int) -> Iterator[str]:
    for epoch in range(1, epochs + 1):
        for batch in range(0, 938, 100):
            percent = 100 * batch / 938
            yield f"Train Epoch: {epoch} [{64 * batch}/60000 ({percent:.0f}%)]\tLoss: {2 / (epoch + batch / 938):.6f}\n"
        right = 9700 + 20 * epoch
        yield f"\nTest set: Average loss: {0.3 / epoch:.4f}, Accuracy: {right}/10000 ({right / 100:.0f}%)\n\n"


def keras(epochs: int, total: int) -> Iterator[str]:
    """Keras 3: colours, backspaces and a carriage return before each state."""
    for epoch in range(1, epochs + 1):
        yield f"Epoch {epoch}/{total}\n"
        loss = 1.5 * exp(-epoch / 4)
        for step in range(20, 101, 20):
            done = step // 5
            bar = f"\x1b[32m{HEAVY * done}\x1b[0m\x1b[37m{HEAVY * (20 - done)}\x1b[0m"
            values = f"accuracy: {1 - loss / 3:.4f} - loss: {loss + (100 - step) / 100:.4f}"
            yield f"{chr(8) * 80}\r\x1b[1m{step:3d}/100\x1b[0m {bar} \x1b[1m1s\x1b[0m 10ms/step - {values}"
        bar = f"\x1b[32m{HEAVY * 20}\x1b[0m\x1b[37m\x1b[0m"
        values = f"accuracy: {1 - loss / 3:.4f} - loss: {loss:.4f} - val_accuracy: {0.9 - loss / 3:.4f}"
        yield f"{chr(8) * 80}\r\x1b[1m100/100\x1b[0m {bar} \x1b[1m2s\x1b[0m 20ms/step - {values} - val_loss: 0.5000\n"


def hugging_face(steps: int) -> Iterator[str]:
    for step in range(1, steps + 1):
        epoch = round(step / 100, 2)
        rate = 5e-5 * (1 - step / steps)
        yield f"{{'loss': {3 * exp(-step / 100):.4f}, 'grad_norm': 1.25, 'learning_rate': {rate}, 'epoch': {epoch}}}\n"
        if step % 100 == 0:
            yield f"{{'eval_loss': {3 * exp(-step / 100):.4f}, 'eval_runtime': 3.1, 'epoch': {epoch}}}\n"


def transfer(epochs: int, total: int) -> Iterator[str]:
    """The transfer learning tutorial: a headline, then a line for each phase."""
    for epoch in range(epochs):
        yield f"Epoch {epoch}/{total - 1}\n{'-' * 10}\n"
        yield f"train Loss: {1 / (epoch + 1):.4f} Acc: {1 - 0.5 / (epoch + 1):.4f}\n"
        yield f"val Loss: {1.1 / (epoch + 1):.4f} Acc: {1 - 0.6 / (epoch + 1):.4f}\n\n"


def tqdm_state(done: int, total: int, tail: str, head: str = "", rate: str = "4.40it/s", left: int = 60) -> str:
    percent = 100 * done // total
    bar = FULL * (percent // 10) + " " * (10 - percent // 10)
    clock = f"00:{done % 60:02d}<{left // 60:02d}:{left % 60:02d}"
    return f"\r{head}{percent:3d}%|{bar}| {done}/{total} [{clock}, {rate}{', ' if tail else ''}{tail}]"


def lightning(epochs: int) -> Iterator[str]:
    for epoch in range(epochs):
        for batch in range(0, 46, 9):
            tail = f"v_num=0, train_loss={1 / (epoch + 1 + batch / 45):.3f}"
            yield tqdm_state(batch, 45, tail, f"Epoch {epoch}: ", left=45 - batch)
        yield "\n"


def xgboost(rounds: int) -> Iterator[str]:
    for number in range(rounds):
        yield f"[{number}]\ttrain-rmse:{2 * exp(-number / 20):.5f}\teval-rmse:{2 * exp(-number / 30):.5f}\n"
