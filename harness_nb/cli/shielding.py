"""Keeps the environment of the command line from other programs of the same user, as far as the system lets it."""

from __future__ import annotations

import sys
from contextlib import suppress

PR_SET_DUMPABLE = 4
"""prctl(2): what is not dumpable has a ``/proc/PID/environ`` that only root can read, and cannot be traced."""


def hide_environment() -> None:
    """Where there is no sandbox, tool code could read the keys in the environment of this process. Linux only.

    Not done in the kernel of a notebook, which belongs to its user: no debugger could be attached to it any more. What
    this process starts is not affected.
    """
    if sys.platform == "linux":
        import ctypes

        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
