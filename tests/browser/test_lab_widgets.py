"""A progress bar of tool code in JupyterLab: seen while it runs, and in the saved notebook without any kernel."""

from __future__ import annotations

import nbformat
import pytest
from lab_server import Lab
from playwright.sync_api import Page
from test_lab import run_all, wait_for_text

pytestmark = pytest.mark.browser

CODE = """from tqdm.notebook import tqdm
import ipywidgets as widgets, time
slider = widgets.IntSlider(description='step', max=60)
display(slider)
for step in tqdm(range(60), desc='epoch'):
    slider.value = step + 1
    time.sleep(0.1)
"""
BAR = ".jp-OutputArea-output div[style*='monospace'] > span > span"


def bar_width(page: Page) -> float:
    """Of the bar, from 0 to 1, as it is on the page."""
    drawn = "bar => bar.getBoundingClientRect().width / bar.parentElement.getBoundingClientRect().width"
    return float(page.locator(BAR).evaluate(drawn))


def check_last_state(page: Page) -> None:
    wait_for_text(page, "step: 60 (0 … 60)", without="Error displaying widget")
    wait_for_text(page, "60/60 [", without="model not found")
    assert bar_width(page) == 1


def test_a_bar_moves_and_its_last_state_stays_without_a_kernel(lab: Lab, page: Page) -> None:
    script = [{"text": "I train.", "calls": [{"name": "python", "arguments": {"code": CODE}}]}, {"text": "Done."}]
    lab.write("bar", script, "%load_ext harness_nb", "%%agent --model scripted:bar.json\nTrain")
    lab.open(page, "bar")
    run_all(page)
    page.wait_for_selector(BAR)
    seen = set()
    while "✓ finished" not in page.locator(".jp-OutputArea").last.inner_text():
        seen.add(round(bar_width(page), 1))
        page.wait_for_timeout(200)
    assert len(seen) > 3
    check_last_state(page)

    page.click(".jp-CodeCell >> nth=1")
    page.keyboard.press("Control+s")
    page.wait_for_selector(".jp-mod-current:not(.jp-mod-dirty)[title*='bar.ipynb']")
    saved = nbformat.read(lab.root / "bar.ipynb", 4)
    assert not any("widget" in kind for output in saved.cells[1].outputs for kind in output.get("data", {}))
    untrusted = lab.root / "untrusted.ipynb"
    saved.cells[1].outputs.append(nbformat.v4.new_output("display_data", {"text/plain": "not signed"}))
    nbformat.write(saved, untrusted)
    for name, words in (("bar", "✓ finished"), ("untrusted", "not signed")):
        page.goto(lab.url + f"/lab/tree/{name}.ipynb?reset")
        page.wait_for_selector(".jp-Notebook .jp-CodeCell")
        wait_for_text(page, words)
        check_last_state(page)
