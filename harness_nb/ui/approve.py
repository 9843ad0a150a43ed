"""Questions in the notebook: the engine asks, the cell's own thread reads the answer, and nothing waits in vain.

The session calls ``CellApprover.ask`` and ``answer`` in the engine; the ticks of the waiting ``%%agent`` cell call
``answer_questions`` in the main thread, because ``input()`` belongs there. Where the request says that nobody can
answer (nbclient, papermill, CI), or no person's front-end is likely, an approval is denied and tool code gets an error,
at once.
"""

from __future__ import annotations

import asyncio
import getpass
import queue
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from harness_nb.approval import DenyApprover, asked_by_code, read_answer
from harness_nb.types import Approval, Decision, ToolCall


class Shown(Protocol):
    """The display above the question. It shows tool, reason and the whole source; the question itself is one line."""

    def draw(self) -> None:
        """Show what is new."""
        ...

    def ask(self, open: bool) -> None:
        """The running code has put a question to the person; or it has got its answer."""
        ...


def read_line(question: str, secret: bool) -> str:
    """Ask the person in front of the cell; unseen if ``secret``. The kernel replaces both functions by its own."""
    return getpass.getpass(question) if secret else input(question)


class CellApprover:
    """Asks the person in front of the cell."""

    def __init__(self, answerable: bool, shown: Shown) -> None:
        self._answerable = answerable
        self._shown = shown
        self._questions: queue.SimpleQueue[_Question] = queue.SimpleQueue()

    async def ask(self, call: ToolCall, source: str, decision: Decision) -> Approval:
        """Post the question and wait for the cell to answer it."""
        if not self._answerable:
            return await DenyApprover("nobody can answer here").ask(call, source, decision)
        self._shown.draw()
        try:
            line = await self._put(_Question(f"Run this {call.name} cell? [y/N, or n and a word to the model] "))
        except _Interrupted:
            return Approval(approved=False, reason="the person interrupted")
        if line is None:
            return Approval(approved=False, reason="the question could not be asked", by="nobody")
        return read_answer(line)

    @property
    def can_answer(self) -> bool:
        """Whether a person is in front of the cell."""
        return self._answerable

    async def answer(self, question: str, *, secret: bool) -> str | None:
        """Post a question of tool code and wait for the line; ``None`` if it could not be asked."""
        self._shown.ask(True)
        try:
            return await self._put(_Question(asked_by_code(question), secret))
        except _Interrupted:
            return await asyncio.get_running_loop().create_future()  # the work is being stopped, and the code with it
        finally:
            self._shown.ask(False)

    async def _put(self, question: _Question) -> str | None:
        self._questions.put(question)
        try:
            return await question.line
        finally:
            question.open = False

    def answer_questions(self, read: Callable[[str, bool], str] = read_line) -> None:
        """Ask what has been posted; called by the cell's thread.

        Raises:
            KeyboardInterrupt: if the person interrupts instead of answering; an approval is then denied.
        """
        while not self._questions.empty():
            question = self._questions.get()
            if not question.open:
                continue
            try:
                with _interruptible():
                    question.settle(read(question.text, question.secret))
            except EOFError:
                question.settle(None)
            except BaseException:
                question.settle(_Interrupted())
                raise


class _Interrupted(Exception):
    """The person has interrupted the cell instead of answering."""


@contextmanager
def _interruptible() -> Iterator[None]:
    """An interrupt raises ``KeyboardInterrupt`` here.

    While a cell is awaited, ipykernel's handler only tells the event loop, which does not turn during ``input()``.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class _Question:
    """A question on its way between two threads. Made in the engine's loop."""

    def __init__(self, text: str, secret: bool = False) -> None:
        self.text = text
        self.secret = secret
        self.open = True
        self.line: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()

    def settle(self, line: str | _Interrupted | None) -> None:
        """Hand over what came of it, from whatever thread."""
        self.line.get_loop().call_soon_threadsafe(self._settle, line)

    def _settle(self, line: str | _Interrupted | None) -> None:
        if self.line.done():
            return
        if isinstance(line, _Interrupted):
            self.line.set_exception(line)
        else:
            self.line.set_result(line)


def can_answer(request: Mapping[str, Any], environment: Mapping[str, str]) -> bool:
    """Whether a person can answer ``input()`` in the cell of this execute request.

    ``allow_stdin`` false says no for certain. Home-made executors may leave it at true with nobody there, so a sign of
    a person's front-end is needed as well: a cell id, or the session name that Jupyter servers set.
    """
    if not request.get("content", {}).get("allow_stdin", False):
        return False
    return bool(request.get("metadata", {}).get("cellId") or environment.get("JPY_SESSION_NAME"))
