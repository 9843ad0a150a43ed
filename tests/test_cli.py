"""The command line: exit codes, what goes to stdout and what to stderr."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

FINISH = {"calls": [{"name": "finish", "arguments": {"summary": "The answer is **42**."}}]}


def write_script(folder: Path, *replies: dict[str, Any]) -> str:
    (folder / "script.json").write_text(json.dumps(replies))
    return "scripted:script.json"


def harness(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    keys = ("OPENAI", "HARNESS_NB")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(keys)}
    return subprocess.run(
        [sys.executable, "-m", "harness_nb.cli", *words],
        cwd=folder,
        env={**environment, "COLUMNS": "200", **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
    )


def python(code: str) -> dict[str, Any]:
    return {"text": "Compute.", "calls": [{"name": "python", "arguments": {"code": code}}]}


def test_a_finished_run_gives_its_answer_on_stdout(tmp_path: Path) -> None:
    done = harness(tmp_path, "run", "What is 6 * 7?", "--model", write_script(tmp_path, python("6 * 7"), FINISH))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "The answer is **42**.\n"
    assert "Compute." in done.stderr
    assert "finished" in done.stderr
    assert "session notebook: harness_sessions/" in done.stderr


def test_json_lines_are_the_events(tmp_path: Path) -> None:
    done = harness(tmp_path, "run", "go", "--json", "--model", write_script(tmp_path, python("6 * 7"), FINISH))
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert events[0]["type"] == "session_started"
    assert events[-1]["type"] == "session_ended"
    assert [event["status"] for event in events if event["type"] == "result_added"] == ["ok", "ok"]


def test_a_limit_gives_one_and_a_replay_plays_it_again(tmp_path: Path) -> None:
    model = write_script(tmp_path, python("1"))
    done = harness(tmp_path, "run", "go", "--model", model, "--max-turns", "2")
    assert done.returncode == 1
    assert "limit of 2 turns" in done.stderr
    listed = harness(tmp_path, "sessions")
    assert "limit" in listed.stdout
    session_id = next((tmp_path / "harness_sessions").glob("*.ipynb")).stem
    assert session_id in listed.stdout
    again = harness(tmp_path, "replay", session_id, "--max-turns", "2")
    assert again.returncode == 1
    assert len(list((tmp_path / "harness_sessions").glob("*.ipynb"))) == 2


def test_a_replay_plays_all_prompts_and_says_what_came_out_differently(tmp_path: Path) -> None:
    bash = {"calls": [{"name": "bash", "arguments": {"command": "test -e gone && cat gone"}}]}
    (tmp_path / "gone").write_text("here\n")
    model = write_script(tmp_path, bash, FINISH)
    assert harness(tmp_path, "run", "go", "--model", model, "--check", "true").returncode == 0
    session_id = next((tmp_path / "harness_sessions").glob("*.ipynb")).stem
    (tmp_path / "script.json").unlink()
    again = harness(tmp_path, "replay", session_id)
    assert again.returncode == 0, again.stderr
    assert again.stdout == "The answer is **42**.\n"
    assert f"played from the recording of {session_id}: 1 call, all as recorded; no model was called" in again.stderr
    assert "check passed: true" in again.stderr
    (tmp_path / "gone").unlink()
    differently = harness(tmp_path, "replay", session_id)
    assert differently.returncode == 1
    assert "came out with another status than recorded: [2] bash ok → error" in differently.stderr


def test_run_works_anew_and_replay_only_plays(tmp_path: Path) -> None:
    model = write_script(tmp_path, FINISH)
    refused = harness(tmp_path, "run", "go", "--model", model, "--replay")
    assert refused.returncode == 2
    assert "There is no recording of this task with these options" in refused.stderr
    assert harness(tmp_path, "run", "go", "--model", model).returncode == 0
    assert harness(tmp_path, "run", "go", "--model", model).returncode == 0
    assert len(list((tmp_path / "harness_sessions").glob("*.ipynb"))) == 2
    (tmp_path / "script.json").unlink()
    played = harness(tmp_path, "run", "go", "--model", model, "--replay")
    assert (played.returncode, played.stdout) == (0, "The answer is **42**.\n"), played.stderr
    assert "no model was called" in played.stderr


def test_wrong_calls_give_two_and_start_nothing(tmp_path: Path) -> None:
    for words, told in (
        (("run", "go"), "OPENAI_API_KEY"),
        (("run", "go", "--model", "scripted:missing.json"), "missing.json"),
        (("run", "go", "--modell", "x"), "--modell"),
        (("run", " "), "the task is empty"),
        (("run", "go", "--dir", "nowhere"), "--dir"),
        (("replay", "nope"), "nope"),
        (("run", "go", "--session", "nope", "--model", write_script(tmp_path, FINISH)), "nope"),
        (("demo", "mnist"), "mnist"),
        (("replay", "x" * 800), "There is no session"),
        (("run", "go", "--check", ""), "check"),
        (("run", "go", "--session", ""), "session"),
        (("run", "go", "--new", "--session", "a"), "--new"),
        (("run", "go", "--max-minutes", "inf"), "max_minutes"),
    ):
        done = harness(tmp_path, *words)
        assert done.returncode == 2, (words, done.stderr)
        assert told in done.stderr
        assert "Traceback" not in done.stderr
    assert not (tmp_path / "harness_sessions").exists()


def test_a_workspace_that_cannot_hold_a_session_gives_two(tmp_path: Path) -> None:
    model = write_script(tmp_path, FINISH)
    (tmp_path / "harness_sessions").write_text("a file")
    done = harness(tmp_path, "run", "go", "--model", model)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert "cannot be stored" in done.stderr


def test_a_script_is_looked_for_in_the_workspace_and_here(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    done = harness(tmp_path, "run", "go", "--dir", "w", "--model", write_script(tmp_path, FINISH))
    assert done.returncode == 0, done.stderr


def test_a_model_that_fails_gives_one_and_saves_the_state(tmp_path: Path) -> None:
    model = write_script(tmp_path, {"error": {"status": 401, "code": "invalid_api_key", "message": "no such key"}})
    done = harness(tmp_path, "run", "go", "--model", model)
    assert done.returncode == 1
    assert "no such key" in done.stderr
    assert list((tmp_path / "harness_sessions").glob("*.ipynb"))


def test_an_interrupt_gives_130_and_saves_the_state(tmp_path: Path) -> None:
    model = write_script(tmp_path, python("import time; open('begun', 'w').close(); time.sleep(60)"), FINISH)
    command = [sys.executable, "-m", "harness_nb.cli", "run", "go", "--model", model]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not (tmp_path / "begun").exists():
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "interrupted" in errors
    assert "1 turn" in errors
    notebook = next((tmp_path / "harness_sessions").glob("*.ipynb")).read_text()
    assert "interrupted" in notebook


def test_doctor_names_what_is_missing_and_the_way_out(tmp_path: Path) -> None:
    done = harness(tmp_path, "doctor")
    assert done.returncode == 1
    assert "pass tool kernel" in done.stdout
    assert "FAIL model" in done.stdout
    assert "OPENAI_API_KEY" in done.stdout
    lines = [line for line in done.stdout.splitlines() if line.startswith(("pass ", "FAIL ", "fail "))]
    names = [line.split(": ")[0].split(" ", 1)[1] for line in lines]
    about_sandbox = [name for name in names if name.startswith("sandbox")]
    assert about_sandbox[0] == "sandbox"
    rest = [name for name in names if name not in about_sandbox]
    assert rest == ["Python", "bash", "tool kernel", "verify", "export --here", "model"]
    report = {"calls": [{"name": "report", "arguments": {"number": 7}}]}
    done = harness(tmp_path, "doctor", "--model", write_script(tmp_path, report), OPENAI_API_KEY="sk-hidden-1234")
    assert done.returncode == 0, done.stdout
    assert "sk-hidden" not in done.stdout + done.stderr
