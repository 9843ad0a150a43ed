"""Train a small network on CIFAR-10 from random weights, on CPU cores, in a few minutes.

    python train.py DATA_DIR [--quick] [--epochs SIDE:EPOCHS ...] [--holdout N] [--seed N] [--out DIR]

In a notebook, where `draw(history)` updates a plot:

    from train import evaluate, load_cifar10, train
    data = load_cifar10("data")
    model, history = train(data, on_progress=draw)
    evaluate(model, data.test)

Training sees the training images only. The test images are read for the one figure after the last step. To choose
settings, `holdout=N` puts the last N training images in their place, and does not open the test file at all.

Sources: images, Krizhevsky 2009, https://www.cs.toronto.edu/~kriz/cifar.html; network and recipe, Jordan 2024,
arXiv:2404.00498 (here narrower, with far fewer epochs); Muon, Jordan et al. 2024, https://kellerjordan.github.io/posts/muon;
whitening and flip averaging, Page 2018, "How to Train Your ResNet"; small images first, Howard et al. 2018, fast.ai.
"""

import argparse
import ctypes
import hashlib
import json
import os
import pickle
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # read when torch loads: spinning threads waste shared cores

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

OFFICIAL_MD5 = {
    "data_batch_1": "c99cafc152244af753f735de768cd75f",
    "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
    "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
    "data_batch_4": "634d18415352ddfa80567beed471001a",
    "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
    "test_batch": "40351d587109b95175f43aff81a1287e",
}


@dataclass(frozen=True)
class Settings:
    """Everything that decides a run. The learning rates fall linearly to zero over the whole of it."""

    schedule: tuple[tuple[int, float], ...] = ((24, 1.5), (32, 0.8))  # (image side in pixels, epochs)
    widths: tuple[int, int, int] = (32, 128, 128)  # channels of the three blocks
    batch_size: int = 500
    filter_lr: float = 0.18  # Muon
    filter_momentum: float = 0.6
    bias_lr: float = 12.0  # SGD; so high because the head starts small, and with it these gradients
    head_lr: float = 0.05  # SGD
    sgd_momentum: float = 0.85
    label_smoothing: float = 0.2
    translate: int = 1  # pixels, each way
    seed: int = 0
    log_lines: int = 24


QUICK = Settings(schedule=((16, 1.5), (24, 0.5)), batch_size=125, log_lines=6)  # for at most 5,000 images


class Split(NamedTuple):
    images: Tensor  # uint8 (N, 32, 32, 3)
    labels: Tensor  # int64 (N,)


class Cifar10(NamedTuple):
    train: Split
    test: Split
    classes: list[str]
    holdout: int  # how many training images stand in for the test images; 0: `test` holds the real ones
    pixels: str  # "official", or a note that figures must be quoted with


def load_cifar10(data_dir: str | Path, holdout: int = 0, limit: int | None = None) -> Cifar10:
    """Read the official pickle files from `data_dir` or its folder cifar-10-batches-py.

    `holdout`: training images at the end that become the test split, instead of the test file. `limit`: how many
    training images to use at most. Unpickling can run code: use archives that you trust.
    """
    folder = Path(data_dir)
    folder = folder / "cifar-10-batches-py" if (folder / "cifar-10-batches-py").is_dir() else folder
    files = {name: (folder / name).read_bytes() for name in list(OFFICIAL_MD5)[: 5 if holdout else 6]}
    images, labels = unpickle(list(files.values())[:5])
    cut = len(labels) - holdout
    if cut not in range(1, len(labels) + 1):
        raise ValueError(f"holdout must be from 0 to {len(labels) - 1}, not {holdout}")
    train = Split(images[:cut][:limit], labels[:cut][:limit])
    test = Split(images[cut:], labels[cut:]) if holdout else unpickle([files["test_batch"]])
    meta = pickle.loads((folder / "batches.meta").read_bytes(), encoding="bytes")
    foreign = sum(hashlib.md5(raw).hexdigest() != OFFICIAL_MD5[name] for name, raw in files.items())
    note = f"{foreign} of {len(files)} files are not the official ones (MD5): other pixels, or another order"
    classes = [name.decode() for name in meta[b"label_names"]]
    return Cifar10(train, test, classes, holdout, note if foreign else "official")


