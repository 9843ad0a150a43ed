"""One run of a cell: its outputs as they come, its deadline, and the ladder of interrupt, grace and kill.

``ToolKernel`` makes one for each execution. It decides when to stop waiting; what that means is said by ``verdict``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Literal

from harness_nb.kernel.process import now
from harness_nb.kernel.questions import Answering
from harness_nb.kernel.started import StartedKernel
from harness_nb.ports import Answers, Output

REPEAT_SECONDS = 0.5
LOST_IDLE_SECONDS = 2.0
WIDGET_SECONDS = 0.25
"""Time between two states of a widget's twin."""

Reason = Literal["timeout", "interrupt", "closed"]


class Run:
    """A cell that has been sent to a started kernel.

    ``stopped_by`` says why it was interrupted, if it was; ``began`` is in the clock of ``process.now``; its owner sets
    ``concluded`` when nothing is left to be done about it. ``answers`` is who answers questions of the code, if
    anybody; the time in which one is open does not count.
    """

    def __init__(
        self,
        started: StartedKernel,
        source: str,
        *,
        timeout: float | None,
        grace: float,
        answers: Answers | None = None,
    ) -> None:
        self._started = started
        self._loop = asyncio.get_running_loop()
        self.timeout = timeout
        self.grace = grace
        self.began = now()
        self.stopped_by: Reason | None = None
        self.restarting = False
        self.concluded = False
        self._interrupted_at: float | None = None
        self._kill_at: float | None = None
        self._next_widgets = 0.0
        self._answering: Answering | None = None
        attended = answers is not None and answers.can_answer
        self.execution = started.connection.execute(source, allow_stdin=attended)
        if answers is not None and attended:
            self._answering = Answering(answers, started.connection.answer, self.execution.show, self._notice_question)
            self.execution.ask = self._answering.put
        self._deadline = None if timeout is None else self._loop.time() + timeout
        self._left: float | None = None
        self._alarms: list[asyncio.TimerHandle] = []
        if self._deadline is not None:
            self._wake_at(self._deadline)
        started.process.died.add_done_callback(self._notice_death)

    async def outputs(self) -> AsyncGenerator[Output]:
        """Yield outputs until the cell has finished, its kernel has died, or it has used up its grace."""
        probing = False
        try:
            while True:
                self._draw_widgets()
                for output in self.execution.take():
                    yield output
                if self.execution.finished or not self._started.alive or self.must_be_killed:
                    break
                if self.execution.reply is not None and not probing:
                    probing = True
                    self._alarms.append(self._loop.call_later(LOST_IDLE_SECONDS, self._started.connection.probe))
                await self.execution.changed.wait()
                self.execution.changed.clear()
                if self._deadline is not None and self._loop.time() >= self._deadline and self.stopped_by is None:
                    self.stop("timeout")
        finally:
            self.execution.ask = None
            if self._answering is not None:
                self._answering.end()
            for alarm in self._alarms:
                alarm.cancel()

    def last_outputs(self) -> list[Output]:
        """What came after ``outputs`` ended: the last words of a kernel that died, the last state of its widgets."""
        self.execution.draw_widgets()
        return self.execution.take()

    def _draw_widgets(self) -> None:
        """Have what has changed of the cell's widgets shown, not too often."""
        moment = self._loop.time()
        if self.execution.views.stale and moment >= self._next_widgets:
            self._next_widgets = moment + WIDGET_SECONDS
            self._alarms = [alarm for alarm in self._alarms if alarm.when() > moment]
            self._wake_at(self._next_widgets)
            self.execution.draw_widgets()

    @property
    def must_be_killed(self) -> bool:
        """Whether the grace time after an interrupt is over and the cell still runs."""
        unfinished = not self.execution.finished and self._started.alive
        return unfinished and self._kill_at is not None and self._loop.time() >= self._kill_at

    def stop(self, reason: Reason) -> None:
        """Interrupt the cell and start its grace time; repeated calls interrupt again, at most twice a second.

        The first reason counts. A kernel that awaits needs a message after the signal to notice it.
        """
        moment = self._loop.time()
        if self.execution.reply is not None or not self._started.alive:
            return
        if self.stopped_by is None:
            self.stopped_by = reason
            self.execution.ask = None
            self._kill_at = moment + self.grace
            self._wake_at(self._kill_at)
        if self._interrupted_at is None or moment - self._interrupted_at >= REPEAT_SECONDS:
            self._interrupted_at = moment
            self._started.interrupt()

    def _notice_question(self) -> None:
        """Stop the clock of the timeout when a question is put, let it go on when it is answered."""
        assert self._answering is not None
        if self._answering.is_open and self._deadline is not None:
            self._left, self._deadline = self._deadline - self._loop.time(), None
        elif not self._answering.is_open and self._left is not None:
            self._deadline, self._left = self._loop.time() + self._left, None
            self._wake_at(self._deadline)

    def _wake_at(self, moment: float) -> None:
        """Have ``outputs`` look around just after ``moment``."""
        self._alarms.append(self._loop.call_at(moment + 0.005, self.execution.changed.set))

    def _notice_death(self, _: object) -> None:
        self.execution.changed.set()
