"""A session: one conversation, one tool kernel, one record. It owns the lifetimes and puts the loop to work.

The magics and the command line open a session and iterate over ``send`` or ``resume``; nothing else runs the loop. Each
event is on disk before the loop goes on, because the loop is a generator and the session records what it yields before
it asks again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any

from harness_nb import events as ev
from harness_nb import loop, past, safeguards
from harness_nb.budget import add_usage
from harness_nb.calls import result_of
from harness_nb.cells import MAIN, Cells
from harness_nb.context import Conversation, words
from harness_nb.errors import HarnessError, KernelError, UsageError
from harness_nb.files import files_now
from harness_nb.kernel import Spare
from harness_nb.model_choice import Models
from harness_nb.opening import starting_events, switching_events
from harness_nb.outputs import Firewall
from harness_nb.ports import Approver, Delta, Kernel, Model, Played
from harness_nb.questions import Questions
from harness_nb.record import Record, take_up
from harness_nb.recordings import REPLAY, Chain, Recording
from harness_nb.replay_ground import ReplayGround
from harness_nb.replaying import Difference, Playing
from harness_nb.settings import Settings
from harness_nb.store import SessionStore, find_session, new_session_id
from harness_nb.toolset import Toolset, tools_for
from harness_nb.types import Status, ToolCall, Usage
from harness_nb.work import Work
from harness_nb.workplace import Workplace


class Session:
    """One session. Make it with ``Session.open`` and end it with ``aclose``; it belongs to one event loop.

    ``events`` are those of an earlier process, which it goes on from, and ``warnings`` what was wrong with them.
    """

    def __init__(
        self,
        settings: Settings,
        approver: Approver,
        models: Models,
        kernel: Kernel,
        store: SessionStore,
        session_id: str,
        events: list[ev.Event] | None = None,
        warnings: list[str] | None = None,
        ground: ReplayGround | None = None,
    ) -> None:
        self.id = session_id
        self.workspace = settings.directory
        self.notebook_path = store.notebook_path
        self._settings = settings
        self._approver, self._keeper = approver, safeguards.keeper_for(settings, events or [])
        self._questions = kernel.answers = Questions(self._approver_in_force, time.monotonic)
        self._models = models
        self._ground = ground
        self._playing: Playing | None = None
        self._past = events or []
        self._warnings = [*(warnings or []), *safeguards.grant_warnings(settings)]
        self._record = Record(store, session_id, self._past)
        self._chain = Chain(self._past)
        self._conversation = Conversation(self._past)
        self.grants = safeguards.grants_of(self._past)
        self.kernel = kernel
        self._place = Workplace(settings, kernel, store.folder, self._keeper.masker.holds_known)
        self._cells = Cells(kernel, self._firewall, time.monotonic, self._place.inspect, self._questions.working_time)
        self._cells.masker = self._keeper.masker
        self._cells.remember(self._past)
        self._ended = False
        self._opened = False
        self._prompted = any(isinstance(event, ev.PromptAdded) for event in self._past)
        self._turns_spent, self._spent = 0, Usage()

    @property
    def model_name(self) -> str:
        """The spec of the model in use; ``replay:ID`` while no model has been needed."""
        if self._models.main is not None:
            return self._models.main.name
        return f"{REPLAY}{self._ground.base}" if self._ground else ""

    @property
    def played_from(self) -> str:
        """The session that all work of this one was played from; empty where a model has worked."""
        return self._ground.base if self._ground else ""

    @property
    def differences(self) -> list[Difference]:
        """How the last prompt that was played came out differently than recorded."""
        return self._playing.differences if self._playing else []

    def fingerprint_of(self, prompt: str, options: Mapping[str, Any]) -> str:
        """The fingerprint that a prompt with these options would have if it came next."""
        return self._chain.next(prompt, options)

    @property
    def usage(self) -> Usage:
        """What the whole session has used."""
        return self._record.usage

    @property
    def turns(self) -> int:
        """The replies of the whole session."""
        return self._record.turns

    @property
    def ending(self) -> ev.SessionEnded | None:
        """How the work on the last prompt ended; ``None`` while it has not."""
        return self._record.ending

    @classmethod
    async def open(
        cls,
        settings: Settings,
        approver: Approver,
        spare: Spare | None = None,
        *,
        model: Model | None = None,
        kernel: Kernel | None = None,
        recording: Recording | None = None,
    ) -> Session:
        """A new session, or the one that ``settings.session`` names, read back from its record.

        ``spare`` may hold a kernel that was started ahead. ``model`` and ``kernel`` take the place of those that the
        settings name; the session closes them. For a ``recording`` that is to be played first, it is a session of its
        own, and no model is needed.

        Raises:
            UsageError: if the model, the key, the kernel or the session is not there; nothing is left behind.
            SessionLockedError: if another process works on that session.
        """
        if recording is not None:
            return await cls._open_replay(settings, approver, spare, recording)
        models = Models(settings, model)
        models.ready()
        kernel = kernel or safeguards.tool_kernel_for(settings, spare)
        session_id = settings.session or new_session_id()
        if settings.session:
            find_session(settings.directory, settings.session)
        store = SessionStore(settings.directory, session_id)
        try:
            events, warnings = take_up(store, settings.directory, session_id) if settings.session else ([], [])
            return cls(settings, approver, models, kernel, store, session_id, events, warnings)
        except BaseException:
            store.close()
            raise

    @classmethod
    async def _open_replay(
        cls, settings: Settings, approver: Approver, spare: Spare | None, recording: Recording
    ) -> Session:
        """A session in which a recording is played; the model is looked for when one is needed."""
        ground = await asyncio.to_thread(ReplayGround.make, settings.directory, recording)
        kernel = safeguards.tool_kernel_for(settings, spare)
        store = SessionStore(settings.directory, ground.session)
        store.rewrite(ground.events)
        models = Models(settings)
        return cls(settings, approver, models, kernel, store, ground.session, ground.events, ground=ground)

    async def use(self, settings: Settings, approver: Approver, recording: Recording | None = None) -> None:
        """Go on with other settings from the next prompt on; for a ``recording`` to be played next, no model is needed.

        Raises:
            UsageError: if the model or its key is not there; nothing has changed then.
        """
        safeguards.check_grants(settings, self._settings)
        await self._models.use(settings, needed=recording is None)
        await safeguards.confine_anew(self.kernel, settings, self._settings)
        self._settings, self._approver = settings, approver
        self._place.use(settings)
        self._questions.answers = self._approver_in_force

    async def send(
        self, prompt: str, options: Mapping[str, Any] | None = None, recording: Recording | None = None
    ) -> AsyncGenerator[ev.Event | Delta]:
        """Work on a prompt; yields what happens and ends with ``SessionEnded``.

        ``options`` are those that were given with the prompt; they are part of its fingerprint. A ``recording`` is
        played instead of asking a model; that is for sessions that were opened for one.

        When it is cancelled or closed early, the record is completed first: open calls get a result, ``ending`` says
        ``interrupted``.

        Raises:
            StoreError: if the record cannot be written; the work stops there.
        """
        if recording is None:
            self._models.ready()
            self._ground = None
        self._playing = Playing(recording, self._approver_in_force) if recording else None
        mark = recording.fingerprint if recording else self._chain.next(prompt, options or {})
        async with aclosing(self._work_on(self._opening(words.CONTINUED, prompt, mark), past.Spent())) as items:
            async for item in items:
                yield item

    async def resume(self) -> AsyncGenerator[ev.Event | Delta]:
        """Go on with the last prompt where its work stopped: by a crash, an interrupt, a failure or a limit.

        What was running then is recorded as ``unknown`` and is not run again by itself. Yields and raises as ``send``.

        Raises:
            UsageError: if the work on the last prompt is finished, or there has been none.
        """
        events = self._here() if self._opened else self._past
        if problem := past.nothing_to_resume(events, self.id):
            raise UsageError(problem)
        closing = past.closing_events(events)
        done = bool(closing) and isinstance(closing[-1], ev.SessionEnded)
        spent = past.spent_on_last_prompt(events) if past.work_is_open(events) else past.Spent()
        model, self._ground, self._playing = self._models.ready(), None, None
        for played in (model, self._models.small):
            if isinstance(played, Played) and events is self._past:
                played.skip(past.replies_since_opened(self._past, played.name))
        opening = _each(closing) if done else self._opening(words.GOING_ON, None)
        async with aclosing(self._work_on(opening, spent, only_opening=done)) as items:
            async for item in items:
                yield item

    def note(self, event: ev.Event) -> None:
        """Record something that happened between two prompts; in the loop of the session."""
        self._conversation.apply(self._add(event))

    async def aclose(self) -> list[str]:
        """End the kernel and let go of the files; what a person should know of the last save of the notebook."""
        await self.kernel.aclose()
        await self._models.aclose()
        self._record.close()
        return self._record.warnings()

    async def _work_on(
        self, opening: AsyncIterator[ev.Event], spent: past.Spent, only_opening: bool = False
    ) -> AsyncGenerator[ev.Event | Delta]:
        """Record the opening, then run the loop; complete the record however it ends."""
        self._ended = False
        self._turns_spent, self._spent = spent.turns, spent.usage
        started = time.monotonic() - spent.seconds
        try:
            async for event in opening:
                self._conversation.apply(event)
                yield self._add(event)
            if only_opening:
                return
            follow = self._playing.follow if self._playing else None
            async with aclosing(self._keeper.told(loop.run(self._work(spent), self._conversation), follow)) as items:
                async for told in items:
                    yield self._add(told) if isinstance(told, ev.EventBase) else told
                    if self._playing and self._playing.stopped_before(told):
                        async for event in self._cells.end_all():
                            yield self._add(event)
                    if isinstance(told, ev.ResultAdded):
                        for text in [*self._place.warnings(), *self._record.warnings()]:
                            yield self._add(ev.Warned(text=text))
            for text in self._record.warnings():  # of the save at the end
                yield self._add(ev.Warned(text=text))
        except (asyncio.CancelledError, GeneratorExit):
            await self._close_record("interrupted", "stopped by the user", time.monotonic() - started)
            raise
        except KernelError as error:
            yield await self._close_record("kernel_error", str(error), time.monotonic() - started)
        except HarnessError as error:
            await self._close_record("model_error", str(error), time.monotonic() - started)
            raise

    async def _opening(self, reason: str, prompt: str | None, mark: str = "") -> AsyncGenerator[ev.Event]:
        """What comes before the work: once a process the start of the session, or the word that it goes on."""
        put_back: list[str] = []
        if self._playing is not None and self._ground is not None:
            put_back = await asyncio.to_thread(self._ground.put_files_back, self._playing.recording)
        first = not self._opened
        if not first and prompt is None:
            yield ev.Nudged(reason=reason, text=words.GO_ON)
        if first:
            await self.kernel.start()
            warnings = [*self._warnings, *await self._place.gather()]
            async for event in self._going_on(reason) if self._past else _each(self._starting()):
                yield event
            self._opened = True
            for text in warnings:
                yield ev.Warned(text=text)
        recorded, unknown = (files_now(self._past), past.unknown_cells(self._past)) if first else (None, [])
        async for event in self._place.prepare(recorded, unknown):
            yield event
        for event in () if self._playing else switching_events(self._conversation, self.model_name, self._settings):
            yield event
        if prompt is not None:
            yield ev.PromptAdded(prompt=prompt, options=self._settings.options, fingerprint=mark)
        for text in put_back:
            yield ev.Warned(text=text)

    def _starting(self) -> list[ev.Event]:
        """The first events of a session."""
        return starting_events(
            self.id,
            self._settings,
            model=self.model_name,
            kernel=self.kernel.name,
            environment=self._place.environment | self._models.facts,
            origin=self._ground.origin if self._ground else {},
            data_tag=self._keeper.tag,
        )

    async def _going_on(self, reason: str) -> AsyncGenerator[ev.Event]:
        """The first events of a session that is continued: what completes its record, and a word to the model.

        A fork that has not been worked on yet gets its kernel back first.
        """
        for event in past.closing_events(self._past):
            yield event
        text = words.resumed(self._cells.names, [cell.call_id for cell in past.unknown_cells(self._past)])
        if past.is_fresh_fork(self._past):
            done = past.steps_of(self._past)
            steps = [step for step in done if step.call.name == MAIN and step.status is Status.OK]
            differences = await self._cells.retake(steps)
            text = words.rebuilt_for_fork(len(done), len(steps), differences, self._cells.names)
            for said in differences:
                yield ev.Warned(text=said)
        yield ev.Nudged(reason=reason, text=text)

    def _here(self) -> list[ev.Event]:
        """What ``resume`` has to know of work that stopped in this process, where nothing is left open."""
        return [ev.PromptAdded(prompt=""), *([self.ending] if self.ending else [])] if self._prompted else []

    def _work(self, spent: past.Spent | None = None) -> Work:
        settings, playing = self._settings, self._playing
        model = playing.model if playing else self._models.main
        assert model is not None
        return Work(
            system=self._keeper.masker.mask(self._place.system_prompt()),
            model=model,
            cells=self._cells,
            tools=Toolset(tools_for(settings.web), workspace=str(self.workspace)),
            fetch=safeguards.fetch_for(settings, playing),
            rules=safeguards.rules_for(settings, self._place, playing, self._conversation),
            approver=playing.approver if playing and settings.policy != "deny" else self._approver_in_force,
            gate=lambda: self._keeper.checks(self._place.gate.run()),
            clock=time.monotonic,
            limits=playing.limits if playing else settings.limits,
            settings=settings.for_model(self.id),
            spent=spent or past.Spent(),
            small=None if playing else self._models.small,
            window=settings.context_window,
            tag=self._keeper.tag,
            judge=None if playing else self._keeper.judge(self._models.judge),
            thresholds=self._models.thresholds,
            conversation=self._conversation,
            grants=safeguards.under(settings, self.grants, self.kernel),
        )

    @property
    def _approver_in_force(self) -> Approver:
        """Who is asked, for approvals and by tool code."""
        return safeguards.approver_for(self._settings, self._approver, self._keeper)

    def _firewall(self, call: ToolCall, plot: bool) -> Firewall:
        return self._keeper.firewall(call, self._record.store.sink(call.call_id), plot)

    def _add(self, event: ev.Event) -> ev.Event:
        """Record an event; count what this prompt has taken."""
        stamped = self._record.add(self._keeper.event(event))
        self._chain.apply(stamped)
        self.grants.apply(event)
        if self._ground is not None:
            self._ground.apply(stamped)
        if (usage := ev.usage_of(stamped)) is not None:
            self._turns_spent += isinstance(stamped, ev.ModelReplied)
            self._spent = add_usage(self._spent, usage)
        self._prompted |= isinstance(stamped, ev.PromptAdded)
        self._ended |= isinstance(stamped, ev.SessionEnded)
        return stamped

    async def _close_record(self, reason: str, text: str, elapsed: float) -> ev.Event:
        """Complete the record of work that stopped in the middle, so that the next prompt finds a valid history."""
        if self._ended and self.ending is not None:
            return self.ending
        async for event in self._cells.end_all():
            self._add(event)
        for call in self._conversation.open_calls:
            result = result_of(call, Status.INTERRUPTED, f"Interrupted: {text}.")
            self._conversation.apply(result)
            self._add(result)
        spent = {"turns": self._turns_spent, "usage": self._spent, "elapsed": elapsed}
        return self._add(ev.SessionEnded.model_validate({"reason": reason, "text": text, **spent}))


async def _each(events: list[ev.Event]) -> AsyncGenerator[ev.Event]:
    for event in events:
        yield event
