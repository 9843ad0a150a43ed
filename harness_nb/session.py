"""A session: one conversation, one tool kernel, one record. It owns the lifetimes and puts the loop to work.

The magics and the command line open a session and iterate over ``send``; nothing else runs the loop. Each event is on
disk before the loop goes on, because the loop is a generator and the session writes what it yields before it asks
again.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime

from harness_nb import __version__, loop
from harness_nb import events as ev
from harness_nb.approval import DenyApprover
from harness_nb.budget import add_usage
from harness_nb.cells import Cells
from harness_nb.context import Conversation, Surroundings, system_prompt, words
from harness_nb.errors import HarnessError, KernelError
from harness_nb.gate import Gate
from harness_nb.kernel import Spare, ToolKernel
from harness_nb.models import default_model_spec, resolve_model
from harness_nb.notebook import FORMAT_VERSION, NotebookFold
from harness_nb.outputs import Firewall
from harness_nb.policy import ask_before_dangerous_commands, deny_outside_workspace, deny_read_only
from harness_nb.ports import Approver, Delta, Model, ModelSettings
from harness_nb.pristine import Pristine, put_back_note
from harness_nb.questions import Questions
from harness_nb.settings import Settings
from harness_nb.store import FOLDER, SessionStore, find_session, read_journal
from harness_nb.surroundings import gather
from harness_nb.tools import SETUP_SOURCE
from harness_nb.toolset import STANDARD_TOOLS, Toolset
from harness_nb.types import Status, ToolCall, Usage, text_content
from harness_nb.work import Work

CHECKPOINT_AFTER = (ev.PromptAdded, ev.ModelReplied, ev.CellOutput, ev.ResultAdded, ev.CheckFinished)
CHECKPOINT_SHARE = 0.05
"""Share of the time that writing the notebook may take, except at the end of a prompt's work."""


