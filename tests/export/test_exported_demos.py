"""The demo sessions, exported clean and run in a plain kernel in which harness_nb cannot be imported."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode

from harness_nb import events as ev
from harness_nb.approval import DenyApprover
from harness_nb.demos import DEMOS, Act
from harness_nb.export import CleanExport, clean_notebook, export_session
from harness_nb.export.source import call_arguments
from harness_nb.export.writing import WorkspaceNow
from harness_nb.files import FileStore
from harness_nb.session import Session
from harness_nb.settings import Settings


async def play(act: Act, workspace: Path) -> tuple[list[ev.Event], str]:
    overrides = {"model": f"scripted:{act.script}", "check": act.checks, "read_only": act.read_only, "new": True}
    session = await Session.open(Settings.load(workspace, overrides), DenyApprover("nobody is here"))
    try:
        events = [item async for item in session.send(act.task) if isinstance(item, ev.EventBase)]
    finally:
        await session.aclose()
    return events, session.id


def with_edits(events: list[ev.Event], before: dict[str, bytes], blobs: dict[str, bytes]) -> list[ev.Event]:
    """The events with ``files_changed`` after each edit, where the session did not record them itself."""
    if any(isinstance(event, ev.FilesChanged) for event in events):
        return events
    sources = {event.call_id: event.source for event in events if isinstance(event, ev.CellStarted)}
    told: list[ev.Event] = []
    for event in events:
        told.append(event)
        edit = isinstance(event, ev.CellFinished) and event.name == "search_replace" and event.status == "ok"
        if isinstance(event, ev.CellFinished) and edit:
            path, search, new = map(str, call_arguments(sources[event.call_id]))
            old, before[path] = before[path], before[path].replace(search.encode(), new.encode(), 1)
            digests = [hashlib.sha256(data).hexdigest() for data in (old, before[path])]
            blobs |= dict(zip(digests, (old, before[path]), strict=True))
            change = ev.FileChange(path=path, before=digests[0], after=digests[1], size=len(before[path]))
            told.append(ev.FilesChanged(call_id=event.call_id, name=event.name, changes=(change,)))
    return told


def block_harness(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    """Have every import of harness_nb fail in processes that start from now on."""
    block = tmp_path / "block"
    block.mkdir()
    (block / "harness_nb.py").write_text("raise ImportError('harness_nb is not for exports')\n")
    patch.setenv("PYTHONPATH", str(block))
    patch.setenv("PYTHONDONTWRITEBYTECODE", "1")


def run_without_harness(export: CleanExport, folder: Path, tmp_path: Path, patch: pytest.MonkeyPatch) -> NotebookNode:
    """The notebook after it ran in ``folder``; importing harness_nb fails there."""
    block_harness(tmp_path, patch)
    notebook = nbformat.from_dict(export.notebook)
    nbformat.validate(notebook)
    notebook.cells.append(
        nbformat.v4.new_code_cell("try:\n    import harness_nb\nexcept ImportError as e:\n    print(e)")
    )
    resources = {"metadata": {"path": str(folder)}}
    ran = NotebookClient(notebook, timeout=300, kernel_name="python3", resources=resources).execute()
    assert "not for exports" in ran.cells.pop().outputs[0].text
    return ran


def texts(notebook: NotebookNode | dict) -> list[list[str]]:
    """The texts and kinds of outputs of every code cell but those that write files."""
    cells = [c for c in notebook["cells"] if c["cell_type"] == "code" and not c["source"].startswith("%%writefile")]
    return [
        [output.get("text") or str(sorted(output.get("data", {}).items()))[:2000] for output in cell["outputs"]]
        for cell in cells
    ]


@pytest.mark.timeout(300)
async def test_the_digits_export_gives_the_same_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sklearn")
    workspace = tmp_path / "digits"
    workspace.mkdir()
    DEMOS["digits"].prepare(workspace, {})
    events, session_id = await play(DEMOS["digits"].acts(workspace)[0], workspace)
    export = clean_notebook(events, disk=WorkspaceNow(workspace))
    assert export.complete
    assert "did not end well: [7]" in export.notes[0]

    fresh = tmp_path / "fresh"
    fresh.mkdir()
    for name in ("train.npz", "test_images.npz"):
        shutil.copy(workspace / name, fresh / name)
    nbformat.write(nbformat.from_dict(export.notebook), fresh / "export.ipynb")
    block_harness(tmp_path, monkeypatch)
    nbval = [sys.executable, "-m", "pytest", "-q", "--nbval", "-p", "no:cacheprovider", "export.ipynb"]
    done = await asyncio.to_thread(subprocess.run, nbval, cwd=fresh, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]
    for name in ("predictions.csv", "results.json"):
        assert (fresh / name).read_bytes() == (workspace / name).read_bytes()
    assert export_session(workspace, session_id, clean=True).path == workspace / "recognise-handwritten-digits.ipynb"


async def test_the_checkout_export_shows_the_fault_and_its_repair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = tmp_path / "checkout"
    workspace.mkdir()
    DEMOS["checkout"].prepare(workspace, {})
    before = {"checkout/pricing.py": (workspace / "checkout/pricing.py").read_bytes()}
    blobs: dict[str, bytes] = {}
    played, session_id = await play(DEMOS["checkout"].acts(workspace)[0], workspace)
    events = with_edits(played, before, blobs)
    kept = FileStore(workspace / "harness_sessions" / session_id, workspace)

    def blob(digest: str) -> bytes | None:
        return blobs.get(digest) or kept.blob(digest)

    result = export_session(workspace, session_id, clean=True, blob=blob, events=events)
    export = clean_notebook(events, blob, WorkspaceNow(workspace))
    assert result.complete and export.complete, export.notes

    fresh = tmp_path / "fresh"
    shutil.copytree(workspace, fresh, ignore=shutil.ignore_patterns("__pycache__", "harness_sessions"))
    ran = run_without_harness(export, fresh, tmp_path, monkeypatch)
    receipts = [cell.outputs[0].data["text/markdown"] for cell in ran.cells if "show_receipt(order)" in cell.source]
    assert ["**53.50**" in receipts[0], "**54.00**" in receipts[1]] == [True, True]
    assert texts(ran)[:-1] == texts(export.notebook)[:-1]  # the last tells how long the tests took
    assert (fresh / "checkout/pricing.py").read_bytes() == (workspace / "checkout/pricing.py").read_bytes()
    writes = [cell.source for cell in ran.cells if cell.source.startswith("%%writefile")]
    assert len(writes) == 2 and "off(price)" in writes[0] and "off(price)" not in writes[1]
