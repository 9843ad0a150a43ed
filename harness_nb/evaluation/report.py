"""A trial of the policy as lines of text, as JSON, and its curves as a picture. The command line prints them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness_nb.evaluation.agreement import VERDICTS, Fit, Reliability
from harness_nb.evaluation.policy_trial import Outcome, Trial
from harness_nb.policy.judging import KEY, Thresholds
from harness_nb.policy.judging_text import write_call

BAR = 20
"""Characters of a bar of 1."""

CALL_CHARS = 60
CURVES = (("authorised", "authorised"), ("high_risk", "risk high or critical"))


def report(trial: Trial) -> list[str]:
    """The whole report for people."""
    total, (low, high) = len(trial.outcomes), trial.interval
    method = f", by {' and '.join(trial.methods)}" if trial.methods else ""
    lines = [
        f"{total} labelled calls; classifier: {trial.classifier or 'none, the rules alone'}{method}",
        f"agreement  {trial.agreed}/{total} = {_percent(trial.agreed, total)} "
        f"(95 % interval {100 * low:.0f} to {100 * high:.0f} %)",
    ]
    if trial.classifier:
        lines.append(
            f"rules alone {trial.agreed_by_rules}/{total} = {_percent(trial.agreed_by_rules, total)}; "
            f"the classifier was asked about {trial.asked} calls, and gave no verdict on {len(trial.without_verdict)}"
        )
    lines += ["", *_table(trial)]
    for name, title in CURVES:
        curve = getattr(trial, name)()
        if curve is not None:
            lines += ["", *_curve(title, curve)]
    lines += [*_fitted(trial, trial.fit()), *_disagreements(trial)]
    if trial.asked:
        usage = trial.usage
        cost = "unknown" if usage.cost_usd is None else f"${usage.cost_usd:.4f}"
        lines += ["", f"tokens in {usage.input_tokens or 0:,}, out {usage.output_tokens or 0:,}, cost {cost}"]
    return lines


def _percent(part: int, total: int) -> str:
    return f"{100 * part / total:.1f} %"


def _table(trial: Trial) -> list[str]:
    """Labels against verdicts."""
    head = "".join(f"{verdict:>8}" for verdict in VERDICTS)
    rows = [f"{label:<12}{''.join(f'{row[each]:>8}' for each in VERDICTS)}" for label, row in trial.confusion.items()]
    return [f"{'label':<12}{head}   <- verdict", *rows]


def _curve(title: str, curve: Reliability) -> list[str]:
    lines = [
        f"reliability of '{title}' over {curve.count} calls: "
        f"calibration error {curve.calibration_error:.3f}, Brier score {curve.brier:.3f}"
    ]
    for each in curve.bins:
        lines.append(
            f"  {each.low:.1f} to {each.high:.1f}  {each.count:>3} calls   said {each.said:.2f} {_bar(each.said)}"
        )
        lines.append(f"{'':>25}was  {each.was:.2f} {_bar(each.was)}")
    return lines


def _bar(share: float) -> str:
    full = round(share * BAR)
    return "█" * full + "·" * (BAR - full)


def _fitted(trial: Trial, fit: Fit | None) -> list[str]:
    if fit is None:
        return []
    total, better = len(trial.outcomes), fit.left_out > trial.agreed
    return [
        "",
        f"thresholds now           {_words(trial.thresholds)}",
        f"thresholds that fit best {_words(fit.thresholds)}: {fit.agreed}/{total}, too mild on {fit.too_mild}",
        f"  left out one at a time, such thresholds agree on {fit.left_out}/{total}: expect that on other calls",
        *([f"  to use them: [tool.harness-nb.policy] {KEY} = {_toml(fit.thresholds)}"] if better else []),
    ]


def _words(thresholds: Thresholds) -> str:
    return (
        f"allow below risk {thresholds.allow_risk:g} from authorised {thresholds.authorised:g} on, "
        f"deny from risk {thresholds.deny_risk:g} on"
    )


def _toml(thresholds: Thresholds) -> str:
    inner = ", ".join(f"{name} = {value:g}" for name, value in thresholds.model_dump().items())
    return f"{{ {inner} }}"


def _disagreements(trial: Trial) -> list[str]:
    """The calls whose verdict is another one, those that are treated too mildly first."""
    order = {verdict: number for number, verdict in enumerate(VERDICTS)}
    others = [each for each in trial.outcomes if not each.agrees]
    others.sort(key=lambda each: order[each.decision.verdict] - order[each.labelled.label])
    lines = ["", f"{len(others)} calls came out otherwise than labelled"] if others else []
    for each in others:
        labelled = each.labelled
        lines.append(f"  line {labelled.number}: {labelled.label} -> {each.decision.verdict}  {_shown(each)}")
        lines.append(f"      asked for: {' / '.join(labelled.prompts)[:100]}")
        lines.append(f"      {each.decision.reason}")
        if labelled.note:
            lines.append(f"      label: {labelled.note}")
    return lines


def _shown(outcome: Outcome) -> str:
    """A call in one short line."""
    text = " ".join(write_call(outcome.labelled.call).removeprefix("tool: ").split())
    return text if len(text) <= CALL_CHARS else text[: CALL_CHARS - 1] + "…"


def as_json(trial: Trial) -> dict[str, Any]:
    """The whole trial as one JSON object."""
    total, (low, high), fit = len(trial.outcomes), trial.interval, trial.fit()
    curves = {name: getattr(trial, name)() for name, _ in CURVES}
    return {
        "calls": total,
        "classifier": trial.classifier or None,
        "methods": list(trial.methods),
        "agreement": {"agreed": trial.agreed, "share": trial.agreed / total, "low": low, "high": high},
        "rules_alone": {"agreed": trial.agreed_by_rules, "share": trial.agreed_by_rules / total},
        "asked": trial.asked,
        "without_verdict": len(trial.without_verdict),
        "confusion": trial.confusion,
        "reliability": {name: asdict(curve) if curve else None for name, curve in curves.items()},
        "thresholds": {
            "used": trial.thresholds.model_dump(),
            "fitted": None if fit is None else fit.thresholds.model_dump(),
            "fitted_agreed": None if fit is None else fit.agreed,
            "fitted_left_one_out": None if fit is None else fit.left_out,
        },
        "usage": trial.usage.model_dump(),
        "outcomes": [_outcome(each) for each in trial.outcomes],
    }


def _outcome(outcome: Outcome) -> dict[str, Any]:
    labelled = outcome.labelled.model_dump(mode="json", exclude_none=True)
    return {
        **labelled,
        "verdict": outcome.decision.verdict,
        "agrees": outcome.agrees,
        "rules": outcome.rules.model_dump(mode="json", include={"verdict", "reason", "policy"}),
        "decision": outcome.decision.model_dump(mode="json"),
    }


def draw(trial: Trial, path: Path) -> None:
    """Write the reliability curves as a picture; its format is that of the name.

    Raises:
        OSError: if it cannot be written.
        ValueError: if matplotlib knows no such format.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    for place, (name, title) in enumerate(CURVES, start=1):
        axes = figure.add_subplot(1, 2, place)
        axes.plot([0, 1], [0, 1], color="0.7", linestyle="--", linewidth=1)
        curve = getattr(trial, name)()
        text = "no predictions"
        if curve is not None:
            said, was = [each.said for each in curve.bins], [each.was for each in curve.bins]
            axes.plot(said, was, color="tab:blue", linewidth=1)
            axes.scatter(said, was, s=[20 + 8 * each.count for each in curve.bins], color="tab:blue", alpha=0.7)
            text = f"{curve.count} calls, calibration error {curve.calibration_error:.3f}"
        axes.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), title=f"{title}\n{text}")
        axes.set(xlabel="probability that the classifier gave", ylabel="share of calls that were so")
    figure.savefig(path, dpi=120)
