"""The options that ``%%agent`` and the command line share, written once as click options.

``parse_options`` reads the line behind ``%%agent``; the command line takes ``OPTIONS`` as they are. Field names are
those of ``settings.Settings``, plus ``dir`` for the workspace.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

import click

from harness_nb.errors import UsageError

MODEL_HELP = "openai:NAME, chat:NAME, anthropic:NAME, scripted:FILE.json or replay:SESSION"


def make_options() -> list[click.Option]:
    """Fresh click options; a command owns its own."""
    return [
        click.Option(["--model"], metavar="SPEC", help=MODEL_HELP),
        click.Option(["--base-url"], metavar="URL", help="where chat: and openai: models are served"),
        click.Option(["--small-model"], metavar="SPEC", help="a cheaper model, for summaries (default: the model)"),
        click.Option(["--dir"], metavar="PATH", help="the workspace (default: this folder)"),
        click.Option(["--kernel"], metavar="NAME", help="kernel spec of tool code (default: auto, a sandbox)"),
        click.Option(["--max-turns"], type=int, metavar="N", help="model turns for this task (default: 50)"),
        click.Option(["--max-cost"], type=float, metavar="USD", help="US dollars for this task"),
        click.Option(["--max-minutes"], type=float, metavar="M", help="minutes for this task"),
        click.Option(["--max-tokens"], type=int, metavar="N", help="tokens, in and out, for this task"),
        click.Option(["--check"], multiple=True, metavar="CMD", help="must pass before a finish counts (repeatable)"),
        click.Option(
            ["--read-only"], multiple=True, metavar="GLOB", help="files that tools may not write (repeatable)"
        ),
        click.Option(["--policy"], type=click.Choice(["ask", "auto", "deny"]), help="what becomes of an 'ask'"),
        click.Option(["--max-output-tokens"], type=int, metavar="N", help="output tokens of one reply"),
        click.Option(["--temperature"], type=float, metavar="T", help="sampling temperature"),
        click.Option(["--reasoning-effort"], metavar="LEVEL", help="low, medium, high, ... as the model takes it"),
        click.Option(
            ["--context-window"], type=int, metavar="N", help="tokens of the model's context window, if it is not known"
        ),
        click.Option(
            ["--web"],
            is_flag=True,
            default=False,
            help="let the model read the web (web_fetch), and search it where its API can",
        ),
        click.Option(["--network"], metavar="off|on|allow:HOST,...", help="what tool code may reach (default: off)"),
        click.Option(["--secret"], multiple=True, metavar="NAME", help="give tool code this variable (repeatable)"),
        click.Option(["--classifier"], metavar="SPEC|off", help="the model that judges how risky calls are"),
        click.Option(["--session"], metavar="ID", help="continue that session"),
        click.Option(["--new"], is_flag=True, default=False, help="start a new session"),
        click.Option(["--fresh"], is_flag=True, default=False, help="work anew, whatever is recorded"),
        click.Option(["--replay"], is_flag=True, default=False, help="play recorded work only, never ask a model"),
    ]


def given_options(values: Mapping[str, Any]) -> dict[str, Any]:
    """Only what the caller has set, so that defaults do not override other sources."""
    return {name: value for name, value in values.items() if value not in (None, (), False)}


def parse_options(line: str, command: str = "%%agent") -> dict[str, Any]:
    """The options on a line, by field name.

    Raises:
        UsageError: if the line has an unknown option, an unfit value, or words that belong to no option.
    """
    parser = click.Command(command, params=[*make_options()], add_help_option=False)
    try:
        words = shlex.split(line)
        context = parser.make_context(command, words)
    except ValueError as error:
        raise UsageError(f"{command}: a quote is not closed: {line.strip()}") from error
    except click.UsageError as error:
        hint = "The task goes below the line, the options are listed by %agent help."
        raise UsageError(f"{command}: {error.format_message()} {hint}") from error
    return given_options(context.params)
