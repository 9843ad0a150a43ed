"""A kernel started ahead of its use, so that the first cell of a session does not wait for one.

The magics keep one ``Spare`` and give it to the sessions that they open; ``ToolKernel.start`` takes the kernel out of
it. A spare belongs to one event loop.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path

from harness_nb.errors import HarnessError
from harness_nb.kernel.confinement import Confinement
from harness_nb.kernel.environment import kernel_environment
from harness_nb.kernel.spec import DEFAULT_NAME, SANDBOX_NAME, resolve_kernel
from harness_nb.kernel.started import StartedKernel


class Spare:
    """At most one kernel in reserve, of the kernel spec ``name`` and with the scrubbed environment of this process."""

    def __init__(self, name: str = DEFAULT_NAME) -> None:
        self.name = name
        self.confinement: Confinement | None = None
        self._starting: asyncio.Task[StartedKernel] | None = None

    def prepare(self, directory: Path, confinement: Confinement | None = None) -> None:
        """Begin to start a kernel, unless there is one; it waits in ``directory``, which must exist.

        With a ``confinement`` it is a kernel of ``harness-sandbox``, whatever the name was.
        """
        if self._starting is None:
            self.confinement = confinement
            if confinement is not None:
                self.name = SANDBOX_NAME
            start = StartedKernel.start(
                resolve_kernel(self.name),
                environment=kernel_environment(os.environ),
                directory=directory,
                confinement=confinement,
            )
            self._starting = asyncio.ensure_future(start)

    def fits(self, name: str, confinement: Confinement | None) -> bool:
        """Whether a kernel of that name in that sandbox could be taken from here."""
        return (self.name, self.confinement) == (name, confinement)

    async def ready(self) -> None:
        """Wait until what was prepared has started, or has failed to."""
        if self._starting is not None:
            await asyncio.wait({self._starting})

    async def take(self) -> StartedKernel | None:
        """The kernel, for good; ``None`` if none was prepared, it has died, or it could not be started."""
        starting, self._starting = self._starting, None
        if starting is None:
            return None
        with suppress(HarnessError):
            started = await starting
            if started.alive:
                return started
            await started.end()
        return None

    async def aclose(self) -> None:
        """End what is in reserve."""
        started = await self.take()
        if started is not None:
            await started.end()
