from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from kernel_cells import Ran, Run, run_cell

from harness_nb.kernel import ToolKernel
from harness_nb.tools import SETUP_SOURCE


@pytest_asyncio.fixture
async def kernel(tmp_path: Path) -> AsyncIterator[ToolKernel]:
    """A real kernel with the tools, in a workspace of its own."""
    made = ToolKernel(directory=tmp_path / "harness_sessions", setup=SETUP_SOURCE, grace=2.0)
    yield made
    await made.aclose()


@pytest.fixture
def run(kernel: ToolKernel) -> Run:
    async def run_source(source: str, timeout: float | None = 60) -> Ran:
        return await run_cell(kernel, source, timeout)

    return run_source
