"""The commands about sessions that were recorded: list them and their steps, resume, fork, export."""

from __future__ import annotations

import shlex
import sys
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from harness_nb.cli.running import run_jobs, shown_path
from harness_nb.cli.screen import Screen
from harness_nb.errors import StoreError, UsageError
from harness_nb.events import Event
from harness_nb.export import Exported, export_session
from harness_nb.forking import carry_out, plan_fork
from harness_nb.past import steps_of
from harness_nb.ports import Delta
from harness_nb.record import latest_session, list_sessions, read_record, usable_options
from harness_nb.session import Session
from harness_nb.settings import Settings


def show_sessions(workspace: Path) -> None:
    """Print a table of the sessions of a workspace."""
    found = list_sessions(workspace)
    if not found:
        click.echo(f"no sessions in {workspace}")
        return
    table = _table("session", "started", "status", "turns", "cost", wide="task")
    for summary in found:
        cost = "unknown" if summary.cost_usd is None else f"${summary.cost_usd:.4f}"
        row = (summary.id, summary.started[:16], summary.status, str(summary.turns), cost, summary.title)
        table.add_row(*map(escape, row))
    Console().print(table)
    click.echo(f"notebooks: {shown_path(found[-1].path.parent)}")


def show_steps(workspace: Path, session_id: str) -> None:
    """Print the steps of a session, which ``fork --at`` takes.

    Raises:
        UsageError: if there is no such session.
    """
    events, warnings = read_record(workspace, session_id)
    for text in warnings:
        click.echo(f"harness-nb: {text}", err=True)
    table = _table("step", "tool", "status", "seconds", wide="source")
    for step in steps_of(events):
        first = next((line for line in step.source.splitlines() if line.strip() and line != "%%bash"), "")
        status = "open" if step.status is None else step.status.value
        seconds = f"{step.elapsed:.1f}" if step.started else ""
        table.add_row(*map(escape, (str(step.number), step.call.name, status, seconds, first)))
    Console().print(table)


def _table(*names: str, wide: str) -> Table:
    """A table whose last column takes the room that the others leave."""
    columns = [Column(name, no_wrap=True, min_width=len(name)) for name in names]
    return Table(*columns, Column(wide, no_wrap=True, overflow="ellipsis", ratio=1), expand=True)


def resume(directory: Path, session_id: str | None, given: Mapping[str, Any], screen: Screen) -> int:
    """Go on with a session where its work stopped; the latest one, if none is named. The exit code.

    Raises:
        UsageError: if there is no such session, or there is nothing to resume in it.
    """
    workspace = Settings.load(directory, given).directory
    found = session_id or latest_session(workspace)
    if not session_id:
        click.echo(f"resuming {found}", err=True)
    return run_jobs(recorded_settings(directory, found, given), [_resume], screen)[0]


def _resume(session: Session) -> AsyncGenerator[Event | Delta]:
    return session.resume()


def recorded_settings(directory: Path, session_id: str, given: Mapping[str, Any]) -> Settings:
    """The settings that a session was last worked on with, under those that are given now.

    Raises:
        UsageError: if there is no such session, or a setting is wrong.
    """
    workspace = Settings.load(directory, given).directory
    options, others = usable_options(read_record(workspace, session_id)[0])
    if others:
        click.echo(f"harness-nb: of its settings, this version cannot use {', '.join(others)}; left out", err=True)
    return Settings.load(directory, {**options, **given, "session": session_id})


def fork(directory: Path, session_id: str | None, step: int | None, into: Path | None, agreed: bool) -> str:
    """Fork a session, after asking where files would change; the new session's id, empty if the person says no.

    Raises:
        UsageError: if there is no such session or step, or nobody can be asked.
    """
    found = session_id or latest_session(directory)
    plan = plan_fork(directory, found, step, into.absolute() if into else None)
    click.echo(plan.describe(), err=True)
    if plan.workspace == plan.source and plan.files.changes_files and not agreed:
        if not sys.stdin.isatty():
            raise UsageError("Files would change, and nobody can be asked: add --yes, or --into FOLDER for a copy.")
        if not click.confirm("Change these files?", err=True):
            return ""
    try:
        fork_id, restored = carry_out(plan)
    except StoreError as error:  # nothing was changed
        raise UsageError(str(error)) from error
    if restored.changes or restored.failed or restored.warnings:
        click.echo(restored.describe(), err=True)
    where = "" if plan.workspace == directory else f" --dir {shlex.quote(shown_path(plan.workspace))}"
    if not plan.finished:
        click.echo(f"harness-nb resume {fork_id}{where}  goes on from there", err=True)
    click.echo(f'harness-nb run --session {fork_id}{where} "…"  gives it another task', err=True)
    return fork_id


def export(directory: Path, session_id: str | None, target: Path | None, clean: bool, force: bool) -> Exported:
    """Export a session, the latest one if none is named, and say what a person should know.

    Raises:
        UsageError: if there is no such session, or the target cannot be written.
    """
    done = export_session(directory, session_id or latest_session(directory), target, clean=clean, force=force)
    for note in done.notes:
        click.echo(note, err=True)
    click.echo(shown_path(done.path.absolute()))
    return done
