"""The session notebook is open in JupyterLab, and a person works in it while the session goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat
import pytest
from lab_server import IN_FRONT, Lab
from playwright.sync_api import Page
from work_at_file import Work

from harness_nb.notebook.parts import parts_of

pytestmark = pytest.mark.browser

GOLDEN = Path(__file__).parent.parent / "notebook" / "golden.ipynb"
SAVE = """async () => {
    window.saved = false;
    window.refused = "";
    const context = jupyterapp.shell.currentWidget.context;
    await context.ready;
    jupyterapp.commands.execute("docmanager:save").then(
        () => (window.saved = true),
        (reason) => (window.refused = String(reason)),
    );
}"""
DIALOG = "(document.querySelector('.jp-Dialog')?.textContent ?? '')"
SAVES = 5


def cells_of(path: Path) -> list[dict[str, Any]]:
    notebook = json.loads(path.read_bytes())
    nbformat.validate(notebook)
    return list(notebook["cells"])


def save(page: Page) -> bool:
    """Save as a person does, and overwrite where JupyterLab asks; whether it did.

    A dialog about something else (a page that is still loading cannot save) is closed, and the person tries again.
    """
    for _ in range(SAVES):
        page.evaluate(SAVE)
        page.wait_for_function(f"window.saved || window.refused || {DIALOG}")
        shown = page.evaluate(DIALOG)
        if "Overwrite" in shown:
            page.click(".jp-Dialog button:has-text('Overwrite')")
            page.wait_for_function("window.saved")
            return True
        if page.evaluate("window.saved") and not shown:
            return False
        if shown:
            page.keyboard.press("Escape")
            page.wait_for_function(f"!({DIALOG})")
    raise AssertionError(f"JupyterLab does not save: {shown or page.evaluate('window.refused')}")


def write_in_cell(page: Page, number: int, text: str) -> None:
    """Put text at the end of a code cell."""
    page.click(f"{IN_FRONT} .jp-CodeCell >> nth={number} >> .cm-content")
    page.keyboard.press("Control+End")
    page.keyboard.type(text)
    page.keyboard.press("Escape")


def test_what_a_person_writes_and_what_the_session_adds_are_both_in_the_file(lab: Lab, page: Page) -> None:
    folder = lab.root / "open" / "harness_sessions"
    folder.mkdir(parents=True)
    work = Work(folder / "s1.ipynb")
    work.begin()
    for number in (1, 2):
        work.step(number)
    lab.open(page, "open/harness_sessions/s1", to_run=False)
    write_in_cell(page, 0, "  # looks right")
    work.step(3)
    assert save(page), "JupyterLab asks, for the file has changed since it was opened"
    work.step(4)
    theirs, *_ = [cell for cell in cells_of(work.path) if "looks right" in cell["source"]]
    assert theirs["id"] == "step-0002-python"

    page.keyboard.press("b")
    page.keyboard.press("Enter")
    page.keyboard.type("a_person = 'was here'")
    page.keyboard.press("Escape")
    work.step(5)
    save(page)  # JupyterLab does not ask if the file changed less than half a second after its own save
    work.step(6)

    cells = cells_of(work.path)
    own = [cell["id"] for cell in work.fold.notebook()["cells"]]
    assert [cell["id"] for cell in cells if cell["id"] in own] == own
    added = [at for at, cell in enumerate(cells) if cell["id"] not in own]
    assert ["".join(cells[at]["source"]) for at in added] == ["a_person = 'was here'"]
    assert cells[added[0] - 1]["id"] == theirs["id"]
    assert cells[added[0] - 1]["source"] == "print(1)  # looks right"
    outputs = [cell["outputs"][0]["text"] for cell in cells if cell["id"] in own and cell["cell_type"] == "code"]
    assert outputs == [f"{number}\n" for number in range(1, 7)]
    assert work.file.warnings() == []
    assert [path.name for path in folder.iterdir() if path.suffix == ".ipynb"] == ["s1.ipynb"]


def test_merely_saving_in_jupyterlab_is_no_edit(lab: Lab, page: Page) -> None:
    path = lab.root / "golden.ipynb"
    before = json.loads(GOLDEN.read_bytes())
    path.write_text(json.dumps(before))
    lab.open(page, "golden", to_run=False)
    written = path.stat().st_mtime_ns
    assert not save(page)
    saved = cells_of(path)
    assert path.stat().st_mtime_ns != written
    assert [cell["id"] for cell in saved] == [cell["id"] for cell in before["cells"]]
    assert [parts_of(cell) for cell in saved] == [parts_of(cell) for cell in before["cells"]]
