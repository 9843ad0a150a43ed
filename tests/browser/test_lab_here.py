"""The session's cells as real cells below a cell of the open notebook, in JupyterLab."""

from __future__ import annotations

from typing import Any

import nbformat
import pytest
from lab_server import IN_FRONT, Lab
from playwright.sync_api import Page

pytestmark = pytest.mark.browser

PLOT = "import matplotlib.pyplot as plt\nprint('a line', flush=True)\nplt.plot([3, 2, 1])\nplt.show()\n40 + 2"
FIRST = [
    {"text": "I look.", "calls": [{"name": "python", "arguments": {"code": PLOT}}]},
    {"calls": [{"name": "python", "arguments": {"code": "1 / 0"}}]},
    {"text": "Done: it **falls**."},
]
LOAD, AGENT, HERE = "%load_ext harness_nb", "%%agent --model scripted:here.json\nDraw", "%agent export --here"
PAUSE = f"import pathlib, time\nwhile not pathlib.Path('go').exists(): time.sleep(0.1)\n{HERE}"
CHANGED = """from harness_nb.ui import desk, here
def put_below(engine, kernel, cells, *where):
    cells[4]["source"] += "  # anew"
    return here.put_below(engine, kernel, cells[:-1], *where)
desk.put_below = put_below"""
SOON = "here.FIND_TIMEOUT = 1"
WITHOUT = """() => {
    const kernel = jupyterapp.shell.currentWidget.sessionContext.session.kernel;
    delete kernel._targetRegistry["harness_nb.cells"];
}"""


def placed(notebook: Any) -> list[Any]:
    """The cells that the kernel has put there."""
    return [cell for cell in notebook.cells if "harness_nb" in cell.metadata]


def test_cells_of_the_session_go_into_the_notebook_that_asks_and_only_there(lab: Lab, page: Page) -> None:
    lab.write("here", FIRST, LOAD, AGENT, PAUSE, CHANGED, HERE, SOON)
    lab.write("front", [], "'in front'")
    notebook = lab.open(page, "here")
    for source in (LOAD, AGENT, PAUSE):
        notebook.run(source)
    notebook.wait_for("✓ finished")
    front = lab.open(page, "front", to_run=False)
    before = nbformat.read(lab.root / "front.ipynb", 4)
    (lab.root / "go").touch()
    page.wait_for_selector(".lm-TabBar-tab.jp-mod-dirty[title*='here.ipynb']")
    assert page.locator(".lm-TabBar-tab.lm-mod-current[title*='front.ipynb']").count() == 1
    assert [cell.source for cell in front.save().cells] == [cell.source for cell in before.cells]

    notebook = lab.open(page, "here")
    notebook.wait_for("✓ 8 cells put below the %%agent cell. Also in harness_sessions/")
    page.wait_for_selector(f"{IN_FRONT} .jp-MarkdownOutput h1:text-is('Draw')")
    page.wait_for_selector(f"{IN_FRONT} .jp-CodeCell:has-text('plt.show()') >> nth=-1 >> .jp-OutputArea-output img")
    saved = notebook.save()
    ours = placed(saved)
    assert saved.cells[2:-4] == ours
    session = nbformat.read(lab.root / "harness_sessions" / f"{ours[0].metadata.harness_nb.placed.session}.ipynb", 4)
    assert [cell.metadata.harness_nb.placed.cell for cell in ours] == [cell.id for cell in session.cells]
    for part in ("cell_type", "outputs", "execution_count"):
        assert [cell.get(part) for cell in ours] == [cell.get(part) for cell in session.cells]
    assert [cell.metadata.get("tags") for cell in ours] == [cell.metadata.get("tags") for cell in session.cells]
    assert ours[1].source == '%load_ext harness_nb.tools\nworkspace(".")'
    assert [cell.source for cell in ours[2:]] == [cell.source for cell in session.cells[2:]]

    notebook.reload()
    page.wait_for_selector(f"{IN_FRONT} .jp-MarkdownOutput h1:text-is('Draw')")
    assert page.locator("[title^='Notebook trusted']").count() == 1
    notebook.run(HERE)
    notebook.wait_for("✓ 8 cells as before.")
    page.click(f"{IN_FRONT} .cm-line:has-text('1 / 0')")
    page.keyboard.press("End")
    page.keyboard.type("  # mine")
    notebook.run(CHANGED)
    notebook.run(HERE)
    notebook.wait_for(
        "✓ 1 cell replaced, 5 cells as before, 1 cell removed. 1 cell that you have edited since was left as it is."
    )
    after = placed(notebook.save())
    assert [cell.id for cell in after] == [cell.id for cell in ours[:-1]]
    assert after[4].source == f"{ours[4].source}  # anew"
    assert after[4].outputs == ours[4].outputs
    assert after[5].source == "1 / 0  # mine"
    assert [after[place] for place in (0, 1, 2, 3, 6)] == [ours[place] for place in (0, 1, 2, 3, 6)]

    page.evaluate(WITHOUT)
    notebook.run(SOON)
    notebook.run(HERE)
    notebook.wait_for("○ No cells were put into this notebook: the front-end does not answer. JupyterLab 4.4 and")
    assert placed(notebook.save()) == after
