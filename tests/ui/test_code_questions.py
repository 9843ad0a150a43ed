"""``input`` and ``getpass`` in tool code, seen from the user's kernel: asked in the ``%%agent`` cell, or an error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest
from user_kernel import ask, execute, finish

from harness_nb.journal import read_journal

AGENT = "%%agent --model scripted:script.json\nGreet"


def write_script(code: str) -> None:
    call = {"name": "python", "arguments": {"code": code}}
    Path("script.json").write_text(json.dumps([{"text": "I ask.", "calls": [call]}, {"text": "Done."}]))


def told_to_the_model() -> str:
    """The first result that the model got."""
    events, _ = read_journal(next(Path("harness_sessions").glob("*/journal.jsonl")))
    return next("".join(part.text for part in event.content) for event in events if event.type == "result_added")


def test_the_person_is_asked_in_the_cell_below_the_code_that_asks(client: Any) -> None:
    write_script("print('before')\nname = input('name? ')\nprint('hello', name.upper())")
    message, question = ask(client, AGENT)
    assert question == "The running code asks: name? "
    client.input("Ada")
    reply, shown = finish(client, message)
    assert reply["status"] == "ok"
    texts = list(shown.values())
    assert any("name = input('name? ')" in text and "✓" in text for text in texts)
    assert "before\nname? Ada\nhello ADA" in texts
    assert texts[-1].startswith("✓ finished")
    assert "name? Ada\nhello ADA" in told_to_the_model()


def test_a_secret_is_asked_as_one_and_is_nowhere_in_the_record(client: Any) -> None:
    write_script("import getpass\nword = getpass.getpass('word: ')\nprint(len(word))")
    message, question = ask(client, AGENT)
    assert question == "The running code asks: word: "
    client.input("hush-hush")
    reply, shown = finish(client, message)
    assert reply["status"] == "ok"
    assert "word: ········\n9" in shown.values()
    written = "".join(path.read_text() for path in Path("harness_sessions").rglob("*") if path.is_file())
    assert "hush-hush" not in written + "".join(shown.values())


def test_an_interrupt_stops_the_work_while_the_code_asks(client: Any) -> None:
    write_script("input('name? ')\nprint('not reached')")
    message, _ = ask(client, AGENT)
    client.manager.interrupt_kernel()
    reply, shown = finish(client, message)
    assert reply["ename"] == "KeyboardInterrupt"
    texts = list(shown.values())
    assert texts[-1].startswith("■ interrupted")
    assert any("interrupted" in text and text.startswith("[python]") for text in texts)
    assert "not reached" not in "".join(texts[1:]).replace("print('not reached')", "")
    assert execute(client, "1 + 1")[0]["status"] == "ok"
    reply, shown = execute(client, "%%agent\nGo on")
    assert list(shown.values())[-1].startswith("✓ finished")


def test_where_nobody_can_answer_the_code_gets_an_error_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_script("input('name? ')")
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source) for source in ("%load_ext harness_nb", AGENT)]
    )
    nbclient.NotebookClient(notebook, timeout=100, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert "nobody can answer input() to the question 'name?'" in told_to_the_model()
    shown = "".join(output["data"]["text/plain"] for output in notebook.cells[1].outputs if "data" in output)
    assert "StdinNotImplementedError" in shown and "✓ finished" in shown
