"""How much memory a tool kernel may use here, for the question whether it died for lack of it.

``started`` asks it. Standard library only.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")


def memory_limit() -> int | None:
    """Bytes: the machine's memory, or what a limit of this process or of its control group leaves of it.

    ``None`` where neither is known. See setrlimit(2) and the kernel's documentation of ``memory.max`` (cgroup v2) and
    ``memory.limit_in_bytes`` (v1).
    """
    limits = [*_machine(), *_process(), *_groups()]
    return min(limits, default=None)


def _machine() -> list[int]:
    try:
        return [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    except (AttributeError, OSError, ValueError):
        return []


def _process() -> list[int]:
    if sys.platform == "win32":
        return []
    import resource

    soft = [resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA)]
    return [limit for limit in soft if limit != resource.RLIM_INFINITY]


def _groups() -> list[int]:
    found = []
    for path in (CGROUPS / "memory.max", CGROUPS / "memory" / "memory.limit_in_bytes"):
        try:
            found.append(int(path.read_text()))
        except (OSError, ValueError):
            continue
    return found
