"""Approvals in JupyterLab: buttons below the ``%%agent`` cell, clicked while it runs."""

from __future__ import annotations

from typing import Any

import pytest
from lab_server import IN_FRONT, Lab, Notebook
from playwright.sync_api import Page

pytestmark = pytest.mark.browser

ASKS = ".harness-nb-ask"


def bash(*commands: str) -> dict[str, Any]:
    return {"text": "", "calls": [{"name": "bash", "arguments": {"command": command}} for command in commands]}


def begin(lab: Lab, page: Page, name: str, *commands: str, shown: int = 1) -> Notebook:
    """A notebook whose agent wants to run these commands, up to the questions."""
    for folder in (f"{name}-a", f"{name}-b"):
        (lab.root / folder).mkdir()
    script = [bash(*commands), {"text": "Done."}]
    task = f"%%agent --kernel harness-tools --model scripted:{name}.json\nTidy"
    lab.write(name, script, "%load_ext harness_nb", task)
    notebook = lab.open(page, name)
    notebook.run_all()
    asked(page, shown)
    return notebook


def asked(page: Page, count: int) -> None:
    page.wait_for_function("([where, count]) => document.querySelectorAll(where).length === count", arg=[ASKS, count])


def press(page: Page, words: str) -> None:
    page.locator(".harness-nb-asks button", has_text=words).first.click()


def test_allow_is_clicked_while_the_cell_runs(lab: Lab, page: Page) -> None:
    notebook = begin(lab, page, "allow", "rm -r allow-a && echo gone")
    assert "rm -r allow-a && echo gone" in page.inner_text(f"{ASKS} pre")
    assert (lab.root / "allow-a").exists()
    press(page, "Allow once")
    notebook.wait_for("✓ finished · 2 turns")
    asked(page, 0)
    assert not (lab.root / "allow-a").exists()
    assert "harness-nb-ask" not in str(notebook.save())


def test_a_denial_carries_a_word_to_the_model(lab: Lab, page: Page) -> None:
    notebook = begin(lab, page, "deny", "rm -r deny-a")
    page.fill(f"{ASKS} input", "ddd use the bin instead")
    page.keyboard.press("Enter")
    notebook.wait_for("a person said no: ddd use the bin instead")
    notebook.wait_for("✓ finished · 2 turns")
    assert (lab.root / "deny-a").exists()


def test_a_call_is_edited_before_it_runs(lab: Lab, page: Page) -> None:
    notebook = begin(lab, page, "edit", "rm -r edit-a")
    press(page, "Edit…")
    press(page, "Run as changed")
    page.wait_for_selector(".harness-nb-said >> text=nothing has been changed")
    page.fill(f"{ASKS} textarea", "rm -r edit-b")
    press(page, "Run as changed")
    notebook.wait_for("✓ finished · 2 turns")
    assert (lab.root / "edit-a").exists() and not (lab.root / "edit-b").exists()
    assert any("rm -r edit-b" in text for text in notebook.outputs())


def test_what_is_pending_is_shown_again_after_a_reload_and_answered_once(lab: Lab, page: Page) -> None:
    begin(lab, page, "reload", "rm -r reload-a")
    page.reload()
    page.wait_for_selector(f"{IN_FRONT} .jp-CodeCell")
    asked(page, 1)
    assert "rm -r reload-a" in page.inner_text(f"{ASKS} pre")
    press(page, "Allow once")
    asked(page, 0)
    page.wait_for_function("() => jupyterapp.shell.currentWidget.sessionContext.session.kernel.status === 'idle'")
    assert not (lab.root / "reload-a").exists()
    journals = [path.read_text() for path in (lab.root / "harness_sessions").glob("*/journal.jsonl")]
    (own,) = [journal for journal in journals if "rm -r reload-a" in journal]
    assert own.count('"approval_answered"') == 1


def test_two_calls_of_a_reply_are_asked_about_together(lab: Lab, page: Page) -> None:
    notebook = begin(lab, page, "batch", "rm -r batch-a", "rm -r batch-b", shown=2)
    press(page, "Deny all 2")
    notebook.wait_for("✓ finished · 2 turns")
    assert (lab.root / "batch-a").exists() and (lab.root / "batch-b").exists()


def test_each_of_two_calls_has_its_own_buttons(lab: Lab, page: Page) -> None:
    notebook = begin(lab, page, "each", "rm -r each-a", "rm -rf each-b", shown=2)
    press(page, "Deny")
    asked(page, 1)
    assert "each-b" in page.inner_text(f"{ASKS} pre")
    press(page, "Deny")
    notebook.wait_for("✓ finished · 2 turns")
    assert (lab.root / "each-a").exists()
