"""The tool kernel against nbclient and bare jupyter_client, side by side in one run: ``make bench``.

Four figures, each with its peer measured in turn in the same process, so that ratios hold although the machine's speed
drifts: the overhead of a trivial cell, a million printed lines, the time from SIGKILL to the news of it, the start.
"""

from __future__ import annotations

import asyncio
import os
import platform
import signal
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import nbformat
from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import DeadKernelError

from harness_nb.kernel import ToolKernel
from harness_nb.kernel.spares import Spare
from harness_nb.outputs import Firewall
from harness_nb.ports import ExecuteReply, Output
from harness_nb.tools import SETUP_SOURCE
from harness_nb.types import Status

CELLS = 200
LINES = 1_000_000
DEATHS = 5
STARTS = 5
FLOOD = f"for i in range({LINES}): print(i)"


async def drain(kernel: ToolKernel, source: str, firewall: Firewall | None = None) -> ExecuteReply:
    """Execute a cell to its end."""
    reply = ExecuteReply(Status.UNKNOWN)
    async for item in kernel.execute(source):
        if isinstance(item, ExecuteReply):
            reply = item
        elif firewall is not None and isinstance(item, Output):
            firewall.feed(item)
            firewall.drain(time.monotonic())
    return reply


async def bare_execute(client: AsyncKernelClient, source: str) -> None:
    """Execute with jupyter_client alone, until reply and idle."""
    await client._async_execute_interactive(source, output_hook=lambda message: None, store_history=True)


def milliseconds(seconds: list[float]) -> str:
    """Median and spread."""
    values = sorted(1000 * value for value in seconds)
    return f"{statistics.median(values):8.2f} ms  (min {values[0]:.2f}, max {values[-1]:.2f}, n={len(values)})"


async def timed(work: Callable[[], Awaitable[object]]) -> float:
    """Seconds that ``work`` takes."""
    started = time.perf_counter()
    await work()
    return time.perf_counter() - started


def resident() -> float:
    """Resident memory of this process in MB (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


class Peers:
    """One kernel each for us, nbclient and jupyter_client, all over ipc where they can."""

    def __init__(self, folder: Path) -> None:
        self.kernel = ToolKernel(directory=folder, setup=SETUP_SOURCE.replace('workspace("..")', 'workspace(".")'))
        self.cell = nbformat.v4.new_code_cell("1")
        self.nb = NotebookClient(nbformat.v4.new_notebook(cells=[self.cell]), kernel_name="python3")
        self.manager = AsyncKernelManager(kernel_name="python3", transport="ipc", ip=str(folder / "bare"))

    async def __aenter__(self) -> Peers:
        await self.kernel.start()
        self._context = self.nb.async_setup_kernel()
        await self._context.__aenter__()
        await self.manager.start_kernel()
        self.client = self.manager.client()
        self.client.start_channels()
        await self.client.wait_for_ready()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.kernel.aclose()
        await self._context.__aexit__(None, None, None)
        self.client.stop_channels()
        await self.manager.shutdown_kernel(now=True)


async def bench_overhead(peers: Peers) -> None:
    """A trivial cell, in turn on each."""
    ours, nbs, bares = [], [], []
    for _ in range(CELLS):
        ours.append(await timed(lambda: drain(peers.kernel, "1")))
        nbs.append(await timed(lambda: peers.nb.async_execute_cell(peers.cell, 0)))
        bares.append(await timed(lambda: bare_execute(peers.client, "1")))
    print("overhead of a trivial cell")
    print(f"  harness_nb Kernel.execute {milliseconds(ours)}")
    print(f"  nbclient                  {milliseconds(nbs)}  ratio {ratio(ours, nbs)}")
    print(f"  bare jupyter_client       {milliseconds(bares)}  ratio {ratio(ours, bares)}")


def ratio(ours: list[float], peers: list[float]) -> str:
    """Our median over the peer's."""
    return f"{statistics.median(ours) / statistics.median(peers):.2f}"


async def bench_flood(peers: Peers) -> None:
    """A million printed lines, through the output firewall, and on bare jupyter_client."""
    before = resident()
    peak = before
    running = True

    async def watch() -> None:
        nonlocal peak
        while running:
            peak = max(peak, resident())
            await asyncio.sleep(0.05)

    watching = asyncio.ensure_future(watch())
    firewall = Firewall("flood", "python")
    ours = await timed(lambda: drain(peers.kernel, FLOOD, firewall))
    firewall.close(time.monotonic())
    running = False
    await watching
    bare = await timed(lambda: bare_execute(peers.client, FLOOD))
    print(f"{LINES:,} printed lines")
    print(f"  harness_nb with firewall  {LINES / ours:10,.0f} lines/s, growth of this process {peak - before:.1f} MB")
    print(f"  bare jupyter_client       {LINES / bare:10,.0f} lines/s  ratio of times {ours / bare:.2f}")


async def bench_death(folder: Path) -> None:
    """From SIGKILL to knowing it: the kernel kills itself at a time that it prints."""
    source = "import os, time; print(time.time(), flush=True); time.sleep(0.2); os.kill(os.getpid(), 9)"
    ours, nbs = [], []
    kernel = ToolKernel(directory=folder)
    for _ in range(DEATHS):
        ours.append(await time_to_news(kernel, source))
        nbs.append(await time_to_dead_kernel_error(source))
    await kernel.aclose()
    print("from SIGKILL to the news")
    print(f"  harness_nb 'kernel died'  {milliseconds(ours)}")
    print(f"  nbclient DeadKernelError  {milliseconds(nbs)}  ratio {ratio(ours, nbs)}")


async def time_to_news(kernel: ToolKernel, source: str) -> float:
    """Seconds from the kernel's SIGKILL to the reply that says so."""
    printed = ""
    async for item in kernel.execute(source):
        if isinstance(item, Output):
            printed += item.content.get("text", "")
        else:
            assert item.status is Status.KERNEL_DIED, item
    return time.time() - float(printed.split()[0]) - 0.2


async def time_to_dead_kernel_error(source: str) -> float:
    """The same for nbclient, in a fresh kernel each."""
    cell = nbformat.v4.new_code_cell(source)
    client = NotebookClient(nbformat.v4.new_notebook(cells=[cell]), kernel_name="python3")
    async with client.async_setup_kernel():
        try:
            await client.async_execute_cell(cell, 0)
        except DeadKernelError:
            seen = time.time()
    return seen - float(cell.outputs[0].text.split()[0]) - 0.2


async def bench_start(folder: Path) -> None:
    """To the end of the first cell: from nothing, and with a spare that has been started ahead."""
    cold, spared = [], []
    for _ in range(STARTS):
        kernel = ToolKernel(directory=folder)
        cold.append(await timed(lambda kernel=kernel: drain(kernel, "1")))
        await kernel.aclose()
        spare = Spare()
        spare.prepare(folder)
        await spare.ready()
        kernel = ToolKernel(directory=folder, spare=spare)
        spared.append(await timed(lambda kernel=kernel: drain(kernel, "1")))
        await kernel.aclose()
        await spare.aclose()
    print("start to the end of the first cell")
    print(f"  cold                      {milliseconds(cold)}")
    print(f"  from the spare            {milliseconds(spared)}  ratio {ratio(spared, cold)}")


async def main() -> None:
    """All of it."""
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}")
    with tempfile.TemporaryDirectory() as folder:
        async with Peers(Path(folder)) as peers:
            await bench_overhead(peers)
            await bench_flood(peers)
        await bench_death(Path(folder))
        await bench_start(Path(folder))


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    asyncio.run(main())
