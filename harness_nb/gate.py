"""The finish gate: the harness's own checks, each in a fresh process, on files that the agent has not weakened.

The workplace makes one ``Gate`` before the first prompt, and the session hands ``Gate.run`` to the loop. Where the
sandbox of the tool kernel can do it, the checks run on a copy of the workspace, at the workspace's own path, in which
tests and what configures them are as they were at the start. Elsewhere they run in the workspace itself, and only while
nothing of that has been touched.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from harness_nb.check_copy import CheckCopy, TooMuchError
from harness_nb.events import CheckFinished
from harness_nb.integrity import Finding, Integrity
from harness_nb.outputs import clean_text, head_and_tail
from harness_nb.pristine import Pristine
from harness_nb.watched import lacks_tests

CHECK_TIMEOUT = 900.0
"""Seconds that one check may take."""

OUTPUT_LIMIT = 6000
"""Characters of a check's output that go into the record and back to the model."""

LISTED = 40
"""So many watched or touched files are named."""

NOT_PASSED_ON = ("PYTEST_", "COVERAGE_", "BASH_FUNC_", "BASH_ENV", "ENV", "PYTHONSTARTUP", "PYTHONINSPECT",
    "PYTHONBREAKPOINT", "PYTHONOPTIMIZE", "PYTHONWARNINGS", "PYTHONPLATLIBDIR", "MAKEFLAGS", "NODE_OPTIONS",
    "LD_PRELOAD", "LD_AUDIT", "GIT_")  # fmt: skip
"""Beginnings of the names of variables that change how checks come out."""


class Confiner(Protocol):
    """What the gate asks of the tool kernel."""

    @property
    def holds_copies(self) -> bool:
        """Whether a copy can stand in the workspace's place."""
        ...

    def wrap(self, command: Sequence[str]) -> list[str]:
        """The command, confined as tool code is."""
        ...

    def wrap_copy(self, command: Sequence[str], copy: Path, shared: Sequence[Path]) -> list[str]:
        """The same on a copy."""
        ...


