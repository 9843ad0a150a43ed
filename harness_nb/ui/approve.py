"""Questions in the notebook: the engine asks, the person clicks or types, and nothing waits in vain.

A ladder: where nobody can answer, denied at once; where a page shows buttons, they are waited for, however long it
takes; elsewhere the cell's own thread reads a typed answer. The verbs ``approve`` and ``deny`` answer besides.

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

from harness_nb.approval import DenyApprover, asked_by_code, read_typed
from harness_nb.types import Approval, Decision, ToolCall
from harness_nb.ui.asks import Ask, Asks
from harness_nb.ui.buttons import Buttons

CHOICES = "[y/N, a: this kind, e TEXT: run TEXT instead, or n and a word to the model]"


class Shown(Protocol):
    """The display above the question. It shows tool, reason and the whole source; the question itself is one line."""

    def draw(self) -> None:
        """Show what is new."""
        ...

    def ask(self, open: bool) -> None:
        """The running code has put a question to the person; or it has got its answer."""
        ...

    def buttons(self, shown: bool) -> None:
        """Approvals are asked for by buttons below the cell; or by a line that is typed."""
        ...


def read_line(question: str, secret: bool) -> str:
    """Ask the person in front of the cell; unseen if ``secret``. The kernel replaces both functions by its own."""
    return getpass.getpass(question) if secret else input(question)


class CellApprover:
    """Asks the person in front of the cell."""

    def __init__(
        self, answerable: bool, shown: Shown, asks: Asks | None = None, buttons: Buttons | None = None
    ) -> None:
        self._answerable = answerable
        self._shown = shown
        self._asks = asks or Asks()
        self._buttons = buttons
        self._questions: queue.SimpleQueue[_Question] = queue.SimpleQueue()

    async def ask(self, call: ToolCall, source: str, decision: Decision) -> Approval:
        """Ask by buttons where a page shows them, else by a typed line; wait for the first answer, by whatever way."""
        ask = self._asks.add(call, source, decision)
        if not self._answerable:
            ask.close("denied, nobody was there to ask")
            return await DenyApprover("nobody can answer here").ask(call, source, decision)
        self._shown.draw()
        typing: asyncio.Future[None] | None = None
        try:
            live = self._buttons is not None and await self._buttons.offer()
            self._shown.buttons(live)
            if not live:
                typing = asyncio.ensure_future(self._read_answer(ask))
            return await ask.answer
        finally:
            ask.close("given up")
            if typing is not None:
                typing.cancel()
            if self._buttons is not None:
                self._buttons.settled(ask)

    async def _read_answer(self, ask: Ask) -> None:
        """Have the cell's thread ask until it is given an answer that can be."""
        trouble = ""
        while not ask.said:
            many = f" {ask.number}" if len(self._asks.open()) > 1 else ""
            text = f"{trouble}Run this {ask.call.name} cell{many}? {CHOICES} "
            try:
                line = await self._put(_Question(text))
            except _Interrupted:
                ask.settle(Approval(approved=False, reason="the person interrupted"))
                return
            if line is None:
                ask.settle(Approval(approved=False, reason="the question could not be asked", by="nobody"))
                return
            try:
                ask.settle(read_typed(line, ask.call))
            except ValueError as error:
                trouble = f"{error}. "

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
