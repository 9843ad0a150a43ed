"""The kernel's process as the harness sees it: started through a guardian, watched, interrupted, ended.

``ToolKernel`` makes one for each start. It must not know messages; see ``guardian`` for what runs on the other side.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness_nb.kernel.confinement import Confinement
from harness_nb.kernel.groups import make_groups, remove_groups
from harness_nb.kernel.guardian import kill_all, marked

GUARDIAN = Path(__file__).resolve().with_name("guardian.py")
GUARDIAN_SECONDS = 10.0
CLOCK_TICK = 0.01
BY_SIGNAL = 128
"""A sandbox ends with 128 and the number of the signal that ended the kernel in it, as a shell does."""


@dataclass(frozen=True, slots=True)
class Death:
    """How a kernel process ended.

    ``status`` is the exit code, or minus the signal; ``peak`` its greatest resident memory in bytes (0 if unknown);
    ``words`` the end of what it printed outside of any cell.
    """

    status: int
    peak: int = 0
    words: str = ""

    @property
    def signal_name(self) -> str | None:
        """``SIGKILL`` and the like, or ``None`` when it exited by itself."""
        if self.status >= 0:
            return None
        try:
            return signal.Signals(-self.status).name
        except ValueError:
            return f"signal {-self.status}"


class KernelProcess:
    """One running kernel process and everything below it.

    ``died`` is a future of its ``Death``; it never fails. All methods are for the event loop that started it.
    """

    def __init__(self, guardian: subprocess.Popen[bytes], mark: str, private: Path, *, in_sandbox: bool) -> None:
        self._guardian = guardian
        self._in_sandbox = in_sandbox
        self._groups: dict[str, Path] = {}
        self._mark = mark
        self._private = private
        self._lines = b""
        self.pid: int | None = None
        self._loop = asyncio.get_running_loop()
        self.died: asyncio.Future[Death] = self._loop.create_future()
        self._gone = asyncio.Event()
        self._reaped = asyncio.Event()
        self._farewell: asyncio.Future[None] | None = None
        assert guardian.stdout is not None
        os.set_blocking(guardian.stdout.fileno(), False)
        self._loop.add_reader(guardian.stdout.fileno(), self._read_reports)

    @classmethod
    def start(
        cls,
        arguments: Sequence[str],
        *,
        environment: Mapping[str, str],
        directory: Path,
        private: Path,
        confinement: Confinement | None = None,
    ) -> KernelProcess:
        """Start a kernel with ``directory`` as its working directory.

        ``private`` is the folder of its sockets; the guardian removes it in the end, whatever happens to the harness.
        The bounds of ``confinement`` that no limit of the system holds are watched by the guardian.
        """
        mark = secrets.token_hex(16)
        isolated = ["-I", "-S"] if sys.platform == "linux" else ["-I"]
        guardian = subprocess.Popen(
            [sys.executable, *isolated, str(GUARDIAN)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={name: environment[name] for name in ("PATH", "LD_LIBRARY_PATH", "SYSTEMROOT") if name in environment},
            cwd=private,
            start_new_session=True,
        )
        process = cls(guardian, mark, private, in_sandbox=confinement is not None)
        order: dict[str, Any] = {
            "argv": list(arguments),
            "env": {**environment, "HARNESS_NB_KERNEL": mark, "JPY_PARENT_PID": str(guardian.pid)},
            "cwd": str(directory),
            "mark": mark,
            "remove": str(private),
        }
        if confinement is not None:
            bounds = confinement.bounds
            groups = make_groups(bounds.processes, bounds.memory)
            order |= {"free_disk": bounds.free_disk, "processes": bounds.processes}
            order["disks"] = [str(confinement.workspace), str(private)]
            order["groups"] = sorted({str(group) for group in groups.values()})
            process._groups = groups
        process._tell(order)
        return process

    @property
    def alive(self) -> bool:
        """Whether no end has been reported."""
        return not self.died.done()

    def interrupt(self) -> None:
        """Send SIGINT to the kernel's process group. On return the signal has been sent."""
        if self.alive and self.pid is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGINT)

    async def end_children_since(self, moment: float) -> None:
        """Kill what the kernel has started since ``moment`` (see ``now``) and still lives; the kernel itself stays."""
        if not self.alive:
            return
        self._reaped.clear()
        self._tell({"command": "reap", "since": moment - CLOCK_TICK})
        with suppress(TimeoutError):
            await asyncio.wait_for(self._reaped.wait(), GUARDIAN_SECONDS)

    async def kill(self) -> None:
        """Kill the kernel and everything below it, and wait until all of it is gone. Harmless when repeated."""
        self._tell({"command": "kill"})
        try:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._gone.wait(), GUARDIAN_SECONDS)
        finally:
            self._close()
            if self._farewell is None:
                self._farewell = self._loop.run_in_executor(None, self._see_it_off)
        await asyncio.shield(self._farewell)

    def _tell(self, command: dict[str, Any]) -> None:
        assert self._guardian.stdin is not None
        with suppress(OSError, ValueError):
            self._guardian.stdin.write(json.dumps(command).encode() + b"\n")
            self._guardian.stdin.flush()

    def _read_reports(self) -> None:
        assert self._guardian.stdout is not None
        try:
            data = os.read(self._guardian.stdout.fileno(), 65536)
        except BlockingIOError:
            return
        *lines, self._lines = (self._lines + data).split(b"\n")
        for line in lines:
            self._take(json.loads(line))
        if not data:
            self._loop.remove_reader(self._guardian.stdout.fileno())
            self._take({"report": "exited", "status": -int(signal.SIGKILL), "peak": 0, "words": ""})
            self._gone.set()

    def _take(self, report: dict[str, Any]) -> None:
        match report["report"]:
            case "started":
                self.pid = report["pid"]
            case "reaped":
                self._reaped.set()
            case "exited":
                self._reaped.set()
                status = report["status"]
                if self._in_sandbox and status > BY_SIGNAL:
                    status = BY_SIGNAL - status
                if not self.died.done():
                    self.died.set_result(Death(status, report["peak"], report["words"]))

    def _close(self) -> None:
        for pipe in (self._guardian.stdin, self._guardian.stdout):
            if pipe is not None and not pipe.closed:
                if pipe is self._guardian.stdout:
                    self._loop.remove_reader(pipe.fileno())
                with suppress(OSError):
                    pipe.close()

    def _see_it_off(self) -> None:
        """Take leave of the guardian, whose closed pipe is its order to kill; if it does not do so, do its work."""
        try:
            status = self._guardian.wait(GUARDIAN_SECONDS)
        except subprocess.TimeoutExpired:
            self._guardian.kill()
            status = self._guardian.wait()
        if status:
            kill_all(lambda: marked(self._mark))
            shutil.rmtree(self._private, ignore_errors=True)
            remove_groups(self._groups)


def now() -> float:
    """The clock that process start times are counted in: seconds since boot on Linux, since the epoch elsewhere."""
    if sys.platform == "linux":
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.time()
