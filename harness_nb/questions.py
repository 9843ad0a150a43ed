"""The questions of tool code in a session: to whoever answers now, and how long they were open.

The session owns one and hands it to the tool kernel; its clock, which stands still while a question is open, is what
timeouts are measured by.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from harness_nb.ports import Answers

SHOW_SECONDS = 0.2
"""Time for what the code has printed before its question to reach the screen."""


class Questions:
    """Passes questions on to ``answers``, which may be replaced at any time. ``clock`` gives seconds."""

    def __init__(self, answers: Answers, clock: Callable[[], float]) -> None:
        self.answers = answers
        self._clock = clock
        self._open = 0
        self._opened = 0.0
        self._waited = 0.0

    @property
    def can_answer(self) -> bool:
        """Whether a person is there to answer."""
        return self.answers.can_answer

    async def answer(self, question: str, *, secret: bool) -> str | None:
        """Ask, and see to the time that it takes."""
        if not self._open:
            self._opened = self._clock()
        self._open += 1
        try:
            await asyncio.sleep(SHOW_SECONDS)
            return await self.answers.answer(question, secret=secret)
        finally:
            self._open -= 1
            if not self._open:
                self._waited += self._clock() - self._opened

    def working_time(self) -> float:
        """Seconds of a clock that stands still while a question is open."""
        now = self._opened if self._open else self._clock()
        return now - self._waited
