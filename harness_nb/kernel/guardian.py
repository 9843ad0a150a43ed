"""The guardian: a small process between the harness and the kernel, which outlives neither and lets nothing outlive it.

It starts the kernel in a session of its own, reports its start and its end, and when the kernel has ended, the harness
says so, or the harness is gone (its pipe closes, however it died), it kills whatever the kernel has started. On Linux
it is the "child subreaper" (prctl(2)): children that detach, also into sessions of their own, become its children and
cannot get away; the environment of the kernel also carries a mark, which finds them elsewhere.

``process`` runs this file by path with ``python -I``; it must not import anything of ours. Commands come in and reports
go out as JSON lines::

    {"argv", "env", "cwd", "mark", "remove"}            first, in; for a sandbox also
    {"disks", "free_disk", "processes", "groups"}
    {"command": "kill"} {"command": "reap", "since"}    in
    {"report": "started", "pid"} {"report": "reaped", "count"} {"report": "exited", "status", "peak", "words"}    out
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

PR_SET_CHILD_SUBREAPER = 36
LAST_WORDS = 4096
SWEEP_SECONDS = 3.0
GROUP_SECONDS = 1.0
PARENT_POLL_SECONDS = 1.0
BOUNDS_POLL_SECONDS = 0.2
TRACKERS = (b"resource_tracker", b"multiprocessing.forkserver")


class Guardian:
    """One kernel and its descendants, from start to the last of them."""

    def __init__(self, order: dict[str, Any], commands: Lines) -> None:
        self.commands = commands
        self.mark: str = order["mark"]
        self.remove: str = order["remove"]
        self.parent = os.getppid()
        self.words = b""
        least = order.get("free_disk") or 0
        self.disks = {folder: min(least, free_on(folder) // 2) for folder in order.get("disks", []) if least}
        self.processes: int | None = order.get("processes")
        self.groups: list[str] = order.get("groups", [])
        self.around = len(process_ids()) if self.processes else 0
        self.wake, wake_end = os.pipe()
        os.set_blocking(wake_end, False)
        signal.set_wakeup_fd(wake_end, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, lambda *_: os._exit(self.sweep()))
        become_subreaper()
        if self.processes:
            go_first()
        self.kernel = subprocess.Popen(
            order["argv"],
            env=order["env"],
            cwd=order["cwd"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=self.enter_groups if self.groups else None,
        )
        report(report="started", pid=self.kernel.pid)

    def watch(self) -> None:
        """Obey commands until the kernel has ended or is to be ended; then report, and sweep up."""
        assert self.kernel.stdout is not None
        commands, words = self.commands.descriptor, self.kernel.stdout.fileno()
        watched = [commands, words, self.wake]
        pause = BOUNDS_POLL_SECONDS if self.disks or self.processes else PARENT_POLL_SECONDS
        while not self.kernel_has_ended():
            ready = select.select(watched, [], [], 0 if self.commands.waiting else pause)[0]
            if self.wake in ready:
                os.read(self.wake, 512)
            if words in ready and not self.read_words(words):
                watched.remove(words)
            if commands in ready:
                self.commands.receive()
            if not self.obey() or os.getppid() != self.parent:
                break
            if broken := self.broken_bound():
                self.words = (self.words + broken.encode())[-LAST_WORDS:]
                break
        self.sweep()

    def enter_groups(self) -> None:
        """In the kernel's process before it becomes the kernel: enter its control groups, or do not start."""
        for group in self.groups:
            (Path(group) / "cgroup.procs").write_text(str(os.getpid()))

    def broken_bound(self) -> str:
        """Which bound of a sandbox is broken; empty while none is.

        Here is what no limit of the system holds: the space left on a disk, and how many processes root may have.
        """
        for folder, least in self.disks.items():
            if (left := free_on(folder)) < least:
                return f"the disk was nearly full ({left // 10**6} MB free), so the sandbox ended this kernel"
        if self.processes and len(process_ids()) > self.around + self.processes // 2:
            count = len(below(os.getpid()))
            if count > self.processes:
                return f"there were {count} processes (at most {self.processes}), so the sandbox ended this kernel"
        return ""

    def kernel_has_ended(self) -> bool:
        """Take leave of dead children; when the kernel is among them, report its end at once."""
        with suppress(ChildProcessError):
            while True:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
                if not pid:
                    return False
                if pid == self.kernel.pid:
                    self.kernel.returncode = os.waitstatus_to_exitcode(status)
                    self.report_end(usage.ru_maxrss)
                    return True
        return True

    def report_end(self, peak: int) -> None:
        """``peak`` is the kernel's greatest resident set: kilobytes on Linux, bytes on macOS (getrusage(2))."""
        assert self.kernel.stdout is not None
        os.set_blocking(self.kernel.stdout.fileno(), False)
        with suppress(BlockingIOError):
            while self.read_words(self.kernel.stdout.fileno()):
                pass
        unit = 1 if sys.platform == "darwin" else 1024
        words = self.words.decode("utf-8", "replace")
        report(report="exited", status=self.kernel.returncode, peak=peak * unit, words=words)

    def read_words(self, descriptor: int) -> bool:
        """Keep the end of what the kernel process itself prints: why it would not start, or its last words."""
        data = os.read(descriptor, 65536)
        self.words = (self.words + data)[-LAST_WORDS:]
        return bool(data)

    def obey(self) -> bool:
        """Carry out the commands that have come; false when it is time to end."""
        while self.commands.waiting:
            command = json.loads(self.commands.waiting.pop(0))
            if command["command"] == "kill":
                return False
            count = kill_all(lambda since=command["since"]: self.started_since(since))
            report(report="reaped", count=count)
        return not self.commands.ended

    def started_since(self, since: float) -> list[int]:
        """Descendants of the kernel that started at ``since`` or later, in seconds of the clock that counts from boot.

        The trackers of multiprocessing are left out: they serve the whole life of the kernel.
        """
        own = [pid for pid in self.descendants() if pid != self.kernel.pid]
        return [pid for pid in own if start_time(pid) >= since and not is_tracker(pid)]

    def descendants(self) -> list[int]:
        """Everything below this process, and everything that carries the mark."""
        return sorted({*below(os.getpid()), *marked(self.mark)} - {os.getpid()})

    def sweep(self) -> int:
        """Kill the kernel and all that it has started; remove the directory of its sockets. Returns 0."""
        kill_all(self.descendants)
        if self.kernel.returncode is None and not self.kernel_has_ended():
            self.kernel.kill()
            report(report="exited", status=-int(signal.SIGKILL), peak=0, words=self.words.decode("utf-8", "replace"))
        shutil.rmtree(self.remove, ignore_errors=True)
        self.leave_groups()
        return 0

    def leave_groups(self) -> None:
        """Remove the control groups, once the last dead process in them has been taken leave of."""
        deadline = time.monotonic() + GROUP_SECONDS
        while self.groups and time.monotonic() < deadline:
            with suppress(OSError):
                os.wait4(-1, os.WNOHANG)
            for group in list(self.groups):
                with suppress(OSError):
                    Path(group).rmdir()
                    self.groups.remove(group)
            time.sleep(0.01 if self.groups else 0)


