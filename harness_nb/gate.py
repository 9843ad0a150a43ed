"""The finish gate: the harness's own checks, each in a fresh process, on files that the agent has not weakened.

The session makes one ``Gate`` before the first prompt and hands ``Gate.run`` to the loop.
"""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from harness_nb.events import CheckFinished
from harness_nb.outputs import clean_text, head_and_tail
from harness_nb.pristine import Pristine

CHECK_TIMEOUT = 900.0
"""Seconds that one check may take."""

OUTPUT_LIMIT = 6000
"""Characters of a check's output that go into the record and back to the model."""


class Gate:
    """Checks that must pass before a finish counts.

    ``commands`` run with bash in ``workspace`` with ``environment``; the read-only files in ``pristine`` must be as
    they were.
    """

    def __init__(
        self, workspace: Path, commands: Sequence[str], pristine: Pristine, environment: Mapping[str, str]
    ) -> None:
        self._workspace = workspace
        self._commands = commands
        self._pristine = pristine
        self._environment = dict(environment)

    async def run(self) -> AsyncGenerator[CheckFinished]:
        """Run every check in order; all run, so that the model learns of all failures at once."""
        if self._pristine.patterns:
            yield await asyncio.to_thread(self._check_read_only)
        for command in self._commands:
            yield await self._check(command)

    def _check_read_only(self) -> CheckFinished:
        started = time.monotonic()
        touched = self._pristine.touched()
        text = "unchanged" if not touched else f"not as they were at the start: {', '.join(touched)}"
        return CheckFinished(
            command=f"read-only files ({', '.join(self._pristine.patterns)}) are unchanged",
            passed=not touched,
            exit_code=None,
            output=text,
            elapsed=time.monotonic() - started,
        )

    async def _check(self, command: str) -> CheckFinished:
        started = time.monotonic()
        note = ""
        with (
            tempfile.TemporaryFile() as output
        ):  # a file, not a pipe: a background child that keeps it open delays nothing
            process = await asyncio.create_subprocess_exec(
                *("bash", "-c", command),
                cwd=self._workspace,
                env=self._environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                await asyncio.wait_for(process.wait(), CHECK_TIMEOUT)
            except TimeoutError:
                note = f"\n[stopped after {CHECK_TIMEOUT:g} s]"
            finally:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                exit_code = await process.wait()
            output.seek(0)
            said = output.read()
        text = clean_text(said.decode("utf-8", "replace")) + note
        return CheckFinished(
            command=command,
            passed=exit_code == 0 and not note,
            exit_code=exit_code,
            output=head_and_tail(text, OUTPUT_LIMIT),
            elapsed=time.monotonic() - started,
        )
