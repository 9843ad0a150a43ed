"""Waiting for processes to be gone, by asking Linux or the system's own tools."""

from __future__ import annotations

import asyncio
import time

from harness_nb.kernel.guardian import is_zombie


async def gone(pids: list[int], seconds: float = 15.0) -> bool:
    """Whether all of them have ended within ``seconds``."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if all(is_zombie(pid) for pid in pids):
            return True
        await asyncio.sleep(0.05)
    return False
