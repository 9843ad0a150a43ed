"""One tool call as one cell: run the source, pass its outputs through the firewall, make the result for the model.

The loop calls ``run_cell``; it must not import a kernel library or IPython.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass

from harness_nb import events as ev
from harness_nb.outputs import Firewall, result_content
from harness_nb.ports import ExecuteReply, Kernel, Output
from harness_nb.types import Status, TextPart, ToolCall

TICK = 0.1
"""Seconds after which coalesced outputs are passed on although the cell is silent."""


@dataclass(frozen=True, slots=True)
class CellRunner:
    """What cells run with. ``clock`` gives seconds; ``inspect`` looks, after each cell, for what it should not have
    done.

    ``firewall`` makes a fresh one for a call. What ``inspect`` says is told to the model and to the person.
    """

    kernel: Kernel
    firewall: Callable[[ToolCall], Firewall]
    clock: Callable[[], float]
    inspect: Callable[[], str]


async def run_cell(
    cells: CellRunner, call: ToolCall, source: str, *, timeout: float, images: bool
) -> AsyncGenerator[ev.Event]:
    """Execute ``source`` for ``call`` and yield its events up to ``ResultAdded``.

    ``timeout`` is in seconds; ``images`` says whether the model takes pictures.

    Raises:
        KernelError: when no kernel can be started.
    """
    clock, firewall = cells.clock, cells.firewall(call)
    yield ev.CellStarted(call_id=call.call_id, name=call.name, source=source)
    started = clock()
    reply = ExecuteReply(status=Status.UNKNOWN)
    async with aclosing(_ticking(cells.kernel.execute(source, timeout))) as items:
        async for item in items:
            if isinstance(item, ExecuteReply):
                reply = item
            elif item is not None:
                firewall.feed(item)
            for event in firewall.drain(clock()):
                yield event
    for event in firewall.close(clock()):
        yield event
    elapsed = clock() - started
    call_id, name, status = call.call_id, call.name, reply.status
    count = reply.execution_count
    yield ev.CellFinished(call_id=call_id, name=name, status=status, execution_count=count, elapsed=elapsed)
    content = result_content(reply, firewall, elapsed, images)
    if note := await asyncio.to_thread(cells.inspect):
        content = (*content, TextPart(text=f"\n[{note}]"))
        yield ev.Warned(text=note)
    if whole := firewall.offloaded:
        path, size, lines = whole.path, whole.bytes, whole.lines
        yield ev.ContextOffloaded(call_id=call_id, name=name, path=path, bytes=size, lines=lines)
    yield ev.ResultAdded(call_id=call_id, name=name, status=status, content=content)


async def _ticking(items: AsyncGenerator[Output | ExecuteReply]) -> AsyncGenerator[Output | ExecuteReply | None]:
    """The same items, and ``None`` whenever there was none for a tick. Closes ``items`` however it ends."""
    async with aclosing(items):
        while True:
            step = asyncio.ensure_future(anext(items, None))
            try:
                while not (await asyncio.wait({step}, timeout=TICK))[0]:
                    yield None
            finally:
                if not step.done():
                    step.cancel()
                    await asyncio.wait({step})
            item = step.result()
            if item is None:
                return
            yield item
