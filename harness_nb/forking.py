"""Forks: a new session that begins as another one was after some step, with the files as they were then.

The command line and the magics plan a fork, show the plan, and carry it out if the person agrees. The kernel is rebuilt
when the new session is first worked on. Nothing of the other session is changed.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness_nb import events as ev
from harness_nb import past
from harness_nb.errors import StoreError, UsageError
from harness_nb.files import FileStore, Restored, RestorePlan, plan_restore, restore
from harness_nb.notebook import FORMAT_VERSION
from harness_nb.record import Record, read_record
from harness_nb.store import FOLDER, SessionStore, find_session, new_session_id

NOT_COPIED = (FOLDER, ".venv", "node_modules", "__pycache__", ".ipynb_checkpoints", ".pytest_cache", ".mypy_cache")
"""What a fork into another folder leaves behind."""


@dataclass(frozen=True, slots=True)
class ForkPlan:
    """What a fork of ``session`` at ``step`` is and does; ``events`` are those that it begins with.

    ``workspace`` is where it will be, ``source`` where the other session is.
    """

    session: str
    step: int
    events: tuple[ev.Event, ...]
    files: RestorePlan
    source: Path
    workspace: Path

    def describe(self) -> str:
        """The plan in sentences, one a line."""
        told = [f"A new session, as {self.session} was after step {self.step}."]
        if self.workspace != self.source:
            return "\n".join([*told, f"It gets a copy of the workspace in {self.workspace}; nothing here changes."])
        return "\n".join([*told, self.files.describe()])


def plan_fork(workspace: Path, session_id: str, step: int | None = None, into: Path | None = None) -> ForkPlan:
    """Plan a fork of a session at ``step``, its last one if none is given; changes nothing.

    ``into`` is a folder for a copy of the workspace, if the fork shall not be in the same one.

    Raises:
        UsageError: if there is no such session or step, or ``into`` is there and not empty.
    """
    if into is not None and into.exists() and (not into.is_dir() or any(into.iterdir())):
        raise UsageError(f"{into} is there already and not an empty folder; name another one.")
    events, _ = read_record(workspace, session_id)
    if not any(isinstance(event, ev.PromptAdded) for event in events):
        raise UsageError(f"The session {session_id} has no task yet, so there is nothing to fork.")
    last = sum(isinstance(event, ev.CallDecided) for event in events)
    kept = past.cut_at(events, step) if step is not None else [*events, *past.closing_events(events)]
    at = last if step is None else step
    store = FileStore(find_session(workspace, session_id), workspace)
    return ForkPlan(session_id, at, tuple(kept), plan_restore(events, at, store), workspace, into or workspace)


def carry_out(plan: ForkPlan) -> tuple[str, Restored]:
    """Make the new session and restore the files; its id, and what was done to the files. Blocking.

    Raises:
        StoreError: if something cannot be written; files that were restored before stay so.
    """
    folder = find_session(plan.source, plan.session)
    files = plan.files
    if plan.workspace != plan.source:
        _copy_workspace(plan, folder)
        files = plan_restore(read_record(plan.source, plan.session)[0], plan.step, FileStore(folder, plan.workspace))
    old = FileStore(folder, plan.workspace)
    session_id = new_session_id()
    store = SessionStore(plan.workspace, session_id)
    try:
        FileStore(store.folder, plan.workspace).adopt(old, _digests(plan.events))
        restored = restore(files, old)
        events = past.renumbered(_as_fork(plan, session_id))
        store.rewrite(events)
        Record(store, session_id, events).save()
    except OSError as error:
        raise StoreError(f"The fork cannot be written: {error}") from error
    finally:
        store.close()
    return session_id, restored


def _as_fork(plan: ForkPlan, session_id: str) -> list[ev.Event]:
    """The events of the fork: those of the other session, under another name."""
    origin = {"kind": "fork", "session": plan.session, "step": plan.step, "events": len(plan.events)}
    changes = {
        "session_id": session_id,
        "origin": origin,
        "workspace": str(plan.workspace),
        "format_version": FORMAT_VERSION,
    }
    return [
        event.model_copy(update=changes) if isinstance(event, ev.SessionStarted) else event for event in plan.events
    ]


def _digests(events: Sequence[ev.Event]) -> list[str | None]:
    """The contents that a way back inside the fork needs."""
    changes = [change for event in events if isinstance(event, ev.FilesChanged) for change in event.changes]
    return [digest for change in changes for digest in (change.before, change.after)]


def _copy_workspace(plan: ForkPlan, folder: Path) -> None:
    """A copy of the workspace, and of the whole outputs that the conversation names."""
    try:
        shutil.copytree(
            plan.source,
            plan.workspace,
            symlinks=True,
            dirs_exist_ok=True,
            ignore=_ignored(plan.workspace),
        )
        if (folder / "outputs").is_dir():
            shutil.copytree(folder / "outputs", plan.workspace / FOLDER / plan.session / "outputs")
    except (OSError, shutil.Error) as error:
        raise StoreError(f"The workspace cannot be copied to {plan.workspace}: {error}") from error


def _ignored(target: Path) -> Callable[[str, list[str]], set[str]]:
    """What is not copied; the target itself, if it is inside the workspace, is not either."""

    def ignore(folder: str, names: list[str]) -> set[str]:
        return {name for name in names if name in NOT_COPIED or Path(folder, name) == target}

    return ignore
