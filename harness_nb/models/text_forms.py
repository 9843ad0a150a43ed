"""What small servers put into a reply's text that others put into fields of their own: thinking and tool calls.

``remote`` sends the text through it, piece by piece, where the quirks of the server say so. Thinking becomes
``ReasoningDelta``; what may be a call is held back until the reply is whole. No I/O.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness_nb.models.text_calls import OPENERS, find_calls
from harness_nb.ports import Delta, ReasoningDelta, TextDelta
from harness_nb.types import ToolCall, ToolSpec

THOUGHTS = {"<think>": "</think>", "<thinking>": "</thinking>", "[THINK]": "[/THINK]", "<seed:think>": "</seed:think>"}
"""What thinking stands between, at the beginning of a reply."""

_BARE = ("{", "[", "```json", "```tool_call")
"""What a reply begins with that may be a call and nothing else."""


class TextForms:
    """Feed it the pieces of a text, then ``close`` it and take ``text`` and ``calls``."""

    def __init__(self, tools: Sequence[ToolSpec]) -> None:
        self.text = ""
        self.calls: tuple[ToolCall, ...] = ()
        self._tools = tools
        self._held = ""
        self._closer: str | None = None
        self._begun = False
        self._thought = False
        self._holding = False

    def feed(self, piece: str) -> Iterator[Delta]:
        """Take a piece of the text; yield what can be shown of what has come."""
        self._held += piece
        if not self._begun:
            self._begin()
        if self._closer:
            yield from self._think()
        if self._begun and not self._closer and not self._holding:
            yield from self._show(self._find_opener())

    def close(self, *, calls: bool, cut: bool) -> Iterator[Delta]:
        """The text is over: yield what is still to be shown. ``calls`` says whether calls are looked for in it."""
        if self._closer:  # thinking without an end
            yield from self._reason(len(self._held))
            return
        self._begun = True
        if calls:
            found = find_calls(self._held, self._tools, cut=cut)
            self.calls, self._held = found.calls, found.rest
        yield from self._show(len(self._held))

    def _begin(self) -> None:
        """See what the text begins with, once there is enough of it."""
        start = self._held.lstrip()
        if self._thought:
            self._held = start
        for opener, closer in THOUGHTS.items():
            if start.startswith(opener):
                self._begun, self._closer, self._held = True, closer, start.removeprefix(opener).lstrip("\n")
                return
        if not start or any(opener.startswith(start) for opener in THOUGHTS):
            return
        if self._tools and any(start.startswith(bare) or bare.startswith(start) for bare in _BARE):
            self._holding = any(start.startswith(bare) for bare in _BARE)
            self._begun = self._holding
            return
        self._begun = True

    def _think(self) -> Iterator[Delta]:
        closer = self._closer or ""
        end = self._held.find(closer)
        if end < 0:
            yield from self._reason(len(self._held) - _overlap(self._held, (closer,)))
            return
        yield from self._reason(end)
        self._held = self._held.removeprefix(closer)
        self._closer, self._begun, self._thought = None, False, True  # a call may stand bare behind the thinking
        self._begin()

    def _reason(self, size: int) -> Iterator[Delta]:
        thought, self._held = self._held[:size], self._held[size:]
        if thought:
            yield ReasoningDelta(thought)

    def _find_opener(self) -> int:
        """How much of the held text can be shown: what stands before a call, or before what may become one."""
        if not self._tools:
            return len(self._held)
        found = [at for opener in OPENERS if (at := self._held.find(opener)) >= 0]
        if found:
            self._holding = True
            return min(found)
        return len(self._held) - _overlap(self._held, OPENERS)

    def _show(self, size: int) -> Iterator[Delta]:
        shown, self._held = self._held[:size], self._held[size:]
        if shown:
            self.text += shown
            yield TextDelta(shown)


def _overlap(text: str, openers: Sequence[str]) -> int:
    """The length of the longest end of ``text`` that one of ``openers`` begins with."""
    longest = max(map(len, openers)) - 1
    for size in range(min(longest, len(text)), 0, -1):
        if any(opener.startswith(text[-size:]) for opener in openers):
            return size
    return 0
