"""The commands about sessions that were recorded: list them and their steps, resume, fork."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Column, Table

from harness_nb.cli.running import run_jobs, shown_path
from harness_nb.cli.screen import Screen
from harness_nb.events import Event
from harness_nb.past import options_of, steps_of
from harness_nb.ports import Delta
from harness_nb.record import latest_session, list_sessions, read_record
from harness_nb.session import Session
from harness_nb.settings import Settings


def show_sessions(workspace: Path) -> None:
    """Print a table of the sessions of a workspace."""
    found = list_sessions(workspace)
    if not found:
        click.echo(f"no sessions in {workspace}")
        return
    task = Column("task", no_wrap=True, overflow="ellipsis")
    table = Table(Column("session", no_wrap=True, min_width=20), "started", "status", "turns", "cost", task)
    for summary in found:
        cost = "unknown" if summary.cost_usd is None else f"${summary.cost_usd:.4f}"
        table.add_row(summary.id, summary.started[:16], summary.status, str(summary.turns), cost, summary.title)
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
    table = Table("step", "tool", "status", "seconds", Column("source", no_wrap=True, overflow="ellipsis"))
    for step in steps_of(events):
        first = next((line for line in step.source.splitlines() if line.strip() and line != "%%bash"), "")
        status = "open" if step.status is None else step.status.value
        table.add_row(str(step.number), step.call.name, status, f"{step.elapsed:.1f}" if step.started else "", first)
    Console().print(table)


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
    events, _ = read_record(workspace, session_id)
    return Settings.load(directory, {**options_of(events), **given, "session": session_id})
