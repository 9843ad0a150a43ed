"""The ``%%bash`` magic: one cell, one fresh ``bash``, its output live, and an end when bash itself ends.

What differs from IPython's own magic: it is always the real bash; a background child that keeps the pipes open does not
keep the cell open, and is listed; an interrupt ends everything that the cell started; a failure is one short line.
Standard library only; runs in the tool kernel.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

from harness_nb.tools.children import kill_command, kill_processes, name_processes, started_by
from harness_nb.tools.pipes import Pipes
from harness_nb.tools.workspace import brief

ARGUMENT_BYTES = 100_000
INTERRUPT_SECONDS = 1.0
BACKGROUND_SECONDS = 0.1
"""How long what bash left behind has to become what it was started as, before it is named."""

MARK = "HARNESS_NB_CELL"
ENDED = "bash and what it had started were ended"


class CalledProcessError(subprocess.CalledProcessError):
    """Like its parent, which IPython's own ``%%bash`` raises, but its text does not repeat the whole cell."""

    def __str__(self) -> str:
        if self.returncode >= 0:
            return f"bash exited with status {self.returncode}"
        try:
            name = signal.Signals(-self.returncode).name
        except ValueError:
            name = f"signal {-self.returncode}"
        return f"bash was killed by {name}"


def run_bash(cell: str) -> None:
    """Run ``cell`` with bash in the current directory; its output appears as it comes, standard input is empty.

    Raises:
        CalledProcessError: when bash exits with another status than 0.
        FileNotFoundError: when there is no bash.
        KeyboardInterrupt: when interrupted, after everything that the cell started has ended.
    """
    program = shutil.which("bash")
    if program is None:
        raise brief(FileNotFoundError("there is no bash on this machine; use python instead"))
    mark = f"{os.getpid()}-{time.monotonic_ns()}"
    script = _script_file(cell)
    try:
        process = _start([program, script] if script else [program, "-c", cell, "bash"], mark)
        pipes = Pipes(process)
        try:
            pipes.relay_until_exit()
        except KeyboardInterrupt:
            _stop(process, pipes, mark)
            raise brief(KeyboardInterrupt(ENDED)) from None
        except BaseException:
            _stop(process, pipes, mark)
            raise
    finally:
        if script:
            Path(script).unlink(missing_ok=True)
    _leave_background(process, pipes, mark)
    if process.returncode:
        raise brief(CalledProcessError(process.returncode, cell))


def _start(arguments: list[str], mark: str) -> subprocess.Popen[bytes]:
    """Start bash in a session of its own, so that all it starts can be found and ended."""
    return subprocess.Popen(
        arguments,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env=_environment(mark),
    )


def _script_file(cell: str) -> str | None:
    """The path of a file with the script where it is too long for an argument (Linux: 128 KiB), else ``None``."""
    data = cell.encode("utf-8", "surrogateescape")
    if len(data) < ARGUMENT_BYTES and b"\0" not in data:
        return None
    with tempfile.NamedTemporaryFile(prefix="cell-", suffix=".sh", delete=False) as file:
        file.write(data)
    return file.name


def _environment(mark: str) -> dict[str, str]:
    """The kernel's environment without what forces colours on programs whose output goes to pipes and files."""
    dropped = {"FORCE_COLOR", "CLICOLOR_FORCE", "CLICOLOR", "BASH_ENV", "ENV"}
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    return {**kept, "TERM": "dumb", MARK: mark}


def _stop(process: subprocess.Popen[bytes], pipes: Pipes, mark: str) -> None:
    """End bash and all that it started: an interrupt, a second to obey it, then a kill."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGINT)
    try:
        pipes.relay_until_exit(INTERRUPT_SECONDS)
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        kill_processes(started_by(process.pid, MARK, mark))
        process.wait()
        pipes.close()


def _leave_background(process: subprocess.Popen[bytes], pipes: Pipes, mark: str) -> None:
    """Name what bash has left running, and go on emptying its pipes: a full or closed pipe would stop or kill it."""
    try:
        if started_by(process.pid, MARK, mark):
            pipes.relay_for(BACKGROUND_SECONDS)
            _list_background(process, mark, unseen=pipes.open)
    finally:
        if pipes.open:
            threading.Thread(target=pipes.discard, name="bash-background", daemon=True).start()
        else:
            pipes.close()


def _list_background(process: subprocess.Popen[bytes], mark: str, *, unseen: bool) -> None:
    """Name what still runs, and how to end it; ``unseen`` says that some of it still holds the cell's pipes."""
    running = started_by(process.pid, MARK, mark)
    if not running:
        return
    arguments: list[str] = process.args  # type: ignore[assignment]
    names = name_processes(running, " ".join(arguments).split("\n")[0])
    its, it = ("its", "it") if len(names) == 1 else ("their", "them")
    output = f"; {its} further output is not shown (send it to a file to see it)" if unseen else ""
    ended = kill_command(running, process.pid)
    sys.stdout.flush()
    print(f"still running: {', '.join(names)}{output}; end {it} with {ended}", file=sys.stderr)
