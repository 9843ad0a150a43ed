"""The sockets to one kernel: requests out, messages in, over jupyter_client's session and zmq.

``started`` makes one for each kernel process. It has a session id of its own, so that other clients of the same
kernel (a variable inspector) and this one both get their replies.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import zmq
from jupyter_client.blocking.client import BlockingKernelClient

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
    """A client of one kernel, which routes what comes as it comes.

    The sockets are plain ones, watched through their file descriptors. zmq signals there only that something has
    changed, and also sending takes the signal away, so that after each look and each request the socket itself must
    be asked. (With ``zmq.asyncio``, whose sockets jupyter_client sends on behind its back, one reply in some hundred
    got stuck.)
    """

    def __init__(self, connection_file: Path) -> None:
        self._loop = asyncio.get_running_loop()
        self._context = zmq.Context()
        self._context.setsockopt(zmq.RCVHWM, 0)
        self._client = BlockingKernelClient(context=self._context)
        self._client.load_connection_file(str(connection_file))
        self._client.start_channels(hb=False)
        self.router = Router()
        self._executed = 0
        self._takers: dict[zmq.Socket[bytes], Callable[[JsonObject], None]] = {
            self._client.iopub_channel.socket: self.router.take_published,
            self._client.shell_channel.socket: self.router.take_reply,
            self._client.stdin_channel.socket: self._take_question,
            self._client.control_channel.socket: self._take_control_reply,
        }
        for socket in self._takers:
            self._loop.add_reader(socket.FD, self._receive, socket)
        self._look()

    def _look(self) -> None:
        """Have every socket asked soon."""
        for socket in self._takers:
            self._loop.call_soon(self._receive, socket)

    def _receive(self, socket: zmq.Socket[bytes]) -> None:
        """Take what has come, some messages at a time, so that others run in between."""
        for _ in range(FAIR_SHARE):
            if socket.closed or not int(socket.getsockopt(zmq.EVENTS)) & zmq.POLLIN:
                return
            frames = socket.recv_multipart(zmq.NOBLOCK)
            # Tool code can send anything; what is no message of the protocol must not end this.
            with suppress(ValueError, TypeError, KeyError, AttributeError):
                _, parts = self._client.session.feed_identities(frames)
                self._takers[socket](self._client.session.deserialize(parts))
        self._loop.call_soon(self._receive, socket)

    def _take_question(self, message: JsonObject) -> None:
        if not self.router.take_question(message):
            self.answer(END_OF_FILE)

    def _take_control_reply(self, message: JsonObject) -> None:
        """Once the kernel says that it has interrupted itself, wake it: see ``probe``."""
        if message["header"]["msg_type"] == "interrupt_reply":
            self.probe()

    def answer(self, line: str) -> None:
        """Answer the question that the kernel's code waits for."""
        self._client.input(line)
        self._look()

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
        self._look()

    def execute(self, source: str, *, silent: bool = False, allow_stdin: bool = False) -> Execution:
        """Ask the kernel to run ``source`` and return where its outputs arrive."""
        message_id = self._client.execute(
            source, silent=silent, store_history=not silent, allow_stdin=allow_stdin, stop_on_error=False
        )
        self._look()
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
        """Close the sockets."""
        for socket in self._takers:
            self._loop.remove_reader(socket.FD)
        self._client.stop_channels()
        self._context.destroy(linger=0)
