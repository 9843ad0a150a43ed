"""Runs a prompt from the command line: signals, screen, exit code."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import click

from harness_nb import events as ev
from harness_nb.approval import TerminalApprover
from harness_nb.cli.screen import JsonScreen, Screen
from harness_nb.errors import HarnessError, StoreError, UsageError
from harness_nb.ports import Delta
from harness_nb.recordings import Recording
from harness_nb.session import Session
from harness_nb.settings import Settings

FINISHED, UNFINISHED, WRONG_CALL, INTERRUPTED = 0, 1, 2, 130


Job = Callable[[Session], AsyncGenerator[ev.Event | Delta]]
"""A piece of work for a session, such as one prompt."""


def run_prompts(
    settings: Settings, prompts: list[str], screen: Screen, given: Mapping[str, Any] | None = None
) -> tuple[int, ev.SessionEnded | None]:
    """Work on prompts in one session, as ``run_jobs``; ``given`` are the options of the call."""
    return run_jobs(settings, [partial(_send, prompt, given) for prompt in prompts], screen)


def _send(prompt: str, given: Mapping[str, Any] | None, session: Session) -> AsyncGenerator[ev.Event | Delta]:
    return session.send(prompt, given)


def run_jobs(
    settings: Settings, jobs: Sequence[Job], screen: Screen, recording: Recording | None = None
) -> tuple[int, ev.SessionEnded | None]:
    """Do pieces of work in one session, until one does not finish. The exit code, and how the last one ended.

    Where a ``recording`` is played first, work that ended otherwise than finished is followed by the next all the same:
    so it was recorded.

    Errors of the call are printed and give 2; an interrupt (Ctrl-C, SIGTERM) completes the record and gives 130.
    """
    try:
        return asyncio.run(_run_jobs(settings, jobs, screen, recording))
    except UsageError as error:
        click.echo(f"harness-nb: {error}", err=True)
        return WRONG_CALL, None
    except HarnessError as error:
        click.echo(f"harness-nb: {error}", err=True)
        return UNFINISHED, None


async def _run_jobs(
    settings: Settings, jobs: Sequence[Job], screen: Screen, recording: Recording | None
) -> tuple[int, ev.SessionEnded | None]:
    try:
        session = await Session.open(settings, TerminalApprover(), recording=recording)
    except StoreError as error:
        raise UsageError(str(error)) from error
    task = asyncio.ensure_future(_do_all(session, jobs, screen, to_the_end=recording is not None))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):
            loop.add_signal_handler(number, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        if session.ending is not None:
            screen.apply(session.ending)
        return INTERRUPTED, session.ending
    finally:
        for text in await session.aclose():
            click.echo(f"harness-nb: {text}", err=True)
        if not isinstance(screen, JsonScreen):
            click.echo(f"session notebook: {shown_path(session.notebook_path)}", err=True)
    finished = session.ending is not None and session.ending.reason == "finished"
    return FINISHED if finished else UNFINISHED, session.ending


async def _do_all(session: Session, jobs: Sequence[Job], screen: Screen, to_the_end: bool) -> None:
    for job in jobs:
        answer = ""
        async with aclosing(job(session)) as items:
            async for item in items:
                screen.apply(item)
                if isinstance(item, ev.FinishAccepted):
                    answer = item.summary
        if answer and not isinstance(screen, JsonScreen):
            sys.stderr.flush()
            click.echo(answer)
        if session.ending is None or (session.ending.reason != "finished" and not to_the_end):
            return


def shown_path(path: Path) -> str:
    """A path as short as it can be said from here."""
    try:
        here = Path.cwd()
    except FileNotFoundError:  # the folder that the command was called in is gone
        return str(path)
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
