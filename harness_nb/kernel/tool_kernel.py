"""``ToolKernel``: the ``Kernel`` port over a real ipykernel process.

The session makes one and closes it; the loop executes cells on it. What is true about a cell is decided here: by the
execute reply, the liveness of the process and the reply's payload together, never by the published outputs alone.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

from harness_nb.context.names import describe_loss
from harness_nb.errors import KernelError
from harness_nb.kernel.companions import Companions
from harness_nb.kernel.confinement import Confinement
from harness_nb.kernel.enforced import enforced
from harness_nb.kernel.environment import kernel_environment, refuse_credentials
from harness_nb.kernel.network import wants_proxy, with_proxy
from harness_nb.kernel.run import Run
from harness_nb.kernel.sandbox import layer_of, named_paths, sandboxed
from harness_nb.kernel.spares import Spare
from harness_nb.kernel.spec import DEFAULT_NAME, resolve_kernel
from harness_nb.kernel.started import StartedKernel, describe_death
from harness_nb.kernel.verdict import death_reply, killed_reply, page_of, reply_of, wants_to_exit
from harness_nb.network import Usage
from harness_nb.outputs.sandbox_hints import sandbox_hint
from harness_nb.ports import Answers, ExecuteReply, HostUse, Output
from harness_nb.types import JsonObject

GRACE_SECONDS = 3.0
EXIT_SECONDS = 2.0
SETUP_SECONDS = 60.0


class ToolKernel:
    """A tool kernel that starts at its first use and again after its death.

    Args:
        name: a kernel spec; see ``spec.resolve_kernel``.
        directory: the working directory of the kernel; made if missing.
        setup: source that each fresh kernel runs first, unseen; it takes execution count 1.
        environment: variables on top of the allowed ones of this process; see ``environment``.
        grace: seconds that a cell has to obey an interrupt before the kernel is killed.
        answers: who answers questions of the code (``input``, ``getpass``); nobody, if ``None``.
        spare: a kernel in reserve, taken if it is of the same spec and sandbox and ``environment`` is empty.
        confinement: the sandbox of ``harness-sandbox``; one around ``directory``, if ``None``.
        usage: where it is counted what goes to the hosts that the sandbox allows.

    Raises:
        UsageError: if there is no such kernel spec, or it or ``environment`` holds credentials that nobody granted.
    """

    def __init__(
        self,
        *,
        name: str = DEFAULT_NAME,
        directory: Path,
        setup: str = "",
        environment: Mapping[str, str] | None = None,
        grace: float = GRACE_SECONDS,
        answers: Answers | None = None,
        spare: Spare | None = None,
        confinement: Confinement | None = None,
        usage: Usage | None = None,
    ) -> None:
        self.name = name
        self.answers = answers
        self._spare = spare
        self._command = resolve_kernel(name)
        self._extra = environment
        self._environment = kernel_environment(os.environ, environment)
        refuse_credentials(name, self._command.environment, environment)
        self._directory = directory
        self.confinement = (confinement or Confinement(directory.resolve())) if self._command.in_sandbox else None
        self._usage = usage or Usage()
        self._setup = setup
        self._grace = grace
        self._started: StartedKernel | None = None
        self._ended_for = ""
        self._run: Run | None = None
        self._turn = asyncio.Lock()
        self._starting = asyncio.Lock()
        self._closed = False
        self._ending: set[asyncio.Future[None]] = set()
        self._companions = Companions(self._make_companion)

    def _make_companion(self) -> ToolKernel:
        if self._closed:
            raise KernelError("the tool kernel is closed")
        return ToolKernel(
            name=self.name,
            directory=self._directory,
            setup=self._setup,
            environment=self._extra,
            grace=self._grace,
            confinement=self.confinement,
            usage=self._usage,
        )

    async def confine(self, confinement: Confinement) -> None:
        """Use another sandbox from here on; a kernel that runs in the old one is ended, and the next call told so.

        Without effect for a kernel that has none, or the same one.
        """
        if self.confinement is None or self.confinement == confinement:
            return
        self.confinement = confinement
        if self._started is not None:
            self._ended_for = f"its sandbox has changed; {describe_loss(self._started.names)}"
            await asyncio.gather(self._end(politely=self._run is None), self._companions.aclose())

    @property
    def sandbox(self) -> str:
        """What confines tool code, in sentences that hold here."""
        return enforced(self.confinement, self.name).sentence

    def explain(self, text: str) -> str:
        """Why the sandbox may have refused what ``text`` complains of; empty if it did not, or there is none."""
        if self.confinement is None:
            return ""
        root = self.confinement.workspace
        protected = [path.relative_to(root).as_posix() for path in self.confinement.protected]
        return sandbox_hint(text, network=self.confinement.network, workspace=str(root), protected=protected)

    def network_use(self) -> Sequence[HostUse]:
        """The hosts that tool code has reached or was refused, by the proxy, since this was last asked."""
        return self._usage.take()

    def wrap(self, command: Sequence[str]) -> list[str]:
        """``command`` confined as the kernel is: in the sandbox, with the workspace as working directory.

        It has to be started with ``environment``. What it names by absolute paths can be read by it: it is the person's
        own, a check for one. Where the kernel has no sandbox, the command as it is. Allowed hosts are reached through
        the proxy of the running kernel; while there is none, the network is off.
        """
        if self.confinement is None:
            return list(command)
        readable = (*self.confinement.readable, *named_paths(command))
        inside = self._with_network(replace(self.confinement, readable=readable))
        return sandboxed(command, inside, environment=self.environment)

    def _with_network(self, inside: Confinement) -> Confinement:
        """A sandbox beside the kernel's, with the way to the proxy of that one, if there is to be one."""
        if not wants_proxy(inside):
            return inside
        file = self.connection_file
        return with_proxy(inside, file.parent) if file is not None else replace(inside, network="off")

    @property
    def holds_copies(self) -> bool:
        """Whether ``wrap_copy`` can be used: the sandbox is one that puts other files into the workspace's place."""
        return self.confinement is not None and layer_of(self.confinement) == "bubblewrap"

    def wrap_copy(self, command: Sequence[str], copy: Path, shared: Sequence[Path]) -> list[str]:
        """As ``wrap``, with ``copy`` in the workspace's place; ``shared`` are paths of the original, read-only."""
        assert self.confinement is not None
        readable = (*self.confinement.readable, *named_paths(command))
        own = replace(self.confinement, readable=readable, copy=copy, protected=tuple(shared))
        return sandboxed(command, self._with_network(own), environment=self.environment)

    @property
    def busy(self) -> bool:
        """Whether a cell is running or waiting for its turn; those beside it do not count."""
        return self._turn.locked()

    @property
    def python(self) -> str:
        """The program that runs the kernel, as a path or a name on the PATH."""
        return self._command.arguments[0]

    @property
    def environment(self) -> Mapping[str, str]:
        """The scrubbed environment that the kernel starts with."""
        return {**self._environment, **self._command.environment}

    @property
    def names(self) -> tuple[JsonObject, ...]:
        """The namespace manifest after the last finished cell: rows of name, type, size and cell, the latest first."""
        return self._started.names if self._started else ()

    @property
    def connection_file(self) -> Path | None:
        """Where other clients find the running kernel; ``None`` while there is none."""
        return self._started.connection_file if self._started else None

    async def start(self) -> None:
        """Start the kernel and run its setup, unless it is running. A dead one is cleared away first.

        Raises:
            KernelError: if it does not start, or its setup fails.
        """
        async with self._starting:
            if self._closed:
                raise KernelError("the tool kernel is closed")
            if self._started is not None and self._started.alive:
                return
            await self._end()
            self._started = await self._take_spare() or await StartedKernel.start(
                self._command,
                environment=self._environment,
                directory=self._directory,
                confinement=self.confinement,
                usage=self._usage,
            )
            try:
                await self._run_setup(self._started)
            except BaseException:
                await self._end()
                raise

    async def _take_spare(self) -> StartedKernel | None:
        """A kernel that was started ahead and fits, moved to the directory of this one."""
        if self._spare is None or not self._spare.fits(self.name, self.confinement) or self._extra:
            return None
        started = await self._spare.take()
        if started is not None:
            if started.proxy is not None:
                started.proxy.usage = self._usage
            self._directory.mkdir(parents=True, exist_ok=True)
            moved = started.connection.execute(f"import os; os.chdir({str(self._directory)!r})", silent=True)
            started.connection.router.close(moved)
        return started

    async def _run_setup(self, started: StartedKernel) -> None:
        if not self._setup:
            return
        run = Run(started, self._setup, timeout=SETUP_SECONDS, grace=self._grace)
        async with aclosing(run.outputs()) as outputs:
            async for _ in outputs:
                continue
        started.connection.router.close(run.execution)
        reply = run.execution.reply or {"ename": "KernelError", "evalue": "it did not end, or the kernel died"}
        if reply.get("status") != "ok":
            raise KernelError(f"the setup of kernel {self.name!r} failed: {reply.get('ename')}: {reply.get('evalue')}")

    async def execute(
        self, source: str, timeout: float | None = None, *, beside: bool = False
    ) -> AsyncGenerator[Output | ExecuteReply]:
        """Run ``source`` as one cell; see ``ports.Kernel``. A second call waits until the first has ended.

        A cell ``beside`` runs in a process of its own: it shares the workspace with the others, not their names.
        """
        if beside:
            async with aclosing(self._companions.execute(source, timeout)) as items:
                async for item in items:
                    yield item
            return
        async with self._turn:
            unseen = self._unseen_death()
            await self.start()
            assert self._started is not None
            started = self._started
            run = self._run = Run(started, source, timeout=timeout, grace=self._grace, answers=self.answers)
            try:
                async for output in run.outputs():
                    yield output
                reply = await self._conclude(started, run)
                run.concluded = True
                for output in run.last_outputs():
                    yield output
                if (page := page_of(run.execution.reply)) is not None:
                    yield page
                yield reply if unseen is None else after_unseen_death(reply, unseen)
            finally:
                self._run = None
                await self._leave(started, run)

    async def _conclude(self, started: StartedKernel, run: Run) -> ExecuteReply:
        """The reply of a run that has finished, died or used up its grace."""
        started.note_names(run.execution.reply)
        if run.must_be_killed:
            await started.process.kill()
            await started.collect_last_outputs(run.execution)
            await self._end()
            return killed_reply(run, started.names)
        if run.execution.finished and run.stopped_by:
            await started.process.end_children_since(run.began)
        if run.execution.finished and wants_to_exit(run.execution.reply):
            await asyncio.wait({started.process.died}, timeout=EXIT_SECONDS)
            await self._end()
            return death_reply(run, None, started.names)
        if run.execution.finished:
            reply = reply_of(run)
            return replace(reply, extra={**reply.extra, "names": started.names})
        await started.collect_last_outputs(run.execution)
        reply = death_reply(run, started.process.died.result(), started.names)
        if self._started is started:
            await self._end()
        return reply

    async def _leave(self, started: StartedKernel, run: Run) -> None:
        """Whatever happened, no cell is left running: interrupt it, wait the grace time, kill."""
        try:
            if not run.concluded and started.alive:
                run.stop("closed")
                async for _ in run.outputs():
                    continue
                await self._conclude(started, run)
        except BaseException:
            self._give_up(started)
            raise
        finally:
            started.connection.router.close(run.execution)

    def _give_up(self, started: StartedKernel) -> None:
        """End a kernel in the background; for a caller that has no time left. The next call starts a fresh one."""
        if self._started is started:
            self._started = None
        self._ending.add(ending := asyncio.ensure_future(started.end()))
        ending.add_done_callback(self._ending.discard)

    def _unseen_death(self) -> str | None:
        """How the kernel died between two calls, and what is lost with it, when it did."""
        if ended_for := self._ended_for:
            self._ended_for = ""
            return ended_for
        if self._started is None or not self._started.process.died.done():
            return None
        return f"{describe_death(self._started.process.died.result())}; {describe_loss(self._started.names)}"

    async def interrupt(self) -> None:
        """Interrupt the running cell, if any. Its ``execute`` ends within the grace time, whatever the code does."""
        if self._run is not None:
            self._run.stop("interrupt")

    async def restart(self) -> None:
        """Kill the kernel with all its children and start a fresh one; running cells end as interrupted or died."""
        if self._run is not None:
            self._run.restarting = True
        await asyncio.gather(self._end(), self._companions.aclose())
        await self.start()

    async def aclose(self) -> None:
        """End the kernel and all its children. Harmless when repeated."""
        self._closed = True
        await asyncio.gather(self._end(politely=self._run is None), self._companions.aclose(), *self._ending)

    async def _end(self, *, politely: bool = False) -> None:
        started, self._started = self._started, None
        if started is not None:
            await started.end(politely=politely)


def after_unseen_death(reply: ExecuteReply, death: str) -> ExecuteReply:
    """The reply of a cell that ran in a fresh kernel without anybody having been told that the old one was dead."""
    told = f"the kernel had died since the last call ({death}); this ran in a fresh one"
    detail = f"{told}; {reply.detail}" if reply.detail else told
    return replace(reply, detail=detail, extra={**reply.extra, "names_lost": True})
