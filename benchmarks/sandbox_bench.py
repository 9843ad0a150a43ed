"""What the sandbox costs: the start and a trivial cell of ``harness-sandbox`` against ``harness-tools``.

``python benchmarks/sandbox_bench.py``. Kernels are started in turn in one run, so that ratios hold although the
machine's speed drifts.
"""

from __future__ import annotations

import asyncio
import platform
import statistics
import sys
import tempfile
import time
from pathlib import Path

from harness_nb.kernel import ToolKernel
from harness_nb.kernel.confinement import Confinement
from harness_nb.kernel.confining import confinement_for
from harness_nb.kernel.enforced import enforced
from harness_nb.kernel.sandbox import layer_here
from harness_nb.ports import ExecuteReply
from harness_nb.settings import Settings
from harness_nb.tools import SETUP_SOURCE, landlock
from harness_nb.types import Status

STARTS = 9
CELLS = 100
PLAIN = "harness-tools"


async def measure(workspace: Path, confinement: Confinement | None) -> tuple[float, list[float]]:
    """Seconds from nothing to a kernel that is set up, and seconds of each trivial cell."""
    name = "harness-sandbox" if confinement else PLAIN
    kernel = ToolKernel(
        name=name, directory=workspace / "harness_sessions", setup=SETUP_SOURCE, confinement=confinement
    )
    began = time.perf_counter()
    await kernel.start()
    started, cells = time.perf_counter() - began, []
    for _ in range(CELLS):
        began = time.perf_counter()
        replies = [item async for item in kernel.execute("1") if isinstance(item, ExecuteReply)]
        cells.append(time.perf_counter() - began)
        assert replies[-1].status is Status.OK
    await kernel.aclose()
    return started, cells


async def main() -> None:
    """Measure in turn and print."""
    if not (layer := layer_here()):
        sys.exit("No sandbox works here.")
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder).resolve()
        (workspace / "harness_sessions").mkdir()
        settings = Settings.load(workspace, {}, {})
        kinds: dict[str, Confinement | None] = {PLAIN: None, layer: confinement_for(settings)}
        if landlock.abi():
            kinds["landlock"] = confinement_for(settings, "landlock")
        print(f"Python {platform.python_version()} on {platform.system()}; {STARTS} starts each, in turn")
        print(enforced(kinds[layer]).by)
        starts: dict[str, list[float]] = {kind: [] for kind in kinds}
        cells: dict[str, list[float]] = {kind: [] for kind in kinds}
        for round_ in range(STARTS + 1):
            for kind, confinement in kinds.items():
                started, each = await measure(workspace, confinement)
                if round_:  # the first round warms caches
                    starts[kind].append(started)
                    cells[kind] += each
    for title, figures in (("start", starts), ("trivial cell", cells)):
        plain = statistics.median(figures[PLAIN])
        for kind, values in figures.items():
            median = statistics.median(values)
            spread = f"min {1000 * min(values):.1f}, max {1000 * max(values):.1f}"
            print(f"{title:13} {kind:14} {1000 * median:8.1f} ms ({spread})  ratio {median / plain:.3f}")


if __name__ == "__main__":
    asyncio.run(main())
