"""Questions of tool code: from the kernel's stdin channel to whoever answers, one after the other.

``Connection`` hands over each ``input_request`` (Jupyter messaging protocol 5.4), ``Run`` keeps an ``Answering`` for
its cell. No sockets, no clock.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from harness_nb.ports import Answers
from harness_nb.types import JsonObject

HIDDEN = "········"
"""What stands in the record for an answer that must not be seen."""

END_OF_FILE = "\x04"
"""The reply to a question that nobody answers: ipykernel raises ``EOFError``, the tools explain it."""


@dataclass(frozen=True, slots=True)
class Question:
    """What ``input`` or, if ``secret``, ``getpass`` asks for."""

    text: str
    secret: bool

    def transcript(self, answer: str) -> str:
        """The line that a terminal would show of question and answer."""
        return f"{self.text}{HIDDEN if self.secret else answer}\n"


def question_of(message: JsonObject) -> Question:
    """The question of an ``input_request``."""
    content = message["content"]
    return Question(str(content.get("prompt", "")), bool(content.get("password", False)))


class Answering:
    """The questions of one cell. ``is_open`` says whether one has been put and not been answered.

    ``reply`` sends a line to the kernel, ``show`` puts question and answer into the outputs of the cell, ``notice`` is
    called whenever ``is_open`` changes.
    """

    def __init__(
        self, answers: Answers, reply: Callable[[str], None], show: Callable[[str], None], notice: Callable[[], None]
    ) -> None:
        self._answers = answers
        self._reply = reply
        self._show = show
        self._notice = notice
        self._waiting: deque[Question] = deque()
        self._task: asyncio.Task[None] | None = None

    @property
    def is_open(self) -> bool:
        """Whether the code waits for an answer."""
        return self._task is not None

    def put(self, question: Question) -> None:
        """Ask it, after those that were asked before (threads may ask as well)."""
        self._waiting.append(question)
        if self._task is None:
            self._task = asyncio.ensure_future(self._answer_all())
            self._notice()

    def end(self) -> None:
        """The cell has ended: nobody is asked any more, and whatever still waits for an answer gets none."""
        if self._task is not None:
            self._task.cancel()

    async def _answer_all(self) -> None:
        try:
            while self._waiting:
                question = self._waiting[0]
                answer = await self._answers.answer(question.text, secret=question.secret)
                self._waiting.popleft()
                if answer is not None:
                    self._show(question.transcript(answer))
                self._reply(END_OF_FILE if answer is None else answer)
        finally:
            self._task = None
            while self._waiting:
                self._waiting.popleft()
                self._reply(END_OF_FILE)
            self._notice()
