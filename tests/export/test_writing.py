"""Export to files: forms by suffix, what is replaced and what is not, the session as it is."""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from recorded import PLOT, Recorded

from harness_nb.errors import UsageError
from harness_nb.events import CellFinished, CellStarted, Event
from harness_nb.export import clean_notebook, export_session
from harness_nb.export.writing import slug
from harness_nb.store import SessionStore
from harness_nb.tools import SETUP_SOURCE
from harness_nb.types import Status

ID = "20260101-000000-abcd"


@pytest.fixture
def events(session: Recorded) -> list[Event]:
    """A session with a plot, stored in the workspace."""
    session.events[1] = session.events[1].model_copy(update={"prompt": "Find *the* answer & tell it."})
    setup = {"call_id": "setup", "name": "setup"}
    session.events.insert(1, CellFinished(**setup, status=Status.OK, execution_count=1))
    session.events.insert(1, CellStarted(**setup, source=SETUP_SOURCE))
    session.python("import json\nanswer = 42", "A value.")
    session.python("print(f'answer {answer}')", outputs=[PLOT])
    session.finish("It is **42**.")
    store = SessionStore(session.workspace, ID)
    stored = [store.append(event) for event in session.events]
    store.close()
    return stored


def test_the_default_target_of_a_clean_export_is_in_the_workspace(events: list[Event], workspace: Path) -> None:
    result = export_session(workspace, ID, clean=True)
    assert result.path == workspace / "find-the-answer-tell-it.ipynb"
    assert result.complete and "left out" in result.notes[0]
    notebook = nbformat.read(result.path, as_version=nbformat.NO_CONVERT)
    nbformat.validate(notebook)
    assert set(notebook.metadata.harness_nb) == {"export"}
    assert [cell.metadata for cell in notebook.cells if "harness_nb" in cell.metadata] == []
    assert json.loads(result.path.read_text()) == json.loads(json.dumps(clean_notebook(events).notebook))


def test_an_export_replaces_an_export_and_nothing_else(events: list[Event], workspace: Path) -> None:
    for name in ("a.ipynb", "a.py", "a.html"):
        target = workspace / name
        export_session(workspace, ID, target, clean=True)
        first = target.read_bytes()
        export_session(workspace, ID, target, clean=True)
        assert target.read_bytes() == first
        target.write_text("{}")
        with pytest.raises(UsageError, match="--force"):
            export_session(workspace, ID, target, clean=True)
        assert target.read_text() == "{}"
        export_session(workspace, ID, target, clean=True, force=True)
        assert target.read_bytes() == first


@pytest.mark.parametrize(
    ("name", "words"), [("a.pdf", "one of .ipynb"), ("no/a.py", "is not there"), ("harness_sessions.py", "is a folder")]
)
def test_wrong_targets_are_named(events: list[Event], workspace: Path, name: str, words: str) -> None:
    (workspace / "harness_sessions.py").mkdir()
    with pytest.raises(UsageError, match=words):
        export_session(workspace, ID, workspace / name)


def test_an_unknown_session_is_named(workspace: Path) -> None:
    with pytest.raises(UsageError, match="no session 'x'"):
        export_session(workspace, "x", clean=True)


def test_script_and_page_have_the_work_in_them(events: list[Event], workspace: Path) -> None:
    script = export_session(workspace, ID, workspace / "a.py", clean=True).path.read_text()
    compile(script, "a.py", "exec")
    assert "answer = 42" in script
    page = export_session(workspace, ID, workspace / "a.html", clean=True).path.read_text()
    assert "data:image/png;base64,iVBORw0KGgo=" in page and "<strong>42</strong>" in page


def test_the_session_as_it_is_runs_from_where_it_is_put(events: list[Event], workspace: Path) -> None:
    folder = workspace / "docs" / "more"
    folder.mkdir(parents=True)
    path = export_session(workspace, ID, folder / "whole.ipynb").path
    notebook = nbformat.read(path, as_version=4)
    assert sum("answer" in cell.source for cell in notebook.cells if cell.cell_type == "code") == 2
    notebook.cells.append(nbformat.v4.new_code_cell("import os; os.getcwd()"))
    place = {"metadata": {"path": str(folder)}}
    ran = NotebookClient(notebook, timeout=60, kernel_name="python3", resources=place).execute()
    assert ran.cells[-1].outputs[0].data["text/plain"] == repr(str(workspace))


def test_a_session_of_which_only_the_notebook_is_left(events: list[Event], workspace: Path) -> None:
    export_session(workspace, ID, workspace / "whole.ipynb")
    (workspace / "harness_sessions" / ID / "journal.jsonl").unlink()
    (workspace / "whole.ipynb").rename(workspace / "harness_sessions" / f"{ID}.ipynb")
    result = export_session(workspace, ID, clean=True)
    assert result.complete and "answer = 42" in result.path.read_text()


def test_file_names_of_titles() -> None:
    assert slug("Train a (small) ResNet!") == "train-a-small-resnet"
    assert slug("Öffne …") == "ffne"
    assert slug("§§") == "session"
    assert len(slug("word " * 40)) <= 60 and slug("word " * 40).endswith("word")
