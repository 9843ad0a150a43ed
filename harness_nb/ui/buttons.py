"""Buttons below a cell that waits for approvals: the kernel's half. The page's half, which tells the protocol, is
``labextensions/harness-nb/static/approvals.js``.

``ui.approve`` uses it, in the engine. A page that is there says so at once, one that is loaded later within two
seconds; where none does, the person is asked in another way. A click only hands over an answer. This module must not
import IPython: it is given the kernel.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from harness_nb.approval import editable, visible, with_texts
from harness_nb.types import Approval, JsonObject
from harness_nb.ui.asks import Ask, Asks
from harness_nb.ui.here import PageLine, cell_of
from harness_nb.ui.source import coloured

TARGET = "harness_nb.approvals"
VERSION = 1
"""Of the protocol; the page has the same number."""

LIVE_TIMEOUT = 3.0
"""Seconds in which a page has to say that it shows the buttons. Those that do take about half of one."""
FIRST, LATER = 0.5, 2.0
"""Seconds between two openings: until a page has answered, and after that."""


class Buttons:
    """The buttons of one cell, for the open questions of ``asks``. ``request`` is the cell's execute request."""

    def __init__(self, kernel: Any, request: Mapping[str, Any], asks: Asks) -> None:
        self._kernel = kernel
        self._request = request
        self._asks = asks
        self._cell = cell_of(request)
        self._line: PageLine | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._known: bool | None = None if self._cell else False
        self._ready = asyncio.Event()

    async def offer(self) -> bool:
        """Show the open questions; whether a page of a person does. ``False`` stays so for this cell."""
        if self._known is False:
            return False
        if self._line is None:
            self._line = PageLine(self._kernel, self._request, asyncio.get_running_loop(), self._opening(), TARGET)
            self._tasks = [asyncio.ensure_future(self._listen()), asyncio.ensure_future(self._open_again())]
        elif self._known:
            self._show()
        if self._known is None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ready.wait(), LIVE_TIMEOUT)
            self._known = bool(self._known) if self._ready.is_set() else False
            if not self._known:
                self.close()
        return self._known

    def settled(self, ask: Ask) -> None:
        """Take the buttons of a question away."""
        if self._line is not None:
            self._line.send({"event": "settled", "ask": ask.number, "words": ask.said})
            if not self._asks.open():
                self.close()

    def close(self) -> None:
        """Nothing is asked any more."""
        for task in self._tasks:
            task.cancel()
        line, self._line, self._tasks = self._line, None, []
        if line is not None:
            line.close()

    def _opening(self) -> JsonObject:
        return {"version": VERSION, "cell": self._cell, "asking": [ask.number for ask in self._asks.open()]}

    async def _open_again(self) -> None:
        """For pages that did not hear it: the first opening may come too early, and a page may be loaded again."""
        while self._line is not None:
            await asyncio.sleep(LATER if self._known else FIRST)
            if self._line is not None:
                self._line.open_again(self._opening())

    async def _listen(self) -> None:
        while self._line is not None:
            message = await self._line.hear()
            if message is None:  # a page that does not know the target closes it
                if not self._known:
                    self._ready.set()
                    return
                self._line.stay()
            elif message.get("event") == "ready":
                self._known = True
                self._ready.set()
                self._show()
            elif message.get("event") == "answer":
                self._take(message)

    def _show(self) -> None:
        if self._line is not None:
            self._line.send({"event": "show", "asks": [told(ask) for ask in self._asks.open()]})

    def _take(self, message: JsonObject) -> None:
        number = message.get("ask")
        ask = next((ask for ask in self._asks.all() if ask.number == number), None)
        if ask is None or self._line is None:
            return
        try:
            approval = approval_of(ask, message)
        except ValueError as error:
            self._line.send({"event": "refused", "ask": number, "words": str(error)})
            return
        if words := ask.settle(approval):
            self._line.send({"event": "settled", "ask": number, "words": words})


def told(ask: Ask) -> JsonObject:
    """A question as the page gets it."""
    return {
        "ask": ask.number,
        "name": ask.call.name,
        "reason": visible(ask.decision.reason),
        "source": coloured(ask.source),
        "kind": visible(ask.kind),
        "fields": [{"name": name, "text": text} for name, text in editable(ask.call).items()],
    }


def approval_of(ask: Ask, message: Mapping[str, Any]) -> Approval:
    """The answer that a message of the page is.

    Raises:
        ValueError: if it is none; the text says why.
    """
    match message.get("choice"):
        case "allow":
            return Approval(approved=True)
        case "kind":
            return Approval(approved=True, scope="kind")
        case "deny":
            word = str(message.get("word", "")).strip()
            return Approval(approved=False, reason="a person said no" + (f": {word}" if word else ""))
        case "edit":
            return Approval(approved=True, edited=with_texts(ask.call, message.get("texts") or {}))
        case choice:
            raise ValueError(f"there is no choice {choice!r}")
