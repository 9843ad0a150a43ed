"""The demo ``cifar10``: from the archive to a trained network, on CPU cores, with PyTorch.

The agent unpacks the archive, looks at the images, writes ``train.py``, trains from random weights beside a live plot,
and judges the network on every test image. The check does that again in a fresh process, with test images from outside
the workspace. ``HARNESS_NB_DEMO_QUICK=1`` makes it a trial of a few seconds, whatever the accuracy.
"""

from __future__ import annotations

import importlib.util
import json
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness_nb.demos.cifar10_archive import TEST_BATCH, find_archive
from harness_nb.demos.demo import DATA, Act, Demo, claim_workspace
from harness_nb.errors import UsageError

GOAL = 0.815
"""Accuracy on the 10,000 test images that the check asks for; not of quick runs, nor of smaller archives."""

TEST_IMAGES = 10_000
QUICK_VARIABLE = "HARNESS_NB_DEMO_QUICK"
PRODUCTS = ("train.py", "model.pt", "results.json")

TASK = """\
Train an image classifier on CIFAR-10 from scratch.

Use PyTorch, on this machine's CPU. The data is in `data/`: \
the archive `cifar-10-python.tar.gz`, or what is in it, the folder `cifar-10-batches-py`.

Find out what the data is and show me some images. Write the training as a script, `train.py`, and train a \
convolutional network from random weights, with a plot of loss and accuracy that follows the training. {goal} \
Use the test images for nothing but the final judgement.

Then show what it predicts for test images, next to the true labels, and a confusion matrix. Keep the weights in \
`model.pt` and the numbers in `results.json`, with at least `accuracy` and `test_images`. A check of mine computes the \
accuracy again from `model.pt`: it calls `load_model(path)` of your `train.py`, which gives the network and the class \
names, and `predict(network, images)` with uint8 images of shape (N, 32, 32, 3), which gives a score \
for each class, of shape (N, 10)."""

FULL = "I want at least 81.5 % of the 10,000 test images right after less than five minutes of training on two cores."
QUICK = f"This is a quick trial ({QUICK_VARIABLE} is set): a few seconds of training are enough, whatever the accuracy."


def prepare_cifar10(workspace: Path, environment: Mapping[str, str]) -> list[str]:
    """Put the archive into ``workspace``, and the test batch for the check beside it.

    Raises:
        UsageError: if torch is missing, the archive cannot be had, or the folder is somebody else's.
    """
    if importlib.util.find_spec("torch") is None:
        raise UsageError("The demo cifar10 needs PyTorch: pip install torch")
    archive = find_archive(environment)
    test_batch = archive.test_batch()
    claim_workspace(workspace, "cifar10")
    for name in PRODUCTS:
        (workspace / name).unlink(missing_ok=True)
    shutil.rmtree(workspace / "data", ignore_errors=True)
    archive.copy_to(workspace / "data")
    quick = environment.get(QUICK_VARIABLE) == "1"
    check = check_folder(workspace)
    check.mkdir(exist_ok=True)
    (check / TEST_BATCH).write_bytes(test_batch)
    wanted = {"at_least": None if quick else GOAL, "for_images": TEST_IMAGES}
    (check / "wanted.json").write_text(json.dumps(wanted) + "\n", "utf-8")
    return [
        f"workspace {workspace}: CIFAR-10, {archive.note}",
        f"the test images and labels for the check are in {check}, outside the workspace",
        *([f"{QUICK_VARIABLE} is set: a few seconds of training, whatever the accuracy"] if quick else []),
    ]


def check_folder(workspace: Path) -> Path:
    """Where the check finds the test batch and what is wanted."""
    return workspace.with_name(f"{workspace.name}.labels")


def cifar10_acts(workspace: Path) -> tuple[Act, ...]:
    """The one session of this demo."""
    folder = check_folder(workspace)
    score = [sys.executable, str(DATA / "cifar10" / "score.py"), str(folder)]
    return (
        Act(
            title="CIFAR-10, from the archive to a trained network",
            task=TASK.format(goal=QUICK if _wanted(folder).get("at_least", GOAL) is None else FULL),
            script=DATA / "cifar10" / "script.json",
            checks=(shlex.join(score),),
            read_only=("data/*.tar.gz",),
            max_turns=20,
            expected="finished",
        ),
    )


def _wanted(folder: Path) -> dict[str, Any]:
    path = folder / "wanted.json"
    wanted: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    return wanted


CIFAR10 = Demo(
    name="cifar10",
    summary="train a convolutional network on CIFAR-10 with PyTorch, about four minutes on two cores",
    prepare=prepare_cifar10,
    acts=cifar10_acts,
)
