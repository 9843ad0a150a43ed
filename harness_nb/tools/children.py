"""Which processes a bash cell started and has left behind, and their end.

A child that only detaches keeps the session of its bash; one that opens a session of its own still carries the cell's
mark in its environment. On Linux both are read from /proc; elsewhere ``ps`` gives the process group, which is less.
Standard library only; runs in the tool kernel; used by ``bash``.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
LISTED = 5
KILLED = 12
COMMAND_CHARACTERS = 60


class Child(NamedTuple):
    """A living process: the pid of its parent, and its command line."""

    parent: int
    command: str


def started_by(leader: int, variable: str, mark: str) -> dict[int, Child]:
    """Living processes of the session ``leader``, or with ``variable=mark`` in their environment, by pid."""
    if sys.platform != "linux":
        return _group_members(leader)
    wanted = f"{variable}={mark}".encode()
    found: dict[int, Child] = {}
    for entry in PROC.iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with suppress(OSError, ValueError, IndexError):
            fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
            if fields[0] in "ZX":
                continue
            if int(fields[3]) == leader or wanted in (entry / "environ").read_bytes().split(b"\0"):
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                found[int(entry.name)] = Child(int(fields[1]), command or "?")
    return found


def _group_members(leader: int) -> dict[int, Child]:
    listing = subprocess.run(
        ["ps", "-axo", "pid=,ppid=,pgid=,stat=,command="], capture_output=True, text=True, check=False
    ).stdout
    found: dict[int, Child] = {}
    for line in listing.splitlines():
        with suppress(ValueError):
            pid, parent, group, state, command = line.split(None, 4)
            if int(group) == leader and not state.startswith("Z"):
                found[int(pid)] = Child(int(parent), command.strip())
    return found


def name_processes(processes: dict[int, Child], script: str) -> list[str]:
    """``sleep 600 (pid 17)``, ``python train.py (pid 18)``: what runs, for a person or a model.

    Of a program that has started others only the first is named. Copies of the shell itself, whose command lines begin
    with ``script``, are named only where they run nothing else.
    """
    parents = {child.parent for child in processes.values()}
    parts = []
    for pid in sorted(processes):
        command = processes[pid].command
        if command.startswith(script):
            if pid not in parents:
                parts.append(f"a part of this script (pid {pid})")
        elif not _has_program_above(pid, processes, script):
            parts.append(f"{_short(command)} (pid {pid})")
    if len(parts) > LISTED:
        parts[LISTED:] = [f"{len(parts) - LISTED} more"]
    return parts


def _has_program_above(pid: int, processes: dict[int, Child], script: str) -> bool:
    above = processes.get(processes[pid].parent)
    while above is not None:
        if not above.command.startswith(script):
            return True
        above = processes.get(above.parent)
    return False


def _short(command: str) -> str:
    program, *arguments = command.split()
    line = " ".join([program.rpartition("/")[2] or program, *arguments])
    return line if len(line) <= COMMAND_CHARACTERS else line[: COMMAND_CHARACTERS - 1] + "…"


def kill_command(processes: dict[int, Child], leader: int) -> str:
    """The command that ends them; where they are many, the one that ends the process group of ``leader``."""
    return f"kill {' '.join(map(str, sorted(processes)))}" if len(processes) <= KILLED else f"kill -- -{leader}"


def kill_processes(processes: dict[int, Child], seconds: float = 1.0) -> None:
    """Kill them and wait up to ``seconds`` until they are gone."""
    for pid in processes:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + seconds
    while any(_alive(pid) for pid in processes) and time.monotonic() < deadline:
        time.sleep(0.01)


def _alive(pid: int) -> bool:
    """Whether the process lives; a zombie does not."""
    try:
        return (PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()[0] not in "ZX"
    except (OSError, IndexError):
        pass
    if PROC.is_dir():
        return False
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True
