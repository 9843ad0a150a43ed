"""Where the verbs of ``%agent`` show what they do, ask the person, and put cells: a notebook's cell, or a terminal.

The magic makes one for each call of a verb. Both belong to the thread of the cell.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

from IPython.display import display

from harness_nb.types import JsonObject
from harness_nb.ui.approve import can_answer
from harness_nb.ui.current import CurrentSession
from harness_nb.ui.engine import engine
from harness_nb.ui.here import Placed, put_below
from harness_nb.ui.publish import Bundle, Canvas, KernelPublisher


class CellDesk:
    """The cell of a notebook that runs on ``kernel``."""

    def __init__(self, current: CurrentSession, kernel: Any) -> None:
        self.current = current
        self._kernel = kernel
        self._request = kernel.get_parent("shell")
        self._canvas = Canvas(KernelPublisher(kernel, self._request))
        self._shown: list[Bundle] = []

    def show(self, bundle: Bundle) -> None:
        """Add a block to the cell."""
        self._shown.append(bundle)
        self._canvas.draw(self._shown)

    def show_meanwhile(self, bundle: Bundle) -> None:
        """Show a block until the next one comes."""
        self._canvas.draw([*self._shown, bundle])

    def settle(self) -> None:
        """Take back what was shown meanwhile."""
        self._canvas.draw(self._shown)

    def ask(self, question: str) -> bool | None:
        """A yes or no of the person; ``None`` where nobody can answer."""
        return _answer(question) if can_answer(self._request, os.environ) else None

    def put_below(self, cells: Sequence[JsonObject], session_id: str, below: Sequence[str]) -> Placed:
        """Put cells below the first of these cells that the notebook has, else below the running one."""
        return put_below(engine(), self._kernel, cells, session_id, below)


class TerminalDesk:
    """A terminal, or a shell without a kernel."""

    def __init__(self, current: CurrentSession) -> None:
        self.current = current
        self._meanwhile = ""

    def show(self, bundle: Bundle) -> None:
        """Write a block."""
        show(bundle)

    def show_meanwhile(self, bundle: Bundle) -> None:
        """Write a line, once for what it says without the time that has passed."""
        line = str(bundle.data["text/plain"]).partition(" · ")[0]
        if line != self._meanwhile:
            self._meanwhile = line
            print(line, flush=True)

    def settle(self) -> None:
        """What is written stays."""

    def ask(self, question: str) -> bool | None:
        """A yes or no of the person; ``None`` where nobody can answer."""
        return _answer(question) if sys.stdin.isatty() else None

    def put_below(self, cells: Sequence[JsonObject], session_id: str, below: Sequence[str]) -> Placed:
        """There is no notebook here."""
        return put_below(engine(), None, cells, session_id, below)


def show(bundle: Bundle) -> None:
    """Show a bundle as the output of the running cell."""
    display(dict(bundle.data), metadata=dict(bundle.metadata), raw=True)


def _answer(question: str) -> bool | None:
    try:
        return input(question).strip().lower() in ("y", "yes")
    except EOFError:
        return None
