"""The workspace of a session: what the model is told of it, its files, those that nobody may write, the checks.

The session prepares it before each prompt, and the cells have it look after each call. All of it is about the disk.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from harness_nb import events as ev
from harness_nb.context import Surroundings, system_prompt
from harness_nb.files import OUTSIDE, FileStore
from harness_nb.gate import Gate
from harness_nb.ports import Kernel
from harness_nb.pristine import Pristine, put_back_note
from harness_nb.settings import Settings, own_table
from harness_nb.surroundings import gather
from harness_nb.types import JsonObject

SPECIAL, _ESCAPED = r"[\\*?\[\]]", r"\\\g<0>"
"""What has a meaning in gitignore patterns, and how it is written so that it has none."""


class Workplace:
    """The workspace of one session, whose files are kept in ``folder``; ``settings`` may change between prompts.

    Contents of files that are ``withheld`` are not kept.
    """

    def __init__(
        self, settings: Settings, kernel: Kernel, folder: Path, withheld: Callable[[bytes], bool] | None = None
    ) -> None:
        self._workspace = settings.directory
        self._kernel = kernel
        self._settings = settings
        self._surroundings: Surroundings | None = None
        self._gate: Gate | None = None
        self._pristine = Pristine(self._workspace, ())
        self._table = own_table(self._workspace)
        self._files = FileStore(folder, self._workspace)
        self._files.skip = _files_of_this_process(self._workspace)
        self._files.withheld = withheld or self._files.withheld

    @property
    def known(self) -> bool:
        """Whether the surroundings have been gathered, which is once a process."""
        return self._surroundings is not None

    @property
    def environment(self) -> JsonObject:
        """Facts about the machine and the kernel's Python."""
        assert self._surroundings is not None
        return {**self._surroundings.environment, **({"Sandbox": words} if (words := self._kernel.sandbox) else {})}

    def use(self, settings: Settings) -> None:
        """Go on with other settings; other checks or read-only files are taken up anew, as they are then."""
        if (settings.check, settings.read_only) != (self._settings.check, self._settings.read_only):
            self._gate = None
        self._settings = settings

    async def gather(self) -> list[str]:
        """Find out about machine, instructions and skills; warnings for the person."""
        python, environment = self._kernel.python, self._kernel.environment
        self._surroundings, warnings = await gather(
            self._settings, python, environment, self._patterns(), self._kernel.wrap
        )
        return warnings

    async def prepare(
        self, recorded: Mapping[str, str | None] | None, unknown: Sequence[ev.CellFinished] = ()
    ) -> AsyncGenerator[ev.Event]:
        """Look what has changed since the last prompt, and take the checks and read-only files as they are.

        ``recorded`` is what the record of an earlier process says of the files. What changed is put down to the first
        of the ``unknown`` cells, those that were cut off, or else to others.
        """
        if changes := await asyncio.to_thread(self._files.begin, recorded):
            call_id, name = (unknown[0].call_id, unknown[0].name) if unknown else (OUTSIDE, OUTSIDE)
            yield ev.FilesChanged(call_id=call_id, name=name, changes=changes)
        for text in self.warnings():
            yield ev.Warned(text=text)
        if self._gate is None:
            self._pristine = Pristine(self._workspace, self._patterns())
            self._gate = Gate(
                self._workspace,
                self._settings.check,
                self._pristine,
                self._kernel.environment,
                self._kernel,
                self._settings.check_minutes * 60,
            )

    def inspect(self) -> tuple[str, tuple[ev.FileChange, ...]]:
        """What the last cell did to the files; those that nobody may write are put back first. Blocking."""
        note = " ".join(filter(None, (put_back_note(*self._pristine.put_back()), self._settings_note())))
        return note, self._files.look()

    def _settings_note(self) -> str:
        """A word on settings of the harness that a call has written: they could open the next session's sandbox."""
        before, self._table = self._table, own_table(self._workspace)
        names = sorted(name for name in {*before, *self._table} if before.get(name) != self._table.get(name))
        if not names:
            return ""
        changed = f"[tool.harness-nb] in pyproject.toml has changed ({', '.join(names)})"
        return f"{changed}. It holds for sessions to come: the person decides."

    def warnings(self) -> list[str]:
        """What the person should know of the files, since this was last asked."""
        return self._files.warnings()

    @property
    def gate(self) -> Gate:
        """The checks of this prompt."""
        assert self._gate is not None
        return self._gate

    @property
    def read_only(self) -> tuple[str, ...]:
        """The patterns of files that nobody may write."""
        return self._pristine.patterns

    def protected(self) -> tuple[str, ...]:
        """The same, without files that have come since the start: those have to go before a finish. Blocking."""
        come = sorted(name for name in self._pristine.present() if self._pristine.kept(name) is None)
        return (*self.read_only, *(f"!/{re.sub(SPECIAL, _ESCAPED, name)}" for name in come))

    def system_prompt(self) -> str:
        """What the model is told, with the checks, limits and read-only files of this prompt."""
        assert self._surroundings is not None
        settings = self._settings
        told = replace(self._surroundings, checks=settings.check, read_only=self.read_only, limits=settings.limits)
        told = replace(told, environment=self.environment)
        return system_prompt(replace(told, web=settings.web, secrets=settings.secret))

    def _patterns(self) -> tuple[str, ...]:
        """The patterns in force: those that were given, or the default where it matches anything."""
        given, default = self._settings.read_only, self._settings.read_only_globs
        return given or (default if Pristine(self._workspace, default).names else ())


def _files_of_this_process(workspace: Path) -> frozenset[str]:
    """Files that change beside the work: the notebook that the person works in, as Jupyter servers name it, and where
    this process writes its own progress to (known on Linux).
    """
    paths = [Path(os.environ.get("JPY_SESSION_NAME", ""))]
    for number in (1, 2):
        with suppress(OSError):
            paths.append(Path(f"/proc/self/fd/{number}").readlink())
    return frozenset(path.relative_to(workspace).as_posix() for path in paths if path.is_relative_to(workspace))
