"""Notebooks with ``%%agent`` cells, run again by nbclient and papermill, and as scripts of prompts: recorded work is
played in real kernels, and no model is asked."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import papermill
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from harness_nb import events as ev
from harness_nb.record import read_record
from harness_nb.recordings import find_recording, recordings_of
from harness_nb.store import session_ids
from harness_nb.types import Status

FINISH = {"calls": [{"name": "finish", "arguments": {"summary": "Done."}}]}
FIRST = "Compute six times seven and write it down."
SECOND = "Correct the file."


def call(tool: str, /, **arguments: Any) -> dict[str, Any]:
    return {"text": f"I use {tool}.", "calls": [{"name": tool, "arguments": arguments}]}


SCRIPT = [
    call("python", code="x = 6 * 7\nprint('x is', x)"),
    call("write_file", path="answer.txt", content="the answer is 41\n"),
    FINISH,
    call("search_replace", path="answer.txt", search="41", replace="42"),
    call("python", code="print(x, open('answer.txt').read())"),
    FINISH,
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder to work in; kernels that start from here have neither key nor model."""
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith(("OPENAI", "ANTHROPIC", "HARNESS_NB", "JPY_")):
            monkeypatch.delenv(name)
    return tmp_path


def notebook(first: str = FIRST, second: str = SECOND, line: str = "") -> Any:
    """A notebook with two tasks and a plain cell behind them."""
    plain = "print(open('answer.txt').read())"
    cells = ["%load_ext harness_nb", f"%%agent {line}\n{first}", f"%%agent\n{second}", plain]
    return new_notebook(cells=[new_code_cell(source) for source in cells])


def run(made: Any, folder: Path) -> Any:
    """Execute a notebook with nbclient."""
    return nbclient.NotebookClient(made, timeout=100, kernel_name="python3", resources=at(folder)).execute()


def at(folder: Path) -> dict[str, Any]:
    return {"metadata": {"path": str(folder)}}


def shown(cell: Any) -> str:
    """What a cell shows, as text."""
    texts = [output.get("text") or output.get("data", {}).get("text/plain", "") for output in cell.outputs]
    return "\n".join(texts)


