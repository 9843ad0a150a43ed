"""The demo ``digits``: handwritten digits from scikit-learn's own files, without a network and without torch.

The labels of the test images lie outside the workspace, in ``<workspace>.labels/``; only the check reads them.
"""

from __future__ import annotations

import csv
import importlib.util
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from harness_nb.demos.demo import DATA, Act, Demo, claim_workspace
from harness_nb.errors import UsageError

TEST_IMAGES = 500
SEED = 7
"""Of the shuffle that parts training from test images."""

GOAL = 0.97
"""Accuracy that the check asks for."""

PRODUCTS = ("predictions.csv", "results.json", "model.joblib")

TASK = """\
Recognise handwritten digits.

The files hold scans of 8x8 pixels: `train.npz` has `images` and `labels`, `test_images.npz` has `images` alone. \
Train a classifier with scikit-learn and predict the test images. Write `predictions.csv` with the columns `id` and \
`label`, one row per test image; `id` is its position in the file, counted from 0. At least 97 % must be right: a \
check compares with labels that I keep elsewhere.

Show me what the images look like, compare a few models before you choose, and show where the chosen one goes \
wrong on images that it was not trained on: a grid of them with predicted and true labels, and a confusion matrix. \
Keep the numbers in `results.json`."""


def prepare_digits(workspace: Path, environment: Mapping[str, str]) -> list[str]:
    """Write training data and test images into ``workspace`` and the test labels beside it.

    Raises:
        UsageError: if scikit-learn is missing, or the folder is somebody else's.
    """
    if importlib.util.find_spec("sklearn") is None:
        raise UsageError('The demo digits needs scikit-learn: pip install "harness-nb[demo]"')
    import numpy as np
    from sklearn.datasets import load_digits  # type: ignore[import-untyped]

    claim_workspace(workspace, "digits")
    for name in PRODUCTS:
        (workspace / name).unlink(missing_ok=True)
    digits = load_digits()
    images = digits.images.astype(np.uint8)
    order = np.random.default_rng(SEED).permutation(len(images))
    test, train = order[:TEST_IMAGES], order[TEST_IMAGES:]
    np.savez_compressed(workspace / "train.npz", images=images[train], labels=digits.target[train])
    np.savez_compressed(workspace / "test_images.npz", images=images[test])
    labels = labels_file(workspace)
    labels.parent.mkdir(exist_ok=True)
    with labels.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "label"])
        writer.writerows(enumerate(digits.target[test].tolist()))
    return [
        f"workspace {workspace}: {len(train):,} labelled images in train.npz, {len(test)} without labels in "
        "test_images.npz (scikit-learn's digits, from the UCI machine learning repository)",
        f"the {len(test)} labels for the check are in {labels}, outside the workspace",
    ]


def labels_file(workspace: Path) -> Path:
    """Where the labels of the test images are kept for the check."""
    return workspace.with_name(f"{workspace.name}.labels") / "test_labels.csv"


def digits_acts(workspace: Path) -> tuple[Act, ...]:
    """The one session of this demo."""
    score = [sys.executable, str(DATA / "digits" / "score.py"), str(labels_file(workspace))]
    return (
        Act(
            title="Handwritten digits, from the files to a checked predictions.csv",
            task=TASK,
            script=DATA / "digits" / "script.json",
            checks=(shlex.join([*score, "predictions.csv", "--at-least", str(GOAL)]),),
            read_only=("train.npz", "test_images.npz"),
            max_turns=20,
            expected="finished",
        ),
    )


DIGITS = Demo(
    name="digits",
    summary="classify scikit-learn's handwritten digits; no network, no torch, some twenty seconds",
    prepare=prepare_digits,
    acts=digits_acts,
)
