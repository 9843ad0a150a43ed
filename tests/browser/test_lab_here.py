"""The session's cells as real cells below a cell of the open notebook, in JupyterLab."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from lab_server import Lab
from playwright.sync_api import Page
from test_lab import run_all, wait_for_text

pytestmark = pytest.mark.browser

PLOT = "import matplotlib.pyplot as plt\nprint('a line', flush=True)\nplt.plot([3, 2, 1])\nplt.show()\n40 + 2"
FIRST = [
    {"text": "I look.", "calls": [{"name": "python", "arguments": {"code": PLOT}}]},
    {"calls": [{"name": "python", "arguments": {"code": "1 / 0"}}]},
    {"text": "Done: it **falls**."},
]
PREPARE = """from IPython.display import display
from pathlib import Path
import asyncio, nbformat
from harness_nb.ui import here
from harness_nb.ui.current import notebook_folder
from harness_nb.ui.engine import engine
from harness_nb.ui.here_words import placed_block
from harness_nb.ui.html import Link
anew = False
def arguments():
    session = get_ipython().magics_manager.registry['AgentMagics'].current.session
    record = nbformat.read(session.notebook_path, 4)
    cells = here.cells_for(record, session.id, session.workspace, notebook_folder())
    if anew:
        cells[4]["source"] += "  # anew"
        del cells[-1]
    return engine(), get_ipython().kernel, cells, session.id
def show(placed):
    display(dict(placed_block(placed, Link('x.ipynb')).data), raw=True)
