"""What ``wait`` waits for in the output of a running cell.

A pattern, a bad sign, silence. Pure; ``now`` is passed in.
"""

from __future__ import annotations

import re

from harness_nb.outputs import clean_text
from harness_nb.ports import Output

SILENCE = 600.0
"""Seconds without any output after which a wait returns."""

KEPT = 4000
"""Characters of the last output that a pattern is matched against."""

BAD_SIGN = re.compile(
    r"\b(?P<name>[\w/]*(?:loss|error|perplexity|ppl)[\w/]*)['\"]?\s*[:=]?\s*(?P<value>nan|[+-]?inf(?:inity)?)\b", re.I
)
"""A loss or an error that has become NaN or infinite, as training loops print it."""


class Watch:
    """The conditions of one ``wait``. ``until`` is a regular expression; text from before it began does not count.

    ``signs`` says whether bad signs count; ``warned`` whether one was seen.
    """

    def __init__(self, until: str | None, now: float, *, signs: bool = True) -> None:
        self._until = re.compile(until) if until else None
        self._text = ""
        self._reason = ""
        self._news = False
        self._heard = now
        self._signs = signs
        self.warned = False

    def feed(self, output: Output) -> None:
        """Look at an output."""
        self._news = True
        text = _text_of(output)
        if self._reason or not text:
            return
        self._text = (self._text + clean_text(text))[-KEPT:]
        if self._until and (match := self._until.search(self._text)):
            self._reason = f"the pattern matched: {match.group(0).strip()[:200]}"
        elif self._signs and (sign := BAD_SIGN.search(self._text)):
            self.warned = True
            self._reason = f"a bad sign: {sign.group('name')} is {sign.group('value')}"

    def reason(self, now: float) -> str:
        """Why the wait is over, as words; empty while it is not."""
        if self._news:
            self._heard, self._news = now, False
        if not self._reason and now - self._heard >= SILENCE:
            return f"there was no output for {SILENCE / 60:g} minutes"
        return self._reason


def _text_of(output: Output) -> str:
    """What an output says in plain text: of a display, a line of its own (a bar of ``tqdm.notebook`` is one)."""
    if output.kind == "stream":
        return str(output.content.get("text", ""))
    plain = (output.content.get("data") or {}).get("text/plain")
    return f"\n{plain}\n" if plain else ""


def pattern_problem(until: str | None) -> str | None:
    """Why ``until`` is no regular expression; ``None`` if it is one, or is not given."""
    try:
        re.compile(until or "")
    except re.error as error:
        way_out = "Close what is open, and put a backslash before ( ) [ ] . * + ? that mean themselves."
        return f"Not waited: until is not a regular expression ({error}): {until}\n{way_out}"
    return None
