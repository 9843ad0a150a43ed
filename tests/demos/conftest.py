"""Plays acts of demos through a real session and gives back what came of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import nbformat
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
