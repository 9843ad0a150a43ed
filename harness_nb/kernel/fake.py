"""``FakeKernel``: a ``Kernel`` without a process, for tests and for anybody who wants to see the loop work.

It yields prepared outputs and replies. It keeps what it was asked in ``executed`` and passes the behaviour suite that
the real kernel passes.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path

from harness_nb.ports import Answers, ExecuteReply, HostUse, Output
from harness_nb.types import Status

Answer = str | Output | ExecuteReply | Iterable[Output | ExecuteReply]
"""A text (printed), an output, a reply, or several of them in order; without a reply the cell ends well."""


class FakeKernel:
    """A kernel that answers from ``replies``: a mapping from source, or a function of it.

    A source that the mapping does not hold ends well and prints nothing. A reply with the status ``RUNNING`` stands
    for code that never ends: the cell then waits for its timeout, an interrupt, a restart or the end of the kernel.
    """

    name = "fake"

    def __init__(self, replies: Mapping[str, Answer] | Callable[[str], Answer] | None = None) -> None:
        self._replies = replies if replies is not None else {}
        self._turn = asyncio.Lock()
        self._stopped = asyncio.Event()
        self._count = 0
        self._running = False
        self.executed: list[str] = []
        self.restarts = 0
        self.closed = False
        self.answers: Answers | None = None
        self.python = sys.executable
        self.sandbox = ""
        self.environment: Mapping[str, str] = {"PATH": os.defpath}

    def explain(self, text: str) -> str:
        """There is no sandbox."""
        return ""

    def network_use(self) -> Sequence[HostUse]:
        """Nothing is looked at."""
        return ()

    def wrap(self, command: Sequence[str]) -> list[str]:
        """The command as it is."""
        return list(command)

    holds_copies = False

    def wrap_copy(self, command: Sequence[str], copy: Path, shared: Sequence[Path]) -> list[str]:
        """The command as it is: there is no sandbox."""
        return list(command)

    async def start(self) -> None:
        """There is nothing to start."""

    async def execute(
        self, source: str, timeout: float | None = None, *, beside: bool = False
    ) -> AsyncGenerator[Output | ExecuteReply]:
        """Yield the prepared answer to ``source``; see ``ports.Kernel``."""
        async with nullcontext() if beside else self._turn:
            self._count += 1
            self.executed.append(source)
            self._running = self._running or not beside
            try:
                reply = ExecuteReply(Status.OK)
                for item in self._answer(source):
                    await asyncio.sleep(0)
                    if isinstance(item, ExecuteReply):
                        reply = item
                        break
                    yield item
                if reply.status is Status.RUNNING:
                    reply = await self._wait(timeout)
                yield self._counted(reply)
            finally:
                if not beside:
                    self._running = False
                    self._stopped.clear()

    def _answer(self, source: str) -> Iterable[Output | ExecuteReply]:
        answer = self._replies(source) if callable(self._replies) else self._replies.get(source, ())
        if isinstance(answer, str):
            return (Output("stream", {"name": "stdout", "text": answer}),)
        return (answer,) if isinstance(answer, Output | ExecuteReply) else answer

    async def _wait(self, timeout: float | None) -> ExecuteReply:
        try:
            await asyncio.wait_for(self._stopped.wait(), timeout)
        except TimeoutError:
            return ExecuteReply(Status.TIMED_OUT, extra={"timeout": timeout})
        return ExecuteReply(Status.INTERRUPTED, ename="KeyboardInterrupt", evalue="")

    def _counted(self, reply: ExecuteReply) -> ExecuteReply:
        count = reply.execution_count or self._count
        if reply.status is Status.KERNEL_DIED:
            self._count = 0
        return ExecuteReply(reply.status, count, reply.ename, reply.evalue, reply.detail, reply.extra)

    async def interrupt(self) -> None:
        """End the cell that waits, if any."""
        if self._running:
            self._stopped.set()

    async def restart(self) -> None:
        """Count it, and end the cell that waits, if any."""
        self.restarts += 1
        await self.interrupt()
        self._count = 0

    async def aclose(self) -> None:
        """Remember it, and end the cell that waits, if any."""
        self.closed = True
        await self.interrupt()