@pytest.fixture
def recorded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The id of a session of two tasks, recorded with a scripted model that is gone afterwards."""
    script = folder.parent / f"{folder.name}-script.json"
    script.write_text(json.dumps(SCRIPT))
    monkeypatch.setenv("HARNESS_NB_MODEL", f"scripted:{script}")
    run(notebook(), folder)
    monkeypatch.delenv("HARNESS_NB_MODEL")
    script.unlink()
    (session,) = session_ids(folder)
    assert (folder / "answer.txt").read_text() == "the answer is 42\n"
    return session


def models(folder: Path, session: str) -> set[str]:
    """Who was asked for the replies of a session."""
    return {event.model for event in read_record(folder, session)[0] if isinstance(event, ev.ModelRequested)}


def results(folder: Path, session: str) -> list[tuple[str, Status]]:
    events, _ = read_record(folder, session)
    return [(event.name, event.status) for event in events if isinstance(event, ev.ResultAdded)]


def test_run_all_plays_what_is_recorded_again_and_again(folder: Path, recorded: str) -> None:
    before = results(folder, recorded)
    journal = (folder / "harness_sessions" / recorded / "journal.jsonl").read_bytes()
    for _ in range(2):
        played = run(notebook(), folder)
        assert "x is 42" in shown(played.cells[1])
        assert f"played from the recording of {recorded}: 2 calls, all as recorded; no model was called" in shown(
            played.cells[1]
        )
        assert "all as recorded; no model was called" in shown(played.cells[2])
        assert "the answer is 42" in shown(played.cells[3])
        assert session_ids(folder) == [recorded, f"{recorded}-replay"]
        assert models(folder, f"{recorded}-replay") == {f"replay:{recorded}"}
        assert results(folder, f"{recorded}-replay") == before
    assert (folder / "harness_sessions" / recorded / "journal.jsonl").read_bytes() == journal
    nbformat.validate(nbformat.read(folder / "harness_sessions" / f"{recorded}-replay.ipynb", as_version=4))
    first = recordings_of(folder, f"{recorded}-replay")[0]
    assert first.replayed and first.origin == recorded
    found = find_recording(folder, first.fingerprint)
    assert found is not None and found.session == recorded


def test_papermill_plays_it_too(folder: Path, recorded: str) -> None:
    nbformat.write(notebook(), folder / "in.ipynb")
    made = papermill.execute_notebook(
        folder / "in.ipynb", folder / "out.ipynb", cwd=str(folder), kernel_name="python3", progress_bar=False
    )
    assert "all as recorded; no model was called" in shown(made.cells[2])
    assert "the answer is 42" in shown(made.cells[3])


def test_a_changed_prompt_needs_a_model_and_says_so(folder: Path, recorded: str) -> None:
    with pytest.raises(nbclient.exceptions.CellExecutionError) as raised:
        run(notebook(second="Something else."), folder)
    told = str(raised.value)
    assert "MissingKeyError" in told
    assert "There is no recording of this prompt with these options after what came before it" in told
    assert "OPENAI_API_KEY" in told


def test_a_changed_prompt_goes_on_with_a_model_in_the_kernel_that_was_played(
    folder: Path, recorded: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = folder.parent / f"{folder.name}-second.json"
    script.write_text(json.dumps([call("python", code="print('x again', x)"), FINISH]))
    monkeypatch.setenv("HARNESS_NB_MODEL", f"scripted:{script}")
    made = run(notebook(second="Show x."), folder)
    assert "x again 42" in shown(made.cells[2])
    assert "no model was called" not in shown(made.cells[2])
    session = f"{recorded}-replay"
    assert models(folder, session) == {f"replay:{recorded}", f"scripted:{script}"}
    script.unlink()
    monkeypatch.delenv("HARNESS_NB_MODEL")
    again = run(notebook(second="Show x."), folder)
    assert f"played from the recording of {session}: 1 call, all as recorded" in shown(again.cells[2])
    assert session_ids(folder) == [recorded, session, f"{session}-2"]


def test_fresh_asks_the_model_whatever_is_recorded(
    folder: Path, recorded: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(nbclient.exceptions.CellExecutionError, match="--fresh passes over what is recorded"):
        run(notebook(line="--fresh"), folder)
    script = folder.parent / f"{folder.name}-fresh.json"
    script.write_text(json.dumps(SCRIPT))
    monkeypatch.setenv("HARNESS_NB_MODEL", f"scripted:{script}")
    run(notebook(line="--fresh"), folder)
    (anew,) = set(session_ids(folder)) - {recorded}
    assert models(folder, anew) == {f"scripted:{script}"}


def test_replay_only_never_asks_a_model(folder: Path, recorded: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_NB_MODEL", "scripted:there-is-no-such-file.json")
    played = run(notebook(line="--replay"), folder)
    assert "no model was called" in shown(played.cells[2])
    with pytest.raises(nbclient.exceptions.CellExecutionError, match="Leave --replay out to ask a model"):
        run(notebook(first="Never asked.", line="--replay"), folder)


def test_what_a_person_changed_is_left_alone_and_named(folder: Path, recorded: str) -> None:
    (folder / "answer.txt").write_text("my own words\n")
    made = notebook()
    made.cells = made.cells[:2]
    told = shown(run(made, folder).cells[1])
    assert "Left alone, for they have been changed since the recording: answer.txt." in told
    kept = [path.read_text() for path in (folder / "harness_sessions").glob("*-replay/files/*/*")]
    assert "my own words\n" in kept


def test_the_notebook_of_the_session_alone_is_enough(folder: Path, recorded: str) -> None:
    sessions = folder / "harness_sessions"
    for path in sorted((sessions / recorded).rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (sessions / recorded).rmdir()
    (folder / "answer.txt").unlink()
    played = run(notebook(), folder)
    assert "all as recorded; no model was called" in shown(played.cells[2])
    assert "the answer is 42" in shown(played.cells[3])


def test_what_comes_out_differently_is_said(folder: Path, recorded: str) -> None:
    path = folder / "harness_sessions" / recorded / "journal.jsonl"
    path.write_text(path.read_text().replace("x is 42", "x is what it is"))
    told = shown(run(notebook(), folder).cells[1])
    assert "2 calls, 1 came out differently: [2] python says something else; no model was called" in told
    assert "--fresh works anew" in told
