"""Compute the accuracy of model.pt again, in a fresh process: the check of the demo ``cifar10``.

    python score.py FOLDER        (in the workspace, with train.py, model.pt and results.json)

FOLDER has the official test_batch and wanted.json, {"at_least": accuracy or null, "for_images": N}: the accuracy is
asked for where the batch has N images. The network gets the images and nothing else. Exit status 0 when the figure in
results.json is the true one and what is wanted is reached, else 1.
"""

import argparse
import importlib.util
import json
import os
import pickle
import sys
from pathlib import Path
from types import ModuleType

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # read when torch loads: spinning threads waste shared cores

import numpy as np
import torch

TOLERANCE = 0.0002
"""Two images in 10,000: the same sums in another order may tip a close call."""


class Refused(Exception):
    """What is there cannot count; the text says why."""


def read_test_batch(path: Path) -> tuple[torch.Tensor, torch.Tensor]:
    """Images, uint8 (N, 32, 32, 3), and labels, int64 (N,), of an official test_batch."""
    batch = pickle.loads(path.read_bytes(), encoding="bytes")
    images = np.ascontiguousarray(batch[b"data"].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
    return torch.from_numpy(images), torch.tensor(batch[b"labels"])


def import_file(path: Path) -> ModuleType:
    """The module in a file."""
    if not path.is_file():
        raise Refused(f"there is no file {path.name}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read_results(path: Path) -> tuple[float, int]:
    """The accuracy (0 to 1) and the number of test images that results.json claims."""
    try:
        results = json.loads(path.read_text("utf-8"))
        return float(results["accuracy"]), int(results["test_images"])
    except FileNotFoundError:
        raise Refused(f"there is no file {path.name}") from None
    except (KeyError, TypeError, ValueError) as error:
        raise Refused(f"{path.name} must have the numbers accuracy and test_images: {error!r}") from None


def accuracy(train: ModuleType, images: torch.Tensor, labels: torch.Tensor) -> float:
    """The share of images that the network in model.pt gets right."""
    if not Path("model.pt").is_file():
        raise Refused("there is no file model.pt")
    network, _ = train.load_model("model.pt")
    guesses = train.predict(network, images)
    if tuple(guesses.shape) != (len(labels), 10):
        raise Refused(f"predict gave the shape {tuple(guesses.shape)} instead of {(len(labels), 10)}")
    return (guesses.argmax(dim=1) == labels).double().mean().item()


def check(folder: Path) -> None:
    """Print the findings; raises Refused when they do not count."""
    claimed, claimed_images = read_results(Path("results.json"))
    images, labels = read_test_batch(folder / "test_batch")
    wanted = json.loads((folder / "wanted.json").read_text("utf-8"))
    found = accuracy(import_file(Path("train.py").resolve()), images, labels)
    print(f"accuracy {found:.4f} on {len(labels):,} test images, computed anew; results.json says {claimed:.4f}")
    if claimed_images != len(labels):
        raise Refused(f"results.json speaks of {claimed_images:,} test images, there are {len(labels):,}")
    if abs(found - claimed) > TOLERANCE:
        raise Refused("the accuracy in results.json is not that of model.pt")
    if wanted["at_least"] is None or len(labels) != wanted["for_images"]:
        print("no accuracy is asked for: a quick run, or fewer test images than the official ones")
    elif found < wanted["at_least"]:
        raise Refused(f"at least {wanted['at_least']:g} is asked for")
    else:
        print(f"reached: at least {wanted['at_least']:g} is asked for")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Compute the accuracy of model.pt again.")
    parser.add_argument("folder", type=Path)
    try:
        check(parser.parse_args(arguments).folder)
    except Refused as error:
        print(f"refused: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