"""
AWAITED = "show(await here.put_below(*arguments()))"
BLOCKING = "show(here.put_below_blocking(*arguments()))"


def save(page: Page, lab: Lab, name: str) -> Any:
    """The notebook as it is in the file after a save."""
    page.click(f".lm-TabBar-tab:has-text('{name}.ipynb')")
    page.click(".jp-NotebookPanel:not(.lm-mod-hidden) [data-jp-item-name='save']")
    page.wait_for_selector(f".lm-TabBar-tab:not(.jp-mod-dirty)[title*='{name}.ipynb']")
    saved = nbformat.read(lab.root / f"{name}.ipynb", 4)
    nbformat.validate(saved)
    return saved


def placed(notebook: Any) -> list[Any]:
    """The cells that the kernel has put there."""
    return [cell for cell in notebook.cells if "harness_nb" in cell.metadata]


def record(lab: Lab, notebook: Any) -> Any:
    """The session notebook that the placed cells come from."""
    session = placed(notebook)[0].metadata.harness_nb.placed.session
    return nbformat.read(lab.root / "harness_sessions" / f"{session}.ipynb", 4)


def wait_for_file(page: Page, path: Path) -> None:
    """Until the kernel has made this file."""
    for _ in range(300):
        if path.exists():
            return
        page.wait_for_timeout(100)
    pytest.fail(f"there is no {path.name}")


def run_cell(page: Page, source: str) -> None:
    """Click into the cell that holds this source, and run it."""
    page.click(f".jp-NotebookPanel:not(.lm-mod-hidden) .cm-line:has-text({source!r})")
    page.keyboard.press("Control+Enter")


def test_cells_go_below_the_asking_cell_and_into_the_file(lab: Lab, page: Page) -> None:
    lab.write("here", FIRST, "%load_ext harness_nb", "%%agent --model scripted:here.json\nDraw", PREPARE, AWAITED, "1")
    lab.open(page, "here")
    run_all(page)
    wait_for_text(page, "✓ 8 cells put below. Also in session notebook")
    page.wait_for_selector(".jp-MarkdownOutput h1:text-is('Draw')")
    page.wait_for_selector(".jp-CodeCell:has-text('plt.show()') >> nth=-1 >> .jp-OutputArea-output img")

    saved = save(page, lab, "here")
    session = record(lab, saved)
    ours = saved.cells[4:-1]
    assert ours == placed(saved)
    assert [cell.metadata.harness_nb.placed.cell for cell in ours] == [cell.id for cell in session.cells]
    assert [cell.cell_type for cell in ours] == [cell.cell_type for cell in session.cells]
    assert [cell.get("outputs") for cell in ours] == [cell.get("outputs") for cell in session.cells]
    assert [cell.get("execution_count") for cell in ours] == [cell.get("execution_count") for cell in session.cells]
    assert [cell.metadata.get("tags") for cell in ours] == [cell.metadata.get("tags") for cell in session.cells]
    assert ours[1].source == '%load_ext harness_nb.tools\nworkspace(".")'
    assert [cell.source for cell in ours[2:]] == [cell.source for cell in session.cells[2:]]

    page.reload()
    page.wait_for_selector(".jp-MarkdownOutput h1:text-is('Draw')")
    assert page.locator("[title^='Notebook trusted']").count() == 1


def test_a_second_call_replaces_and_leaves_what_a_person_has_edited(lab: Lab, page: Page) -> None:
    agent = "%%agent --model scripted:again.json\nDraw"
    turn = "anew = not anew"
    lab.write("again", FIRST, "%load_ext harness_nb", agent, PREPARE, BLOCKING, turn)
    page.set_viewport_size({"width": 1200, "height": 4000})  # cells out of sight are not in the page
    lab.open(page, "again")
    run_all(page)
    wait_for_text(page, "✓ 8 cells put below.")
    before = placed(save(page, lab, "again"))
    page.reload()
    run_cell(page, turn)
    run_cell(page, BLOCKING)
    wait_for_text(page, "✓ 8 cells as before.")

    page.click(".cm-line:has-text('1 / 0')")
    page.keyboard.press("End")
    page.keyboard.type("  # mine")
    run_cell(page, turn)
    run_cell(page, BLOCKING)
    words = "✓ 1 cell replaced, 5 cells as before, 1 cell removed. 1 cell that you have edited since was left as it is."
    wait_for_text(page, words)
    after = placed(save(page, lab, "again"))
    assert [cell.id for cell in after] == [cell.id for cell in before[:-1]]
    assert after[4].source == f"{before[4].source}  # anew"
    assert after[4].outputs == before[4].outputs
    assert after[5].source == "1 / 0  # mine"
    assert [after[place] for place in (0, 1, 2, 3, 6)] == [before[place] for place in (0, 1, 2, 3, 6)]


def test_another_notebook_in_front_stays_as_it_is(lab: Lab, page: Page) -> None:
    lab.write("front", [], "'in front'")
    before = nbformat.read(lab.root / "front.ipynb", 4)
    pause = f"while not Path('go').exists(): await asyncio.sleep(0.1)\n{AWAITED}\nPath('put').touch()"
    lab.write("back", FIRST, "%load_ext harness_nb", "%%agent --model scripted:back.json\nDraw", PREPARE, pause)
    lab.open(page, "back")
    run_all(page)
    wait_for_text(page, "✓ finished")
    page.dblclick(".jp-DirListing-item:has-text('front.ipynb')")
    page.wait_for_selector(".jp-NotebookPanel:not(.lm-mod-hidden) .cm-line:text-is(\"'in front'\")")
    (lab.root / "go").touch()
    wait_for_file(page, lab.root / "put")
    assert page.locator(".lm-TabBar-tab.lm-mod-current[title*='front.ipynb']").count() == 1
    assert len(placed(save(page, lab, "back"))) == 8
    front = save(page, lab, "front")
    assert [cell.source for cell in front.cells] == [cell.source for cell in before.cells]


def test_a_page_without_the_extension_says_so(lab: Lab, page: Page) -> None:
    page.route("**/harness-nb/static/remoteEntry.js*", lambda route: route.abort())
    lab.write("bare", FIRST, "%load_ext harness_nb", "%%agent --model scripted:bare.json\nDraw", PREPARE, AWAITED)
    lab.open(page, "bare")
    run_all(page)
    wait_for_text(
        page, "this page has no extension for it. JupyterLab 4 and Notebook 7 can, if harness_nb is installed"
    )
    assert placed(save(page, lab, "bare")) == []
