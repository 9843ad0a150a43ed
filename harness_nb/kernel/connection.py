"""The sockets to one kernel: requests out, messages in, over jupyter_client's session and zmq.

``started`` makes one for each kernel process. It has a session id of its own, so that other clients of the same
kernel (a variable inspector) and this one both get their replies.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import zmq
import zmq.asyncio
from jupyter_client.asynchronous.client import AsyncKernelClient

from harness_nb.kernel.questions import END_OF_FILE
from harness_nb.kernel.routing import Execution, Router
from harness_nb.types import JsonObject

PORTS = ("shell", "iopub", "stdin", "control", "hb")
PROBE_SECONDS = 1.0
FAIR_SHARE = 20


def write_connection_file(directory: Path) -> Path:
    """Write a connection file for the ipc transport, with its sockets in ``directory``, and return its path."""
    info: JsonObject = {
        "transport": "ipc",
        "ip": str(directory / "s"),
        "key": secrets.token_hex(32),
        "signature_scheme": "hmac-sha256",
        "kernel_name": "",
    }
    info |= {f"{name}_port": number for number, name in enumerate(PORTS, start=1)}
    path = directory / "kernel.json"
    path.touch(mode=0o600)
    path.write_text(json.dumps(info))
    return path


class Connection:
    """A client of one kernel, with a task that routes what is published and one for replies."""

    def __init__(self, connection_file: Path) -> None:
        self._context = zmq.asyncio.Context()
        self._context.setsockopt(zmq.RCVHWM, 0)
        self._client = AsyncKernelClient(context=self._context)
        self._client.load_connection_file(str(connection_file))
        self._client.start_channels(hb=False)
        self.router = Router()
        self._executed = 0
        self._tasks = [
            asyncio.create_task(self._pump(self._client.iopub_channel, self.router.take_published)),
            asyncio.create_task(self._pump(self._client.shell_channel, self.router.take_reply)),
            asyncio.create_task(self._pump(self._client.stdin_channel, self._take_question)),
        ]

    async def _pump(self, channel: Any, take: Callable[[JsonObject], None]) -> None:
        for count in itertools.count(1):
            if count % FAIR_SHARE == 0:
                await asyncio.sleep(0)  # receiving what is there already does not let others run
            frames = await channel.socket.recv_multipart()
            # Tool code can send anything; what is no message of the protocol must not end this task.
            with suppress(ValueError, TypeError, KeyError, AttributeError):
                _, parts = self._client.session.feed_identities(frames)
                take(self._client.session.deserialize(parts))

    def _take_question(self, message: JsonObject) -> None:
        if not self.router.take_question(message):
            self.answer(END_OF_FILE)

    def answer(self, line: str) -> None:
        """Answer the question that the kernel's code waits for."""
        self._client.input(line)

    async def wait_until_ready(self) -> None:
        """Wait until the kernel answers and this client hears what it publishes."""
        ready = asyncio.Event()
        while True:
            self.probe(ready.set)
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(ready.wait(), PROBE_SECONDS)
                return

    def probe(self, callback: Callable[[], None] | None = None) -> None:
        """Send a harmless shell request; ``callback`` is called when its "idle" has come.

        It also wakes a kernel that awaits: without a message it would sleep through an interrupt.
        """
        self.router.expect_idle(self._client.kernel_info(), callback)

    def execute(self, source: str, *, silent: bool = False, allow_stdin: bool = False) -> Execution:
        """Ask the kernel to run ``source`` and return where its outputs arrive."""
        message_id = self._client.execute(
            source, silent=silent, store_history=not silent, allow_stdin=allow_stdin, stop_on_error=False
        )
        self._executed += not silent
        return self.router.open(message_id, None if silent else self._executed)

    def interrupt_by_message(self) -> None:
        """Ask for an interrupt over the control channel, for kernels whose process must not be signalled."""
        self._client.control_channel.send(self._client.session.msg("interrupt_request", {}))

    def request_shutdown(self) -> None:
        """Ask the kernel to end by itself."""
        self._client.shutdown()

    async def settle(self, quiet: float = 0.05, most: float = 1.0) -> None:
        """Wait until nothing was published for ``quiet`` seconds, ``most`` at most: what a dead kernel still sent."""
        end = asyncio.get_running_loop().time() + most
        seen = -1
        while seen != self.router.received and asyncio.get_running_loop().time() < end:
            seen = self.router.received
            await asyncio.sleep(quiet)

    async def aclose(self) -> None:
        """Stop the tasks and close the sockets."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._client.stop_channels()
        self._context.destroy(linger=0)
