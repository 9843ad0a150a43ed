"""The approvals that a notebook is asked for: numbered, each answered once, whoever answers and from whatever thread.

``ui.approve`` adds them, the buttons, the typed answers and the verbs ``approve`` and ``deny`` settle them: the first
answer counts. It must not import IPython.
"""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field

from harness_nb.policy import kind_of
from harness_nb.types import Approval, Decision, ToolCall
from harness_nb.ui.source import call_title


@dataclass(eq=False)
class Ask:
    """One question. ``said`` is empty while it is open, and then what came of it."""

    number: int
    call: ToolCall
    source: str
    decision: Decision
    answer: asyncio.Future[Approval]
    said: str = ""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def title(self) -> str:
        """What it is about, in a line."""
        return f"{self.call.name} {call_title(self.call.name, self.call.arguments)}"

    @property
    def kind(self) -> str:
        """The kind of the call, in words."""
        return kind_of(self.call, self.source).words

    def settle(self, approval: Approval) -> str:
        """Answer it; the words of the earlier answer if there was one, which stays. From any thread."""
        if before := self.close("allowed" if approval.approved else "denied"):
            return f"already answered: {before}"
        self.answer.get_loop().call_soon_threadsafe(_set, self.answer, approval)
        return ""

    def close(self, words: str) -> str:
        """Take no answer from now on; the words with which it was closed before, if it was."""
        with self._lock:
            before, self.said = self.said, self.said or words
        return before


class Asks:
    """All that a notebook was asked since its kernel started."""

    def __init__(self) -> None:
        self._asks: list[Ask] = []

    def add(self, call: ToolCall, source: str, decision: Decision) -> Ask:
        """A new question; in the loop of whoever waits for the answer."""
        answer: asyncio.Future[Approval] = asyncio.get_running_loop().create_future()
        ask = Ask(len(self._asks) + 1, call, source, decision, answer)
        self._asks.append(ask)
        return ask

    def open(self) -> list[Ask]:
        """Those that wait for an answer."""
        return [ask for ask in self._asks if not ask.said]

    def all(self) -> list[Ask]:
        """All, the oldest first."""
        return list(self._asks)


def _set(answer: asyncio.Future[Approval], approval: Approval) -> None:
    if not answer.done():
        answer.set_result(approval)
