"""Interrupts of a ``%%agent`` cell in a real kernel, and the same task in a terminal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from user_kernel import ask, execute, finish

SLEEP = "import os, time\nopen('pid', 'w').write(str(os.getpid()))\nprint('asleep', flush=True)\ntime.sleep(300)"
SCRIPT = [
    {"text": "I wait.", "calls": [{"name": "python", "arguments": {"code": SLEEP}}]},
    {"text": "Awake."},
]


@pytest.fixture(autouse=True)
def script(client: Any) -> None:
    Path("script.json").write_text(json.dumps(SCRIPT))


def alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


def test_an_interrupt_stops_the_work_completes_the_record_and_the_next_cell_goes_on(client: Any) -> None:
    started = time.monotonic()
    reply, shown = execute(client, "%%agent --model scripted:script.json\nWait", interrupt_at="asleep")
    assert time.monotonic() - started < 60
    assert (reply["status"], reply["ename"]) == ("error", "KeyboardInterrupt")
    assert "Traceback" not in "".join(reply["traceback"])
    texts = list(shown.values())
    assert texts[-1].startswith("■ interrupted")
    assert any("interrupted" in text and text.startswith("[python]") for text in texts)
    assert execute(client, "1 + 1")[0]["status"] == "ok"
    reply, shown = execute(client, "%%agent\nGo on")
    assert reply["status"] == "ok"
    assert list(shown.values())[-1].startswith("✓ finished")
    assert len(list(Path("harness_sessions").glob("*.ipynb"))) == 1


DANGEROUS = [
    {"calls": [{"name": "bash", "arguments": {"command": "rm -rf build && echo gone"}}]},
    {"text": "So be it."},
]


@pytest.mark.parametrize(("answer", "expected"), [("y", "gone"), ("n keep it", "a person said no: keep it")])
def test_a_person_is_asked_in_the_cell(client: Any, answer: str, expected: str) -> None:
    Path("script.json").write_text(json.dumps(DANGEROUS))
    message, question = ask(client, "%%agent --model scripted:script.json\nClean up")
    assert question.startswith("Run this bash cell?")
    client.input(answer)
    reply, shown = finish(client, message)
    assert reply["status"] == "ok"
    assert any(expected in text for text in shown.values())
    assert list(shown.values())[-1].startswith("✓ finished")


def test_an_interrupt_gets_through_while_a_question_is_open(client: Any) -> None:
    Path("script.json").write_text(json.dumps(DANGEROUS))
    message, _ = ask(client, "%%agent --model scripted:script.json\nClean up")
    client.manager.interrupt_kernel()
    reply, shown = finish(client, message)
    assert reply["ename"] == "KeyboardInterrupt"
    assert list(shown.values())[-1].startswith("■ interrupted")
    assert execute(client, "1 + 1")[0]["status"] == "ok"


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks into /proc")
def test_the_tool_kernel_is_gone_when_the_users_kernel_is(client: Any) -> None:
    options = "--model scripted:script.json --kernel harness-tools"  # outside of a sandbox its number is the machine's
    execute(client, f"%%agent {options}\nWait", interrupt_at="asleep")
    pid = int(Path("pid").read_text())
    assert alive(pid)
    client.manager.shutdown_kernel()
    deadline = time.monotonic() + 20
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not alive(pid)


def test_in_a_terminal_the_run_is_text(tmp_path: Path) -> None:
    code = "from pathlib import Path\nprint('in the cell')\nPath('plot.txt').write_text('x')"
    script = [
        {
            "text": "I look.",
            "calls": [
                {"name": "python", "arguments": {"code": code}},
                {"name": "bash", "arguments": {"command": "rm -rf build"}},
            ],
        },
        {"text": "All done."},
    ]
    (tmp_path / "script.json").write_text(json.dumps(script))
    session = "%load_ext harness_nb\nget_ipython().run_cell('%%agent --model scripted:script.json\\n>>> Look at {x}')"
    done = subprocess.run(
        [sys.executable, "-m", "IPython", "--simple-prompt", "--colors=NoColor", "-c", session],
        cwd=tmp_path,
        env={**os.environ, "IPYTHONDIR": str(tmp_path / "ipython"), "COLUMNS": "100"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    out = done.stdout
    places = [out.index(text) for text in ("I look.", "python print('in the cell')", "in the cell\n", "All done.")]
    assert places == sorted(places)
    assert "⊘ denied: " in out and "deletes folders" in out
    assert out.count("All done.") == 1
    assert "finished · 2 turns · " in out
    journal = next((tmp_path / "harness_sessions").glob("*/journal.jsonl")).read_text()
    assert '">>> Look at {x}"' in journal
