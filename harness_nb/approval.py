"""Approvers that need no notebook: nobody, a fixed list of answers, a person at a terminal.

The session picks one by its policy; the magics bring their own (``ui.approve``). ``FixedApprover`` is the fake that
ships.
"""

from __future__ import annotations

import asyncio
import getpass
import sys
from collections.abc import Iterable
from typing import TextIO

from harness_nb.types import Approval, Decision, ToolCall


class DenyApprover:
    """For runs in which nobody can answer: every question is denied at once."""

    def __init__(self, why: str = "nobody is there to ask") -> None:
        self._why = why

    async def ask(self, call: ToolCall, source: str, decision: Decision) -> Approval:
        """Deny, with the reason of the decision."""
        return Approval(approved=False, reason=f"{decision.reason} ({self._why})", by="nobody")

    async def answer(self, question: str, *, secret: bool) -> str | None:
        """Nobody answers."""
        return None


class FixedApprover:
    """Gives the answers and lines it was made with, in order; then denies. Keeps what it was asked in ``asked``."""

    def __init__(self, answers: Iterable[Approval] = (), lines: Iterable[str] = ()) -> None:
        self._answers = list(answers)
        self._lines = list(lines)
        self.asked: list[ToolCall] = []

    async def ask(self, call: ToolCall, source: str, decision: Decision) -> Approval:
        """The next answer."""
        self.asked.append(call)
        return (
            self._answers.pop(0) if self._answers else Approval(approved=False, reason="no answer is left", by="nobody")
        )


class TerminalApprover:
    """Asks a person at a terminal; denies at once where standard input is none."""

    def __init__(self, source: TextIO | None = None, screen: TextIO | None = None) -> None:
        self._source = source or sys.stdin
        self._screen = screen or sys.stderr

    async def ask(self, call: ToolCall, source: str, decision: Decision) -> Approval:
        """Show the cell and the reason, and wait for a line that begins with y or n."""
        if not self._source.isatty():
            return await DenyApprover("no terminal to ask at").ask(call, source, decision)
        return await asyncio.to_thread(self._ask, call, source, decision)

    async def answer(self, question: str, *, secret: bool) -> str | None:
        """Put the question of tool code to the person, and read a line (unseen if ``secret``)."""
        if not self._source.isatty():
            return None
        return await asyncio.to_thread(self._read_line, question, secret)

    def _read_line(self, question: str, secret: bool) -> str:
        self._screen.write("\nThe running code asks:\n")
        if secret:
            return getpass.getpass(question)
        self._screen.write(question)
        self._screen.flush()
        return self._source.readline().rstrip("\n")

    def _ask(self, call: ToolCall, source: str, decision: Decision) -> Approval:
        self._screen.write(f"\n{call.name} asks for your approval: {decision.reason}\n\n{source}\n\n")
        self._screen.write("Run it? [y/N, or N and a word to the model] ")
        self._screen.flush()
        return read_answer(self._source.readline())


def read_answer(line: str) -> Approval:
    """The approval that a typed answer is: yes only for y or yes; what follows a no goes to the model."""
    answer, _, word = line.strip().partition(" ")
    if answer.lower() in ("y", "yes"):
        return Approval(approved=True)
    said = word if answer.lower() in ("n", "no", "") else line.strip()
    return Approval(approved=False, reason="a person said no" + (f": {said.strip()}" if said.strip() else ""))
