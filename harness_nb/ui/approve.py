"""Approvals in the notebook: the engine asks, the cell's own thread reads the answer, and nothing waits in vain.

The session calls ``CellApprover.ask`` in the engine; the ticks of the waiting ``%%agent`` cell call
``answer_questions`` in the main thread, because ``input()`` belongs there. Where the request says that nobody can
answer (nbclient, papermill, CI), or no person's front-end is likely, the answer is no, at once.
"""

from __future__ import annotations

import asyncio
import queue
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from harness_nb.approval import DenyApprover, read_answer
from harness_nb.types import Approval, Decision, ToolCall


class CellApprover:
    """Asks the person in front of the cell.

    ``refresh`` draws the display, which shows tool, reason and the whole source; the question itself is one line.
    """

    def __init__(self, answerable: bool, refresh: Callable[[], None]) -> None:
        self._answerable = answerable
        self._refresh = refresh
        self._questions: queue.SimpleQueue[_Question] = queue.SimpleQueue()

    async def ask(self, call: ToolCall, source: str, decision: Decision) -> Approval:
        """Post the question and wait for the cell to answer it."""
        if not self._answerable:
            return await DenyApprover("nobody can answer here").ask(call, source, decision)
        self._refresh()
        question = _Question(f"Run this {call.name} cell? [y/N, or n and a word to the model] ")
        self._questions.put(question)
        try:
            return await question.answer
        finally:
            question.open = False

    def answer_questions(self, read: Callable[[str], str] = input) -> None:
        """Ask what has been posted; called by the cell's thread.

        Raises:
            KeyboardInterrupt: if the person interrupts instead of answering; the question is answered with no.
        """
        while not self._questions.empty():
            question = self._questions.get()
            if not question.open:
                continue
            try:
                with _interruptible():
                    answer = read(question.text)
                question.settle(read_answer(answer))
            except EOFError:
                question.settle(Approval(approved=False, reason="the question could not be asked", by="nobody"))
            except BaseException:
                question.settle(Approval(approved=False, reason="the person interrupted"))
                raise


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

    def __init__(self, text: str) -> None:
        self.text = text
        self.open = True
        self.answer: asyncio.Future[Approval] = asyncio.get_running_loop().create_future()

    def settle(self, approval: Approval) -> None:
        """Hand over the answer, from whatever thread."""
        self.answer.get_loop().call_soon_threadsafe(self._settle, approval)

    def _settle(self, approval: Approval) -> None:
        if not self.answer.done():
            self.answer.set_result(approval)


def can_answer(request: Mapping[str, Any], environment: Mapping[str, str]) -> bool:
    """Whether a person can answer ``input()`` in the cell of this execute request.

    ``allow_stdin`` false says no for certain. Home-made executors may leave it at true with nobody there, so a sign of
    a person's front-end is needed as well: a cell id, or the session name that Jupyter servers set.
    """
    if not request.get("content", {}).get("allow_stdin", False):
        return False
    return bool(request.get("metadata", {}).get("cellId") or environment.get("JPY_SESSION_NAME"))