def unpickle(files: list[bytes]) -> Split:
    batches = [pickle.loads(raw, encoding="bytes") for raw in files]
    images = np.concatenate([batch[b"data"] for batch in batches]).reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    labels = np.concatenate([batch[b"labels"] for batch in batches])
    return Split(torch.from_numpy(images.copy()), torch.from_numpy(labels).long())


def as_pixels(images: Tensor) -> Tensor:
    """uint8 (N, H, W, 3) to float32 (N, 3, H, W), in channels-last memory order: the fast one on CPUs."""
    return images.float().permute(0, 3, 1, 2)


class CifarNet(nn.Module):
    """Pixels from 0 to 255 of shape (N, 3, side, side) to logits of shape (N, classes), for sides from 16 to 32."""

    def __init__(self, widths: tuple[int, int, int] = (32, 128, 128), classes: int = 10):
        super().__init__()
        first, second, third = widths
        self.register_buffer("mean", torch.zeros(1, 3, 1, 1))
        self.register_buffer("std", torch.ones(1, 3, 1, 1))
        self.whiten = nn.Conv2d(3, 24, kernel_size=2)
        self.blocks = nn.Sequential(*block(24, first), *block(first, second), *block(second, third))
        self.head = nn.Linear(third, classes, bias=False)
        nn.init.normal_(self.head.weight, std=1 / third)
        self.to(memory_format=torch.channels_last)

    def forward(self, pixels: Tensor) -> Tensor:
        features = F.gelu(self.whiten((pixels - self.mean) / self.std))
        return self.head(self.blocks(features).amax(dim=(2, 3)))

    @torch.no_grad()
    def fit_whitening(self, images: Tensor, epsilon: float = 5e-4) -> None:
        """Freeze the first filters: the principal directions of 2x2 patches, at unit variance, and their negatives."""
        pixels = as_pixels(images)
        self.mean.copy_(pixels.mean(dim=(0, 2, 3), keepdim=True))
        self.std.copy_(pixels.std(dim=(0, 2, 3), keepdim=True))
        patches = F.unfold((pixels - self.mean) / self.std, kernel_size=2).transpose(1, 2).reshape(-1, 12)
        variances, directions = torch.linalg.eigh(patches.T @ patches / len(patches))
        filters = (directions / (variances + epsilon).sqrt()).T.reshape(12, 3, 2, 2)
        self.whiten.weight.copy_(torch.cat([filters, -filters])).requires_grad_(False)
        self.whiten.bias.zero_()


def block(channels_in: int, channels_out: int) -> Iterator[nn.Module]:
    """conv, pool, norm, GELU, conv, norm, GELU; the first filters of a conv start as the identity (dirac)."""
    for channels, pool in ((channels_in, [nn.MaxPool2d(2)]), (channels_out, [])):
        conv = nn.Conv2d(channels, channels_out, 3, padding="same", bias=False)
        nn.init.dirac_(conv.weight.data[:channels])
        yield from (conv, *pool, nn.BatchNorm2d(channels_out, momentum=0.4), nn.GELU())


class Muon(torch.optim.Optimizer):
    """Steps that are orthogonal matrices, on filters that keep a fixed norm (torch.optim.Muon takes matrices only)."""

    def __init__(self, params: list[nn.Parameter], lr: float, momentum: float):
        super().__init__(params, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self) -> None:
        for group in self.param_groups:
            for weight in group["params"]:
                velocity = self.state[weight].setdefault("velocity", torch.zeros_like(weight))
                velocity.mul_(group["momentum"]).add_(weight.grad)
                direction = weight.grad.add(velocity, alpha=group["momentum"])  # Nesterov
                weight.mul_(len(weight) ** 0.5 / weight.norm())
                weight.sub_(orthogonal(direction.flatten(1)).view_as(weight), alpha=group["lr"])


def orthogonal(matrix: Tensor, steps: int = 3) -> Tensor:
    """Bring all singular values of a matrix near one: quintic Newton-Schulz steps, coefficients of the Muon article."""
    tall = matrix.shape[0] > matrix.shape[1]
    x = (matrix.T if tall else matrix) / (matrix.norm() + 1e-7)
    for _ in range(steps):
        square = x @ x.T
        x = 3.4445 * x + (2.0315 * square @ square - 4.7750 * square) @ x
    return x.T if tall else x


def stages(settings: Settings, count: int) -> list[tuple[int, int]]:
    """(image side, steps) of each part of the schedule, for `count` training images."""
    size = min(settings.batch_size, count)
    return [(side, max(1, round(epochs * count / size))) for side, epochs in settings.schedule]


