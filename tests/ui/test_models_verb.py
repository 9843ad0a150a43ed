"""``%agent model``: the list of a server's models, and the switch."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from harness_nb.errors import UsageError
from harness_nb.ui import models_verb
from harness_nb.ui.current import CurrentSession


class Lister(BaseHTTPRequestHandler):
    """Lists 100 models, or answers 404 below ``/none``."""

    def do_GET(self) -> None:
        found = self.path == "/v1/models"
        entries = [{"id": f"m{number}", "max_model_len": 8192 if number == 70 else None} for number in range(100)]
        body = json.dumps({"data": entries} if found else {"error": {"message": "no list here"}}).encode()
        self.send_response(200 if found else 404)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        return


@pytest.fixture
def url() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Lister)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    server.shutdown()
    server.server_close()
    thread.join()


def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, running: bool = False, **kept: Any) -> Any:
    monkeypatch.chdir(tmp_path)
    current = CurrentSession()
    current.kept = kept
    return SimpleNamespace(current=current, running=running)


def text(bundle: Any) -> str:
    return str(bundle.data["text/plain"])


def test_the_models_of_the_server_are_listed_and_the_current_one_is_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    shown = text(models_verb.model(desk(tmp_path, monkeypatch, model="chat:m70", base_url=url), None, None))
    lines = shown.splitlines()
    assert lines[0].startswith(f"⇄ 100 models at {url.split('/')[2]}. 40 more are not shown.")
    assert lines[2].split() == ["▶", "chat:m70", "8,192", "tokens"]
    assert lines[3].split() == ["chat:m0"] and len(lines) == 2 + models_verb.LISTED
    shown = text(models_verb.model(desk(tmp_path, monkeypatch, model="openai:other", base_url=url), None, None))
    assert "openai:other is not among them" in shown and "openai:m0" in shown


def test_what_cannot_be_listed_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    without = url.replace("/v1", "/none")
    shown = text(models_verb.model(desk(tmp_path, monkeypatch, model="chat:a", base_url=without), None, None))
    assert "The model is chat:a. Its server does not list its models" in shown and "no list here" in shown
    (tmp_path / "script.json").write_text('[{"text": "Fine."}]')
    shown = text(models_verb.model(desk(tmp_path, monkeypatch, model="scripted:script.json"), None, None))
    assert "scripted:script.json, which stands alone" in shown and "openai:NAME" in shown
    assert "OPENAI_API_KEY" in text(models_verb.model(desk(tmp_path, monkeypatch), None, None))


def test_a_switch_holds_for_the_tasks_to_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    work = desk(tmp_path, monkeypatch, model="chat:a", base_url=url, policy="deny")
    shown = text(models_verb.model(work, "openai:b", None))
    assert f"The next task works with openai:b at {url.split('/')[2]}." in shown
    assert work.current.options({}) == {"model": "openai:b", "base_url": url, "policy": "deny"}
    assert work.current.options({"model": "chat:c"})["model"] == "chat:c"
    models_verb.model(work, None, "http://127.0.0.1:9/v1")
    assert work.current.options({})["base_url"] == "http://127.0.0.1:9/v1"
    (tmp_path / "script.json").write_text('[{"text": "Fine."}]')
    models_verb.model(work, "scripted:script.json", None)
    assert work.current.options({}) == {"model": "scripted:script.json", "base_url": None, "policy": "deny"}
    work.running = True
    assert "keeps its model; the next one works with chat:a" in text(models_verb.model(work, "chat:a", url))


def test_a_missing_key_does_not_stop_a_notebook_that_is_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = desk(tmp_path, monkeypatch)
    shown = text(models_verb.model(work, "anthropic:claude-sonnet-5-5", None))
    assert "The next task works with anthropic:claude-sonnet-5-5. But:" in shown and "ANTHROPIC_API_KEY" in shown
    assert work.current.options({})["model"] == "anthropic:claude-sonnet-5-5"


def test_a_model_that_cannot_be_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = desk(tmp_path, monkeypatch, model="chat:a")
    for spec in ("gpt-6", "scripted:absent.json"):
        with pytest.raises(UsageError):
            models_verb.model(work, spec, None)
    assert work.current.kept == {"model": "chat:a"}
    with pytest.raises(UsageError, match=r"It is written: %agent model \[SPEC\]"):
        models_verb.read_words("a b")


def test_a_session_goes_on_with_the_other_model(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.json").write_text(json.dumps([{"text": f"I am {name}."}]))
    cells = [
        nbformat.v4.new_code_cell(source)
        for source in (
            *("%load_ext harness_nb", "%%agent --model scripted:one.json\nFirst", "%agent model scripted:two.json"),
            *("%agent status", "%%agent\nSecond", "%agent model", "%agent help"),
        )
    ]
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, timeout=90, resources={"metadata": {"path": str(tmp_path)}}).execute()
    _, first, switched, status, second, listed, usage = (
        "\n".join(output.data["text/plain"] for output in cell.outputs) for cell in notebook.cells
    )
    assert "I am one." in first
    assert "The next task works with scripted:two.json. What only its provider understands" in switched
    assert "scripted:one.json; from the next task on scripted:two.json" in status
    assert "⇄ The model is scripted:two.json now, before it was scripted:one.json." in second and "I am two." in second
    assert "The model is scripted:two.json, which stands alone" in listed
    assert "model [SPEC] [--base-url URL]" in usage
    (journal,) = (tmp_path / "harness_sessions").glob("*/journal.jsonl")
    events = [json.loads(line) for line in journal.read_text().splitlines()]
    assert [event["model"] for event in events if event["type"] == "model_switched"] == ["scripted:two.json"]
