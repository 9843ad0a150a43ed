"""Limits of one prompt's work, and what has been spent of them. Pure; the loop keeps one."""

from __future__ import annotations

from harness_nb.context.words import limit_near, turns_left
from harness_nb.events import EventBase, LimitReached, ModelReplied, Nudged, SessionEnded, usage_of
from harness_nb.types import Limits, Usage

WARNING_TURNS = 2
"""The model is told when so many turns are left."""


class Budget:
    """Turns, tokens, US dollars and seconds spent on one prompt.

    Limits hold before a request: the estimate of what it will take counts as if it were spent. Where a provider does
    not say what a reply took, the estimate of it goes on counting; ``usage`` has the provider's figures only.
    """

    def __init__(self, limits: Limits, started: float, turns: int = 0, usage: Usage | None = None) -> None:
        self.limits = limits
        self.turns = turns
        self.usage = usage or Usage()
        self._started = started
        self._expected = Usage()
        self._assumed_tokens = 0
        self._assumed_cost = 0.0
        self._warned = False

    def elapsed(self, now: float) -> float:
        """Seconds since the start."""
        return now - self._started

    @property
    def bounded(self) -> bool:
        """Whether there is a limit that an estimate matters for."""
        return self.limits.max_tokens is not None or self.limits.max_cost is not None

    def expect(self, usage: Usage | None) -> None:
        """What the next request will take, by an estimate."""
        self._expected = usage or Usage()

    def apply(self, event: EventBase) -> None:
        """Count what an event says that a model has taken."""
        usage = usage_of(event)
        if usage is None:
            return
        self.usage = add_usage(self.usage, usage)
        if isinstance(event, ModelReplied):
            if not usage.total_tokens:
                self._assumed_tokens += self._expected.total_tokens
            if usage.cost_usd is None:
                self._assumed_cost += self._expected.cost_usd or 0.0

    def reached(self, now: float) -> LimitReached | None:
        """The first limit that leaves no room for another turn, the expected request included."""
        limits = self.limits
        if limits.max_turns is not None and self.turns >= limits.max_turns:
            return _limit("turns", f"the limit of {_count(limits.max_turns, 'turn')} is reached", "--max-turns")
        return (
            self._tokens_reached(self._expected)
            or self._cost_reached(self._expected)
            or (
                _limit("minutes", f"the limit of {limits.max_minutes:g} minutes is reached", "--max-minutes")
                if limits.max_minutes is not None and self.elapsed(now) >= 60 * limits.max_minutes
                else None
            )
        )

    def allows(self, usage: Usage) -> bool:
        """Whether a request that takes so much, and the expected one after it, keep the limits."""
        both = add_usage(usage, self._expected)
        return self._tokens_reached(both) is None and self._cost_reached(both) is None

    def end(self, reason: str, text: str, now: float) -> SessionEnded:
        """The last event of a prompt's work, with what it took."""
        spent = {"turns": self.turns, "usage": self.usage, "elapsed": self.elapsed(now)}
        return SessionEnded.model_validate({"reason": reason, "text": text, **spent})

    def warning(self) -> Nudged | None:
        """A word to the model when a limit is near: of turns once, of tokens or cost once."""
        turns = self.limits.max_turns
        if turns is not None and self.turns and turns - self.turns == WARNING_TURNS:
            return Nudged(reason="turns are running out", text=turns_left(WARNING_TURNS, turns))
        if self._warned or not self.turns:
            return None
        expected = self._expected
        ahead = expected
        for _ in range(WARNING_TURNS):
            ahead = add_usage(ahead, expected)
        limit = self._tokens_reached(ahead) or self._cost_reached(ahead)
        if limit is None:
            return None
        self._warned = True
        return Nudged(reason=f"the limit of {limit.limit} is near", text=limit_near(limit.limit))

    def _tokens_reached(self, expected: Usage) -> LimitReached | None:
        most, used = self.limits.max_tokens, self.usage.total_tokens + self._assumed_tokens
        if most is None or (used < most and used + expected.total_tokens <= most):
            return None
        text = f"{used:,} of {most:,} tokens are used"
        if used < most:
            text += f", and the next request would take about {expected.total_tokens:,}"
        return _limit("tokens", text, "--max-tokens")

    def _cost_reached(self, expected: Usage) -> LimitReached | None:
        most, used = self.limits.max_cost, (self.usage.cost_usd or 0.0) + self._assumed_cost
        ahead = expected.cost_usd or 0.0
        if most is None or (used < most and used + ahead <= most):
            return None
        text = f"${used:.4f} of ${most:.4f} are spent"
        if used < most:
            text += f", and the next request would cost about ${ahead:.4f}"
        return _limit("cost", text, "--max-cost")


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
