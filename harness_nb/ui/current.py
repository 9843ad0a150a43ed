"""The notebook's current session: the one that the next ``%%agent`` cell continues.

Lives as long as the extension is loaded; ``take`` and ``aclose`` run in the engine, the rest may be read from any
thread. It must not import IPython.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness_nb.errors import MissingKeyError, UsageError
from harness_nb.kernel import Spare
from harness_nb.ports import Approver
from harness_nb.record import kept_options
from harness_nb.recordings import Recording, find_in_session, find_recording, fingerprint
from harness_nb.safeguards import spare_for
from harness_nb.session import Session
from harness_nb.settings import PER_TASK, Settings
from harness_nb.store import FOLDER

WHICH = frozenset({"session", "new", "fresh", "replay"})
"""Options that say which work is done: of a session or a new one, recorded or anew."""


@dataclass(frozen=True, slots=True)
class Task:
    """What a ``%%agent`` cell asks for.

    ``given`` are the options on its line, ``options`` those and the ones that still hold; ``cell`` is the id of the
    cell, empty where the front-end does not say it.
    """

    prompt: str
    settings: Settings
    given: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    cell: str = ""
    resume: bool = False
    """Whether the work that stopped is to go on; there is no new prompt then."""


class CurrentSession:
    """Which session is open, and the options that it goes on with."""

    def __init__(self) -> None:
        self.session: Session | None = None
        self._first_cell = ""
        self.cells_of_work: list[str] = []
        """Ids of the notebook's cells that gave the current session its tasks, the latest first, where known."""
        self._settings: Settings | None = None
        self._options: Mapping[str, Any] = {}
        self.kept: dict[str, Any] = {}
        """Options that hold for the tasks to come."""
        self._next, self._next_in = "", Path()
        self._spare = Spare()

    async def prepare(self, folder: Path) -> None:
        """Start a kernel ahead, which the first task will not have to wait for. It waits in ``folder``."""
        with suppress(UsageError):  # the first task says what is wrong with the settings
            if (fitting := await asyncio.to_thread(spare_for, folder)) is not None:
                self._spare.prepare(folder, fitting.confinement)

    @property
    def id(self) -> str:
        """The session that the next task goes on with; empty where it begins one."""
        return self.session.id if self.session is not None else self._next

    @property
    def workspace(self) -> Path | None:
        """The workspace of that session; ``None`` where there is none."""
        if self.session is not None:
            return self.session.workspace
        return self._next_in if self._next else None

    def options(self, given: Mapping[str, Any], folder: Path | None = None) -> dict[str, Any]:
        """The options of a call: those given, over those that still hold in the session that it continues.

        ``folder`` is the notebook's, where it is not this process's.

        Raises:
            UsageError: if it continues a session that is not there.
        """
        if given.get("new"):
            return dict(given)
        if session_id := given.get("session"):
            workspace = Settings.load(folder or notebook_folder(), {"dir": given.get("dir")}).directory
            return {**kept_options(workspace, session_id), **given}
        elsewhere = "dir" in given and given["dir"] != self.kept.get("dir")
        return {**self.kept, **({"session": self._next} if self._next and not elsewhere else {}), **given}

    def resumption(self, given: Mapping[str, Any]) -> Task:
        """The task of going on in the open session, with the options of its last task under those that are given now.

        Raises:
            UsageError: if it is a replay that was stopped, which a model cannot go on with.
        """
        session = self.session
        assert session is not None
        if session.played_from and (session.ending is None or session.ending.reason == "interrupted"):
            raise UsageError(
                f"The recording of {session.played_from} was being played, and no model was at work. Run the %%agent "
                "cell again to play it from the start, or with --fresh to work anew."
            )
        options = {**{name: value for name, value in self._options.items() if name not in WHICH}, **given}
        return Task("", Settings.load(notebook_folder(), options), options=options, resume=True)

    def switch_model(self, changes: Mapping[str, Any]) -> None:
        """Have the tasks to come, and work that is resumed, go to another model; ``changes`` are options."""
        self.kept = {**self.kept, **changes}
        self._options = {**self._options, **changes}

    async def go_on_in(self, session_id: str, workspace: Path) -> None:
        """End the open session, if there is one, and have the next task continue that one."""
        await self._end_session()
        if self._settings is None:
            self.kept = await asyncio.to_thread(kept_options, workspace, session_id)
        self._next, self._next_in = session_id, workspace

    async def find(self, task: Task) -> Recording | None:
        """The recorded work that is to be played for a task; ``None`` where a model is needed.

        A session in which a model has worked is not replayed from its middle: what is recorded elsewhere was done on
        another ground. But the cell that began it, run again, begins again.

        Raises:
            UsageError: if only recorded work may be played, and there is none.
        """
        if task.settings.fresh or task.resume:
            return None
        found = await asyncio.to_thread(self._find, task)
        if found is None and task.settings.replay:
            raise UsageError(f"{self._nothing_recorded(task)} Leave --replay out to ask a model.")
        return found

    def _find(self, task: Task) -> Recording | None:
        settings, session = task.settings, self.session
        first = _as_first(task)
        if session is None or not self._continues(session, settings):
            if settings.session:
                return find_in_session(settings.directory, settings.session, task.prompt, task.given)
            return find_recording(settings.directory, first)
        if session.played_from:
            mark = session.fingerprint_of(task.prompt, task.given)
            return find_recording(settings.directory, mark, within=session.played_from) or find_recording(
                settings.directory, first, within=session.played_from
            )
        again = bool(task.cell) and task.cell == self._first_cell
        return find_recording(settings.directory, first) if again or settings.replay else None

    async def take(self, task: Task, approver: Approver, recording: Recording | None = None) -> Session:
        """The session for a task: the current one, or another if the task, or the ``recording`` to play, asks for it.

        Raises:
            UsageError: if the model, the key, the kernel or the session is not there; the current session stays.
        """
        session = self.session
        try:
            if session is not None and self._continues(session, task.settings) and _goes_on(session, task, recording):
                await session.use(task.settings, approver, recording)
            else:
                session = await self._leave_for(task.settings, approver, recording)
                self._first_cell, self.cells_of_work = task.cell, []
        except MissingKeyError as error:
            raise MissingKeyError(f"{self._nothing_recorded(task)} So a model is needed. {error}") from error
        if task.cell:
            self.cells_of_work.insert(0, task.cell)
        self._settings, self._options, self._next = task.settings, task.options, ""
        self.kept = {name: value for name, value in task.options.items() if name not in PER_TASK}
        return session

    def _nothing_recorded(self, task: Task) -> str:
        if task.settings.fresh:
            return "--fresh passes over what is recorded."
        after = " after what came before it" if self.session is not None else ""
        return f"There is no recording of this prompt with these options{after} in {task.settings.directory / FOLDER}."

    async def aclose(self) -> None:
        """End the session's kernel and the spare one, and let go of the files."""
        await self._end_session()
        await self._spare.aclose()

    async def _end_session(self) -> None:
        session, self.session = self.session, None
        if session is not None:
            await session.aclose()

    def _continues(self, session: Session, settings: Settings) -> bool:
        same = self._settings is not None and self._settings.kernel == settings.kernel
        return (
            same
            and not settings.new
            and settings.session in (None, session.id)
            and settings.directory == session.workspace
        )

    async def _leave_for(self, settings: Settings, approver: Approver, recording: Recording | None) -> Session:
        """Open the other session; the old one is closed before only where both are, or may be, the same on disk."""
        if self.session is not None and (settings.session == self.session.id or recording is not None):
            await self._end_session()
        opened = await Session.open(settings, approver, self._spare, recording=recording)
        await self._end_session()
        self.session = opened
        return opened


def _goes_on(session: Session, task: Task, recording: Recording | None) -> bool:
    """Whether a recording, if there is one, can be played in this session: it follows on what was played there last."""
    if recording is None:
        return True
    mark = session.fingerprint_of(task.prompt, task.given)
    return bool(session.played_from) and mark == recording.fingerprint != _as_first(task)


def _as_first(task: Task) -> str:
    """The fingerprint of a task that begins a session."""
    return fingerprint(task.prompt, task.given, {}, "")


def notebook_folder(environment: Mapping[str, str] | None = None) -> Path:
    """The folder of the notebook: of ``JPY_SESSION_NAME``, which Jupyter servers set, else the working directory."""
    name = (os.environ if environment is None else environment).get("JPY_SESSION_NAME", "")
    folder = Path(name).parent
    return folder if name and folder.is_absolute() and folder.is_dir() else Path.cwd()
