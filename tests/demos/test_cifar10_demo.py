"""The demo cifar10 in its quick form, on a small archive in the official layout, through a real session."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from nbformat import NotebookNode

from harness_nb import events as ev
from harness_nb.demos import DEMOS
from harness_nb.demos.cifar10_demo import check_folder
from harness_nb.errors import UsageError
from harness_nb.types import Status

CIFAR10 = DEMOS["cifar10"]


def test_without_torch_nothing_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UsageError, match="pip install torch"):
        CIFAR10.prepare(tmp_path, {"HARNESS_NB_CIFAR10": str(tmp_path)})
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def prepare(tmp_path: Path, cifar10_archive: Path) -> Callable[..., tuple[Path, list[str]]]:
    pytest.importorskip("torch", reason="the demo cifar10 needs PyTorch")
    workspace = tmp_path / "cifar10"
    workspace.mkdir()

    def run(named: Path = cifar10_archive, **environment: str) -> tuple[Path, list[str]]:
        return workspace, CIFAR10.prepare(workspace, {"HARNESS_NB_CIFAR10": str(named), **environment})

    return run


def test_the_notes_say_that_the_archive_is_another_one(prepare: Callable[..., tuple[Path, list[str]]]) -> None:
    workspace, notes = prepare()
    assert any("NOT the official archive" in note for note in notes)
    assert (workspace / "data" / "cifar-10-python.tar.gz").is_file()
    assert "at least 81.5 %" in CIFAR10.acts(workspace)[0].task
    assert json.loads((check_folder(workspace) / "wanted.json").read_text())["at_least"] == 0.815


def test_an_unpacked_folder_will_do(prepare: Callable[..., tuple[Path, list[str]]], cifar10_archive: Path) -> None:
    workspace, notes = prepare(cifar10_archive.parent / "cifar-10-batches-py")
    assert any("not checked against the official archive" in note for note in notes)
    assert (workspace / "data" / "cifar-10-batches-py" / "data_batch_5").is_file()


def test_preparing_again_forgets_what_an_earlier_run_left(
    prepare: Callable[..., tuple[Path, list[str]]], cifar10_archive: Path
) -> None:
    workspace, _ = prepare()
    (workspace / "results.json").write_text("{}")
    prepare(cifar10_archive.parent / "cifar-10-batches-py")
    assert not (workspace / "results.json").exists()
    assert not (workspace / "data" / "cifar-10-python.tar.gz").exists()


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_the_whole_job(
    prepare: Callable[..., tuple[Path, list[str]]],
    play,
    plots,
    run_again: Callable[[Path], NotebookNode],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HARNESS_NB_DEMO_QUICK", "1")
    workspace, _ = prepare(HARNESS_NB_DEMO_QUICK="1")
    (act,) = CIFAR10.acts(workspace)
    assert "quick trial" in act.task
    played = await play(act, workspace)

    assert played.events[-1].reason == act.expected == "finished"
    assert played.results(Status.ERROR) == []
    results = json.loads((workspace / "results.json").read_text())
    assert (results["train_images"], results["test_images"]) == (500, 100)
    check = played.of(ev.CheckFinished)[-1]
    assert check.passed
    assert f"accuracy {results['accuracy']:.4f} on 100 test images, computed anew" in check.output

    notebook = played.notebook
    assert plots(notebook) == 4  # the live plot is one output, however often it was drawn
    (training,) = [cell for cell in notebook.cells if "def draw(history)" in cell.source]
    redrawn = [event for event in played.of(ev.CellOutput) if event.op == "set"]
    assert redrawn and sum(output.output_type == "display_data" for output in training.outputs) == 1
    assert played.cells("code", "%%writefile train.py")

    (workspace / "model.pt").unlink()
    assert plots(run_again(played.path)) == 4
    assert (workspace / "model.pt").is_file()
