"""In JupyterLab: work is stopped, resumed, rewound, exported, verified, and played again by Restart & Run All."""

from __future__ import annotations

import nbformat
import pytest
from lab_server import Lab
from playwright.sync_api import Page

pytestmark = pytest.mark.browser

SLEEP = "import time\nprint('asleep', flush=True)\ntime.sleep(300)"
WORK = [
    {"calls": [{"name": "python", "arguments": {"code": "x = 41"}}]},
    {"calls": [{"name": "write_file", "arguments": {"path": "kept.txt", "content": "one\n"}}]},
    {"calls": [{"name": "python", "arguments": {"code": SLEEP}}]},
    {"text": "Another way.", "calls": [{"name": "python", "arguments": {"code": "print('then', x + 1)"}}]},
    {"text": "It is **done**."},
]


def test_work_is_stopped_resumed_verified_replayed_and_rewound(lab: Lab, page: Page) -> None:
    task, export = "%%agent --model scripted:work.json\nCount", "%agent export clean.ipynb --clean --verify"
    lab.write("work", WORK, "%load_ext harness_nb", task, "%agent resume", export, "%agent rewind 1", "40 + 2")
    notebook = lab.open(page, "work")
    notebook.run("%load_ext harness_nb")
    notebook.run(task)
    notebook.wait_for("asleep")
    notebook.interrupt()
    notebook.wait_for("■ interrupted · ")
    notebook.wait_for("KeyboardInterrupt: the work was stopped, and is saved; %agent resume", without="Traceback")
    notebook.run("%agent resume")
    notebook.wait_for("✓ finished · ", without="● running")
    notebook.wait_for("then 42")
    notebook.run(export)
    notebook.wait_for("✓ Exported; reproduced: 3 of 4 code cells compared", without="● Verifying")
    assert "harness_nb" in nbformat.read(lab.root / "clean.ipynb", 4).metadata

    notebook.restart_and_run_all()
    notebook.wait_for("4 calls (1 that was stopped then not run), all as recorded; no model was called")
    notebook.wait_for("○ There is nothing to resume: ")
    page.wait_for_selector(".jp-Stdin-prompt >> text=Change these files? [y/N]")
    notebook.wait_for("Deleted, for they were not there then: kept.txt.")
    page.fill(".jp-Stdin-input", "y")
    page.keyboard.press("Enter")
    notebook.wait_for("⟲ Back at step 1 of ")
    notebook.wait_for("42")
    assert not (lab.root / "kept.txt").exists()
    words = ("Back to step 1", "Change these files? [y/N]", "Back at step 1")
    shown = notebook.outputs()
    places = [next(n for n, text in enumerate(shown) if part in text) for part in words]
    assert places == sorted(places), "the plan, the question with its answer, what was done"
