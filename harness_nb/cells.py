"""Tool calls as cells: run the source, pass its outputs through the firewall, make the result for the model.

A cell that outlives its timeout goes on by itself: its task keeps reading what the kernel sends, so memory stays flat
and nothing is lost while the model thinks; ``wait`` looks at it again. The loop uses ``Cells``; this module must not
import a kernel library or IPython.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import asdict, replace

from harness_nb import events as ev
from harness_nb.context import words
from harness_nb.context.names import list_names
from harness_nb.outputs import Firewall, format_seconds, result_content
from harness_nb.outputs.masking import Masker, masks_in
from harness_nb.outputs.sandbox_hints import refused_hint
from harness_nb.past import Step, difference, steps_of
from harness_nb.policy.masked import why_not_run
from harness_nb.ports import ExecuteReply, Kernel, Output
from harness_nb.toolset import REBUILD
from harness_nb.types import JsonObject, Part, Status, TextPart, ToolCall, text_content
from harness_nb.watch import Watch

TICK = 0.1
"""Seconds between two looks at a cell that runs."""

Inspection = tuple[str, tuple[ev.FileChange, ...]]
"""What a look at the workspace finds after a cell: a word to model and person (or none), and the changed files."""

OUTSIDE = ToolCall(call_id="outside", name="outside", arguments={})
"""Stands for no call: for what a check has reached over the network."""

MAIN = "python"
"""The tool whose cells need the kernel for themselves; others can run beside one of them."""


class Cell:
    """A cell that has been sent to the kernel.

    ``reply`` says how it stands; ``look`` holds what the model has not been told yet. Times are seconds of the clock.
    """

    def __init__(self, call: ToolCall, source: str, firewall: Firewall, started: float, beside: bool) -> None:
        self.call = call
        self.source = source
        self.firewall = firewall
        self.look = firewall
        self.started = started
        self.beside = beside
        self.reply = ExecuteReply(status=Status.RUNNING)
        self.watch: Watch | None = None
        self.warned = False
        self.task: asyncio.Task[None] | None = None

    @property
    def ended(self) -> bool:
        """Whether the kernel has nothing more to say about it."""
        return self.task is not None and self.task.done()

    def start(self, kernel: Kernel, timeout: float | None) -> None:
        """Send it, and read what comes in a task of its own."""
        self.task = asyncio.ensure_future(self._read(kernel.execute(self.source, timeout, beside=self.beside)))

    async def _read(self, items: AsyncGenerator[Output | ExecuteReply]) -> None:
        async with aclosing(items):
            async for item in items:
                if isinstance(item, ExecuteReply):
                    self.reply = item
                    continue
                self.firewall.feed(item)
                if self.look is not self.firewall:
                    self.look.feed(item)
                if self.watch is not None:
                    self.watch.feed(item)

    async def tick(self) -> None:
        """Wait for a moment, or until it has ended.

        Raises:
            KernelError: when no kernel could be started for it.
        """
        assert self.task is not None
        await asyncio.wait({self.task}, timeout=TICK)
        if self.task.done():
            self.task.result()


class Cells:
    """The cells of a session.

    ``firewall`` makes a fresh one for a call, with or without a plot of its metrics; ``clock`` gives seconds,
    ``inspect`` looks after each cell for the files that it has changed, and for what it should not have done; what it
    says of that is told to the model and to the person. ``names`` is the last manifest of the kernel's namespace.
    ``working_time`` is a clock that stands still while a question of the code is open: timeouts are measured by it.
    ``masker`` masks the outputs of recorded cells that are run again; one with a mask in its source is not.
    """

    def __init__(
        self,
        kernel: Kernel,
        firewall: Callable[[ToolCall, bool], Firewall],
        clock: Callable[[], float],
        inspect: Callable[[], Inspection],
        working_time: Callable[[], float] | None = None,
    ) -> None:
        self._kernel = kernel
        self._firewall = firewall
        self._clock = clock
        self._inspect = inspect
        self._working_time = working_time or clock
        self._open: dict[str, Cell] = {}
        self._left: dict[str, Cell] = {}
        self._steps: list[str] = []
        self.names: tuple[JsonObject, ...] = ()
        self.masker = Masker()

    def remember(self, events: Sequence[ev.Event]) -> None:
        """Take over the steps of a recorded session, so that ``rebuild`` can take them again, and the names it had."""
        steps = [step for step in steps_of(events) if step.call.name == MAIN and step.status is Status.OK]
        self._steps = [step.source for step in steps]
        manifests = [event.names for event in events if isinstance(event, ev.CellFinished) and event.names is not None]
        self.names = manifests[-1] if manifests else ()

    def running(self) -> list[Cell]:
        """Cells that were left running and have not ended."""
        return [cell for cell in self._left.values() if not cell.ended]

    def obstacle(self, call: ToolCall) -> str | None:
        """Why a call cannot run now: two cells of the kernel's own thread never run at the same time."""
        busy = [cell for cell in self.running() if not cell.beside]
        if call.name not in (MAIN, REBUILD) or not busy:
            return None
        about = f"{busy[0].call.call_id} is still running, for {format_seconds(self._age(busy[0]))} now"
        return f"Not run, the kernel is busy: {about}. Use wait to watch or stop it; bash and the file tools work."

    def find(self, which: str) -> Cell | None:
        """The cell of a call that was left running, by the call's id or ``last``."""
        if which == "last" and self._left:
            return list(self._left.values())[-1]
        return self._left.get(which)

    async def run(
        self, call: ToolCall, source: str, *, timeout: float, keep: bool, images: bool
    ) -> AsyncGenerator[ev.Event]:
        """Run ``source`` for ``call``; events up to ``ResultAdded``.

        Past ``timeout`` seconds the cell is left running if ``keep``, else the kernel stops it. ``images`` says whether
        the model takes pictures.

        Raises:
            KernelError: when no kernel can be started.
        """
        beside = any(not cell.beside for cell in self.running())
        cell = self._open[call.call_id] = Cell(call, source, self._firewall(call, True), self._clock(), beside)
        yield ev.CellStarted(call_id=call.call_id, name=call.name, source=source)
        began = self._working_time()
        cell.start(self._kernel, None if keep else timeout)
        while not cell.ended and not (keep and self._working_time() - began > timeout):
            await cell.tick()
            for output in cell.firewall.drain(self._clock()):
                yield output
        if cell.ended:
            for event in self._finish(cell):
                yield event
        else:
            self._left[call.call_id] = cell
        async for event in self._report(cell, call, images):
            yield event

    async def wait(
        self, call: ToolCall, cell: Cell, *, seconds: float, until: str | None, stop: bool, images: bool
    ) -> AsyncGenerator[ev.Event]:
        """Watch a cell that was left running; its new outputs go to it, the result to ``call``.

        Returns when it ends, when ``until`` matches its output, on an anomaly, or after ``seconds``. ``stop``
        interrupts it first.
        """
        began = self._working_time()
        cell.watch = Watch(until, began, signs=not cell.warned)
        known = len(cell.firewall.metrics.anomalies)
        if stop and not cell.ended:
            await self._stop(cell)
        why = ""
        while not cell.ended and not why:
            await cell.tick()
            for output in cell.firewall.drain(self._clock()):
                yield output
            why = cell.watch.reason(self._working_time()) if not stop else ""
            if not why and not stop and (new := cell.firewall.metrics.anomalies[known:]):
                why = f"an anomaly: {new[0]}"
            if not why and self._working_time() - began >= seconds:
                why = f"the {format_seconds(seconds)} are over"
        cell.warned = cell.warned or cell.watch.warned
        cell.watch = None
        if cell.ended:
            for event in self._finish(cell):
                yield event
        async for event in self._report(cell, call, images, why):
            yield event

    async def rebuild(self, call: ToolCall) -> AsyncGenerator[ev.Event]:
        """Take the python steps that ended well again, in order, to get their names back; goes on past one that fails.

        What they print and show is in the record already and is passed over.
        """
        began, failures = self._clock(), []
        reply = ExecuteReply(status=Status.OK)
        for source in self._steps:
            reply = await self._take_again(source)
            if reply.status is not Status.OK:
                failures.append((source, reply))
        text = words.rebuilt(len(self._steps), failures, format_seconds(self._clock() - began))
        self._news_of_names(reply)
        if self.names:
            text += f" Names now: {list_names(self.names)}."
        status = Status.ERROR if failures else Status.OK
        _, changes = await asyncio.to_thread(self._inspect)
        if changes:
            yield ev.FilesChanged(call_id=call.call_id, name=call.name, changes=changes)
        for used in self._network_used(call):
            yield used
        yield ev.ResultAdded(call_id=call.call_id, name=call.name, status=status, content=text_content(text))

    async def retake(self, steps: Sequence[Step]) -> list[str]:
        """Take recorded python steps again, in order; a sentence for each that came out differently."""
        differences = []
        for step in steps:
            firewall = Firewall(step.call.call_id, step.call.name, masker=self.masker, plot=False)
            reply = await self._take_again(step.source, firewall)
            firewall.close(self._clock())
            self._news_of_names(reply)
            if said := difference(step, reply.status, firewall.outputs):
                differences.append(said)
        return differences

    async def _take_again(self, source: str, firewall: Firewall | None = None) -> ExecuteReply:
        """Run a recorded source; what it prints and shows is in the record already and goes to ``firewall`` at most."""
        if masks := masks_in(source):
            return ExecuteReply(status=Status.ERROR, ename="MaskedSource", evalue=f"not run: {why_not_run(masks[0])}")
        reply = ExecuteReply(status=Status.OK)
        async with aclosing(self._kernel.execute(source)) as items:
            async for item in items:
                if isinstance(item, ExecuteReply):
                    reply = item
                elif firewall is not None:
                    firewall.feed(item)
        return reply

    async def bring(
        self, call: ToolCall, items: AsyncGenerator[Output | ExecuteReply], images: bool
    ) -> AsyncGenerator[ev.Event]:
        """The result of a call that brings something from elsewhere than the kernel; it has no cell."""
        firewall, reply, began = self._firewall(call, False), ExecuteReply(status=Status.UNKNOWN), self._clock()
        async with aclosing(items):
            async for item in items:
                if isinstance(item, ExecuteReply):
                    reply = item
                else:
                    firewall.feed(item)
        firewall.close(self._clock())
        content = result_content(reply, firewall, self._clock() - began, images)
        call_id, name = call.call_id, call.name
        if whole := firewall.offloaded:
            path, size, lines = whole.path, whole.bytes, whole.lines
            yield ev.ContextOffloaded(call_id=call_id, name=name, path=path, bytes=size, lines=lines)
        yield ev.ResultAdded(call_id=call_id, name=name, status=reply.status, content=content)

    async def catch_up(self) -> AsyncGenerator[ev.Event]:
        """What has come of cells that were left running, while something else happened."""
        for cell in list(self._left.values()):
            for output in cell.firewall.drain(self._clock()):
                yield output
            if cell.ended and cell.call.call_id in self._open:
                for event in self._finish(cell):
                    yield event
                yield ev.Nudged(
                    reason="a call has ended",
                    text=f"{cell.call.call_id} ({cell.call.name}) has ended; wait for it gives its last output.",
                )

    async def end_all(self) -> AsyncGenerator[ev.Event]:
        """Stop every cell that still runs, and complete its record."""
        for cell in list(self._open.values()):
            if cell.task is None:
                cell.reply = ExecuteReply(status=Status.INTERRUPTED)
            elif not cell.ended:
                await self._stop(cell)
                await _settled(cell)
            for event in (*self._finish(cell), *self._network_used(cell.call)):
                yield event
        for used in self._network_used(OUTSIDE):
            yield used
        self._left.clear()

    async def _stop(self, cell: Cell) -> None:
        """Interrupt a cell: by its kernel, or, for one that runs beside another, by ending its task."""
        assert cell.task is not None
        if cell.beside:
            cell.task.cancel()
            cell.reply = ExecuteReply(status=Status.INTERRUPTED)
            await _settled(cell)
        else:
            await self._kernel.interrupt()

    def _finish(self, cell: Cell) -> list[ev.Event]:
        """The last events of a cell that has ended."""
        call_id, name, firewall = cell.call.call_id, cell.call.name, cell.firewall
        if self._open.pop(call_id, None) is None:
            return []
        reply = cell.reply
        if reply.status is Status.OK and name == MAIN:
            self._steps.append(cell.source)
        if reply.status is Status.RUNNING:
            reply = cell.reply = replace(reply, status=Status.UNKNOWN)
        return [
            *firewall.close(self._clock()),
            ev.CellFinished(
                call_id=call_id,
                name=name,
                status=reply.status,
                execution_count=reply.execution_count,
                elapsed=self._age(cell),
                names=self._news_of_names(reply),
            ),
        ]

    def _news_of_names(self, reply: ExecuteReply) -> tuple[JsonObject, ...] | None:
        """The manifest of the namespace, where it has changed."""
        names: tuple[JsonObject, ...] | None = reply.extra.get("names")
        if names is None or names == self.names:
            return None
        self.names = names
        return names

    async def _report(self, cell: Cell, call: ToolCall, images: bool, why: str = "") -> AsyncGenerator[ev.Event]:
        """The result for ``call``: what the model has not been told about ``cell`` yet."""
        reply, look = cell.reply, cell.look
        if not cell.ended:
            told = f"its id is {cell.call.call_id}, use wait to watch or stop it"
            reply = replace(reply, detail=f"{why}; {told}" if why else told)
        else:
            remedy = words.REMEDY if reply.extra.get("names_lost") and self._steps else ""
            whose = f"the time is that of {cell.call.call_id} as a whole" if call is not cell.call else ""
            reply = replace(reply, detail="; ".join(filter(None, (reply.detail, whose, remedy, why))))
        if look is not cell.firewall:
            look.close(self._clock())
        content: tuple[Part, ...] = result_content(reply, look, self._age(cell), images, cell.firewall.metrics)
        if cell.ended:
            self._left.pop(cell.call.call_id, None)
        else:
            cell.look = self._firewall(call, False)
        note, changes = await asyncio.to_thread(self._inspect)
        if changes:
            yield ev.FilesChanged(call_id=cell.call.call_id, name=cell.call.name, changes=changes)
        if note:
            content = (*content, TextPart(text=f"\n[{note}]"))
            yield ev.Warned(text=note)
        for used in (network := self._network_used(cell.call)):
            yield used
        if refused := refused_hint([(used.host, used.port, used.reason) for used in network if not used.allowed]):
            content = (*content, TextPart(text=f"\n[{refused}]"))
        said = "\n".join(part.text for part in content if isinstance(part, TextPart))
        if reply.status is Status.ERROR and (hint := self._kernel.explain(said)):
            content = (*content, TextPart(text=f"\n[{hint}]"))
        call_id, name = cell.call.call_id, cell.call.name
        if (whole := cell.firewall.offloaded) and cell.ended:
            path, size, lines = whole.path, whole.bytes, whole.lines
            yield ev.ContextOffloaded(call_id=call_id, name=name, path=path, bytes=size, lines=lines)
        yield ev.ResultAdded(call_id=call.call_id, name=call.name, status=reply.status, content=content)

    def _network_used(self, call: ToolCall) -> list[ev.NetworkUsed]:
        """The hosts that were reached or refused since this was last asked, put down to ``call``."""
        uses = self._kernel.network_use()
        return [ev.NetworkUsed(call_id=call.call_id, name=call.name, **asdict(use)) for use in uses]

    def _age(self, cell: Cell) -> float:
        return self._clock() - cell.started


async def _settled(cell: Cell) -> None:
    """Wait until the task of a cell that is being stopped has ended, whatever it raises."""
    assert cell.task is not None
    await asyncio.wait({cell.task})
    with suppress(asyncio.CancelledError, Exception):
        cell.task.result()
