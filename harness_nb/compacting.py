"""What is done when a conversation does not fit into the model's context window: it is shortened, and the turn goes on.

The loop keeps a ``Room`` a prompt. It shortens ahead of time where the window is known and the estimate of the next
request does not fit, and after the model's own complaint; at most three times a turn. What stands for the messages that
went is written by the small model, else by the model itself, and where neither can, made of the messages by rules.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from harness_nb import events as ev
from harness_nb.budget import Budget
from harness_nb.context import Conversation, build, words
from harness_nb.context.compaction import (
    CHARS_PER_TOKEN,
    LEVELS,
    SYSTEM,
    Compaction,
    Kept,
    plan_compaction,
    window_in,
)
from harness_nb.context.names import list_names
from harness_nb.context.size import count_message, count_tool
from harness_nb.errors import ContextOverflowError, ModelError
from harness_nb.ports import Foreseeable, Model, ModelSettings
from harness_nb.types import Message, Usage, text_message
from harness_nb.work import Work

UNKNOWN_WINDOW = 32_000
"""Tokens that a model is trusted with for a summary where its window is not known."""

READ_SHARE = 0.5
"""Of the window: how much of it the transcript may have that is to be summarised."""

MOST_READ = 120_000
"""Tokens of a transcript at most; more would cost more than it tells."""

PLAUSIBLE = (0.3, 1.5)
"""A window that a complaint names is believed if it is so many times the estimate of the request that was too long."""


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary, and who made it: ``model`` is empty where none was asked. ``elapsed`` is in seconds."""

    text: str
    model: str = ""
    usage: Usage = Usage()  # noqa: RUF009 - frozen
    elapsed: float = 0.0


class Room:
    """How much of a conversation fits. ``window`` is the context window in tokens, ``None`` while it is not known."""

    def __init__(self, work: Work, conversation: Conversation, budget: Budget) -> None:
        self.window = work.window or (work.model.context_window if isinstance(work.model, Foreseeable) else None)
        self._work = work
        self._conversation = conversation
        self._budget = budget
        self._level = self._times = 0
        self._ahead = True

    def begin_turn(self) -> None:
        """Another turn, with all tries again."""
        self._level = self._times = 0
        self._budget.expect(None)

    def expected(self) -> Usage | None:
        """What the next request will take, by the model's own estimate."""
        work = self._work
        if not isinstance(work.model, Foreseeable):
            return None
        return work.model.estimate(build(work.system, self._conversation), work.tools.specs, work.settings)

    async def make(self) -> AsyncGenerator[ev.Event]:
        """Shorten the conversation ahead of time, if the next request would not fit.

        What does not fit by the estimate when all was tried is sent all the same, and no more is tried ahead of time:
        the model has the last word.
        """
        while self._ahead and not self._budget.reached(self._work.clock()) and self._too_long():
            done = False
            async for event in self._shorten("the next request would not fit into the context window"):
                done |= isinstance(event, ev.ContextCompacted)
                yield event
            self._ahead = done

    async def after_overflow(self, error: ContextOverflowError) -> AsyncGenerator[ev.Event]:
        """Shorten the conversation after the model has complained of its length.

        Raises:
            ContextOverflowError: if that cannot be done any further.
        """
        self._learn(str(error))
        done = False
        async for event in self._shorten("the model said that the conversation is too long"):
            done |= isinstance(event, ev.ContextCompacted)
            yield event
        if not done:
            text = f"{error} {words.compacted(self._times)}"
            raise ContextOverflowError(text, code=error.code, status=error.status) from error

    def _too_long(self) -> bool:
        if self.window is None or (expected := self.expected()) is None:
            return False
        reply = max(expected.output_tokens or 0, self._work.settings.max_output_tokens or 0)
        return (expected.input_tokens or 0) + reply > self.window

    def _learn(self, complaint: str) -> None:
        """The window is what the complaint says, where that can be."""
        named, size = window_in(complaint), self._size()
        least, most = PLAUSIBLE
        if named is not None and least * size <= named <= most * size:
            self.window = named

    def _size(self) -> int:
        """Tokens of the next request, by the model's estimate or by ours, whichever is more."""
        expected = self.expected() or Usage()
        messages = build(self._work.system, self._conversation)
        guess = sum(map(count_message, messages)) + sum(map(count_tool, self._work.tools.specs))
        return max(expected.input_tokens or 0, guess)

    async def _shorten(self, reason: str) -> AsyncGenerator[ev.Event]:
        """One try, at the next level that makes room; nothing where none is left."""
        plan = None
        while plan is None and self._level < LEVELS:
            self._level += 1
            size = self._size()
            plan = plan_compaction(self._conversation, self._level, min(self.window or size, size))
        if plan is None:
            return
        summary = Summary(words.without_summary(plan.transcript(2000 * (LEVELS + 1 - plan.level))))
        async for item in self._summaries(plan):
            if isinstance(item, Summary):
                summary = item
            else:
                yield item
        self._times += 1
        yield ev.ContextCompacted(
            summary=plan.text(summary.text, self._kept()),
            dropped=plan.dropped,
            reason=reason,
            model=summary.model,
            usage=summary.usage,
            elapsed=summary.elapsed,
        )

    async def _summaries(self, plan: Compaction) -> AsyncGenerator[ev.Warned | Summary]:
        """The summary of the first model that gives one, and a warning for each that does not."""
        work = self._work
        for model in filter(None, (work.small, work.model)):
            own = model is work.model
            settings = replace(work.settings, cache_key=None, web_search=False) if own else ModelSettings()
            try:
                summary = await self._ask(model, settings, plan)
            except ModelError as error:
                yield ev.Warned(text=f"{model.name} could not summarise the conversation: {error}")
                continue
            if summary is not None:
                yield summary
                return

    async def _ask(self, model: Model, settings: ModelSettings, plan: Compaction) -> Summary | None:
        """A model's summary; ``None`` where the limits of the work leave no room for it, or it says nothing.

        Raises:
            ModelError: if it cannot answer.
        """
        if model is self._work.model:
            window = min(self.window or plan.space, plan.space)
        else:
            window = (model.context_window if isinstance(model, Foreseeable) else None) or UNKNOWN_WINDOW
        limit = round(min(READ_SHARE * window, MOST_READ) * CHARS_PER_TOKEN)
        for attempt in range(LEVELS):
            messages = [text_message("system", SYSTEM), text_message("user", plan.request(limit >> attempt))]
            if isinstance(model, Foreseeable) and not self._budget.allows(model.estimate(messages, (), settings)):
                return None
            started = self._work.clock()
            try:
                reply = await last_message(model, messages, settings)
            except ContextOverflowError:
                if attempt == LEVELS - 1:
                    raise
                continue
            usage, elapsed = reply.usage or Usage(), self._work.clock() - started
            text = reply.text.strip() or words.without_summary(plan.transcript(2000))
            return Summary(text, model.name, usage, elapsed)
        return None

    def _kept(self) -> Kept:
        cells = self._work.cells
        running = [f"{cell.call.call_id} ({cell.call.name})" for cell in cells.running()]
        return Kept(list_names(cells.names), running)


async def last_message(model: Model, messages: Sequence[Message], settings: ModelSettings) -> Message:
    """The whole reply to one request without tools, of which nobody sees the pieces."""
    reply = Message(role="assistant")
    async with aclosing(model.stream(messages, (), settings)) as items:
        async for item in items:
            reply = item if isinstance(item, Message) else reply
    return reply
