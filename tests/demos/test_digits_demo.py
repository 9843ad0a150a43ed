"""The demo digits, played through a real session, checked by its scorer, and run again without a model."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from nbformat import NotebookNode

from harness_nb import events as ev
from harness_nb.demos import DEMOS
from harness_nb.demos.digits_demo import TEST_IMAGES, labels_file
from harness_nb.errors import UsageError
from harness_nb.types import Status

DIGITS = DEMOS["digits"]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "digits"
    folder.mkdir()
    DIGITS.prepare(folder, {})
    return folder


def test_the_workspace_has_no_test_labels(workspace: Path) -> None:
    assert sorted(np.load(workspace / "train.npz")) == ["images", "labels"]
    assert sorted(np.load(workspace / "test_images.npz")) == ["images"]
    assert workspace not in labels_file(workspace).parents
    with labels_file(workspace).open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["id"]) for row in rows] == list(range(TEST_IMAGES))
    assert len(np.load(workspace / "test_images.npz")["images"]) == TEST_IMAGES


def test_preparing_again_forgets_what_an_earlier_run_left(workspace: Path) -> None:
    (workspace / "predictions.csv").write_text("id,label\n0,0\n")
    before = (workspace / "test_images.npz").read_bytes()
    DIGITS.prepare(workspace, {})
    assert not (workspace / "predictions.csv").exists()
    assert np.array_equal(np.load(workspace / "test_images.npz")["images"].shape, (TEST_IMAGES, 8, 8))
    assert len(before) == (workspace / "test_images.npz").stat().st_size


def test_without_scikit_learn_nothing_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"pip install \"harness-nb\[demo\]\""):
        DIGITS.prepare(tmp_path, {})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_the_whole_job(workspace: Path, play, plots, run_again: Callable[[Path], NotebookNode]) -> None:
    (act,) = DIGITS.acts(workspace)
    played = await play(act, workspace)

    assert played.events[-1].reason == act.expected == "finished"
    check = played.of(ev.CheckFinished)[-1]
    assert check.passed and "reached: at least 0.97" in check.output
    assert [name for name, _ in played.results(Status.ERROR)] == ["python"]
    assert "cannot reshape" in played.results(Status.ERROR)[0][1]
    results = json.loads((workspace / "results.json").read_text())
    assert results["model"] == "support vector machine"  # the words of the script say so
    assert results["held_out_accuracy"] >= 0.97

    notebook = played.notebook
    assert plots(notebook) == 6
    (failed,) = [cell for cell in notebook.cells if "raises-exception" in cell.metadata.get("tags", [])]
    assert "28 * 28" in failed.source
    assert played.cells("markdown", "score.py") and played.cells("markdown", "A support vector machine on the 64")

    predictions = (workspace / "predictions.csv").read_bytes()
    (workspace / "predictions.csv").unlink()
    again = run_again(played.path)
    assert (workspace / "predictions.csv").read_bytes() == predictions
    assert plots(again) == 6
