"""The figures of a trial, on numbers that can be worked out by hand."""

from __future__ import annotations

import pytest

from harness_nb.evaluation.agreement import confusion, fit_thresholds, interval, reliability
from harness_nb.policy.judging import Thresholds, verdict_of
from harness_nb.types import Judgement


def test_the_interval_is_wilsons() -> None:
    low, high = interval(8, 10)
    assert (low, high) == (pytest.approx(0.4902, abs=1e-4), pytest.approx(0.9433, abs=1e-4))
    assert interval(0, 10)[0] == 0.0 and interval(0, 10)[1] == pytest.approx(0.2775, abs=1e-4)
    assert interval(10, 10)[1] == pytest.approx(1.0) and interval(0, 0) == (0.0, 1.0)


def test_the_confusion_table_counts_pairs() -> None:
    table = confusion([("allow", "allow"), ("allow", "ask"), ("deny", "ask"), ("deny", "ask")])
    assert table["allow"] == {"allow": 1, "ask": 1, "deny": 0}
    assert table["deny"] == {"allow": 0, "ask": 2, "deny": 0} and sum(table["ask"].values()) == 0


def test_a_reliability_curve_its_error_and_its_score() -> None:
    curve = reliability([(0.95, True), (0.95, True), (0.95, False), (0.15, False), (1.0, True)])
    assert curve is not None
    low, high = curve.bins
    assert (low.low, low.high, low.count, low.was) == (0.1, 0.2, 1, 0.0)
    assert (high.count, high.was) == (4, 0.75) and high.said == pytest.approx(3.85 / 4)
    assert curve.calibration_error == pytest.approx((0.15 + 4 * (3.85 / 4 - 0.75)) / 5)
    assert curve.brier == pytest.approx((3 * 0.0 + 2 * 0.05**2 + 0.95**2 + 0.15**2) / 5)
    assert curve.count == 5 and reliability([]) is None


def test_a_perfect_classifier_has_no_error() -> None:
    curve = reliability([(1.0, True), (0.0, False)])
    assert curve is not None and curve.calibration_error == 0.0 and curve.brier == 0.0


def judged(risk: float, authorised: float, label: str) -> tuple[Judgement, str]:
    return Judgement(risk=risk, authorised=authorised), label


def test_thresholds_that_fit_are_found_and_the_present_ones_are_kept_where_they_do() -> None:
    cases = [
        *(judged(0.2, 0.9, "allow"), judged(1.4, 0.9, "allow"), judged(1.9, 0.9, "ask")),
        *(judged(2.2, 0.1, "deny"), judged(0.3, 0.2, "ask")),
    ]
    now = Thresholds()
    fit = fit_thresholds(cases, lambda case, those: verdict_of(case[0], those), lambda case: case[1], now)
    assert fit is not None and fit.agreed == 5 and fit.too_mild == 0
    assert 1.4 < fit.thresholds.allow_risk <= 1.9 < fit.thresholds.deny_risk <= 2.2
    assert fit.thresholds.authorised == now.authorised  # nothing asks for another one
    fitting = [judged(0.2, 0.9, "allow"), judged(1.5, 0.9, "ask"), judged(2.8, 0.9, "deny")]
    kept = fit_thresholds(fitting, lambda case, those: verdict_of(case[0], those), lambda case: case[1], now)
    assert kept is not None and kept.thresholds == now and kept.agreed == kept.left_out == 3
    assert fit_thresholds([], lambda case, those: "ask", lambda case: "ask", now) is None


def test_of_equals_the_stricter_thresholds_are_taken() -> None:
    both = [judged(0.6, 0.9, "allow"), judged(0.6, 0.9, "ask")]
    fit = fit_thresholds(both, lambda case, those: verdict_of(case[0], those), lambda case: case[1], Thresholds())
    assert fit is not None and fit.agreed == 1 and fit.too_mild == 0
    assert verdict_of(both[0][0], fit.thresholds) == "ask"


def test_left_out_calls_say_how_it_would_be_on_others() -> None:
    lone = [*[judged(0.2, 0.9, "allow")] * 4, judged(0.8, 0.6, "ask")]
    fit = fit_thresholds(lone, lambda case, those: verdict_of(case[0], those), lambda case: case[1], Thresholds())
    assert fit is not None and fit.agreed == 5 and fit.left_out == 4