def training_batches(split: Split, settings: Settings) -> Iterator[tuple[float, Tensor, Tensor]]:
    """Yield (epochs so far, pixels, labels) over the schedule: shuffled, mirrored, shifted and resized.

    Each image is mirrored in every other epoch, after a random start: more even than a coin each time.
    """
    rng = torch.Generator().manual_seed(settings.seed)
    count, pad = len(split.labels), settings.translate
    size = min(settings.batch_size, count)
    padded = torch.from_numpy(np.pad(split.images.numpy(), ((0, 0), (pad, pad), (pad, pad), (0, 0)), "reflect"))
    mirrored = torch.rand(count, generator=rng) < 0.5
    for step, side in enumerate(side for side, steps in stages(settings, count) for _ in range(steps)):
        epoch, place = divmod(step, count // size)
        if place == 0:
            order = torch.randperm(count, generator=rng)
        chosen = order[place * size : (place + 1) * size]
        images = shift(padded[chosen], pad, rng)
        images = torch.where((mirrored[chosen] ^ (epoch % 2 == 1))[:, None, None, None], images.flip(2), images)
        pixels = as_pixels(images)
        if side != pixels.shape[-1]:
            pixels = F.interpolate(pixels, size=side, mode="bilinear", antialias=True)
        yield (step + 1) * size / count, pixels, split.labels[chosen]


def shift(padded: Tensor, pad: int, rng: torch.Generator) -> Tensor:
    """Cut a window out of each image, at a random place within `pad` pixels each way."""
    count, side = len(padded), padded.shape[1] - 2 * pad
    top, left = torch.randint(0, 2 * pad + 1, (2, count, 1), generator=rng)
    rows, columns = top + torch.arange(side), left + torch.arange(side)
    return padded[torch.arange(count)[:, None, None], rows[:, :, None], columns[:, None, :]]


def use_all_cores() -> int:
    """Compute on every core that this process may use; returns their number. Comes before the first tensor operation.

    Denormal numbers, slow on CPUs, count as zero. glibc is told to keep the memory of freed tensors: taking it from
    the system anew costs page faults, 15 % of a step here.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    torch.set_num_threads(cores)
    torch.set_flush_denormal(True)
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "mallopt"):
        libc.mallopt(-4, 0)  # M_MMAP_MAX
        libc.mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD
    return cores


def make_optimizers(model: CifarNet, settings: Settings) -> tuple[Muon, torch.optim.SGD]:
    """Muon for the filters; SGD with Nesterov momentum for norms, biases and the head."""
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    muon = Muon([weight for weight in trained if weight.ndim == 4], settings.filter_lr, settings.filter_momentum)
    vectors = {"params": [weight for weight in trained if weight.ndim == 1], "lr": settings.bias_lr}
    head = {"params": [model.head.weight], "lr": settings.head_lr}
    return muon, torch.optim.SGD([vectors, head], momentum=settings.sgd_momentum, nesterov=True)


def train(
    data: Cifar10, settings: Settings = Settings(), on_progress: Callable[[list[dict]], None] | None = None
) -> tuple[CifarNet, list[dict]]:
    """Train from random weights; print a metrics line and call `on_progress(history)`, `log_lines` times in all.

    A record of the history: step, steps (of the run), epoch, side, loss and acc (means since the last record, of
    augmented training images; label smoothing keeps the loss above 0.86), lr (Muon's), seconds and cpu_seconds.
    """
    use_all_cores()
    torch.manual_seed(settings.seed)
    wall, cpu = time.perf_counter(), time.process_time()
    model = CifarNet(settings.widths, len(data.classes))
    model.fit_whitening(data.train.images[:5000])
    optimizers = make_optimizers(model, settings)
    total = sum(steps for _, steps in stages(settings, len(data.train.labels)))
    decays = [torch.optim.lr_scheduler.LambdaLR(each, lambda step: 1 - step / total) for each in optimizers]
    history, recent = [], []
    for step, (epoch, pixels, labels) in enumerate(training_batches(data.train, settings), start=1):
        logits = model(pixels)
        loss = F.cross_entropy(logits, labels, label_smoothing=settings.label_smoothing)
        loss.backward()
        lr = decays[0].get_last_lr()[0]
        for stepper in (*optimizers, *decays):
            stepper.step()
        model.zero_grad()
        recent.append((loss.item(), (logits.argmax(dim=1) == labels).float().mean().item()))
        if step * settings.log_lines // total > (step - 1) * settings.log_lines // total:
            record = {"step": step, "steps": total, "epoch": epoch, "side": pixels.shape[-1], "lr": lr}
            record["loss"], record["acc"] = np.mean(recent, axis=0).tolist()
            record["seconds"], record["cpu_seconds"] = time.perf_counter() - wall, time.process_time() - cpu
            history.append(record)
            recent.clear()
            print("epoch {epoch:.2f} loss {loss:.3f} acc {acc:.3f} lr {lr:.3f}".format(**record), flush=True)
            if on_progress:
                on_progress(history)
    return model.eval(), history


@torch.inference_mode()
def predict(model: CifarNet, images: Tensor, flip: bool = True) -> Tensor:
    """Logits (N, classes) of uint8 images (N, 32, 32, 3); `flip` averages over each image and its mirror image."""
    model.eval()
    logits = torch.cat([model(as_pixels(batch)) for batch in images.split(1000)])
    return (logits + predict(model, images.flip(2), flip=False)) / 2 if flip else logits


def evaluate(model: CifarNet, split: Split) -> dict[str, float]:
    """Accuracy (0 to 1) over all images of a split: with flip averaging, and without."""
    plain, mirror = predict(model, split.images, flip=False), predict(model, split.images.flip(2), flip=False)
    flipped, unflipped = ((logits.argmax(dim=1) == split.labels).double().mean() for logits in (plain + mirror, plain))
    return {"accuracy": flipped.item(), "accuracy_without_flip": unflipped.item(), "images": len(split.labels)}


def save_run(out: str | Path, model: CifarNet, data: Cifar10, settings: Settings, history: list, scores: dict) -> dict:
    """Write model.pt and results.json into the folder `out`; returns what results.json holds."""
    results = {"accuracy": scores["accuracy"], "accuracy_without_flip": scores["accuracy_without_flip"]}
    results |= {"test_images": 0 if data.holdout else scores["images"], "holdout_images": data.holdout}
    results |= {"train_images": len(data.train.labels), "pixels": data.pixels}
    results["parameters"] = sum(weight.numel() for weight in model.parameters())
    results["epochs"] = round(history[-1]["epoch"], 2)
    results["train_seconds"] = round(history[-1]["seconds"], 1)
    results["cpu_seconds"] = round(history[-1]["cpu_seconds"], 1)
    results |= {"torch": torch.__version__, "threads": torch.get_num_threads(), "settings": asdict(settings)}
    Path(out).mkdir(parents=True, exist_ok=True)
    torch.save({"state": model.state_dict(), "widths": settings.widths, "classes": data.classes}, Path(out, "model.pt"))
    Path(out, "results.json").write_text(json.dumps(results, indent=2) + "\n")
    return results


def load_model(path: str | Path) -> tuple[CifarNet, list[str]]:
    """The network in a model.pt, ready to predict, and its class names."""
    saved = torch.load(path, weights_only=True)
    model = CifarNet(saved["widths"], len(saved["classes"]))
    model.load_state_dict(saved["state"])
    return model.eval(), saved["classes"]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Train a small network on CIFAR-10, on CPU cores.")
    parser.add_argument("data_dir", metavar="DATA_DIR", help="folder with the official pickle files")
    parser.add_argument("--quick", action="store_true", help="a few seconds, on 5,000 images at most; for tests")
    parser.add_argument("--epochs", nargs="+", metavar="SIDE:EPOCHS", help="for example 24:1.5 32:0.8")
    parser.add_argument("--holdout", type=int, default=0, metavar="N", help="keep N training images out, judge by them")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", default=".", metavar="DIR", help="where model.pt and results.json go")
    options = parser.parse_args(arguments)
    settings = replace(QUICK if options.quick else Settings(), seed=options.seed)
    if options.epochs:
        parts = (part.split(":") for part in options.epochs)
        settings = replace(settings, schedule=tuple((int(side), float(epochs)) for side, epochs in parts))
    data = load_cifar10(options.data_dir, options.holdout, limit=5000 if options.quick else None)
    model, history = train(data, settings)
    results = save_run(options.out, model, data, settings, history, evaluate(model, data.test))
    print(json.dumps({name: value for name, value in results.items() if name != "settings"}, indent=2))


if __name__ == "__main__":
    main()
