"""The commands about recorded sessions: sessions, fork, resume, export, verify."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from test_cli import FINISH, harness, python, write_script


def call(name: str, **arguments: object) -> dict[str, object]:
    return {"calls": [{"name": name, "arguments": arguments}]}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A workspace with a finished session of three steps, the id of which is returned."""
    folder = tmp_path_factory.mktemp("recorded")
    steps = [
        python("x = 6"),
        call("write_file", path="notes.txt", content="first\n"),
        python("print(x * 7)"),
        call("search_replace", path="notes.txt", search="first", replace="second"),
    ]
    done = harness(folder, "run", "What is 6 * 7?", "--model", write_script(folder, *steps, FINISH))
    assert done.returncode == 0, done.stderr
    return folder, next((folder / "harness_sessions").glob("*.ipynb")).stem


def test_the_steps_of_a_session_are_listed(recorded: tuple[Path, str]) -> None:
    folder, session_id = recorded
    listed = harness(folder, "sessions", session_id)
    rows = [[part.strip() for part in line.split("│")[1:-1]] for line in listed.stdout.splitlines() if "│" in line]
    assert [row[:3] for row in rows] == [
        ["1", "python", "ok"],
        ["2", "write_file", "ok"],
        ["3", "python", "ok"],
        ["4", "search_replace", "ok"],
    ]
    assert rows[2][4] == "print(x * 7)"
    unknown = harness(folder, "sessions", "nope")
    assert unknown.returncode == 2 and "no session 'nope'" in unknown.stderr and "Traceback" not in unknown.stderr


def test_a_fork_asks_before_it_changes_files(recorded: tuple[Path, str]) -> None:
    folder, session_id = recorded
    refused = harness(folder, "fork", session_id, "--at", "2")
    assert refused.returncode == 2 and "add --yes, or --into FOLDER" in refused.stderr
    assert (folder / "notes.txt").read_text() == "second\n"
    beyond = harness(folder, "fork", "--at", "9")
    assert beyond.returncode == 2 and "There is no step 9 in that session; it has the steps 0 to 4." in beyond.stderr
    copied = harness(folder, "fork", session_id, "--at", "2", "--into", "copy")
    assert copied.returncode == 0, copied.stderr
    assert (folder / "copy" / "notes.txt").read_text() == "first\n"
    assert (folder / "copy" / "harness_sessions" / f"{copied.stdout.strip()}.ipynb").exists()
    assert f"harness-nb resume {copied.stdout.strip()} --dir copy" in copied.stderr


def test_a_finished_session_has_nothing_to_resume(recorded: tuple[Path, str]) -> None:
    folder, session_id = recorded
    resumed = harness(folder, "resume", session_id)
    assert resumed.returncode == 2
    assert f"The session {session_id} is finished, there is nothing to resume." in resumed.stderr


def test_a_clean_export_is_verified_and_a_false_one_is_not(recorded: tuple[Path, str]) -> None:
    folder, session_id = recorded
    done = harness(folder, "export", session_id, "--clean", "--verify", "-o", "clean.ipynb")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[0] == "clean.ipynb" and "reproduced" in done.stdout
    notebook = nbformat.read(folder / "clean.ipynb", 4)
    for cell in notebook.cells:
        cell.source = cell.source.replace("x = 6", "x = 7")
    nbformat.write(notebook, folder / "false.ipynb")
    told = harness(folder, "verify", "false.ipynb", "--json")
    verdict = json.loads(told.stdout)
    assert told.returncode == 1 and verdict["verdict"] == "differs"
    assert "42" in verdict["first"]["how"] and "49" in verdict["first"]["how"]
    absent = harness(folder, "verify", "absent.ipynb")
    assert absent.returncode == 2 and "absent.ipynb" in absent.stderr


def test_a_script_runs_alone_and_a_file_of_the_person_is_not_replaced(recorded: tuple[Path, str]) -> None:
    folder, session_id = recorded
    assert harness(folder, "export", session_id, "--clean", "-o", "work.py").returncode == 0
    ran = subprocess.run([sys.executable, "work.py"], cwd=folder, capture_output=True, text=True, check=True)
    assert "42" in ran.stdout
    (folder / "mine.py").write_text("mine")
    refused = harness(folder, "export", session_id, "--clean", "-o", "mine.py")
    assert refused.returncode == 2 and "mine.py" in refused.stderr and (folder / "mine.py").read_text() == "mine"
    other = harness(folder, "export", session_id, "-o", "work.py", "--verify")
    assert other.returncode == 2 and "--verify runs notebooks" in other.stderr


def test_where_the_command_writes_its_progress_is_no_change_of_the_work(tmp_path: Path) -> None:
    model = write_script(tmp_path, python("open('made.txt', 'w').write('x')"), FINISH)
    with (tmp_path / "progress.log").open("w") as log:
        command = [sys.executable, "-m", "harness_nb.cli", "run", "go", "--model", model]
        subprocess.run(command, cwd=tmp_path, stderr=log, stdout=subprocess.DEVNULL, check=True)
    assert (tmp_path / "progress.log").stat().st_size > 0
    journal = next((tmp_path / "harness_sessions").glob("*/journal.jsonl"))
    events = [json.loads(line) for line in journal.read_text().splitlines()]
    changed = [change["path"] for event in events if event["type"] == "files_changed" for change in event["changes"]]
    assert changed == ["made.txt"]


def test_a_session_goes_on_with_the_model_that_it_had(tmp_path: Path) -> None:
    model = write_script(tmp_path, {"text": "Hello."})
    assert harness(tmp_path, "run", "go", "--model", model, "--max-turns", "9").returncode == 0
    session_id = next((tmp_path / "harness_sessions").glob("*.ipynb")).stem
    went_on = harness(tmp_path, "run", "go on", "--session", session_id)
    assert went_on.returncode == 0 and went_on.stdout == "Hello.\n", went_on.stderr
    journal = (tmp_path / "harness_sessions" / session_id / "journal.jsonl").read_text()
    prompts = [event for line in journal.splitlines() if (event := json.loads(line))["type"] == "prompt_added"]
    assert [prompt["options"] for prompt in prompts] == [{"model": model, "max_turns": 9}, {"model": model}]
