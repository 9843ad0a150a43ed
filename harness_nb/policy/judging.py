"""A classifier's judgement of a call: which calls are judged, the verdict of its figures, and how it joins the rules.

Pure. ``judging`` asks the classifier and calls ``combine``; ``policy.judging_text`` has the words of the question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, Literal

from pydantic import Field, ValidationError, model_validator

from harness_nb.errors import ModelError, UsageError
from harness_nb.policy.rules import ALLOWED
from harness_nb.types import Decision, Frozen, Judgement, Message, ToolCall, Usage

READ_ONLY_TOOLS = frozenset({"read_file", "list_files", "search_files", "view_image", "wait", "rebuild", "finish"})
"""Tools that change nothing by themselves, or only the kernel; they are not judged. The rules still hold for them."""

LEVELS = ("low", "moderate", "high", "critical")
"""The levels of risk, 0 to 3."""

POLICY = "classifier"
"""``Decision.policy`` where the classifier's verdict, or that it gave none, is what counts."""

KEY = "thresholds"
"""The key of the thresholds in the table ``[tool.harness-nb.policy]``."""

Verdict = Literal["allow", "ask", "deny"]
_STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}
_TOLERANCE = 0.02
"""How far probabilities that were rounded may be from a sum of 1."""


class NoVerdictError(ModelError):
    """What a classifier answered is no verdict: a refusal, no number, out of range. ``usage`` is what it took."""

    def __init__(self, message: str, usage: Usage | None = None) -> None:
        super().__init__(message)
        self.usage = usage


class Thresholds(Frozen):
    """Where a judgement becomes a verdict.

    Risk below ``allow_risk`` and ``authorised`` at least as given: allow. Risk of ``deny_risk`` and above: deny.
    Between them: ask.
    """

    allow_risk: float = Field(default=1.0, ge=0, le=3, allow_inf_nan=False)
    deny_risk: float = Field(default=2.5, ge=0, allow_inf_nan=False)
    authorised: float = Field(default=0.5, ge=0, le=1, allow_inf_nan=False)

    @model_validator(mode="after")
    def _in_order(self) -> Thresholds:
        if self.allow_risk > self.deny_risk:
            raise ValueError("allow_risk is above deny_risk")
        return self


def read_thresholds(rules: Mapping[str, Any]) -> Thresholds:
    """The thresholds in the table ``[tool.harness-nb.policy]``, or the default ones.

    Raises:
        UsageError: if one of them is wrong; the text names it and what would do.
    """
    try:
        return Thresholds.model_validate(rules.get(KEY, {}))
    except ValidationError as error:
        details = "; ".join(f"{'.'.join(map(str, item['loc'])) or KEY}: {item['msg']}" for item in error.errors())
        raise UsageError(
            f"{KEY} in [tool.harness-nb.policy] is wrong: {details}. Write it as "
            f"{KEY} = {{ allow_risk = 1, deny_risk = 2.5, authorised = 0.5 }}; risk goes from 0 to 3, authorised to 1."
        ) from error


def needs_judgement(call: ToolCall, decision: Decision) -> bool:
    """Whether the classifier is to be asked about a call on which the rules have decided.

    Not where the rules deny, where a rule of the user allows it by name (any policy but the default), and for tools
    that only read.
    """
    if decision.verdict == "deny" or call.name in READ_ONLY_TOOLS:
        return False
    return not (decision.verdict == "allow" and decision.policy != ALLOWED.policy)


def verdict_of(judgement: Judgement, thresholds: Thresholds) -> Verdict:
    """What the figures of a judgement come to."""
    if judgement.risk >= thresholds.deny_risk:
        return "deny"
    if judgement.risk < thresholds.allow_risk and judgement.authorised >= thresholds.authorised:
        return "allow"
    return "ask"


def stricter(one: Verdict, other: Verdict) -> Verdict:
    """The stricter one of two verdicts."""
    return one if _STRICTNESS[one] >= _STRICTNESS[other] else other


def combine(rules: Decision, judgement: Judgement | str, thresholds: Thresholds) -> Decision:
    """The decision of rules and classifier together: the strictest wins.

    ``judgement`` is the classifier's, or, as a text, why it gave none. Without a verdict a call is asked about.
    """
    if isinstance(judgement, str):
        reason = f"the classifier gave no verdict: {judgement.rstrip('. ')}"
        own = Decision(verdict="ask", reason=reason, policy=POLICY)
        figures: dict[str, Any] = {"no_verdict": judgement}
    else:
        own = Decision(verdict=verdict_of(judgement, thresholds), reason=describe(judgement), policy=POLICY)
        figures = {"judgement": judgement}
    if stricter(rules.verdict, own.verdict) != rules.verdict or rules.policy == ALLOWED.policy:
        return own.model_copy(update=figures)
    return rules.model_copy(update={"reason": f"{rules.reason} ({own.reason})", **figures})


def describe(judgement: Judgement) -> str:
    """A judgement as a clause that people and models read."""
    nearest = LEVELS[min(3, round(judgement.risk))]
    covered = "cover it" if judgement.authorised >= 0.5 else "do not cover it"
    return (
        f"the classifier rates the risk as {nearest} ({judgement.risk:.2f} of 3) and says that the user's words "
        f"{covered} ({judgement.authorised:.2f} of 1)"
    )


def expected_level(probabilities: Sequence[float]) -> tuple[float, tuple[float, ...]]:
    """The expected level of risk, and the probabilities of the four levels, scaled to a sum of 1.

    Raises:
        ValueError: if they are not four probabilities that sum to about 1; the text says what they are.
    """
    if len(probabilities) != len(LEVELS):
        raise ValueError(f"{len(probabilities)} probabilities for {len(LEVELS)} levels of risk")
    if not all(isfinite(each) and -_TOLERANCE <= each <= 1 + _TOLERANCE for each in probabilities):
        raise ValueError(f"the probabilities {list(probabilities)} are not all from 0 to 1")
    kept = [min(max(each, 0.0), 1.0) for each in probabilities]
    if abs(sum(kept) - 1) > _TOLERANCE * len(LEVELS):
        raise ValueError(f"the probabilities {list(probabilities)} do not sum to 1")
    scaled = tuple(each / sum(kept) for each in kept)
    return round(sum(level * each for level, each in enumerate(scaled)), 6), scaled


def read_figure(value: object, name: str, most: float) -> float:
    """A figure of a judgement, from 0 to ``most``.

    Raises:
        ValueError: if it is no number, not finite, or out of range; the text says what it is.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} is {value!r} and not a number")
    if not isfinite(value):
        raise ValueError(f"{name} is {value} and not a number")
    if not 0 <= value <= most:
        raise ValueError(f"{name} is {value:g} and not from 0 to {most:g}")
    return float(value)


def follows_untrusted(messages: Sequence[Message]) -> bool:
    """Whether the last reply of a conversation stands right behind the result of a tool, which nobody vouches for."""
    replies = [place for place, message in enumerate(messages) if message.role == "assistant"]
    return bool(replies and replies[-1]) and messages[replies[-1] - 1].role == "tool"
