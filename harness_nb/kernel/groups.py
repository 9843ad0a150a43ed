"""A control group of its own for a sandbox, where this user may make one: bounds on all its processes together.

``process`` makes it and the guardian enters and removes it. Limits of processes (setrlimit(2)) do not bind root, and
memory is bounded by them for each process only; a group binds all of them. Source: the kernel's documentation of
control groups, versions 1 (``pids``, ``memory``) and 2. Standard library only.
"""

from __future__ import annotations

import functools
import os
import secrets
import sys
from contextlib import suppress
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
FILES = {"pids": ("pids.max", "pids.max"), "memory": ("memory.limit_in_bytes", "memory.max")}
"""The file that holds the limit, in versions 1 and 2."""


def make_groups(processes: int | None, memory: int | None) -> dict[str, Path]:
    """Fresh groups for the bounds that can be held here, by controller: ``pids``, ``memory``. None, where none can."""
    if sys.platform != "linux":
        return {}
    name = f"harness-nb-{secrets.token_hex(8)}"
    wanted = {"pids": processes, "memory": memory}
    made: dict[str, Path] = {}
    for controller, folder in _places().items():
        most = wanted[controller]
        if most is None:
            continue
        version = 0 if folder.is_relative_to(CGROUPS / controller) else 1
        group = folder / name
        with suppress(OSError):
            group.mkdir(exist_ok=version == 1)
            try:
                (group / FILES[controller][version]).write_text(str(most))
                made[controller] = group
            except OSError:
                if group not in made.values():
                    group.rmdir()
    return made


def remove_groups(groups: dict[str, Path]) -> None:
    """Remove groups that have no process any more."""
    for folder in set(groups.values()):
        with suppress(OSError):
            folder.rmdir()


@functools.cache
def group_bounds() -> frozenset[str]:
    """Which bounds a group can hold here: ``pids``, ``memory``. Tries it once in a process."""
    groups = make_groups(1_000, 2**40)
    remove_groups(groups)
    return frozenset(groups)


def _places() -> dict[str, Path]:
    """The folder of this process's own group, by controller."""
    found: dict[str, Path] = {}
    with suppress(OSError, ValueError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            for controller in FILES:
                if controller in controllers.split(","):
                    found[controller] = CGROUPS / controller / path.lstrip("/")
                elif not controllers and controller not in found:
                    own = CGROUPS / path.lstrip("/")
                    if controller in _words(own / "cgroup.subtree_control"):
                        found[controller] = own
    return {controller: folder for controller, folder in found.items() if os.access(folder, os.W_OK)}


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []
