"""What a person sees in JupyterLab: streamed text, calls, the plot, the last line; after a reload; the session."""

from __future__ import annotations

import pytest
from lab_server import IN_FRONT, Lab, Notebook
from playwright.sync_api import Page

pytestmark = pytest.mark.browser

WORDS = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
PLOT = "import matplotlib.pyplot as plt\nplt.plot([3, 2, 1])\nplt.title('loss')\nplt.show()"
HARM = "<img src=x onerror='window.harm = 1'>"


def check_finished_cell(notebook: Notebook) -> None:
    """Everything that a finished task leaves in its cell."""
    page = notebook.page
    for text in (WORDS, "two numbers", "the curve falls", "✓ finished · 2 turns"):
        notebook.wait_for(text)
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
    notebook = lab.open(page, "task")
    notebook.run_all()
    notebook.wait_for("one two three", without="sixteen")
    notebook.wait_for("turn 1")
    check_finished_cell(notebook)

    saved = notebook.save()
    assert any("image/png" in output.get("data", {}) for output in saved.cells[1].outputs)
    notebook.reload()
    check_finished_cell(notebook)

    page.click(f"{IN_FRONT} a:text-is('session notebook')")
    page.wait_for_selector(f"{IN_FRONT} .jp-RenderedMarkdown >> text=Draw the {{loss}} for $5")
    assert page.locator(".lm-TabBar-tab.lm-mod-current", has_text=".ipynb").count() >= 1
