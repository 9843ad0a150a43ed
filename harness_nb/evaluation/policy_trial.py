"""Runs labelled calls through the rules and a classifier, as a session would, and keeps what came of each.

Nothing is executed. ``harness-nb eval-policy`` uses it; it must not import the command line.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness_nb.budget import add_usage
from harness_nb.evaluation.agreement import (
    Fit,
    Reliability,
    confusion,
    fit_thresholds,
    interval,
    reliability,
)
from harness_nb.evaluation.labelled import LabelledCall
from harness_nb.judging import TIMEOUT, judge_call
from harness_nb.policy import Rule, decide
from harness_nb.policy.judging import Thresholds, needs_judgement, stricter, verdict_of
from harness_nb.ports import Judge
from harness_nb.types import Decision, Usage

AT_ONCE = 4
"""Questions that are open at the same time, with a classifier behind HTTP."""

HIGH = 2
"""The level from which on a call counts as a high risk."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One labelled call: what the ``rules`` say, and the ``decision`` of rules and classifier."""

    labelled: LabelledCall
    rules: Decision
    decision: Decision
    usage: Usage

    @property
    def agrees(self) -> bool:
        """Whether the verdict is the label."""
        return self.decision.verdict == self.labelled.label

    @property
    def asked(self) -> bool:
        """Whether the classifier was asked."""
        return self.decision.judgement is not None or bool(self.decision.no_verdict)

    def verdict(self, thresholds: Thresholds) -> str:
        """The verdict that other thresholds would have given."""
        judgement = self.decision.judgement
        if judgement is None:
            return self.decision.verdict
        return stricter(self.rules.verdict, verdict_of(judgement, thresholds))


@dataclass(frozen=True, slots=True)
class Trial:
    """The outcomes of a set of calls. ``classifier`` is its spec, empty where the rules alone decided."""

    outcomes: tuple[Outcome, ...]
    thresholds: Thresholds
    classifier: str = ""

    @property
    def agreed(self) -> int:
        """Calls whose verdict is their label."""
        return sum(outcome.agrees for outcome in self.outcomes)

    @property
    def agreed_by_rules(self) -> int:
        """The same for the rules alone."""
        return sum(outcome.rules.verdict == outcome.labelled.label for outcome in self.outcomes)

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the agreement."""
        return interval(self.agreed, len(self.outcomes))

    @property
    def confusion(self) -> dict[str, dict[str, int]]:
        """Counts by label and verdict."""
        return confusion([(each.labelled.label, each.decision.verdict) for each in self.outcomes])

    @property
    def asked(self) -> int:
        """Calls that the classifier was asked about."""
        return sum(each.asked for each in self.outcomes)

    @property
    def without_verdict(self) -> tuple[Outcome, ...]:
        """Calls on which it gave none."""
        return tuple(each for each in self.outcomes if each.decision.no_verdict)

    @property
    def usage(self) -> Usage:
        """What the classifier took."""
        total = Usage()
        for each in self.outcomes:
            total = add_usage(total, each.usage)
        return total

    @property
    def methods(self) -> tuple[str, ...]:
        """How the judgements were had."""
        return tuple(sorted({each.decision.judgement.method for each in self.outcomes if each.decision.judgement}))

    def authorised(self) -> Reliability | None:
        """How reliable the probability of being authorised is.

        What is true is what the file says of it; where it says nothing, a call that is to be allowed is authorised.
        """
        pairs = []
        for each in self.outcomes:
            known = each.labelled.authorised
            known = True if known is None and each.labelled.label == "allow" else known
            if each.decision.judgement is not None and known is not None:
                pairs.append((each.decision.judgement.authorised, known))
        return reliability(pairs)

    def high_risk(self) -> Reliability | None:
        """How reliable the probability of a high or critical risk is, where the classifier tells it.

        What is true is the level in the file; where it says none, the label if that is allow (no) or deny (yes).
        """
        pairs = []
        for each in self.outcomes:
            judgement, level = each.decision.judgement, each.labelled.risk
            by_label = {"allow": False, "deny": True}.get(each.labelled.label)
            known = by_label if level is None else level >= HIGH
            if judgement is not None and judgement.risk_probabilities and known is not None:
                pairs.append((min(1.0, sum(judgement.risk_probabilities[HIGH:])), known))
        return reliability(pairs)

    def fit(self) -> Fit | None:
        """The thresholds that would have agreed with most labels."""
        if not any(each.decision.judgement for each in self.outcomes):
            return None
        return fit_thresholds(self.outcomes, Outcome.verdict, lambda each: each.labelled.label, self.thresholds)


async def run_trial(
    calls: Sequence[LabelledCall],
    rules: Sequence[Rule],
    judge: Judge | None,
    thresholds: Thresholds,
    *,
    timeout: float = TIMEOUT,
    at_once: int = AT_ONCE,
    progress: Callable[[Outcome], None] = lambda outcome: None,
) -> Trial:
    """What rules and classifier decide on each call. ``timeout`` is in seconds, for one judgement.

    ``progress`` hears of each call as it is decided. A classifier that fails gives no verdict, as in a session.
    """
    turns = asyncio.Semaphore(at_once)

    async def decide_on(labelled: LabelledCall) -> Outcome:
        question = labelled.question
        said = decide(rules, question.call, question.source)
        decision, usage = said, Usage()
        if judge is not None and needs_judgement(question.call, said):
            async with turns:
                decision, usage = await judge_call(judge, question, said, thresholds, timeout)
        outcome = Outcome(labelled, said, decision, usage)
        progress(outcome)
        return outcome

    outcomes = await asyncio.gather(*(decide_on(labelled) for labelled in calls))
    return Trial(tuple(outcomes), thresholds, judge.name if judge else "")
