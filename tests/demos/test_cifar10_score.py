"""The check of cifar10: it computes the accuracy anew, from train.py and model.pt alone."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness_nb.demos.demo import DATA

pytest.importorskip("torch", reason="the demo cifar10 needs PyTorch")

SCORER = DATA / "cifar10" / "score.py"

# A "network" that reads the class from the hue of a made-up image: model.pt holds the hues.
TRAIN = """
import torch

def load_model(path):
    return torch.load(path, weights_only=True), []

def predict(hues, images):
    colours = images.float().mean(dim=(1, 2))
    return -torch.cdist(colours, hues)
"""


@pytest.fixture
def workspace(tmp_path: Path, cifar10_archive: Path) -> Path:
    import numpy as np
    import torch

    check = tmp_path / "check"
    check.mkdir()
    (check / "test_batch").write_bytes((cifar10_archive.parent / "cifar-10-batches-py" / "test_batch").read_bytes())
    (check / "wanted.json").write_text('{"at_least": 0.815, "for_images": 100}')
    (tmp_path / "train.py").write_text(TRAIN)
    hues = np.random.default_rng(0).integers(40, 215, (10, 3))  # as the archive is made
    torch.save(torch.from_numpy(hues).float(), tmp_path / "model.pt")
    (tmp_path / "results.json").write_text('{"accuracy": 1.0, "test_images": 100}')
    return tmp_path


Score = Callable[[Path], tuple[int, str]]


@pytest.fixture
def score(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Score:
    """The scorer in this process, which saves the seconds that torch takes to load."""
    spec = importlib.util.spec_from_file_location("score", SCORER)
    assert spec and spec.loader
    scorer = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(scorer)

    def run(workspace: Path) -> tuple[int, str]:
        monkeypatch.chdir(workspace)
        return scorer.main(["check"]), capsys.readouterr().out

    return run


def test_a_true_figure_passes_in_a_fresh_process(workspace: Path) -> None:
    command = [sys.executable, str(SCORER), "check"]
    done = subprocess.run(command, cwd=workspace, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "accuracy 1.0000 on 100 test images, computed anew" in done.stdout
    assert "reached: at least 0.815" in done.stdout


def test_a_figure_that_is_not_the_model_s_is_refused(workspace: Path, score: Score) -> None:
    (workspace / "results.json").write_text('{"accuracy": 0.99, "test_images": 100}')
    code, text = score(workspace)
    assert code == 1
    assert "refused: the accuracy in results.json is not that of model.pt" in text


def test_a_network_below_the_bar_is_refused_unless_no_bar_is_set(workspace: Path, score: Score) -> None:
    (workspace / "train.py").write_text(TRAIN.replace("-torch.cdist(colours, hues)", "torch.eye(10)[[3] * 100]"))
    (workspace / "results.json").write_text('{"accuracy": 0.1, "test_images": 100}')
    code, text = score(workspace)
    assert code == 1
    assert "refused: at least 0.815 is asked for" in text
    (workspace / "check" / "wanted.json").write_text('{"at_least": null, "for_images": 10000}')
    code, text = score(workspace)
    assert code == 0
    assert "no accuracy is asked for" in text


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("results.json", None, "there is no file results.json"),
        ("results.json", "{}", "must have the numbers accuracy and test_images"),
        ("results.json", json.dumps({"accuracy": 1.0, "test_images": 50}), "speaks of 50 test images, there are 100"),
        ("train.py", None, "there is no file train.py"),
        ("train.py", TRAIN.replace("hues)", "hues[:5])"), "instead of (100, 10)"),
        ("model.pt", None, "there is no file model.pt"),
    ],
)
def test_what_is_missing_or_wrong_is_said(
    workspace: Path, score: Score, name: str, content: str | None, says: str
) -> None:
    (workspace / name).unlink()
    if content is not None:
        (workspace / name).write_text(content)
    code, text = score(workspace)
    assert code == 1
    assert "refused: " in text and says in text
