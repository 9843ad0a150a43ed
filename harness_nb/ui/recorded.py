"""The verbs of ``%agent`` about recorded sessions: resume, steps, fork, rewind, export, verify.

Called by the magic, with the words behind the verb. What takes time says how it goes, and an interrupt stops it.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import click

from harness_nb.errors import UsageError
from harness_nb.events import PromptAdded
from harness_nb.export import Exported, export_session
from harness_nb.forking import ForkPlan, carry_out, plan_fork
from harness_nb.notebook import NotebookFold
from harness_nb.options import given_options, make_options
from harness_nb.past import Step, nothing_to_resume, options_of, steps_of
from harness_nb.record import latest_session, read_record
from harness_nb.settings import Settings
from harness_nb.store import FOLDER
from harness_nb.types import JsonObject
from harness_nb.ui import html
from harness_nb.ui.current import WHICH, CurrentSession, Task, notebook_folder
from harness_nb.ui.engine import engine
from harness_nb.ui.here import Placed, cells_for
from harness_nb.ui.here_words import placed_block
from harness_nb.ui.last_line import duration
from harness_nb.ui.publish import Bundle
from harness_nb.ui.run import TICK
from harness_nb.ui.source import call_title
from harness_nb.ui.verbs import link_to, workspace_of
from harness_nb.verify import Options, Verdict, verify

T = TypeVar("T")

PATH = click.Path(path_type=Path)
SESSION = click.Argument(["session_id"], required=False)
STEP = click.IntRange(min=0)
YES = click.Option(["--yes", "agreed"], is_flag=True)
FORMS: dict[str, tuple[str, str, list[click.Parameter]]] = {
    "resume": ("[ID] [options]", "go on with work that was stopped, cut off or reached a limit; options as of %%agent",
               [SESSION, *(option for option in make_options() if option.name not in WHICH)]),
    "steps": ("[ID]", "the steps of a session, which rewind and fork go back to", [SESSION]),
    "rewind": ("N", "go back to step N: files, conversation and kernel; asks before it changes files",
               [click.Argument(["step"], type=STEP), YES]),
    "fork": ("[ID] [--at N] [--into DIR]", "a new session that begins as that one was after step N",
             [SESSION, click.Option(["--at", "step"], type=STEP), click.Option(["--into"], type=PATH), YES]),
    "export": ("[PATH] [--clean] [--verify]",
               "the session as .ipynb, .py or .html; --clean: only what the result needs; --session ID: another one",
               [click.Argument(["target"], required=False, type=PATH), click.Option(["--session", "session_id"]),
                *(click.Option([name], is_flag=True) for name in ("--clean", "--verify", "--here", "--force"))]),
    "verify": ("PATH [--repair]", "run a notebook top to bottom in a fresh kernel and compare its outputs",
               [click.Argument(["path"], type=PATH), click.Option(["--repair"], is_flag=True)]),
}  # fmt: skip
"""Verb: its arguments in words, what it does, its parameters."""

ALONGSIDE = frozenset({"steps", "verify"})
"""Verbs that may be called while a task is being worked on."""

_COLOURS = {"reproduced": ("✓", html.GREEN), "differs": ("✗", html.RED), "failed": ("✗", html.RED)}


class Desk(Protocol):
    """What these verbs work with."""

    current: CurrentSession

    def show(self, bundle: Bundle) -> None:
        """Add a block to the cell."""
        ...

    def show_meanwhile(self, bundle: Bundle) -> None:
        """Show a block until the next one comes."""
        ...

    def ask(self, question: str) -> bool | None:
        """A yes or no of the person; ``None`` where nobody can answer."""
        ...

    def put_below(self, cells: Sequence[JsonObject], session_id: str, below: Sequence[str]) -> Placed:
        """Put cells below the first of these cells that the notebook has, else below the running one."""
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
        told = error.format_message() if isinstance(error, click.UsageError) else f"{error}."
        raise UsageError(f"%agent {verb}: {told} It is written: %agent {verb} {form}") from error
    return dict(context.params)


def resume_task(desk: Desk, session_id: str | None, **words: Any) -> Task | None:
    """The task of going on with a session: the current one, else the latest one, unless it is named.

    ``words`` are options of ``%%agent``; they take the place of those that the work had. ``None`` if the work is
    finished. That has been said then: Run All shall go on behind a cell that resumes.

    Raises:
        UsageError: if there is no such session, or no task in it.
    """
    folder, current, given = notebook_folder(), desk.current, given_options(words)
    workspace = Settings.load(folder, {"dir": given["dir"]}).directory if "dir" in given else workspace_of(current)
    here = workspace == current.workspace
    found = session_id or (current.id if here else "") or latest_session(workspace)
    if here and current.session is not None and found == current.session.id:
        if current.session.ending is None or current.session.ending.reason != "finished":
            return current.resumption(given)
        _say_finished(desk, found)
        return None
    events, _ = read_record(workspace, found)
    if problem := nothing_to_resume(events, found):
        if not any(isinstance(event, PromptAdded) for event in events):
            raise UsageError(problem)
        _say_finished(desk, found)
        return None
    kept = current.kept if here and found == current.id else {}
    options = {**options_of(events), **kept, **given, "session": found}
    if "dir" not in options and workspace != Settings.load(folder, {}).directory:
        options["dir"] = str(workspace)
    return Task("", Settings.load(folder, options), {}, options, resume=True)


def _say_finished(desk: Desk, session_id: str) -> None:
    words = f"There is nothing to resume: the work of {session_id} is finished. A %%agent cell gives it another task."
    desk.show(html.note_block("○", words, html.GREY))


def steps(desk: Desk, session_id: str | None) -> None:
    """Show the steps of a session."""
    found = steps_of(read_record(workspace_of(desk.current), session_id or _session_of(desk))[0])
    rows = [("0", "", "", "", "the task, before any call")]
    for step in found:
        state = "open" if step.status is None else step.status.value.replace("_", " ")
        took = duration(step.elapsed) if step.started else ""
        rows.append((str(step.number), step.call.name, state, took, call_title(step.call.name, step.call.arguments)))
    desk.show(html.table(["step", "tool", "outcome", "time", "call"], rows))


def fork(desk: Desk, session_id: str | None, step: int | None, into: Path | None, agreed: bool) -> None:
    """Make a fork and say what to do with it; the notebook stays in its session."""
    plan = plan_fork(workspace_of(desk.current), session_id or _session_of(desk), step, _beside_notebook(into))
    if not _agreed(desk, plan, agreed):
        return
    desk.show_meanwhile(html.note_block("●", "Making the fork …", html.BLUE))
    fork_id, restored = carry_out(plan)
    where = ""
    if plan.workspace != plan.source:
        where = f" --dir {shlex.quote(os.path.relpath(plan.workspace, notebook_folder()))}"
    words = f"{fork_id} is {plan.session} as it was after step {plan.step}{_call(plan)}. {restored.describe()}"
    words += f" Go on in it with %%agent --session {fork_id}{where}"
    words += "." if plan.finished else f", or %agent resume {fork_id}{where}."
    desk.show(html.note_block("⑂", words, html.BLUE, link=link_to(_notebook(plan.workspace, fork_id))))


def rewind(desk: Desk, step: int, agreed: bool) -> None:
    """Go back to a step: the next ``%%agent`` cell goes on from there, in a session of its own."""
    plan = plan_fork(workspace_of(desk.current), _session_of(desk), step)
    if not _agreed(desk, plan, agreed):
        return
    desk.show_meanwhile(html.note_block("●", f"Going back to step {step} …", html.BLUE))
    _in_engine(
        desk.current.go_on_in(plan.session, plan.workspace)
    )  # its kernel ends first; if the fork fails, it is gone on with
    fork_id, restored = carry_out(plan)
    _in_engine(desk.current.go_on_in(fork_id, plan.workspace))
    words = (
        f"Back at step {step} of {plan.session}{_call(plan)}. {restored.describe()} This is the session {fork_id} now: "
        "the next %%agent cell goes on in it, with the kernel rebuilt"
    )
    words += "." if plan.finished else ", or %agent resume without a further word."
    desk.show(html.note_block("⟲", words, html.BLUE, link=link_to(_notebook(plan.workspace, fork_id))))


def export(
    desk: Desk,
    target: Path | None,
    clean: bool,
    verify: bool,
    here: bool,
    force: bool,
    session_id: str | None,
) -> None:
    """Export the current session, or one that is named."""
    workspace, found = workspace_of(desk.current), session_id or _session_of(desk)
    if here:
        if target or clean or verify or force:
            raise UsageError("--here puts the session's cells into this notebook; it goes with no other option.")
        _export_here(desk, workspace, found)
        return
    if verify and target is not None and target.suffix != ".ipynb":
        raise UsageError(f"--verify runs notebooks; {target.name} would be none.")
    desk.show_meanwhile(html.note_block("●", f"Exporting {found} …", html.BLUE))
    done = export_session(workspace, found, _beside_notebook(target), clean=clean, force=force)
    if verify:
        _verify(desk, done.path, False, done)
        return
    sign, colour = ("✓", html.GREEN) if done.complete else ("⚠", html.AMBER)
    desk.show(html.note_block(sign, " ".join(["Exported.", *done.notes]), colour, link=link_to(done.path)))


def verify_notebook(desk: Desk, path: Path, repair: bool) -> None:
    """Verify a notebook."""
    _verify(desk, notebook_folder() / path.expanduser(), repair, None)


def _export_here(desk: Desk, workspace: Path, session_id: str) -> None:
    """The cells go below the latest cell that worked in the session, where that is known."""
    fold = NotebookFold(session_id)
    for event in read_record(workspace, session_id)[0]:
        fold.apply(event)
    cells = cells_for(fold.notebook(), session_id, workspace, notebook_folder())
    own = session_id == desk.current.id and workspace == desk.current.workspace
    desk.show_meanwhile(html.note_block("●", f"Putting {len(cells)} cells into this notebook …", html.BLUE))
    placed = desk.put_below(cells, session_id, desk.current.cells_of_work if own else [])
    desk.show(placed_block(placed, link_to(_notebook(workspace, session_id))))


def _verify(desk: Desk, path: Path, repair: bool, done: Exported | None) -> None:
    """Verify a notebook, which may have been exported just now, and show the verdict."""
    doing, began = "starting a fresh kernel", time.monotonic()

    def progress(line: str) -> None:
        nonlocal doing
        doing = line

    def draw() -> None:
        took = int(time.monotonic() - began)
        words = f"Verifying {path.name}: {doing}" + (f" · {duration(took)}" if took >= 2 else "")
        desk.show_meanwhile(html.note_block("●", words, html.BLUE))

    verdict = _in_engine(verify(path, Options(repair=repair, progress=progress)), draw)
    desk.show(verdict_block(verdict, done))


def verdict_block(verdict: Verdict, done: Exported | None = None) -> Bundle:
    """The verdict in one line, the report folded below it."""
    _, *lines = verdict.lines()
    sign, colour = _COLOURS.get(verdict.state, ("⚠", html.AMBER))
    headline = f"Exported; {verdict.headline}" if done else verdict.headline[:1].upper() + verdict.headline[1:]
    report = "\n".join([*(done.notes if done else ()), *lines])
    return html.note_block(sign, f"{headline.rstrip('.')}.", colour, report, "report", link=link_to(verdict.path))


def _agreed(desk: Desk, plan: ForkPlan, agreed: bool) -> bool:
    """Whether files may be changed: because none would, because it was said so, or because the person says so now."""
    if agreed or plan.workspace != plan.source or not plan.files.changes_files:
        if told := [*plan.warnings, *plan.files.left_behind()]:
            desk.show(html.lines_block("⚠", told, html.AMBER))
        return True
    lines = [f"Back to step {plan.step} of {plan.session}{_call(plan)}", *plan.warnings]
    desk.show(html.lines_block("⟲", [*lines, *plan.files.describe().splitlines()[1:]], html.AMBER))
    answer = desk.ask("Change these files? [y/N] ")
    if answer is None:
        raise UsageError("Nobody can be asked here: add --yes, or fork --into FOLDER for a copy.")
    if not answer:
        desk.show(html.note_block("○", "Nothing was changed.", html.GREY))
    return answer


def _call(plan: ForkPlan) -> str:
    """The call that the step is, in words."""
    step: Step | None = next((step for step in steps_of(plan.events) if step.number == plan.step), None)
    return f": {step.call.name} {call_title(step.call.name, step.call.arguments)}" if step else ""


def _session_of(desk: Desk) -> str:
    """The current session, else the latest one of the workspace."""
    return desk.current.id or latest_session(workspace_of(desk.current))


def _beside_notebook(path: Path | None) -> Path | None:
    """A path as it is meant in the notebook: from the notebook's folder."""
    return None if path is None else notebook_folder() / path.expanduser()


def _notebook(workspace: Path, session_id: str) -> Path:
    return workspace / FOLDER / f"{session_id}.ipynb"


def _in_engine(coroutine: Coroutine[Any, Any, T], draw: Callable[[], None] = lambda: None) -> T:
    """Run a coroutine in the engine and wait for it, drawing meanwhile; an interrupt cancels it."""
    handle = engine().submit(coroutine)
    try:
        while not handle.wait(TICK):
            draw()
    except KeyboardInterrupt:
        handle.cancel()
        handle.wait(10.0)
        raise
    try:
        return handle.result()
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


RUNNERS: dict[str, Callable[..., None]] = {
    "steps": steps,
    "fork": fork,
    "rewind": rewind,
    "export": export,
    "verify": verify_notebook,
}


def lines_of_help() -> Sequence[tuple[str, str]]:
    """Verb with its arguments, and what it does."""
    lines = [(f"{verb} {form}", words) for verb, (form, words, _) in FORMS.items()]
    here = ("export --here", "the session's cells below the %%agent cell, in JupyterLab 4.4 and Notebook 7.4")
    return [*lines[:-1], here, lines[-1]]
