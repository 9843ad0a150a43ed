"""The verbs of ``%agent``: each turns what is there into one bundle to show. Read-only but for ``stop``.

Called by the magic; every verb may be called while a task is being worked on.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import click

from harness_nb.options import make_options
from harness_nb.record import list_sessions, read_record
from harness_nb.settings import Settings
from harness_nb.types import Usage
from harness_nb.ui import html
from harness_nb.ui.asks import Asks
from harness_nb.ui.costs import cost_table
from harness_nb.ui.current import CurrentSession, notebook_folder
from harness_nb.ui.html import Link
from harness_nb.ui.last_line import count_turns, dollars, usage_words
from harness_nb.ui.publish import Bundle
from harness_nb.ui.run import Run

VERBS = {
    "status": "what is going on",
    "stop": "stop the task; its record is completed first",
    "cost": "turns, tokens and US dollars of the session, by task and turn",
    "sessions": "the sessions of this workspace",
    "help": "this text",
}


class Desk(Protocol):
    """What the verbs look at."""

    current: CurrentSession
    run: Run | None
    more_verbs: Sequence[tuple[str, str]]
    asks: Asks

    @property
    def running(self) -> bool:
        """Whether a task is being worked on."""
        ...


def status(desk: Desk) -> Bundle:
    """Session, model, workspace, state."""
    session = desk.current.session
    if session is None and desk.current.id:
        return html.note_block("○", f"The next %%agent cell goes on in {desk.current.id}.", html.GREY)
    if session is None:
        return html.note_block("○", "No session yet: the first %%agent cell starts one.", html.GREY)
    state = "working" if desk.running else f"idle, last task: {session.ending.reason}" if session.ending else "idle"
    rows: list[tuple[str, str | Link]] = [
        ("session", session.id),
        ("state", state.replace("_", " ")),
        ("model", _model(session.model_name, desk.current.kept.get("model"))),
        ("workspace", str(session.workspace)),
        *([("granted", ", ".join(desk.current.kept["secret"]))] if desk.current.kept.get("secret") else []),
        *([("sandbox", session.kernel.sandbox)] if session.kernel.sandbox else []),
        ("so far", ", ".join([count_turns(session.turns), *_usage(session.usage, session.turns)])),
        ("notebook", link_to(session.notebook_path)),
    ]
    rows += [(f"approval {ask.number}", f"{ask.title}: {ask.decision.reason}") for ask in desk.asks.open()]
    return html.table([], rows)


def stop(desk: Desk) -> Bundle:
    """Stop the running task."""
    if desk.run is None or not desk.running:
        return html.note_block("○", "Nothing is running.", html.GREY)
    desk.run.stop()
    return html.note_block(
        "■", "Stopping: the call that runs is interrupted, then the record is completed.", html.AMBER
    )


def cost(desk: Desk) -> Bundle:
    """What the session has used: by task, the turns of the last one one by one, and in all."""
    session = desk.current.session
    if session is None:
        return html.note_block("○", "No session yet, nothing spent.", html.GREY)
    if not session.turns:
        return html.note_block("○", "No turn yet, nothing spent.", html.GREY)
    return cost_table(read_record(session.workspace, session.id)[0])


def sessions(desk: Desk) -> Bundle:
    """The sessions of the workspace, the latest first."""
    workspace = workspace_of(desk.current)
    found = list(reversed(list_sessions(workspace)))
    if not found:
        return html.note_block("○", f"No sessions in {workspace}.", html.GREY)
    rows: list[tuple[str | Link, ...]] = []
    for summary in found:
        started = summary.started[:16].replace("T", " ")
        name, state = link_to(summary.path, summary.id), summary.status.replace("_", " ")
        rows.append((name, started, state, str(summary.turns), dollars(summary.cost_usd), summary.title))
    return html.table(["session", "started (UTC)", "state", "turns", "cost", "task"], rows)


def help(desk: Desk) -> Bundle:
    """Verbs and options."""
    context = click.Context(click.Command("%%agent"))
    options = [record for option in make_options() if (record := option.get_help_record(context))]
    tables = [
        html.table(["%%agent [options]", "the task, in your words, below the line"], options),
        html.table(["%agent [verb]", ""], [*VERBS.items(), *desk.more_verbs]),
    ]
    return Bundle({kind: "\n".join(table.data[kind] for table in tables) for kind in tables[0].data})


def unknown(line: str, more: Sequence[str]) -> str:
    """What to say about a line that is no verb; ``more`` are the verbs with arguments."""
    known = ", ".join([*VERBS, *more])
    return f"%agent {line.strip()}: there is no such verb. The verbs are: {known}. A task goes into a %%agent cell."


def workspace_of(current: CurrentSession) -> Path:
    """The workspace of the current session, else the one that a task would get now."""
    return current.workspace or Settings.load(notebook_folder(), {}).directory


def link_to(path: Path, label: str = "") -> Link:
    """A link from this notebook to a file; the label is its path, if none is given."""
    relative = Path(os.path.relpath(path, notebook_folder())).as_posix()
    return Link(relative, label or relative)


def _model(now: str, ahead: object) -> str:
    """The model that works, and the one that the next task will have, if it was switched."""
    return now if ahead in (None, now) or not now else f"{now}; from the next task on {ahead}"


def _usage(usage: Usage, turns: int) -> list[str]:
    return usage_words(usage) if turns else []
