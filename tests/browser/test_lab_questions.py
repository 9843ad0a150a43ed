"""``input()`` in tool code, in JupyterLab: a person types the answer into the cell's own input box."""

from __future__ import annotations

import pytest
from lab_server import Lab
from playwright.sync_api import Page

pytestmark = pytest.mark.browser

CODE = "import getpass\nname = input('name? ')\nword = getpass.getpass('word: ')\nprint(name.upper(), len(word))"


def test_the_answer_is_typed_into_the_cell(lab: Lab, page: Page) -> None:
    script = [{"text": "I ask.", "calls": [{"name": "python", "arguments": {"code": CODE}}]}, {"text": "Thanks."}]
    lab.write("ask", script, "%load_ext harness_nb", "%%agent --model scripted:ask.json\nGreet the person")
    notebook = lab.open(page, "ask")
    notebook.run_all()
    page.wait_for_selector(".jp-Stdin-prompt >> text=The running code asks: name?")
    notebook.wait_for("? waiting for your answer")
    assert page.locator(".jp-OutputArea-output pre >> text=input('name? ')").count() == 1
    page.fill(".jp-Stdin-input", "Ada")
    page.keyboard.press("Enter")
    page.wait_for_selector(".jp-Stdin-prompt >> text=The running code asks: word:")
    page.fill(".jp-Stdin-input[type=password]", "hush-hush")
    page.keyboard.press("Enter")
    notebook.wait_for("name? Ada\nword: ········\nADA 9", without="waiting for your answer")
    notebook.wait_for("✓ finished · 2 turns")
    assert "hush-hush" not in str(notebook.save())
    shown = notebook.outputs()
    places = [next(n for n, text in enumerate(shown) if words in text) for words in ("asks: word:", "Thanks.", "✓ fin")]
    assert places == sorted(places)
