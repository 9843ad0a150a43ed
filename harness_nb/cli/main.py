"""The commands. Each does its work in a function elsewhere and ends with an exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import click

from harness_nb import __version__
from harness_nb.cli import past
from harness_nb.cli.audit import audit_command
from harness_nb.cli.demo import run_demo
from harness_nb.cli.doctor import diagnose
from harness_nb.cli.eval_policy import eval_policy_command
from harness_nb.cli.replay import play_session, play_task
from harness_nb.cli.running import UNFINISHED, WRONG_CALL, run_prompts
from harness_nb.cli.screen import screen_for
from harness_nb.cli.verify import run_verify, verify_command
from harness_nb.demos import DEMOS
from harness_nb.errors import HarnessError, UsageError
from harness_nb.options import given_options, make_options
from harness_nb.record import kept_options
from harness_nb.settings import Settings

DIRECTORY_OPTION = click.option(
    *("--dir", "directory"),
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path(),
    metavar="PATH",
    help="the workspace (default: this folder)",
)
JSON_OPTION = click.option("--json", "json_lines", is_flag=True, help="print events as JSON lines on stdout")


RECORDED = ("fresh", "replay")
"""Options that say whether recorded work will do; of the commands, ``run`` has them."""


def session_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that ``%%agent`` has, on a click command, but for those that only one command can have."""
    return _with_options(command, [option for option in make_options() if option.name not in RECORDED])


