"""Forks: a new session that begins as another one was after some step, with the files as they were then.

The command line and the magics plan a fork, show the plan, and carry it out if the person agrees. The kernel is rebuilt
when the new session is first worked on. Nothing of the other session is changed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness_nb import events as ev
from harness_nb import past
from harness_nb.errors import StoreError, UsageError
from harness_nb.files import FileStore, Restored, RestorePlan, listed, plan_restore, restore
from harness_nb.notebook import FORMAT_VERSION
from harness_nb.record import Record, read_record
from harness_nb.store import FOLDER, SessionStore, find_session, new_session_id

NOT_COPIED = (FOLDER, ".venv", "node_modules", "__pycache__", ".ipynb_checkpoints", ".pytest_cache", ".mypy_cache")
"""What a fork into another folder leaves behind."""


@dataclass(frozen=True, slots=True)
class ForkPlan:
    """What a fork of ``session`` at ``step`` is and does; ``events`` are those that it begins with.

    ``workspace`` is where it will be, ``source`` where the other session is. ``warnings`` are about the record of the
    other session.
    """

    session: str
    step: int
    events: tuple[ev.Event, ...]
    files: RestorePlan
    source: Path
    workspace: Path
    warnings: tuple[str, ...] = ()

    @property
    def finished(self) -> bool:
        """Whether the work that the fork begins with is done, so that only a further task can follow."""
        return bool(past.nothing_to_resume(self.events, self.session))

    def describe(self) -> str:
        """The plan in sentences, one a line."""
        told = [*self.warnings, f"A new session, as {self.session} was after step {self.step}."]
        if self.workspace != self.source:
            told.append(f"It gets a copy of the workspace in {self.workspace}; nothing here changes.")
            return "\n".join([*told, *self.files.left_behind()])
        return "\n".join([*told, self.files.describe()])


def plan_fork(workspace: Path, session_id: str, step: int | None = None, into: Path | None = None) -> ForkPlan:
    """Plan a fork of a session at ``step``, its last one if none is given; changes nothing.

    ``into`` is a folder for a copy of the workspace, if the fork shall not be in the same one.

    Raises:
        UsageError: if there is no such session or step, or ``into`` cannot become that folder.
    """
    target = _new_folder(into, workspace) if into is not None else workspace
    events, warnings = read_record(workspace, session_id)
    if not any(isinstance(event, ev.PromptAdded) for event in events):
        raise UsageError(f"The session {session_id} has no task yet, so there is nothing to fork.")
    last = sum(isinstance(event, ev.CallDecided) for event in events)
    kept = past.cut_at(events, step) if step is not None else [*events, *past.closing_events(events)]
    at = last if step is None else step
    store = FileStore(find_session(workspace, session_id), workspace)
    files = plan_restore(events, at, store)
    return ForkPlan(session_id, at, tuple(kept), files, workspace, target, tuple(warnings))


def _new_folder(into: Path, workspace: Path) -> Path:
    """``into`` without links, so that a copy of a folder into itself is seen.

    Raises:
        UsageError: if it is there and not an empty folder, or cannot be made.
    """
    try:
        folder = into.resolve()
        parent = next(parent for parent in folder.parents if parent.exists())
        if folder.exists():
            problem = (
                "" if folder.is_dir() and not any(folder.iterdir()) else "is there already and not an empty folder"
            )
        else:
            problem = "" if parent.is_dir() else f"cannot be made, for {parent} is not a folder"
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, a name that no file can have
        problem = f"cannot be made ({getattr(error, 'strerror', None) or error})"
        folder = into
    if folder.is_relative_to(workspace / FOLDER):
        problem = "is where the sessions are"
    if problem:
        raise UsageError(f"{into} {problem}; name another one.")
    return folder


def carry_out(plan: ForkPlan) -> tuple[str, Restored]:
    """Make the new session and restore the files; its id, and what was done to the files. Blocking.

    Raises:
        StoreError: if something cannot be written; no file of the workspace has changed then.
    """
    folder = find_session(plan.source, plan.session)
    files, warnings = plan.files, []
    if plan.workspace != plan.source:
        warnings = _copy_workspace(plan, folder)
        files = plan_restore(read_record(plan.source, plan.session)[0], plan.step, FileStore(folder, plan.workspace))
    old = FileStore(folder, plan.workspace)
    session_id = new_session_id()
    store = SessionStore(plan.workspace, session_id)
    try:
        FileStore(store.folder, plan.workspace).adopt(old, _digests(plan.events))
        events = past.renumbered(_as_fork(plan, session_id))
        store.rewrite(events)
        Record(store, session_id, events).save()
    except (OSError, StoreError) as error:
        store.discard()
        raise StoreError(f"The fork cannot be written, and nothing was changed: {_reason(error)}") from error
    store.close()
    return session_id, replace(restore(files, old), warnings=tuple(warnings))


def _reason(error: OSError | StoreError) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)


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


def _copy_workspace(plan: ForkPlan, folder: Path) -> list[str]:
    """A copy of the workspace, and of the whole outputs that the conversation names; a sentence on what is missing.

    Raises:
        StoreError: if it cannot be made; what was copied is removed again.
    """
    left: list[str] = []
    try:
        shutil.copytree(plan.source, plan.workspace, symlinks=True, dirs_exist_ok=True, ignore=_ignored(plan, left))
        if (folder / "outputs").is_dir():
            shutil.copytree(folder / "outputs", plan.workspace / FOLDER / plan.session / "outputs")
    except (OSError, shutil.Error) as error:
        shutil.rmtree(plan.workspace, ignore_errors=True)  # it was not there, or empty
        first = error.args[0][0] if isinstance(error, shutil.Error) and error.args[0] else None
        reason = f"{first[0]}: {first[2]}" if first else error.strerror or str(error)
        raise StoreError(f"The workspace cannot be copied to {plan.workspace}: {reason}") from error
    return [f"Not copied, for they cannot be read or are no plain files: {listed(sorted(left))}."] if left else []


def _ignored(plan: ForkPlan, left: list[str]) -> Callable[[str, list[str]], set[str]]:
    """What is not copied: the target, if it is inside the workspace; tools' own folders; and what goes to ``left``."""
    source = plan.source.resolve()

    def ignore(folder: str, names: list[str]) -> set[str]:
        here = source / Path(folder).relative_to(plan.source)
        passed = {name for name in names if name in NOT_COPIED or here / name == plan.workspace}
        unfit = {name for name in names if name not in passed and not _can_be_copied(here / name)}
        left.extend(str((here / name).relative_to(source)) for name in unfit)
        return passed | unfit

    return ignore


def _can_be_copied(path: Path) -> bool:
    """Whether it is a link, or a file or folder that can be read. Pipes and the like would be waited for."""
    if path.is_symlink():
        return True
    if path.is_dir():
        return os.access(path, os.R_OK | os.X_OK)
    return path.is_file() and os.access(path, os.R_OK)
