"""One task at work: the session runs in the engine, its items go to a display, the cell that asked for it only waits.

The magics start a ``Run`` and wait for it in one of two ways: ``attend`` ticks in the kernel's event loop, so that an
interrupt and messages of widgets get through at once; ``attend_blocking`` is for where nothing can be awaited. Here,
and nowhere else, a cancellation becomes a ``KeyboardInterrupt``.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import Protocol, TypeVar

from harness_nb.errors import HarnessError
from harness_nb.events import Event
from harness_nb.ports import Approver, Delta
from harness_nb.ui.current import CurrentSession, Task
from harness_nb.ui.engine import Engine, Handle

TICK = 0.1
"""Seconds between looks at an interrupt, at questions and at what is new to draw."""

WIND_DOWN = 30.0
"""Seconds that an interrupted session gets to stop its cell and complete its record."""

E = TypeVar("E", bound=BaseException)


class Display(Protocol):
    """What a run is shown on; used in the engine's thread only."""

    def open(self, notebook_path: Path) -> None:
        """The session is there, and this is its notebook."""
        ...

    def apply(self, item: Event | Delta) -> None:
        """Fold one item."""
        ...

    def fail(self, text: str) -> None:
        """The work cannot go on."""
        ...

    def draw(self) -> None:
        """Show what is new."""
        ...

    def ask(self, open: bool) -> None:
        """The running code has put a question to the person; or it has got its answer."""
        ...

    def buttons(self, shown: bool) -> None:
        """Approvals are asked for by buttons below the cell; or by a line that is typed."""
        ...


class Questions(Approver, Protocol):
    """An approver whose questions are answered by the waiting cell."""

    def answer_questions(self) -> None:
        """Ask what has been posted."""
        ...


class Run:
    """A task on its way. Made in the cell's thread; the work starts at once, in the engine."""

    def __init__(
        self,
        engine: Engine,
        current: CurrentSession,
        task: Task,
        display: Display,
        approver: Questions,
    ) -> None:
        self._approver = approver
        self._display = display
        self._handle: Handle[None] = engine.submit(self._work(current, task))

    @property
    def running(self) -> bool:
        """Whether the work has not ended."""
        return not self._handle.done()

    def stop(self) -> None:
        """Ask the work to end; its record is completed first."""
        self._handle.cancel()

    async def attend(self) -> None:
        """Wait for the end, and answer questions meanwhile.

        Raises:
            KeyboardInterrupt: if the cell was interrupted, or the work was stopped.
            HarnessError: if the work could not be started, or could not go on.
        """
        try:
            while self.running:
                self._approver.answer_questions()
                await asyncio.sleep(TICK)
        except (asyncio.CancelledError, KeyboardInterrupt):
            self.stop()
            for _ in range(round(WIND_DOWN / TICK)):
                if not self.running:
                    break
                await asyncio.sleep(TICK)
            raise _interrupted() from None
        self._conclude()

    def attend_blocking(self) -> None:
        """As ``attend``, for a caller that cannot await."""
        try:
            while not self._handle.wait(TICK):
                self._approver.answer_questions()
        except KeyboardInterrupt:
            self.stop()
            self._handle.wait(WIND_DOWN)
            raise _interrupted() from None
        self._conclude()

    def _conclude(self) -> None:
        try:
            self._handle.result()
        except asyncio.CancelledError:
            raise _interrupted() from None
        except HarnessError as error:
            raise short(error, f"\x1b[31m{type(error).__name__}\x1b[0m: {error}") from None

    async def _work(self, current: CurrentSession, task: Task) -> None:
        recording = await current.find(task)
        session = await current.take(task, self._approver, recording)
        self._display.open(session.notebook_path)
        drawing = asyncio.ensure_future(self._draw_often())
        try:
            work = session.resume() if task.resume else session.send(task.prompt, task.given, recording)
            async with aclosing(work) as items:
                async for item in items:
                    self._display.apply(item)
        except asyncio.CancelledError:
            if session.ending is not None:
                self._display.apply(session.ending)
            raise
        except Exception as error:
            self._display.fail(str(error))
            raise
        finally:
            drawing.cancel()
            self._display.draw()

    async def _draw_often(self) -> None:
        while True:
            self._display.draw()
            await asyncio.sleep(TICK)


def short(error: E, text: str) -> E:
    """The same exception, shown by IPython as ``text`` instead of a traceback."""
    error._render_traceback_ = lambda: text.splitlines()  # type: ignore[attr-defined]
    return error


def _interrupted() -> KeyboardInterrupt:
    words = "the work was stopped, and is saved; %agent resume goes on with it, or the next %%agent cell"
    return short(KeyboardInterrupt(words), f"\x1b[33mKeyboardInterrupt\x1b[0m: {words}")
