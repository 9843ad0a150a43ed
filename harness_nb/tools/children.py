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

PROC = Path("/proc")
LISTED = 8
COMMAND_CHARACTERS = 80


def started_by(leader: int, variable: str, mark: str) -> dict[int, str]:
    """Living processes of the session ``leader``, or with ``variable=mark`` in their environment: pid to command."""
    if sys.platform != "linux":
        return _group_members(leader)
    wanted = f"{variable}={mark}".encode()
    found: dict[int, str] = {}
    for entry in PROC.iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with suppress(OSError, ValueError, IndexError):
            fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
            if fields[0] in "ZX":
                continue
            if int(fields[3]) == leader or wanted in (entry / "environ").read_bytes().split(b"\0"):
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                found[int(entry.name)] = command or "?"
    return found


def _group_members(leader: int) -> dict[int, str]:
    listing = subprocess.run(
        ["ps", "-axo", "pid=,pgid=,stat=,command="], capture_output=True, text=True, check=False
    ).stdout
    found: dict[int, str] = {}
    for line in listing.splitlines():
        pid, group, state, command = [*line.split(None, 3), "?"][:4]
        if int(group) == leader and not state.startswith("Z"):
            found[int(pid)] = command
    return found


def describe_processes(processes: dict[int, str]) -> str:
    """``sleep 600 (pid 17), …`` for a person or a model."""
    parts = []
    for pid, command in sorted(processes.items())[:LISTED]:
        short = command if len(command) <= COMMAND_CHARACTERS else command[: COMMAND_CHARACTERS - 1] + "…"
        parts.append(f"{short} (pid {pid})")
    if len(processes) > LISTED:
        parts.append(f"and {len(processes) - LISTED} more")
    return ", ".join(parts)


def kill_processes(processes: dict[int, str], seconds: float = 1.0) -> None:
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
