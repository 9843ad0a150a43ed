"""``harness-nb eval-policy``: labelled calls through rules and classifier; the report on stdout, progress on stderr."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any, cast

import click

from harness_nb.errors import MissingKeyError, UsageError
from harness_nb.evaluation import Outcome, Trial, read_labelled, run_trial, shipped_calls
from harness_nb.evaluation.policy_trial import AT_ONCE
from harness_nb.evaluation.report import as_json, draw, report
from harness_nb.judging import TIMEOUT
from harness_nb.model_choice import NO_CLASSIFIER, Models
from harness_nb.models.judging import RemoteJudge, resolve_judge
from harness_nb.policy.judging import read_thresholds
from harness_nb.ports import Judge
from harness_nb.safeguards import rules_for
from harness_nb.settings import Settings
from harness_nb.workplace import Workplace

DONE, NO_VERDICTS, WRONG_CALL, INTERRUPTED = 0, 1, 2, 130
HOW_TO_GO_ON = (
    "Name a classifier with --classifier SPEC (openai:NAME, chat:NAME, anthropic:NAME, or scripted:FILE.json with "
    "judgements), or try the rules alone with --classifier off."
)


def eval_policy_command() -> click.Command:
    """The command ``eval-policy``, to be added to the group."""

    @click.command("eval-policy")
    @click.argument("path", metavar="[FILE]", required=False, type=click.Path(dir_okay=False, path_type=Path))
    @click.option("--classifier", "--model", "classifier", metavar="SPEC|off", help="default: that of a session here")
    @click.option("--base-url", metavar="URL", help="where the classifier is served")
    @click.option("--dir", "directory", type=click.Path(exists=True, file_okay=False, path_type=Path), default=Path())
    @click.option(
        "--timeout", type=click.FloatRange(min=0, min_open=True), default=TIMEOUT, metavar="S", help="for one call"
    )
    @click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), metavar="PATH", help="the curves, as PNG")
    @click.option("--json", "whole", is_flag=True, help="print everything as one JSON object")
    def command(path: Path | None, whole: bool, plot: Path | None, timeout: float, **given: Any) -> None:
        """Try rules and classifier on the labelled calls of FILE (JSON lines), or on those that ship with harness_nb.

        Nothing is executed. Prints the agreement with the labels, a confusion table, reliability curves, and the
        thresholds that would fit best. Exit codes: 0; 1 if the classifier gave no verdict on any call; 2 wrong call.
        """
        sys.exit(eval_policy(path, given, whole=whole, plot=plot, timeout=timeout))

    return command


def eval_policy(path: Path | None, given: dict[str, Any], *, whole: bool, plot: Path | None, timeout: float) -> int:
    """Try the policy and print the report; the exit code. ``given`` are options of a session: classifier, directory."""
    try:
        calls = read_labelled(path) if path else shipped_calls()
        overrides = {name: given[name] for name in ("classifier", "base_url") if given.get(name)}
        settings = Settings.load(given["directory"].resolve(), overrides)
        if plot and plot.suffix not in (".png", ".svg", ".pdf"):
            raise UsageError(f"--plot writes .png, .svg or .pdf, and {plot.name} is none of them.")
        trial = asyncio.run(_try(settings, calls, timeout))
        if plot:
            _draw(trial, plot)
    except UsageError as error:
        click.echo(f"harness-nb: {error}", err=True)
        return WRONG_CALL
    except KeyboardInterrupt:
        click.echo("harness-nb: interrupted", err=True)
        return INTERRUPTED
    click.echo(json.dumps(as_json(trial), indent=1) if whole else "\n".join(report(trial)))
    return NO_VERDICTS if trial.asked and len(trial.without_verdict) == trial.asked else DONE


async def _try(settings: Settings, calls: Any, timeout: float) -> Trial:
    place = cast(Workplace, _Place(settings))
    thresholds, rules = read_thresholds(settings.rules), rules_for(settings, place, None)
    judge, models = _judge(settings)
    done = 0

    def progress(outcome: Outcome) -> None:
        nonlocal done
        done += 1
        if sys.stderr.isatty():
            click.echo(f"\r{done} of {len(calls)} calls", nl=done == len(calls), err=True)

    try:
        at_once = AT_ONCE if isinstance(judge, RemoteJudge) else 1
        return await run_trial(calls, rules, judge, thresholds, timeout=timeout, at_once=at_once, progress=progress)
    finally:
        if models is not None:
            await models.aclose()
        elif judge is not None:
            await judge.aclose()


def _judge(settings: Settings) -> tuple[Judge | None, Models | None]:
    """The classifier: the one that is named, or that of a session here, with the models that own it."""
    if settings.classifier == NO_CLASSIFIER:
        return None, None
    if settings.classifier:
        judge = resolve_judge(
            settings.classifier,
            directory=settings.directory,
            base_url=settings.base_url,
            environment=os.environ,
            prices=settings.prices,
        )
        return judge, None
    models = Models(settings)
    try:
        models.ready()
    except MissingKeyError as error:
        raise UsageError(f"No classifier is named and no model is set. {HOW_TO_GO_ON}") from error
    if models.judge is None:
        raise UsageError(f"A session here has no classifier beside its model. {HOW_TO_GO_ON}")
    return models.judge, models


class _Place:
    """What the rules ask of a workplace, without a kernel: which files are read-only."""

    def __init__(self, settings: Settings) -> None:
        self.read_only = settings.read_only_globs

    def protected(self) -> tuple[str, ...]:
        """The same: nothing has come since."""
        return self.read_only


def _draw(trial: Trial, path: Path) -> None:
    try:
        draw(trial, path)
    except OSError as error:
        raise UsageError(f"The picture {path} cannot be written: {error.strerror or error}.") from error
