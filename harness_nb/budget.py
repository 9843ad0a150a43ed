"""Limits of one prompt's work, and what has been spent of them. Pure; the loop keeps one."""

from __future__ import annotations

from harness_nb.context.words import turns_left
from harness_nb.events import LimitReached, Nudged, SessionEnded
from harness_nb.types import Limits, Usage

WARNING_TURNS = 2
"""The model is told when so many turns are left."""


class Budget:
    """Turns, tokens, US dollars and seconds spent on one prompt."""

    def __init__(self, limits: Limits, started: float, turns: int = 0, usage: Usage | None = None) -> None:
        self.limits = limits
        self.turns = turns
        self.usage = usage or Usage()
        self._started = started

    def elapsed(self, now: float) -> float:
        """Seconds since the start."""
        return now - self._started

    def spend(self, usage: Usage) -> None:
        """Add what a reply cost."""
        self.usage = add_usage(self.usage, usage)

    def reached(self, now: float) -> LimitReached | None:
        """The first limit that leaves no room for another turn."""
        limits = self.limits
        if limits.max_turns is not None and self.turns >= limits.max_turns:
            return _limit("turns", f"the limit of {_count(limits.max_turns, 'turn')} is reached", "--max-turns")
        if limits.max_tokens is not None and self.usage.total_tokens >= limits.max_tokens:
            spent = f"{self.usage.total_tokens:,} of {limits.max_tokens:,} tokens are used"
            return _limit("tokens", spent, "--max-tokens")
        if limits.max_cost is not None and (self.usage.cost_usd or 0.0) >= limits.max_cost:
            return _limit("cost", f"${self.usage.cost_usd or 0:.4f} of ${limits.max_cost:.4f} are spent", "--max-cost")
        if limits.max_minutes is not None and self.elapsed(now) >= 60 * limits.max_minutes:
            return _limit("minutes", f"the limit of {limits.max_minutes:g} minutes is reached", "--max-minutes")
        return None

    def end(self, reason: str, text: str, now: float) -> SessionEnded:
        """The last event of a prompt's work, with what it took."""
        spent = {"turns": self.turns, "usage": self.usage, "elapsed": self.elapsed(now)}
        return SessionEnded.model_validate({"reason": reason, "text": text, **spent})

    def warning(self) -> Nudged | None:
        """A word to the model when the limit of turns is near."""
        if self.limits.max_turns is None or self.turns == 0 or self.limits.max_turns - self.turns != WARNING_TURNS:
            return None
        return Nudged(reason="turns are running out", text=turns_left(WARNING_TURNS, self.limits.max_turns))


def add_usage(first: Usage, second: Usage) -> Usage:
    """The sum, in which an unknown figure does not hide a known one."""
    sums = {}
    for name in Usage.model_fields:
        known = [value for value in (getattr(first, name), getattr(second, name)) if value is not None]
        sums[name] = sum(known) if known else None
    return Usage(**sums)


def _limit(name: str, text: str, option: str) -> LimitReached:
    return LimitReached(limit=name, text=f"{text}; raise it with {option}")


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"
