"""What a person sees in JupyterLab: streamed text, calls, the plot, the last line; after a reload, and after a stop."""

from __future__ import annotations

import nbformat
import pytest
from lab_server import Lab
from playwright.sync_api import Page

pytestmark = pytest.mark.browser

WORDS = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
PLOT = "import matplotlib.pyplot as plt\nplt.plot([3, 2, 1])\nplt.title('loss')\nplt.show()"
HARM = "<img src=x onerror='window.harm = 1'>"
SLEEP = "import time\nprint('asleep', flush=True)\ntime.sleep(300)"

OUTPUT = "[...document.querySelectorAll('.jp-OutputArea-output')].map(e => e.innerText).join('\\n')"


def run_all(page: Page) -> None:
    page.click(".lm-MenuBar-itemLabel:text-is('Run')")
    page.click(".lm-Menu-itemLabel:text-is('Run All Cells')")


def wait_for_text(page: Page, text: str, without: str = "\0") -> None:
    """Until the outputs hold ``text`` and not ``without``."""
    page.wait_for_function(
        f"([text, without]) => {OUTPUT}.includes(text) && !{OUTPUT}.includes(without)", arg=[text, without]
    )


def check_finished_cell(page: Page) -> None:
    """Everything that a finished task leaves in its cell."""
    for text in (WORDS, "two numbers", "the curve falls", "✓ finished · 2 turns"):
        wait_for_text(page, text)
    assert page.locator(".jp-OutputArea-output strong", has_text="look").count() == 1
    summary = page.locator(".jp-OutputArea-output summary", has_text="Draw the loss")
    assert summary.count() == 1
    assert "✓" in summary.inner_text()
    image = page.locator(".jp-OutputArea-output img")
    assert image.count() == 1
    assert HARM in page.locator(".jp-OutputArea-output", has_text="the curve falls").inner_text().replace("\u2060", "")
    assert page.evaluate("window.harm") is None
    assert image.evaluate("image => image.naturalWidth") > 100


def test_a_task_is_seen_live_and_after_a_reload_and_links_its_session(lab: Lab, page: Page) -> None:
    code = f"# Draw the loss\nprint('two numbers', flush=True)\n{PLOT}"
    script = [
        {
            "text": f"I **look** first: {WORDS}.",
            "delay": 0.15,
            "calls": [{"name": "python", "arguments": {"code": code}}],
        },
        {"text": f"So the curve falls. {HARM}"},
    ]
    lab.write("task", script, "%load_ext harness_nb", "%%agent --model scripted:task.json\nDraw the {loss} for $5")
    lab.open(page, "task")
    run_all(page)
    wait_for_text(page, "one two three", without="sixteen")
    wait_for_text(page, "turn 1")
    check_finished_cell(page)

    page.keyboard.press("Control+s")
    page.wait_for_selector(".jp-mod-current:not(.jp-mod-dirty)[title*='task.ipynb']")
    saved = nbformat.read(lab.root / "task.ipynb", 4)
    nbformat.validate(saved)
    assert any("image/png" in output.get("data", {}) for output in saved.cells[1].outputs)
    page.reload()
    page.wait_for_selector(".jp-Notebook .jp-CodeCell")
    check_finished_cell(page)

    page.click(".jp-OutputArea-output a:text-is('session notebook')")
    page.wait_for_selector(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-RenderedMarkdown >> text=Draw the {loss} for $5")
    assert page.locator(".lm-TabBar-tab.lm-mod-current", has_text=".ipynb").count() >= 1


def test_the_stop_button_stops_the_work_and_the_next_cell_runs(lab: Lab, page: Page) -> None:
    script = [{"text": "I wait.", "calls": [{"name": "python", "arguments": {"code": SLEEP}}]}, {"text": "Awake."}]
    lab.write("stop", script, "%load_ext harness_nb", "%%agent --model scripted:stop.json\nWait", "40 + 2")
    lab.open(page, "stop")
    run_all(page)
    wait_for_text(page, "asleep")
    page.click("jp-button[data-command='notebook:interrupt-kernel'], [data-jp-item-name='interrupt'] >> visible=true")
    wait_for_text(page, "■ interrupted · ")
    wait_for_text(page, "KeyboardInterrupt: the work was stopped", without="Traceback")
    page.click(".jp-CodeCell >> nth=2")
    page.keyboard.press("Shift+Enter")
    wait_for_text(page, "42")
    assert page.locator(".jp-OutputArea-output", has_text="● running").count() == 0