class Session:
    """One session. Make it with ``Session.open`` and end it with ``aclose``; it belongs to one event loop."""

    def __init__(
        self,
        settings: Settings,
        approver: Approver,
        model: Model,
        kernel: ToolKernel,
        store: SessionStore,
        session_id: str,
    ) -> None:
        self.id = session_id
        self.workspace = settings.directory
        self.notebook_path = store.notebook_path
        self.usage = Usage()
        self.turns = 0
        self.ending: ev.SessionEnded | None = None
        self._settings = settings
        self._approver = approver
        self._questions = kernel.answers = Questions(self._approver_in_force, time.monotonic)
        self._model = model
        self._store = store
        self._conversation = Conversation()
        self._notebook = NotebookFold(session_id)
        self._tools = Toolset(STANDARD_TOOLS, workspace=str(self.workspace))
        self._kernel = kernel
        self._cells = Cells(kernel, self._firewall, time.monotonic, self._put_back, self._questions.working_time)
        self._surroundings: Surroundings | None = None
        self._gate: Gate | None = None
        self._pristine = Pristine(self.workspace, ())
        self._next_checkpoint = 0.0
        self._resumed = False
        self._warnings: list[str] = []
        self._turns_spent, self._spent = 0, Usage()

    @property
    def model_name(self) -> str:
        """The spec of the model in use."""
        return self._model.name

    @classmethod
    async def open(cls, settings: Settings, approver: Approver, spare: Spare | None = None) -> Session:
        """A new session, or the one that ``settings.session`` names, read back from its journal.

        ``spare`` may hold a kernel that was started ahead.

        Raises:
            UsageError: if the model, the key, the kernel or the session is not there; nothing is left behind.
            SessionLockedError: if another process works on that session.
        """
        model = resolve_model(
            settings.model or default_model_spec(os.environ),
            directory=settings.directory,
            base_url=settings.base_url,
            environment=os.environ,
        )
        kernel = ToolKernel(
            name=settings.kernel, directory=settings.directory / FOLDER, setup=SETUP_SOURCE, spare=spare
        )
        session_id = settings.session or new_session_id()
        past: list[ev.Event] = []
        warnings: list[str] = []
        if settings.session:
            past, warnings = read_journal(find_session(settings.directory, settings.session) / "journal.jsonl")
        session = cls(settings, approver, model, kernel, SessionStore(settings.directory, session_id), session_id)
        session._fold_past(past)
        session._warnings = warnings
        return session

    async def use(self, settings: Settings, approver: Approver) -> None:
        """Go on with other settings: another model, other limits or checks, from the next prompt on."""
        if (settings.model, settings.base_url) != (self._settings.model, self._settings.base_url):
            model = resolve_model(
                settings.model or default_model_spec(os.environ),
                directory=settings.directory,
                base_url=settings.base_url,
                environment=os.environ,
            )
            await self._model.aclose()
            self._model = model
        if (settings.check, settings.read_only) != (self._settings.check, self._settings.read_only):
            self._gate = None
        self._settings, self._approver = settings, approver
        self._questions.answers = self._approver_in_force

    async def send(self, prompt: str) -> AsyncGenerator[ev.Event | Delta]:
        """Work on a prompt; yields what happens and ends with ``SessionEnded``.

        When it is cancelled or closed early, the record is completed first: open calls get a result, ``ending`` says
        ``interrupted``.

        Raises:
            StoreError: if the record cannot be written; the work stops there.
        """
        self.ending = None
        self._turns_spent, self._spent = 0, Usage()
        started = time.monotonic()
        try:
            async for event in self._opening(prompt):
                self._conversation.apply(event)
                yield self._record(event)
            async with aclosing(loop.run(self._work(), self._conversation)) as items:
                async for item in items:
                    yield self._record(item) if isinstance(item, ev.EventBase) else item
        except (asyncio.CancelledError, GeneratorExit):
            await self._close_record("interrupted", "stopped by the user", time.monotonic() - started)
            raise
        except KernelError as error:
            yield await self._close_record("kernel_error", str(error), time.monotonic() - started)
        except HarnessError as error:
            await self._close_record("model_error", str(error), time.monotonic() - started)
            raise

    async def aclose(self) -> None:
        """End the kernel and let go of the files."""
        await self._kernel.aclose()
        await self._model.aclose()
        self._store.close()

    async def _opening(self, prompt: str) -> AsyncGenerator[ev.Event]:
        """What comes before the work: once a session the start and the setup cell, then the prompt."""
        if self._surroundings is None:
            await self._kernel.start()
            python, environment = self._kernel.python, self._kernel.environment
            read_only = self._read_only()
            self._surroundings, warnings = await gather(self._settings, python, environment, read_only)
            if self._resumed:
                yield ev.Nudged(reason="session resumed", text=words.resumed(self._cells.names))
            else:
                yield ev.SessionStarted(
                    session_id=self.id,
                    format_version=FORMAT_VERSION,
                    harness_version=__version__,
                    model=self._model.name,
                    workspace=str(self.workspace),
                    kernel=self._kernel.name,
                    options=self._settings.options,
                    environment=self._surroundings.environment,
                )
                yield ev.CellStarted(call_id="setup", name="setup", source=SETUP_SOURCE)
                yield ev.CellFinished(call_id="setup", name="setup", status=Status.OK, execution_count=1)
            for text in [*self._warnings, *warnings]:
                yield ev.Warned(text=text)
        if self._gate is None:
            self._pristine = Pristine(self.workspace, self._read_only())
            self._gate = Gate(self.workspace, self._settings.check, self._pristine, self._kernel.environment)
        yield ev.PromptAdded(prompt=prompt)

    def _work(self) -> Work:
        assert self._surroundings is not None and self._gate is not None
        settings = self._settings
        read_only = self._pristine.patterns
        told = replace(self._surroundings, checks=settings.check, read_only=read_only, limits=settings.limits)
        return Work(
            system=system_prompt(told),
            model=self._model,
            cells=self._cells,
            tools=self._tools,
            rules=(deny_outside_workspace, deny_read_only(read_only), ask_before_dangerous_commands),
            approver=self._approver_in_force,
            gate=self._gate.run,
            clock=time.monotonic,
            limits=settings.limits,
            settings=ModelSettings(
                max_output_tokens=settings.max_output_tokens,
                temperature=settings.temperature,
                reasoning_effort=settings.reasoning_effort,
                cache_key=self.id,
            ),
        )

    @property
    def _approver_in_force(self) -> Approver:
        """Who is asked, for approvals and by tool code."""
        if self._settings.policy == "deny":
            return DenyApprover("the policy of this session is deny")
        return self._approver

    def _read_only(self) -> tuple[str, ...]:
        """The patterns in force: those that were given, or the default where it matches anything."""
        given, default = self._settings.read_only, self._settings.read_only_globs
        return given or (default if Pristine(self.workspace, default).names else ())

    def _put_back(self) -> str:
        return put_back_note(*self._pristine.put_back())

    def _firewall(self, call: ToolCall, plot: bool) -> Firewall:
        sink = self._store.sink(call.call_id)
        return Firewall(call.call_id, call.name, sink=sink, plot=plot, stopwatch=time.perf_counter)

    def _record(self, event: ev.Event) -> ev.Event:
        """Journal, then notebook; in-between states of outputs are only shown."""
        if isinstance(event, ev.CellOutput) and event.transient:
            return event
        stamped = self._store.append(event)
        self._notebook.apply(stamped)
        match stamped:
            case ev.ModelReplied():
                usage = stamped.message.usage or Usage()
                self.turns, self._turns_spent = self.turns + 1, self._turns_spent + 1
                self.usage, self._spent = add_usage(self.usage, usage), add_usage(self._spent, usage)
            case ev.CellFinished():
                self._store.close_outputs()
            case ev.SessionEnded():
                self.ending = stamped
                self._checkpoint(0.0)
            case _:
                pass
        if isinstance(stamped, CHECKPOINT_AFTER):
            self._checkpoint(self._next_checkpoint)
        return stamped

    def _checkpoint(self, not_before: float) -> None:
        """Write the notebook, at a pace that leaves most of the time to the work."""
        started = time.monotonic()
        if started < not_before:
            return
        self._store.checkpoint(self._notebook.notebook())
        self._next_checkpoint = time.monotonic() + (time.monotonic() - started) / CHECKPOINT_SHARE

    async def _close_record(self, reason: str, text: str, elapsed: float) -> ev.Event:
        """Complete the record of work that stopped in the middle, so that the next prompt finds a valid history."""
        if self.ending is not None:
            return self.ending
        async for event in self._cells.end_all():
            self._record(event)
        for call in self._conversation.open_calls:
            result = ev.ResultAdded(
                call_id=call.call_id,
                name=call.name,
                status=Status.INTERRUPTED,
                content=text_content(f"Interrupted: {text}."),
            )
            self._conversation.apply(result)
            self._record(result)
        spent = {"turns": self._turns_spent, "usage": self._spent, "elapsed": elapsed}
        return self._record(ev.SessionEnded.model_validate({"reason": reason, "text": text, **spent}))

    def _fold_past(self, events: list[ev.Event]) -> None:
        """Take up a recorded session where it stopped."""
        self._cells.remember(events)
        for event in events:
            self._conversation.apply(event)
            self._notebook.apply(event)
            if isinstance(event, ev.ModelReplied):
                self.turns += 1
                self.usage = add_usage(self.usage, event.message.usage or Usage())
        self._resumed = any(isinstance(event, ev.SessionStarted) for event in events)
        self._store.continue_after(max((event.seq for event in events), default=0))


def new_session_id() -> str:
    """A name that sorts by time and is its own."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
