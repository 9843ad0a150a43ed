"""A progress bar of tool code in JupyterLab: seen while it runs, and in the saved notebook without any kernel."""

from __future__ import annotations

import nbformat
import pytest
from lab_server import Lab, Notebook
from playwright.sync_api import Page

pytestmark = pytest.mark.browser

CODE = """from tqdm.notebook import tqdm
import ipywidgets as widgets, time
slider = widgets.IntSlider(description='step', max=60)
display(slider)
for step in tqdm(range(60), desc='epoch'):
    slider.value = step + 1
    time.sleep(0.05)
"""
BAR = ".jp-OutputArea-output div[style*='monospace'] > span > span"


def bar_width(page: Page) -> float:
    """Of the bar, from 0 to 1, as it is on the page."""
    drawn = "bar => bar.getBoundingClientRect().width / bar.parentElement.getBoundingClientRect().width"
    return float(page.locator(BAR).evaluate(drawn))


def check_last_state(notebook: Notebook) -> None:
    notebook.wait_for("step: 60 (0 … 60)", without="Error displaying widget")
    notebook.wait_for("60/60 [", without="model not found")
    assert bar_width(notebook.page) == 1


def test_a_bar_moves_and_its_last_state_stays_without_a_kernel(lab: Lab, page: Page) -> None:
    script = [{"text": "I train.", "calls": [{"name": "python", "arguments": {"code": CODE}}]}, {"text": "Done."}]
    lab.write("bar", script, "%load_ext harness_nb", "%%agent --model scripted:bar.json\nTrain")
    notebook = lab.open(page, "bar")
    notebook.run_all()
    page.wait_for_selector(BAR)
    seen = set()
    while "✓ finished" not in page.locator(".jp-OutputArea").last.inner_text():
        seen.add(round(bar_width(page), 1))
        page.wait_for_timeout(100)
    assert len(seen) > 3
    check_last_state(notebook)

    saved = notebook.save()
    assert not any("widget" in kind for output in saved.cells[1].outputs for kind in output.get("data", {}))
    lab.clear(page)
    notebook = lab.open(page, "bar", to_run=False)
    notebook.wait_for("✓ finished")
    check_last_state(notebook)
    saved.cells[1].outputs.append(nbformat.v4.new_output("display_data", {"text/plain": "not signed"}))
    nbformat.write(saved, lab.root / "untrusted.ipynb")
    lab.clear(page)
    notebook = lab.open(page, "untrusted", to_run=False)
    notebook.wait_for("not signed")
    check_last_state(notebook)
