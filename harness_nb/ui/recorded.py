"""The verbs of ``%agent`` about recorded sessions: resume, fork, rewind, export, verify.

Called by the magic, with the words behind the verb. What takes time runs in the engine, and an interrupt stops it.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import click

from harness_nb.errors import UsageError
from harness_nb.export import Exported, export_session
from harness_nb.forking import ForkPlan, carry_out, plan_fork
from harness_nb.past import options_of
from harness_nb.record import latest_session, read_record
from harness_nb.settings import Settings
from harness_nb.ui import html
from harness_nb.ui.current import CurrentSession, Task, notebook_folder
from harness_nb.ui.engine import engine
from harness_nb.ui.publish import Bundle
from harness_nb.ui.run import TICK
from harness_nb.ui.verbs import link_to
from harness_nb.verify import Options, Verdict, verify

SESSION = click.Argument(["session_id"], required=False)
STEP = click.Option(["--at", "step"], type=click.IntRange(min=0))
YES = click.Option(["--yes", "agreed"], is_flag=True)
FORMS: dict[str, tuple[str, str, list[click.Parameter]]] = {
    "resume": ("[ID]", "go on with work that was stopped, cut off or reached a limit", [SESSION]),
    "fork": (
        "[ID] [--at N] [--into DIR]",
        "a new session that begins as that one was after step N",
        [SESSION, STEP, click.Option(["--into"], type=click.Path(path_type=Path)), YES],
    ),
    "rewind": ("N", "go back to step N: files, conversation and kernel", [
        click.Argument(["step"], type=click.IntRange(min=0)), YES]),
    "export": (
        "[PATH] [--clean] [--verify] [--here]",
        "the session as .ipynb, .py or .html; --clean: only what the result needs; --here: below this cell",
        [
            click.Argument(["target"], required=False, type=click.Path(path_type=Path)),
            *(click.Option([name], is_flag=True) for name in ("--clean", "--verify", "--here", "--force")),
            click.Option(["--session", "session_id"]),
        ],
    ),
    "verify": (
        "PATH [--repair]",
        "run a notebook top to bottom in a fresh kernel and compare its outputs",
        [click.Argument(["path"], type=click.Path(path_type=Path)), click.Option(["--repair"], is_flag=True)],
    ),
}  # fmt: skip
"""Verb: its arguments in words, what it does, its parameters."""


class Desk(Protocol):
    """What these verbs work with."""

    current: CurrentSession

    def ask(self, question: str) -> bool | None:
        """A yes or no of the person; ``None`` where nobody can answer."""
        ...

    def put_here(self, session_id: str) -> Bundle:
        """Put the cells of a session below the running cell."""
        ...


def read_words(verb: str, line: str) -> dict[str, Any]:
    """The arguments of a verb, by name.

    Raises:
        UsageError: if they do not fit; the text says how it is written.
    """
    form, _, parameters = FORMS[verb]
    try:
        context = click.Command(verb, params=parameters, add_help_option=False).make_context(verb, shlex.split(line))
    except (click.UsageError, ValueError) as error:
        told = error.format_message() if isinstance(error, click.UsageError) else str(error)
        raise UsageError(f"%agent {verb}: {told} It is written: %agent {verb} {form}") from error
    return dict(context.params)


def resume_task(desk: Desk, session_id: str | None) -> Task:
    """The task of going on with a session: the current one, else the latest one, unless it is named.

    Raises:
        UsageError: if there is no such session.
    """
    current = desk.current.session
    folder = notebook_folder()
    found = session_id or (current.id if current else latest_session(Settings.load(folder, {}).directory))
    if current is not None and found == current.id:
        return desk.current.resumption()
    events, _ = read_record(Settings.load(folder, {}).directory, found)
    options = {**options_of(events), "session": found}
    return Task("", Settings.load(folder, options), {}, options, resume=True)


def fork(desk: Desk, session_id: str | None, step: int | None, into: Path | None, agreed: bool) -> Bundle:
    """Make a fork and say what to do with it; the notebook stays in its session."""
    plan = plan_fork(_workspace(desk), session_id or _session_of(desk), step, into.absolute() if into else None)
    if not _agreed(desk, plan, agreed):
        return html.note_block("○", "Nothing was changed.", html.GREY)
    fork_id, restored = carry_out(plan)
    words = f"{fork_id} is {plan.session} as it was after step {plan.step}. {restored.describe()}"
    where = "" if plan.workspace == plan.source else f" --dir {plan.workspace}"
    words += f" Go on in it with %%agent --session {fork_id}{where}, or %agent resume {fork_id}."
    return html.note_block("⑂", words, html.BLUE, link=link_to(_notebook(plan, fork_id)))


def rewind(desk: Desk, step: int, agreed: bool) -> Bundle:
    """Go back to a step: the next ``%%agent`` cell goes on from there, in a session of its own."""
    plan = plan_fork(_workspace(desk), _session_of(desk), step)
    if not _agreed(desk, plan, agreed):
        return html.note_block("○", "Nothing was changed.", html.GREY)
    in_engine(desk.current.leave())
    fork_id, restored = carry_out(plan)
    desk.current.go_on_in(fork_id)
    words = (
        f"Back at step {step} of {plan.session}, in the new session {fork_id}. {restored.describe()} The next %%agent "
        "cell goes on from there, with the kernel rebuilt; %agent resume lets the model go on by itself."
    )
    return html.note_block("⟲", words, html.BLUE, link=link_to(_notebook(plan, fork_id)))


def export(
    desk: Desk,
    target: Path | None,
    clean: bool,
    verify: bool,
    here: bool,
    force: bool,
    session_id: str | None,
) -> Bundle:
    """Export the current session, or one that is named."""
    found = session_id or _session_of(desk)
    if here:
        if target or clean or verify:
            raise UsageError("--here puts the session's cells into this notebook; it goes with no other option.")
        return desk.put_here(found)
    done = export_session(_workspace(desk), found, _absolute(target), clean=clean, force=force)
    if verify:
        return _verdict_block(_verified(done.path, repair=False), done)
    sign, colour = ("✓", html.GREEN) if done.complete else ("⚠", html.AMBER)
    return html.note_block(sign, " ".join(["Exported.", *done.notes]), colour, link=link_to(done.path))


def verify_notebook(desk: Desk, path: Path, repair: bool) -> Bundle:
    """Verify a notebook."""
    return _verdict_block(_verified(_absolute(path) or path, repair), None)


def _verified(path: Path, repair: bool) -> Verdict:
    return in_engine(verify(path, Options(repair=repair)))


def _verdict_block(verdict: Verdict, done: Exported | None) -> Bundle:
    lines = [*(done.notes if done else ()), *verdict.lines()]
    sign, colour = ("✓", html.GREEN) if verdict.exit_code == 0 else ("✗", html.RED)
    head = next((line for line in lines if verdict.path.name in line), lines[0])
    rest = "\n".join(line for line in lines if line != head)
    return html.note_block(sign, head.lstrip("✅❌⚠️ "), colour, rest, "in full", link=link_to(verdict.path))


def _agreed(desk: Desk, plan: ForkPlan, agreed: bool) -> bool:
    """Whether files may be changed: because none would, because it was said so, or because the person says so now."""
    if agreed or plan.workspace != plan.source or not plan.files.changes_files:
        return True
    answer = desk.ask(f"{plan.describe()}\nChange these files? [y/N] ")
    if answer is None:
        raise UsageError(f"{plan.describe()}\nNobody can be asked here: add --yes, or fork --into FOLDER for a copy.")
    return answer


def _session_of(desk: Desk) -> str:
    """The current session, else the latest one of the workspace."""
    return desk.current.session.id if desk.current.session else latest_session(_workspace(desk))


def _workspace(desk: Desk) -> Path:
    session = desk.current.session
    return session.workspace if session else Settings.load(notebook_folder(), {}).directory


def _absolute(path: Path | None) -> Path | None:
    """A path as it is meant in the notebook: from the notebook's folder."""
    return None if path is None else notebook_folder() / path.expanduser()


def _notebook(plan: ForkPlan, session_id: str) -> Path:
    return plan.workspace / "harness_sessions" / f"{session_id}.ipynb"


def in_engine(coroutine: Any) -> Any:
    """Run a coroutine in the engine and wait for it; an interrupt cancels it."""
    handle = engine().submit(coroutine)
    try:
        while not handle.wait(TICK):
            pass
    except KeyboardInterrupt:
        handle.cancel()
        handle.wait(10.0)
        raise
    try:
        return handle.result()
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


RUNNERS: dict[str, Callable[..., Bundle]] = {
    "fork": fork,
    "rewind": rewind,
    "export": export,
    "verify": verify_notebook,
}


def lines_of_help() -> Sequence[tuple[str, str]]:
    """Verb with its arguments, and what it does."""
    return [(f"{verb} {form}", words) for verb, (form, words, _) in FORMS.items()]
