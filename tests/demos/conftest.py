"""Plays acts of demos through a real session and gives back what came of them; makes small data sets."""

from __future__ import annotations

import pickle
import tarfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode

from harness_nb import events as ev
from harness_nb.approval import DenyApprover
from harness_nb.demos import Act
from harness_nb.session import Session
from harness_nb.settings import Settings
from harness_nb.types import Status


@dataclass(frozen=True)
class Played:
    events: tuple[ev.Event, ...]
    path: Path

    @property
    def notebook(self) -> NotebookNode:
        notebook = nbformat.read(self.path, as_version=nbformat.NO_CONVERT)
        nbformat.validate(notebook)
        return notebook

    def of(self, kind: type) -> list:
        return [event for event in self.events if isinstance(event, kind)]

    def cells(self, cell_type: str, text: str) -> list[NotebookNode]:
        return [cell for cell in self.notebook.cells if cell.cell_type == cell_type and text in cell.source]

    def results(self, status: Status) -> list[tuple[str, str]]:
        """Tool name and text for the model of every call that ended like this."""
        return [
            (event.name, "".join(getattr(part, "text", "") for part in event.content))
            for event in self.of(ev.ResultAdded)
            if event.status is status
        ]


Play = Callable[[Act, Path], Awaitable[Played]]


@pytest.fixture
def play() -> Play:
    async def play_act(act: Act, workspace: Path) -> Played:
        overrides = {
            "model": f"scripted:{act.script}",
            "check": act.checks,
            "read_only": act.read_only,
            "max_turns": act.max_turns,
            "new": True,
        }
        session = await Session.open(Settings.load(workspace, overrides), DenyApprover("nobody is here"))
        try:
            events = tuple([item async for item in session.send(act.task) if isinstance(item, ev.EventBase)])
        finally:
            await session.aclose()
        return Played(events, session.notebook_path)

    return play_act


@pytest.fixture
def run_again() -> Callable[[Path], NotebookNode]:
    """Runs a session notebook in a plain python3 kernel, as a person would with Run All; no model is involved."""

    def run(path: Path) -> NotebookNode:
        notebook = nbformat.read(path, as_version=4)
        resources = {"metadata": {"path": str(path.parent)}}
        return NotebookClient(notebook, timeout=600, kernel_name="python3", resources=resources).execute()

    return run


@pytest.fixture
def plots() -> Callable[[NotebookNode], int]:
    def count(notebook: NotebookNode) -> int:
        outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
        return sum("image/png" in output.get("data", {}) for output in outputs)

    return count


def write_cifar10(folder: Path, train: int, test: int) -> Path:
    """An archive in the official layout of made-up images, one hue for each class; the path of the .tar.gz."""
    rng = np.random.default_rng(0)
    hues = rng.integers(40, 215, (10, 3, 1))
    batches = folder / "cifar-10-batches-py"
    batches.mkdir(parents=True)
    sizes = {f"data_batch_{n}": train // 5 for n in range(1, 6)} | {"test_batch": test}
    for name, count in sizes.items():
        labels = np.arange(count) % 10
        pixels = hues[labels] + rng.integers(-40, 40, (count, 3, 1024))
        names = [f"{n}.png".encode() for n in range(count)]
        batch = {b"batch_label": name.encode(), b"labels": labels.tolist(), b"filenames": names}
        (batches / name).write_bytes(pickle.dumps({**batch, b"data": pixels.reshape(count, 3072).astype(np.uint8)}))
    classes = [b"airplane", b"automobile", b"bird", b"cat", b"deer", b"dog", b"frog", b"horse", b"ship", b"truck"]
    (batches / "batches.meta").write_bytes(pickle.dumps({b"label_names": classes, b"num_vis": 3072}))
    archive = folder / "cifar-10-python.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(batches, "cifar-10-batches-py")
    return archive


@pytest.fixture(scope="session")
def cifar10_archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of 500 training and 100 test images; the unpacked folder is beside it."""
    return write_cifar10(tmp_path_factory.mktemp("cifar10"), 500, 100)
