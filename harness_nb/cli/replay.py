"""The commands that play recorded work: ``run --replay`` and ``replay``. No model is called by either."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any

import click

from harness_nb.approval import TerminalApprover
from harness_nb.cli.running import FINISHED, UNFINISHED, run_jobs
from harness_nb.cli.screen import Screen
from harness_nb.errors import UsageError
from harness_nb.events import Event
from harness_nb.ports import Delta
from harness_nb.record import read_record
from harness_nb.recordings import (
    Recording,
    find_in_session,
    find_recording,
    fingerprint,
    recordings_of,
    why_not_played,
)
from harness_nb.replaying import Difference
from harness_nb.session import Session
from harness_nb.settings import Settings


def play_task(settings: Settings, prompt: str, given: Mapping[str, Any], screen: Screen) -> int:
    """Play what is recorded of a task that was given with these options. The exit code.

    Raises:
        UsageError: if nothing is recorded of it.
    """
    if settings.session:
        found = find_in_session(settings.directory, settings.session, prompt, given)
    else:
        found = find_recording(settings.directory, fingerprint(prompt, given, {}, ""))
    if found is None:
        reason = "" if settings.session else why_not_played(settings.directory, fingerprint(prompt, given, {}, ""))
        raise UsageError(
            f"There is no recording of this task with these options in {settings.directory} that can be played. "
            f"{reason or 'Words and options must be the same.'} Leave --replay out to ask a model."
        )
    return _play(settings, [found], {}, screen)


def play_session(directory: Path, session_id: str, given: Mapping[str, Any], screen: Screen) -> int:
    """Play all prompts of a session, with the options that it had under those that are ``given``. The exit code.

    It is 0 if the work finished and every call came out with the status that is recorded.

    Raises:
        UsageError: if there is no such session, or it holds no reply of a model.
    """
    workspace = Settings.load(directory, given).directory
    read_record(workspace, session_id)
    found = [recording for recording in recordings_of(workspace, session_id) if recording.replies]
    if not found:
        raise UsageError(f"The session {session_id} holds no reply of a model, so there is nothing to play.")
    return _play(_settings(directory, found[0], given), found, given, screen)


def _settings(directory: Path, recording: Recording, given: Mapping[str, Any]) -> Settings:
    """The settings that a prompt was worked on with, under those that are given now."""
    return Settings.load(directory, {**recording.options, **given})


def _play(settings: Settings, recordings: list[Recording], given: Mapping[str, Any], screen: Screen) -> int:
    differences: list[Difference] = []
    kept = {name: value for name, value in given.items() if name != "dir"}
    jobs = [partial(_play_one, recording, settings.directory, kept, differences) for recording in recordings]
    exit_code, _ = run_jobs(settings, jobs, screen, recordings[0])
    strict = [difference.text for difference in differences if difference.status]
    if strict:
        click.echo(f"harness-nb: came out with another status than recorded: {'; '.join(strict)}", err=True)
    return UNFINISHED if exit_code == FINISHED and strict else exit_code


async def _play_one(
    recording: Recording,
    directory: Path,
    given: Mapping[str, Any],
    differences: list[Difference],
    session: Session,
) -> AsyncGenerator[Event | Delta]:
    await session.use(_settings(directory, recording, given), TerminalApprover(), recording)
    async with aclosing(session.send(recording.prompt, recording=recording)) as items:
        async for item in items:
            yield item
    differences += session.differences