class Lines:
    """Lines that come through a file descriptor, as far as they have come.

    ``waiting`` are those that have been received and not taken; ``ended`` is set when the other side is closed.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.waiting: list[bytes] = []
        self.ended = False
        self._rest = b""

    def receive(self) -> None:
        """Wait for data and add its whole lines to ``waiting``."""
        data = os.read(self.descriptor, 65536)
        self.ended = not data
        *lines, self._rest = (self._rest + data).split(b"\n")
        self.waiting += lines

    def take(self) -> bytes | None:
        """Wait for the next whole line; ``None`` when the other side is closed before."""
        while not self.waiting and not self.ended:
            self.receive()
        return self.waiting.pop(0) if self.waiting else None


def kill_all(find: Any) -> int:
    """Kill what ``find()`` finds until it finds nothing more, for three seconds at most; return how many."""
    killed: set[int] = set()
    deadline = time.monotonic() + SWEEP_SECONDS
    while time.monotonic() < deadline:
        living = [pid for pid in find() if not is_zombie(pid)]
        if not living:
            break
        for pid in living:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        killed.update(living)
        time.sleep(0.01)
    return len(killed)


def become_subreaper() -> None:
    """Have orphaned descendants become children of this process. Linux only; elsewhere the mark must do."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def free_on(folder: str) -> int:
    """Bytes that are free on the disk of a folder; more than any disk has, where it cannot be asked."""
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return 2**63


