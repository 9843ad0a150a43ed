"""``harness-nb run`` with a real tool kernel under ``kill -9``, and ``harness-nb resume`` after it."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from kill_invariants import Watcher
from kill_story import journal_of

from harness_nb import events as ev
from harness_nb.kernel.guardian import is_zombie

SEED = 20261130
STEPS = 5

CODE = """import os, subprocess, time
above = os.path.join(os.pardir, "{{}}").format
if {number} == 0:
    child = subprocess.Popen(["sleep", "614"], start_new_session=True)
    with open(above("pids"), "w") as file:
        file.write(f"{{os.getpid()}} {{child.pid}}")
print("some output\\n" * 300, flush=True)
with open(above("effects"), "a") as file:  # effect {number}
    file.write("{number}\\n")
    file.flush()
    os.fsync(file.fileno())
time.sleep(0.15)
"""


def command(workspace: Path, *words: str) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI", "HARNESS_NB"))}
    return subprocess.Popen(
        [sys.executable, "-m", "harness_nb.cli", *words],
        cwd=workspace,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def write_script(workspace: Path) -> None:
    steps = [
        {"text": f"Step {number} comes.", "delay": 0.02}
        | {"calls": [{"name": "python", "arguments": {"code": CODE.format(number=number)}}]}
        for number in range(STEPS)
    ]
    finish = {"calls": [{"name": "finish", "arguments": {"summary": "All done."}}]}
    (workspace / "script.json").write_text(json.dumps([*steps, finish]))


def wait_for(text: str, path: Path, seconds: float = 60.0) -> None:
    """Until a file holds a text. ``path`` may have a ``*`` in it."""
    deadline = time.monotonic() + seconds
    while not any(text in found.read_text() for found in path.parents[1].glob(f"{path.parent.name}/{path.name}")):
        assert time.monotonic() < deadline, f"{text!r} did not come into {path}"
        time.sleep(0.01)


def all_gone(pids: list[int], seconds: float = 15.0) -> bool:
    deadline = time.monotonic() + seconds
    while not all(map(is_zombie, pids)):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.timeout(200)
@pytest.mark.parametrize("after", [-1, 0, 1, 2, STEPS - 1])
def test_a_killed_run_is_resumed_and_its_children_are_gone(tmp_path: Path, after: int, request: object) -> None:
    delay = random.Random(f"{SEED}{request.node.name}").uniform(0, 0.3)  # type: ignore[attr-defined]
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    write_script(workspace)
    watcher = Watcher(workspace)
    run = command(
        workspace, "run", "Take the steps.", *("--model", "scripted:script.json", "--kernel", "harness-tools")
    )
    if after < 0:
        wait_for('"prompt_added"', workspace / "harness_sessions" / "*" / "journal.jsonl")
    else:
        wait_for(f"{after}\n", tmp_path / "effects")
    time.sleep(delay)
    run.kill()
    run.communicate(timeout=30)
    watcher.kills = 1
    watcher.look()
    assert not any(isinstance(event, ev.SessionEnded) for event in watcher.events) or after == STEPS - 1
    pids = [int(pid) for path in tmp_path.glob("pids") for pid in path.read_text().split()]
    assert len(pids) == (2 if after >= 0 else len(pids))
    assert all_gone(pids), f"{pids} have outlived the killed run (delay {delay:.3f} s)"
    journal = journal_of(workspace)
    assert journal is not None
    resume = command(workspace, "resume", journal.parent.name)
    said = resume.communicate(timeout=120)[0]
    ended = any(isinstance(event, ev.SessionEnded) for event in watcher.events)
    assert resume.returncode == (2 if ended else 0), f"{said}\n(delay {delay:.3f} s)"
    watcher.look()
    statuses = watcher.end()
    assert set(statuses) <= {"ok", "unknown", "interrupted"} and statuses["ok"] >= STEPS - 2
    assert sorted(watcher.effects) == sorted(set(watcher.effects))
