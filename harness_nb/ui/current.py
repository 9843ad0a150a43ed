"""The notebook's current session: the one that the next ``%%agent`` cell continues.

Lives as long as the extension is loaded; ``take`` and ``aclose`` run in the engine, the rest may be read from any
thread. It must not import IPython.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness_nb.kernel import Spare
from harness_nb.ports import Approver
from harness_nb.session import Session
from harness_nb.settings import Settings

PER_TASK = frozenset(
    {"session", "new", "fresh", "replay", "check", "max_turns", "max_cost", "max_minutes", "max_tokens"}
)
"""Options that hold for one task; the others hold until the session is left or they are given anew."""


class CurrentSession:
    """Which session is open, and the options that it goes on with."""

    def __init__(self) -> None:
        self.session: Session | None = None
        self._settings: Settings | None = None
        self._kept: dict[str, Any] = {}
        self._spare = Spare()

    async def prepare(self, folder: Path) -> None:
        """Start a kernel ahead, which the first task will not have to wait for. It waits in ``folder``."""
        self._spare.prepare(folder)

    def options(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The options of a call that continues the session: those given, over those that still hold."""
        if given.get("new") or given.get("session"):
            return dict(given)
        return {**self._kept, **given}

    async def take(self, settings: Settings, options: Mapping[str, Any], approver: Approver) -> Session:
        """The session for a task: the current one, or another if the settings ask for it.

        Raises:
            UsageError: if the model, the key, the kernel or the session is not there; the current session stays.
        """
        session = self.session
        if session is not None and self._continues(session, settings):
            await session.use(settings, approver)
        else:
            session = await self._leave_for(settings, approver)
        self._settings = settings
        self._kept = {name: value for name, value in options.items() if name not in PER_TASK}
        return session

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

    async def _leave_for(self, settings: Settings, approver: Approver) -> Session:
        """Open the other session; the old one is closed before only if both are the same on disk."""
        if self.session is not None and settings.session == self.session.id:
            await self._end_session()
        opened = await Session.open(settings, approver, self._spare)
        await self._end_session()
        self.session = opened
        return opened


def notebook_folder(environment: Mapping[str, str] | None = None) -> Path:
    """The folder of the notebook: of ``JPY_SESSION_NAME``, which Jupyter servers set, else the working directory."""
    name = (os.environ if environment is None else environment).get("JPY_SESSION_NAME", "")
    folder = Path(name).parent
    return folder if name and folder.is_absolute() and folder.is_dir() else Path.cwd()
