"""``%%agent`` and ``%agent``: what ``%load_ext harness_nb`` registers.

IPython calls in here; the work is done by ``ui.run`` in the engine. The task reaches it byte for byte: ``AgentCell``
takes the cell before IPython strips prompts or expands variables, and puts an ``await`` before the call where a kernel
runs the cell, so that interrupts and widgets are handled while it waits.
"""

from __future__ import annotations

import os
import re
import sys
import time
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_cell_magic, magics_class, no_var_expand
from rich.console import Console

from harness_nb.errors import HarnessError, UsageError
from harness_nb.options import parse_options
from harness_nb.settings import Settings
from harness_nb.ui import approvals_verb, audit_verb, models_verb, recorded, verbs
from harness_nb.ui.approve import CellApprover, can_answer
from harness_nb.ui.asks import Asks
from harness_nb.ui.buttons import Buttons
from harness_nb.ui.current import CurrentSession, Task, notebook_folder
from harness_nb.ui.desk import CellDesk, TerminalDesk, show
from harness_nb.ui.engine import engine
from harness_nb.ui.publish import Canvas, KernelPublisher
from harness_nb.ui.run import Display, Run, short
from harness_nb.ui.screen import CellDisplay, Screen
from harness_nb.ui.terminal import TerminalDisplay

_FIRST_LINE = re.compile(r"%%agent(?:[ \t]+(?P<options>.*?))?\s*")
_INSTANCE = "get_ipython().magics_manager.registry['AgentMagics']"


