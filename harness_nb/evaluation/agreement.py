"""Figures of a trial: agreement with its interval, reliability, calibration error, the thresholds that fit. Pure.

Sources: E. B. Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927), for the
interval; A. Niculescu-Mizil and R. Caruana, "Predicting good probabilities with supervised learning", ICML 2005, for
reliability curves; M. P. Naeini et al., "Obtaining well calibrated probabilities using Bayesian binning", AAAI 2015,
for the expected calibration error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import sqrt
from typing import TypeVar

from harness_nb.policy.judging import Thresholds

VERDICTS = ("allow", "ask", "deny")
Z = 1.96
"""Standard deviations of a 95 % interval."""

BINS = 10
T = TypeVar("T")


def interval(agreed: int, total: int) -> tuple[float, float]:
    """The 95 % interval of a share, after Wilson; (0, 1) where nothing was counted."""
    if not total:
        return 0.0, 1.0
    share, square = agreed / total, Z * Z
    middle = (share + square / (2 * total)) / (1 + square / total)
    half = Z * sqrt(share * (1 - share) / total + square / (4 * total * total)) / (1 + square / total)
    return max(0.0, middle - half), min(1.0, middle + half)


def confusion(pairs: Sequence[tuple[str, str]]) -> dict[str, dict[str, int]]:
    """How often a call with a label got a verdict: ``{label: {verdict: count}}``."""
    return {label: {verdict: pairs.count((label, verdict)) for verdict in VERDICTS} for label in VERDICTS}


@dataclass(frozen=True, slots=True)
class Bin:
    """Predictions from ``low`` to ``high``: how many, what they said on the average, and how often it was so."""

    low: float
    high: float
    count: int
    said: float
    was: float


@dataclass(frozen=True, slots=True)
class Reliability:
    """A reliability curve, with its expected calibration error and its Brier score (both 0 at best)."""

    bins: tuple[Bin, ...]
    calibration_error: float
    brier: float

    @property
    def count(self) -> int:
        """Predictions in all."""
        return sum(each.count for each in self.bins)


def reliability(predictions: Sequence[tuple[float, bool]], bins: int = BINS) -> Reliability | None:
    """The curve of probabilities with what was true; ``None`` where there are none. Empty bins are left out."""
    if not predictions:
        return None
    held: list[list[tuple[float, bool]]] = [[] for _ in range(bins)]
    for said, was in predictions:
        held[min(bins - 1, int(said * bins))].append((said, was))
    curve = tuple(
        Bin(
            low=number / bins,
            high=(number + 1) / bins,
            count=len(kept),
            said=sum(said for said, _ in kept) / len(kept),
            was=sum(was for _, was in kept) / len(kept),
        )
        for number, kept in enumerate(held)
        if kept
    )
    total = len(predictions)
    return Reliability(
        bins=curve,
        calibration_error=sum(each.count * abs(each.said - each.was) for each in curve) / total,
        brier=sum((said - was) ** 2 for said, was in predictions) / total,
    )


@dataclass(frozen=True, slots=True)
class Fit:
    """The thresholds that agree with most labels, how many that is, and how many when each call is left out in turn.

    ``too_mild`` is how many calls they treat less strictly than the label says.
    """

    thresholds: Thresholds
    agreed: int
    too_mild: int
    left_out: int


def fit_thresholds(
    cases: Sequence[T], verdict: Callable[[T, Thresholds], str], label: Callable[[T], str], now: Thresholds
) -> Fit | None:
    """The thresholds that agree with most labels; of equals the ones that are too mild least often, then those nearest
    to the present ones. ``None`` for no cases.
    """
    if not cases:
        return None
    strict = {name: number for number, name in enumerate(VERDICTS)}
    labels = [label(case) for case in cases]
    tried: dict[tuple[str, ...], tuple[float, Thresholds]] = {}
    for thresholds in _grid(now):
        row, away = tuple(verdict(case, thresholds) for case in cases), _distance(thresholds, now)
        if row not in tried or away < tried[row][0]:
            tried[row] = (away, thresholds)
    scored = []
    for row, (away, thresholds) in tried.items():
        right = [given == wanted for given, wanted in zip(row, labels, strict=True)]
        mild = [strict[given] < strict[wanted] for given, wanted in zip(row, labels, strict=True)]
        scored.append((sum(right), -sum(mild), -away, right, mild, thresholds))
    agreed, milder, _, _, _, best = max(scored, key=lambda each: each[:3])
    left_out = 0
    for place in range(len(cases)):
        without = [(each[0] - each[3][place], each[1] + each[4][place], each[2]) for each in scored]
        left_out += scored[without.index(max(without))][3][place]
    return Fit(best, agreed, -milder, left_out)


def _grid(now: Thresholds) -> Iterator[Thresholds]:
    """Thresholds to try: the present ones, and a grid."""
    yield now
    eighths = [number / 8 for number in range(2, 25)]
    twentieths = [number / 20 for number in range(1, 20)]
    for allow, deny, authorised in product(eighths[:15], eighths[6:], twentieths):
        if allow <= deny:
            yield Thresholds(allow_risk=allow, deny_risk=deny, authorised=authorised)


def _distance(one: Thresholds, other: Thresholds) -> float:
    return (
        abs(one.allow_risk - other.allow_risk) / 3
        + abs(one.deny_risk - other.deny_risk) / 3
        + abs(one.authorised - other.authorised)
    )