def go_first() -> None:
    """Run before all ordinary programs, where that is allowed (root): no flood of processes must hold this up."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))


def below(ancestor: int) -> list[int]:
    """Process ids of all descendants of ``ancestor``."""
    parents = {pid: parent for pid in process_ids() if (parent := parent_of(pid)) is not None}
    found: set[int] = {ancestor}
    grown = True
    while grown:
        new = {pid for pid, parent in parents.items() if parent in found and pid not in found}
        found |= new
        grown = bool(new)
    return sorted(found - {ancestor})


def marked(mark: str) -> list[int]:
    """Process ids of all processes whose environment carries ``HARNESS_NB_KERNEL=mark``."""
    wanted = f"HARNESS_NB_KERNEL={mark}"
    return [pid for pid in process_ids() if wanted in environment_of(pid)]


def process_ids() -> list[int]:
    """All process ids that can be seen."""
    if sys.platform == "linux":
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - no objects for thousands
    import psutil  # type: ignore[import-untyped]

    return list(psutil.pids())


def stat_fields(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the third one on (proc(5)); empty when there is no such process."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    return []


def parent_of(pid: int) -> int | None:
    """The parent's process id."""
    if sys.platform == "linux":
        fields = stat_fields(pid)
        return int(fields[1]) if fields else None
    return ask_psutil(pid, "ppid", None)


def is_zombie(pid: int) -> bool:
    """Whether the process is dead, with or without somebody having noticed."""
    if sys.platform == "linux":
        fields = stat_fields(pid)
        return not fields or fields[0] in "ZX"
    return ask_psutil(pid, "status", "zombie") == "zombie"


def start_time(pid: int) -> float:
    """When the process started, in seconds since boot on Linux and since the epoch elsewhere; 0 if it is gone."""
    if sys.platform == "linux":
        fields = stat_fields(pid)
        return int(fields[19]) / os.sysconf("SC_CLK_TCK") if fields else 0.0
    return ask_psutil(pid, "create_time", 0.0)


def environment_of(pid: int) -> list[str]:
    """The environment of a process as ``NAME=value``; empty when it may not be read."""
    if sys.platform == "linux":
        with suppress(OSError):
            return Path(f"/proc/{pid}/environ").read_bytes().decode("utf-8", "replace").split("\0")
        return []
    return [f"{name}={value}" for name, value in ask_psutil(pid, "environ", {}).items()]


def is_tracker(pid: int) -> bool:
    """Whether the process is one of multiprocessing's own servants."""
    if sys.platform == "linux":
        with suppress(OSError):
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
            return any(name in command for name in TRACKERS)
        return False
    command = "\0".join(ask_psutil(pid, "cmdline", [])).encode()
    return any(name in command for name in TRACKERS)


def ask_psutil(pid: int, question: str, otherwise: Any) -> Any:
    """One property of a process through psutil, which ipykernel depends on."""
    import psutil

    try:
        return getattr(psutil.Process(pid), question)()
    except psutil.Error:
        return otherwise


def report(**content: Any) -> None:
    """Write one report; a harness that is gone reads none."""
    with suppress(OSError):
        os.write(sys.stdout.fileno(), json.dumps(content).encode() + b"\n")


def main() -> None:
    """Read the order, start the kernel, watch it."""
    commands = Lines(sys.stdin.fileno())
    line = commands.take()
    if line is None:
        return
    order = json.loads(line)
    try:
        guardian = Guardian(order, commands)
    except OSError as error:
        shutil.rmtree(order["remove"], ignore_errors=True)
        report(report="exited", status=127, peak=0, words=str(error))
        return
    guardian.watch()


if __name__ == "__main__":
    main()
