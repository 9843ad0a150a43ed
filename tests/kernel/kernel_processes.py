"""Waiting for processes to be gone, and for files to be written."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from harness_nb.kernel.guardian import is_zombie


async def gone(pids: list[int], seconds: float = 15.0) -> bool:
    """Whether all of them have ended within ``seconds``."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if all(is_zombie(pid) for pid in pids):
            return True
        await asyncio.sleep(0.05)
    return False


async def written(path: Path, seconds: float = 30.0) -> str:
    """The text of a file once it has some.

    Raises:
        TimeoutError: if it has none after ``seconds``.
    """
    deadline = time.monotonic() + seconds
    while not path.exists() or not path.read_text():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{path} was not written")
        await asyncio.sleep(0.05)
    return path.read_text()