class Gate:
    """Checks that must pass before a finish counts.

    ``commands`` run with bash in ``workspace`` with ``environment``, confined by ``kernel``; the read-only files in
    ``pristine``, the tests, and what configures the checks must be as they were. ``timeout`` is in seconds.
    """

    def __init__(
        self,
        workspace: Path,
        commands: Sequence[str],
        pristine: Pristine,
        environment: Mapping[str, str],
        kernel: Confiner | None = None,
        timeout: float = CHECK_TIMEOUT,
    ) -> None:
        self._workspace = workspace
        self._commands = commands
        self._pristine = pristine
        self._integrity = Integrity(workspace, commands, pristine)
        self._environment = check_environment(environment, workspace)
        self._kernel = kernel
        self._timeout = timeout

    async def run(self) -> AsyncGenerator[CheckFinished]:
        """Run every check in order; all run, so that the model learns of all failures at once."""
        started = time.monotonic()
        findings = await asyncio.to_thread(self._integrity.findings)
        folder = Path(tempfile.mkdtemp(prefix="harness-check-"))
        try:
            copy, why = await asyncio.to_thread(self._copy, folder / "workspace", findings)
            touched = any(finding.counts for finding in findings)
            if self._pristine.patterns or self._integrity.names or touched:
                yield self._about_files(findings, started, copy is not None, why)
            for command in self._commands:
                if copy is None and touched:
                    text = "not run: files that decide about it are not as they were at the start (see above)\n"
                    yield CheckFinished(command=command, passed=False, exit_code=None, output=text, elapsed=0.0)
                    continue
                yield await self._check(command, copy)
        finally:
            await asyncio.to_thread(_remove, folder)

    def _copy(self, target: Path, findings: Sequence[Finding]) -> tuple[CheckCopy | None, str]:
        """A copy with the files as they were; ``None`` and why, where the checks have to run in the workspace."""
        if self._kernel is None or not self._kernel.holds_copies:
            return None, "there is no sandbox that can put a copy in its place"
        if not self._commands:
            return None, ""
        target.mkdir()
        copy = CheckCopy(self._workspace, target)
        try:
            copy.make()
            self._integrity.mend(copy, findings)
        except (TooMuchError, OSError) as error:
            return None, f"it could not be copied: {error}"
        return copy, ""

    def _about_files(self, findings: Sequence[Finding], started: float, copied: bool, why: str) -> CheckFinished:
        """Whether the files are as they were, which ones are watched, and where the checks run."""
        touched = [finding for finding in findings if finding.counts]
        left_out = [finding.name for finding in findings if not finding.counts]
        text = "unchanged"
        if touched:
            named = ", ".join(f"{each.name} ({each.done})" for each in touched[:LISTED])
            text = f"not as they were at the start: {named}"
            text += f" and {len(touched) - LISTED} more" if len(touched) > LISTED else ""
            text += ". Put them back, remove those that were added, and finish again."
        if left_out and copied:
            text += f"\nNew tests are not part of the checks: {', '.join(left_out[:LISTED])}"
        if names := self._integrity.names:
            text += f"\nWatched: {', '.join(names[:LISTED])}"
            text += f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
        if self._commands:
            where = "a copy of the workspace, in its place in the sandbox"
            where = where if copied else f"the workspace itself ({why})"
            text += f"\nThe checks run on {where}."
        patterns = f"read-only files ({', '.join(self._pristine.patterns)})"
        return CheckFinished(
            command=f"{patterns if self._pristine.patterns else 'tests and what configures them'} are unchanged",
            passed=not touched,
            exit_code=None,
            output=text,
            elapsed=time.monotonic() - started,
        )

    async def _check(self, command: str, copy: CheckCopy | None) -> CheckFinished:
        started = time.monotonic()
        before = None if copy else await asyncio.to_thread(self._integrity.stamps)
        exit_code, said, note = await self._execute(self._wrapped(command, copy))
        text = clean_text(said.decode("utf-8", "replace"))
        if exit_code == 0 and not note and (lack := lacks_tests(command, text)):
            note = f"\n[refused: {lack}; something ended the process before]"
        if before is not None and (moved := _moved(before, await asyncio.to_thread(self._integrity.stamps))):
            note += f"\n[refused: written to while the check ran: {', '.join(moved[:LISTED])}]"
        return CheckFinished(
            command=command,
            passed=exit_code == 0 and not note,
            exit_code=exit_code,
            output=head_and_tail(text, OUTPUT_LIMIT) + note,
            elapsed=time.monotonic() - started,
        )

    def _wrapped(self, command: str, copy: CheckCopy | None) -> list[str]:
        words = ["bash", "--noprofile", "--norc", "-c", command]
        if self._kernel is None:
            return words
        if copy is None:
            return self._kernel.wrap(words)
        shared = [self._workspace / path for path in copy.shared]
        return self._kernel.wrap_copy(words, copy.target, shared)

    async def _execute(self, command: Sequence[str]) -> tuple[int, bytes, str]:
        """Exit status, output, and a word where it was stopped."""
        note = ""
        with (
            tempfile.TemporaryFile() as output
        ):  # a file, not a pipe: a background child that keeps it open delays nothing
            process = await asyncio.create_subprocess_exec(
                *command,
                cwd=self._workspace,
                env=self._environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                await asyncio.wait_for(process.wait(), self._timeout)
            except TimeoutError:
                note = f"\n[stopped after {self._timeout:g} s]"
            finally:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                exit_code = await process.wait()
            output.seek(0)
            return exit_code, output.read(), note


def check_environment(environment: Mapping[str, str], workspace: Path) -> dict[str, str]:
    """``environment`` without what changes how checks come out; no bytecode is written.

    Entries of the PATH that depend on the working directory go; those below ``workspace`` go last.
    """
    kept = {name: value for name, value in environment.items() if not name.startswith(NOT_PASSED_ON)}
    entries = [entry for entry in kept.get("PATH", os.defpath).split(os.pathsep) if Path(entry).is_absolute()]
    inside: Callable[[str], bool] = lambda entry: Path(entry).is_relative_to(workspace)  # noqa: E731
    kept["PATH"] = os.pathsep.join(sorted(entries, key=inside))
    return {**kept, "PYTHONDONTWRITEBYTECODE": "1"}


def _moved(before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
    return sorted(name for name in {*before, *after} if before.get(name) != after.get(name))


def _remove(folder: Path) -> None:
    """Remove a folder, whatever modes were given to what is in it."""

    def again(function: Callable[[str], object], path: str, _: BaseException | object) -> None:
        with suppress(OSError):
            Path(path).parent.chmod(0o700)
            Path(path).chmod(0o700)
            function(path)

    shutil.rmtree(folder, onerror=again)
