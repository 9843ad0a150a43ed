"""Screens of the command line: one for people, on stderr, and one for programs, on stdout.

A screen is a listener: it takes events and deltas one by one. For people it is the one of ``ui.terminal``. It must not
import the session or IPython.
"""

from __future__ import annotations

import json
import sys
from typing import Protocol

from rich.console import Console

from harness_nb import events as ev
from harness_nb.ports import Delta
from harness_nb.ui.terminal import TerminalDisplay


class Screen(Protocol):
    """What the command line shows a run on."""

    def apply(self, item: ev.Event | Delta) -> None:
        """Show one item."""
        ...


class JsonScreen:
    """Every event as one JSON object a line; deltas are not events and are left out."""

    def apply(self, item: ev.Event | Delta) -> None:
        """Print an event."""
        if isinstance(item, ev.EventBase):
            sys.stdout.write(json.dumps({"seq": item.seq, "time": item.time, **item.model_dump(mode="json")}) + "\n")
            sys.stdout.flush()


def screen_for(json_lines: bool) -> Screen:
    """The screen for programs, or for people; the latter without the summary, which goes to stdout."""
    return JsonScreen() if json_lines else TerminalDisplay(Console(stderr=True, highlight=False), summary=False)