def recorded_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options about recorded work, on a click command."""
    return _with_options(command, [option for option in make_options() if option.name in RECORDED])


def _with_options(command: Callable[..., Any], options: list[click.Option]) -> Callable[..., Any]:
    for option in reversed(options):
        names = [*option.opts, *option.secondary_opts]
        kwargs = {"type": option.type, "help": option.help, "metavar": option.metavar, "multiple": option.multiple}
        flag = {"is_flag": True, "default": False, "help": option.help}
        command = click.option(*names, **(flag if option.is_flag else kwargs))(command)
    return command


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="harness-nb")
def commands() -> None:
    """A notebook agent: every tool call is a cell, and the session is a notebook.

    Exit codes: 0 finished and every check passed, 1 ended without an accepted finish, 2 wrong call, 130 interrupted.
    """


@commands.command()
@click.argument("task")
@session_options
@recorded_options
@JSON_OPTION
def run(task: str, json_lines: bool, **options: Any) -> None:
    """Work on TASK (or on what stands in standard input, for '-') in a workspace; anew, unless --replay is given."""
    prompt = sys.stdin.read() if task == "-" else task
    if not prompt.strip():
        _refuse("the task is empty; write in a few sentences what is to be done")
    settings, given, screen = _settings(options), given_options(options), screen_for(json_lines)
    with _refusing():
        if settings.session:
            settings = Settings.load(Path.cwd(), {**kept_options(settings.directory, settings.session), **given})
        if settings.replay:
            sys.exit(play_task(settings, prompt, given, screen))
        sys.exit(run_prompts(settings, [prompt], screen, given)[0])


@commands.command()
@click.argument("name", required=False, type=click.Choice(sorted(DEMOS)))
@session_options
@JSON_OPTION
def demo(name: str | None, json_lines: bool, **options: Any) -> None:
    """Show the whole job with a scripted model, without a key: cifar10, digits or checkout.

    Without a NAME: cifar10 when its archive is set or cached, else digits.
    """
    with _refusing():
        sys.exit(run_demo(name, given_options(options), screen_for(json_lines)))


@commands.command()
@click.argument("session_id", metavar="SESSION")
@session_options
@JSON_OPTION
def replay(session_id: str, json_lines: bool, **options: Any) -> None:
    """Play a recorded session again: its code really runs, in a fresh kernel, and no model is called.

    The exit code is 0 if the work finished and every call came out with the status that is recorded. Options take the
    place of those that the session had.
    """
    given = {name: value for name, value in given_options(options).items() if name not in ("new", "session", "model")}
    with _refusing():
        sys.exit(play_session(Path.cwd(), session_id, given, screen_for(json_lines)))


@commands.command()
@click.argument("session_id", metavar="[SESSION]", required=False)
@session_options
@JSON_OPTION
def resume(session_id: str | None, json_lines: bool, **options: Any) -> None:
    """Go on with a session whose work stopped: by a crash, an interrupt, a failure or a limit.

    Without SESSION: the latest one. What was running when it stopped is not run again by itself. Options take the
    place of those that the session had.
    """
    with _refusing():
        sys.exit(past.resume(Path.cwd(), session_id, given_options(options), screen_for(json_lines)))


@commands.command()
@click.argument("session_id", metavar="[SESSION]", required=False)
@click.option("--at", "step", type=click.IntRange(min=0), metavar="N", help="the last step that is kept (default: all)")
@click.option("--into", type=click.Path(path_type=Path), metavar="DIR", help="a new folder for a copy of the workspace")
@click.option("--yes", "agreed", is_flag=True, help="change files without asking")
@DIRECTORY_OPTION
def fork(session_id: str | None, step: int | None, into: Path | None, agreed: bool, directory: Path) -> None:
    """Make a new session that begins as SESSION was after step N: conversation, files, and, once it runs, the kernel.

    Without SESSION: the latest one. `harness-nb sessions SESSION` lists its steps. SESSION itself stays as it is.
    """
    with _refusing():
        fork_id = past.fork(directory.resolve(), session_id, step, into, agreed)
    if fork_id:
        click.echo(fork_id)
    sys.exit(0 if fork_id else 1)


@commands.command()
@click.argument("session_id", metavar="[SESSION]", required=False)
@click.option("-o", "--output", "target", type=click.Path(path_type=Path), metavar="PATH", help=".ipynb, .py or .html")
@click.option("--clean", is_flag=True, help="only the cells that the result needs, as a notebook without harness_nb")
@click.option("--verify", "verified", is_flag=True, help="run it then, and compare its outputs")
@click.option("--force", is_flag=True, help="replace a file that no export has written")
@DIRECTORY_OPTION
def export(
    session_id: str | None, target: Path | None, clean: bool, verified: bool, force: bool, directory: Path
) -> None:
    """Write a session out as a notebook, a script or a page; the latest one, if none is named.

    Exit codes: 0; 1 if the clean notebook lacks something that the record does not have, or, with --verify, is not
    reproduced.
    """
    if verified and target is not None and target.suffix != ".ipynb":
        _refuse(f"--verify runs notebooks; {target.name} would be none")
    with _refusing():
        done = past.export(directory.resolve(), session_id, target, clean, force)
        sys.exit(run_verify(done.path) if verified else 0 if done.complete else 1)


commands.add_command(verify_command())
commands.add_command(eval_policy_command())
commands.add_command(audit_command())


@commands.command()
@click.argument("session_id", metavar="[SESSION]", required=False)
@DIRECTORY_OPTION
def sessions(session_id: str | None, directory: Path) -> None:
    """List the sessions of a workspace, or the steps of SESSION."""
    with _refusing():
        if session_id is None:
            past.show_sessions(directory.resolve())
        else:
            past.show_steps(directory.resolve(), session_id)


@commands.command()
@session_options
def doctor(**options: Any) -> None:
    """Check what is needed here: Python, kernel, bash, model, key. Each line says pass or fail, and the way out."""
    sys.exit(diagnose(_settings(options)))


def _settings(options: dict[str, Any]) -> Settings:
    with _refusing():
        return Settings.load(Path.cwd(), given_options(options))


@contextmanager
def _refusing() -> Iterator[None]:
    """A wrong call is said in a sentence, and so is what the disk or a kernel refuses."""
    try:
        yield
    except UsageError as error:
        _refuse(str(error))
    except HarnessError as error:
        click.echo(f"harness-nb: {error}", err=True)
        sys.exit(UNFINISHED)


def _refuse(text: str) -> NoReturn:
    click.echo(f"harness-nb: {text}", err=True)
    sys.exit(WRONG_CALL)
