"""A started kernel: its process, its connection and the private folder of its sockets, from start to end.

``ToolKernel`` holds at most one at a time and replaces it when it has died.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness_nb.errors import KernelError
from harness_nb.kernel.confinement import Confinement
from harness_nb.kernel.connection import Connection, write_connection_file
from harness_nb.kernel.memory import memory_limit
from harness_nb.kernel.network import start_proxy, wants_proxy, with_proxy
from harness_nb.kernel.process import Death, KernelProcess
from harness_nb.kernel.recording import unsent_text
from harness_nb.kernel.routing import Execution
from harness_nb.kernel.sandbox import sandboxed
from harness_nb.kernel.spec import KernelCommand
from harness_nb.network import Proxy, Usage
from harness_nb.ports import Output
from harness_nb.types import JsonObject

RECORDER = "printed"
NAMES = "harness_nb.names"
SOCKET_PATH_BYTES = 90
START_SECONDS = 60.0
SHUTDOWN_SECONDS = 2.0


class StartedKernel:
    """One kernel that answers. Made by ``start``; ended by ``end``.

    ``names`` is the namespace manifest after the last finished cell: rows of name, type, size and cell, latest first.
    """

    def __init__(self, process: KernelProcess, connection_file: Path, *, interrupt_by_message: bool) -> None:
        self.process = process
        self.connection_file = connection_file
        self.connection = Connection(connection_file)
        self._recorder = (connection_file.parent / RECORDER).open("rb")
        self._recorded = b""
        self.names: tuple[JsonObject, ...] = ()
        self.proxy: Proxy | None = None
        self._interrupt_by_message = interrupt_by_message

    @classmethod
    async def start(
        cls,
        command: KernelCommand,
        *,
        environment: Mapping[str, str],
        directory: Path,
        confinement: Confinement | None = None,
        usage: Usage | None = None,
        seconds: float = START_SECONDS,
    ) -> StartedKernel:
        """Start ``command`` with ``directory`` (made if missing) as working directory and wait until it answers.

        A command that is for a sandbox runs in that of ``confinement``; ``directory`` must lie inside. Where that
        allows some hosts, ``usage`` counts what goes to them.

        Raises:
            KernelError: if it ends before, or does not answer within ``seconds``.
        """
        directory.mkdir(parents=True, exist_ok=True)
        private = make_private_folder()
        connection_file = write_connection_file(private)
        (private / RECORDER).touch(mode=0o600)
        arguments = [word.replace("{connection_file}", str(connection_file)) for word in command.arguments]
        own = {"IPYTHONDIR": str(private / "ipython"), "HARNESS_NB_RECORDER": str(private / RECORDER)}
        variables = {**environment, **command.environment, **own}
        inside = confinement if command.in_sandbox else None
        if inside is not None:
            inside = with_proxy(inside, private) if wants_proxy(inside) else inside
            arguments = sandboxed(arguments, inside, environment=variables, directory=directory, private=[private])
        process = KernelProcess.start(
            arguments, environment=variables, directory=directory, private=private, confinement=inside
        )
        started = cls(process, connection_file, interrupt_by_message=command.interrupt_by_message)
        try:
            if inside is not None and inside is not confinement:
                started.proxy = await start_proxy(inside, private, usage or Usage())
            await started._wait_until_ready(command, seconds)
        except BaseException:
            await started.end()
            raise
        return started

    async def _wait_until_ready(self, command: KernelCommand, seconds: float) -> None:
        ready = asyncio.create_task(self.connection.wait_until_ready())
        either: set[asyncio.Future[Any]] = {ready, self.process.died}
        try:
            await asyncio.wait(either, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if ready.done():
                return
        finally:
            ready.cancel()
        if not self.process.died.done():
            raise KernelError(f"kernel {command.name!r} did not answer within {seconds:g} s")
        death = self.process.died.result()
        raise KernelError(f"kernel {command.name!r} did not start: {describe_death(death)}\n{death.words}".rstrip())

    @property
    def alive(self) -> bool:
        """Whether the process has not ended, as far as is known."""
        return self.process.alive

    def interrupt(self) -> None:
        """Interrupt what runs: a signal to the process group, or a message where the process must not be signalled.

        A kernel that awaits sleeps through the signal until a message wakes it, hence the probe (ipykernel 6.29 to
        7.4).
        """
        if self._interrupt_by_message:
            self.connection.interrupt_by_message()  # the probe follows when it is answered
            return
        self.process.interrupt()
        self.connection.probe()

    async def collect_last_outputs(self, execution: Execution) -> None:
        """After its death: add to ``execution`` what the kernel had still sent, and what it had printed only."""
        await self.connection.settle()
        for stream, text in unsent_text(self._recording(), execution.message_id, execution.printed):
            execution.add(Output("stream", {"name": stream, "text": text}))

    def note_names(self, reply: JsonObject | None) -> None:
        """Take over the namespace manifest that the launcher adds to each reply."""
        for item in (reply or {}).get("payload") or []:
            if item.get("source") == NAMES and isinstance(item.get("names"), list):
                self.names = tuple(item["names"])

    def _recording(self) -> bytes:
        """What the flight recorder holds; its file may be deleted by now, and closed at the very end."""
        if not self._recorder.closed:
            self._recorder.seek(0)
            self._recorded = self._recorder.read()
        return self._recorded

    async def end(self, *, politely: bool = False) -> None:
        """End the kernel and everything below it. ``politely``: ask first, so that its exit handlers run."""
        try:
            if politely and self.alive:
                self.connection.request_shutdown()
                await asyncio.wait({self.process.died}, timeout=SHUTDOWN_SECONDS)
        finally:
            try:
                await self.process.kill()
            finally:
                if self.proxy is not None:
                    await self.proxy.aclose()
                await self.connection.aclose()
                self._recording()
                self._recorder.close()


def make_private_folder() -> Path:
    """A new folder that only this user can enter, with a path short enough for unix sockets (about 100 bytes)."""
    prefix = f"harness-nb-{os.getpid()}-"
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    if len(os.fsencode(folder)) > SOCKET_PATH_BYTES:
        folder.rmdir()
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir="/tmp"))
    return folder


def describe_death(death: Death, limit: int | None = None) -> str:
    """``killed by SIGKILL, probably because memory ran out (it had reached 3.1 GB of 4.0 GB)``, for people and models.

    ``limit`` is how many bytes of memory there are; what ``memory_limit`` says, if it is not given.
    """
    if death.signal_name is None:
        return f"it exited with status {death.status}"
    text = f"killed by {death.signal_name}"
    if death.signal_name == "SIGKILL":
        return text + _about_memory(death.peak, memory_limit() if limit is None else limit)
    if death.signal_name in ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL"):
        return f"{text}: a crash in native code"
    return text


def _about_memory(peak: int, limit: int | None) -> str:
    """Whether a SIGKILL may have come for lack of memory: the process had at least half of what there is."""
    if not peak or not limit:
        return ", possibly because memory ran out"
    if peak < limit / 2:
        return f" (its memory had reached {_gigabytes(peak)}, so not for lack of memory)"
    return f", probably because memory ran out (it had reached {_gigabytes(peak)} of {_gigabytes(limit)})"


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
