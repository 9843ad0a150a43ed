"""Cells beside a running cell: each in a kernel process of its own, with the same tools and the same workspace.

A kernel's own threads would do only as long as the running cell lets go of the interpreter, and would share its output
and its interrupts. A companion shares nothing but the files: what looks after a training (``nvidia-smi``, the end of
a log) works whatever the training does. ``ToolKernel`` has one set of them and starts none before it is needed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Protocol

from harness_nb.ports import ExecuteReply, Kernel, Output
from harness_nb.types import JsonObject


class Companion(Kernel, Protocol):
    """A kernel that says whether it is free."""

    @property
    def busy(self) -> bool:
        """Whether a cell is running or waiting in it."""
        ...


class Companions:
    """Kernels made by ``make`` as they are needed and used again when they are free."""

    def __init__(self, make: Callable[[], Companion]) -> None:
        self._make = make
        self._kernels: list[Companion] = []

    async def execute(self, source: str, timeout: float | None) -> AsyncGenerator[Output | ExecuteReply]:
        """Run ``source`` in a free companion; see ``ports.Kernel``.

        The execution counts of a companion would look like those of the kernel, so the outputs carry none.
        """
        kernel = next((kernel for kernel in self._kernels if not kernel.busy), None)
        if kernel is None:
            kernel = self._make()
            self._kernels.append(kernel)
        async with aclosing(kernel.execute(source, timeout)) as items:
            async for item in items:
                if isinstance(item, ExecuteReply):
                    yield replace(item, execution_count=None)
                elif item.kind == "execute_result":
                    content: JsonObject = {**item.content, "execution_count": None}
                    yield replace(item, content=content)
                else:
                    yield item

    async def aclose(self) -> None:
        """End them all, with everything that they have started."""
        kernels, self._kernels = self._kernels, []
        await asyncio.gather(*(kernel.aclose() for kernel in kernels))
