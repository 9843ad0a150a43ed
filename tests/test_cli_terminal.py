"""The command line at a terminal: tool code asks, the person answers, or interrupts."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

CODE = "name = input('name? ')\nprint('hello', name.upper())"


class Run:
    """A run of the command line with a terminal for its keyboard."""

    def __init__(self, folder: Path, keyboard: int, process: subprocess.Popen[bytes]) -> None:
        self.folder = folder
        self.keyboard = keyboard
        self.process = process
        self.seen = ""

    def read_until(self, text: str) -> None:
        """Read what is on the screen until ``text`` is there; fails if the run ends before."""
        assert self.process.stderr is not None
        while text not in self.seen:
            data = os.read(self.process.stderr.fileno(), 4096)
            assert data, f"the run ended without {text!r}:\n{self.seen}"
            self.seen += data.decode()

    def end(self) -> int:
        """The exit code; the rest of what was written is in ``seen``."""
        self.seen += self.process.communicate(timeout=60)[1].decode()
        return self.process.returncode


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    call = {"name": "python", "arguments": {"code": CODE}}
    (tmp_path / "script.json").write_text(json.dumps([{"text": "I ask.", "calls": [call]}, {"text": "Done."}]))
    keyboard, terminal = pty.openpty()
    command = [sys.executable, "-m", "harness_nb.cli", "run", "Greet", "--model", "scripted:script.json"]
    environment = {**os.environ, "COLUMNS": "120"}
    process = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    os.close(terminal)
    yield Run(tmp_path, keyboard, process)
    if process.poll() is None:
        process.kill()
        process.communicate()
    os.close(keyboard)


def test_the_person_answers_the_question_of_the_code(run: Run) -> None:
    run.read_until("The running code asks: name? ")
    assert "input('name? ')" in run.seen
    os.write(run.keyboard, b"Ada\n")
    assert run.end() == 0
    assert "name? Ada" in run.seen and "hello ADA" in run.seen


def test_an_interrupt_ends_the_run_while_the_question_is_open(run: Run) -> None:
    run.read_until("The running code asks: name? ")
    run.process.send_signal(signal.SIGINT)
    assert run.end() == 130
    assert "interrupted" in run.seen
    assert "interrupted" in next(run.folder.glob("harness_sessions/*.ipynb")).read_text()