class AgentCell:
    """An input transformer that goes before all others, for cells whose first line begins with ``%%agent``."""

    has_side_effects = True
    """Not to be used by IPython to find out whether the person has finished typing."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell

    def __call__(self, lines: list[str]) -> list[str]:
        """The cell as one call, awaited where that is possible; other cells as they are."""
        first = next((number for number, line in enumerate(lines) if line.strip()), None)
        match = _FIRST_LINE.fullmatch(lines[first]) if first is not None else None
        if first is None or match is None:
            return lines
        task = "".join(lines[first + 1 :]).removesuffix("\n")
        awaited = _kernel(self._shell) is not None and self._shell.autoawait
        call = f"await {_INSTANCE}.work" if awaited else f"{_INSTANCE}.work_blocking"
        return [f"{call}({match['options'] or ''!r}, {task!r})\n"]


@magics_class
class AgentMagics(Magics):
    """The magics of one shell, and the session that its notebook is in."""

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self.current = CurrentSession()
        self.run: Run | None = None
        self.asks = Asks()
        self.more_verbs = [
            *approvals_verb.lines_of_help(),
            (f"{models_verb.VERB} {models_verb.FORM}", models_verb.WORDS),
            (f"{audit_verb.VERB} {audit_verb.FORM}", audit_verb.WORDS),
            *recorded.lines_of_help(),
        ]
        engine().before_close(self.current.aclose)
        engine().submit(self.current.prepare(notebook_folder()))

    async def work(self, options: str, task: str) -> None:
        """What ``%%agent`` is where a cell can be awaited."""
        await self._start(options, task).attend()

    def work_blocking(self, options: str, task: str) -> None:
        """What ``%%agent`` is elsewhere."""
        self._start(options, task).attend_blocking()

    @no_var_expand
    @line_cell_magic
    def agent(self, line: str, cell: str | None = None) -> None:
        """Give a task to the agent: ``%%agent [options]``, the task below it; ``%agent help`` says more."""
        if cell is not None:
            self.work_blocking(line, cell.removesuffix("\n"))
            return
        verb, _, words = line.strip().partition(" ")
        try:
            if verb in recorded.FORMS:
                self._do_recorded(verb, recorded.read_words(verb, words))
            elif verb in approvals_verb.FORMS:
                show(approvals_verb.RUNNERS[verb](self, words))
            elif verb == models_verb.VERB:
                show(models_verb.model(self, **models_verb.read_words(words)))
            elif verb == audit_verb.VERB:
                show(audit_verb.audit(self, words))
            elif (verb or "help") in verbs.VERBS and not words.strip():
                show(getattr(verbs, verb or "help")(self))
            else:
                known = [models_verb.VERB, *approvals_verb.FORMS, audit_verb.VERB, *recorded.FORMS]
                raise UsageError(verbs.unknown(line, known))
        except HarnessError as error:
            raise short(error, f"\x1b[31m{type(error).__name__}\x1b[0m: {error}") from None

    def _do_recorded(self, verb: str, arguments: dict[str, Any]) -> None:
        """A verb about recorded sessions; most do not go together with a task that is being worked on."""
        if self.running and verb not in recorded.ALONGSIDE:
            raise UsageError("A task is being worked on. Wait for it, or stop it with %agent stop.")
        kernel = self._kernel_of_shell()
        desk = CellDesk(self.current, kernel) if kernel is not None else TerminalDesk(self.current)
        try:
            if verb != "resume":
                recorded.RUNNERS[verb](desk, **arguments)
            elif (task := recorded.resume_task(desk, **arguments)) is not None:
                self.run = Run(engine(), self.current, task, *self._edge())
                self.run.attend_blocking()
        except KeyboardInterrupt as error:
            if hasattr(error, "_render_traceback_"):
                raise
            words = f"%agent {verb} was stopped"
            raise short(KeyboardInterrupt(words), f"\x1b[33mKeyboardInterrupt\x1b[0m: {words}") from None
        finally:
            desk.settle()

    @property
    def running(self) -> bool:
        """Whether a task is being worked on."""
        return self.run is not None and self.run.running

    def leave(self) -> None:
        """End the session; called when the extension is unloaded."""
        if self.run is not None:
            self.run.stop()
        engine().submit(self.current.aclose()).wait(10.0)

    def _start(self, line: str, task: str) -> Run:
        try:
            if not task.strip():
                raise UsageError("The task is empty: write it below the %%agent line.")
            if self.running:
                raise UsageError("A task is being worked on. Wait for it, or stop it with %agent stop.")
            given = parse_options(line)
            options = self.current.options(given)
            settings = Settings.load(notebook_folder(), options)
        except HarnessError as error:
            raise short(error, f"\x1b[31m{type(error).__name__}\x1b[0m: {error}") from None
        shown, approver = self._edge()
        asked = Task(task, settings, given, options, self._cell_id())
        self.run = Run(engine(), self.current, asked, shown, approver)
        return self.run

    def _edge(self) -> tuple[Display, CellApprover]:
        """Where this run is shown, and who answers its questions."""
        kernel = self._kernel_of_shell()
        if kernel is None:
            terminal = TerminalDisplay(Console(highlight=False))
            return terminal, CellApprover(sys.stdin.isatty(), terminal, self.asks)
        request = kernel.get_parent("shell")
        canvas = Canvas(KernelPublisher(kernel, request))
        cell = CellDisplay(Screen(time.monotonic), canvas, notebook_folder())
        buttons = Buttons(kernel, request, self.asks)
        return cell, CellApprover(can_answer(request, os.environ), cell, self.asks, buttons)

    def _cell_id(self) -> str:
        """The id of the cell that runs, where the front-end says it."""
        kernel = self._kernel_of_shell()
        metadata = kernel.get_parent("shell").get("metadata", {}) if kernel is not None else {}
        return str(metadata.get("cellId") or "")

    def _kernel_of_shell(self) -> Any:
        return None if self.shell is None else _kernel(self.shell)


def register(shell: InteractiveShell) -> None:
    """Add the magics to a shell."""
    shell.register_magics(AgentMagics(shell))
    shell.input_transformers_cleanup.insert(0, AgentCell(shell))


def unregister(shell: InteractiveShell) -> None:
    """Take the magics out of a shell again, and end its session."""
    for transform in [found for found in shell.input_transformers_cleanup if isinstance(found, AgentCell)]:
        shell.input_transformers_cleanup.remove(transform)
    magics = shell.magics_manager.registry.pop("AgentMagics", None)
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop("agent", None)
    if isinstance(magics, AgentMagics):
        magics.leave()


def _kernel(shell: InteractiveShell) -> Any:
    """The kernel that the shell belongs to; ``None`` in a terminal."""
    return getattr(shell, "kernel", None)
