"""The agent loop. Read this first.

``run`` is one async generator: it yields deltas for the screen and events for everyone. The session writes each event
to the journal before it asks for the next item, so what an event announces has not happened yet when it is on disk.
The loop knows the ports and the pure layers; it must not import a provider, a kernel library, IPython or the session.

The events of one prompt, in order::

    [context_compacted] model_requested model_replied
      [call_decided* approval_asked* approval_answered*] of all calls, where one has to be asked about
      call_decided cell_started cell_output* cell_finished [context_offloaded] result_added
      ... further calls of the reply, in order
    ... further turns, until
    check_finished* finish_accepted | finish_rejected ...   or   limit_reached
    session_ended
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from harness_nb import events as ev
from harness_nb.budget import Budget
from harness_nb.calls import Calls, result_of
from harness_nb.compacting import Room
from harness_nb.consent import Breaker
from harness_nb.context import Conversation, build, words
from harness_nb.errors import ContextOverflowError, KernelError, ModelError
from harness_nb.outputs.envelope import enveloped
from harness_nb.toolset import FINISH
from harness_nb.types import Message, Status, ToolCall
from harness_nb.work import Item, Work


async def run(work: Work, conversation: Conversation) -> AsyncGenerator[Item]:
    """Work on the last prompt of ``conversation`` until a finish is accepted or a limit is reached.

    Always ends with ``SessionEnded``, unless it is cancelled. Every event is folded into ``conversation`` before it
    is yielded.
    """
    spent = work.spent
    budget = Budget(work.limits, work.clock() - spent.seconds, spent.turns, spent.usage)
    ending = budget.end("interrupted", "", work.clock())
    try:
        async with aclosing(_turns(work, conversation, budget)) as items:
            async for item in items:
                if isinstance(item, ev.SessionEnded):
                    ending = item
                    break
                if isinstance(item, ev.EventBase):
                    conversation.apply(item)
                    budget.apply(item)
                yield item
    except ModelError as error:
        ending = budget.end("model_error", str(error), work.clock())
    except KernelError as error:
        ending = budget.end("kernel_error", str(error), work.clock())
    async for event in work.cells.end_all():
        yield event
    yield ending


async def _turns(work: Work, conversation: Conversation, budget: Budget) -> AsyncGenerator[Item]:
    """One request and its calls a turn."""
    refusals, breaker, room = 0, Breaker(), Room(work, conversation, budget)
    while True:
        room.begin_turn()
        async for event in work.cells.catch_up():
            yield event
        async for event in room.make():
            yield event
        budget.expect(room.expected() if budget.bounded else None)
        if limit := budget.reached(work.clock()):
            break
        if warning := budget.warning():
            yield warning
        budget.turns += 1
        reply = Message(role="assistant")
        async with aclosing(_ask_model(work, conversation, budget.turns, room)) as items:
            async for item in items:
                reply = item.message if isinstance(item, ev.ModelReplied) else reply
                yield item
        finished = False
        breaker.begin_reply()
        async with aclosing(_answer(work, reply, breaker)) as items:
            async for item in items:
                breaker.apply(item)
                finished |= isinstance(item, ev.FinishAccepted)
                refusals += isinstance(item, ev.FinishRejected)
                yield item
        if finished:
            yield budget.end("finished", "", work.clock())
            return
        if refusals >= words.MAX_REFUSALS:
            yield budget.end("rejected", f"the finish was refused {refusals} times", work.clock())
            return
        if breaker.tripped:
            yield budget.end("denied", words.denied_in_a_row(breaker.denied), work.clock())
            return
    yield limit
    yield budget.end("limit", limit.text, work.clock())


async def _ask_model(work: Work, conversation: Conversation, turn: int, room: Room) -> AsyncGenerator[Item]:
    """One request: deltas, then ``ModelReplied``. A conversation that is too long is shortened, and sent again."""
    replied = False
    while not replied:
        messages = build(work.system, conversation)
        yield ev.ModelRequested(turn=turn, model=work.model.name, messages=len(messages))
        started, too_long = work.clock(), None
        try:
            async with aclosing(work.model.stream(messages, work.tools.specs, work.settings)) as items:
                async for item in items:
                    if isinstance(item, Message):
                        replied = True
                        yield ev.ModelReplied(turn=turn, message=item, elapsed=work.clock() - started)
                    else:
                        yield item
        except ContextOverflowError as error:
            too_long = error
        if too_long is not None:
            async for event in room.after_overflow(too_long):
                yield event
        elif not replied:
            raise ModelError(f"{work.model.name} gave no reply.")


async def _answer(work: Work, reply: Message, breaker: Breaker) -> AsyncGenerator[Item]:
    """What follows a reply: its calls in order, or, where there is none, the end of the work."""
    made = [work.tools.localise(call) for call in reply.tool_calls]
    ends = [place for place, call in enumerate(made) if call.name == FINISH and not work.tools.problem(call)]
    end = ends[0] if ends else len(made)
    calls = Calls(work, made[:end], breaker)
    async with aclosing(calls.judge()) as items:
        async for item in items:
            yield item
    for place, call in enumerate(made):
        if place > end:
            yield result_of(call, Status.DENIED, words.BEHIND_FINISH)
            continue
        async with aclosing(_finish(work, call) if place == end else calls.run(place)) as items:
            async for item in items:
                yield item
    if reply.tool_calls:
        return
    if reply.finish_reason == "length":
        yield ev.Nudged(reason="truncated reply", text=words.CUT_OFF)
    elif not reply.text.strip():
        yield ev.FinishRejected(reason="The reply was empty.")
        yield ev.Nudged(reason="empty reply", text=words.EMPTY)
    else:
        async for item in _judge(work, reply.text):
            yield item
            if isinstance(item, ev.FinishRejected):
                yield ev.Nudged(reason="finish refused", text=words.taken_as_finish(item.reason))


async def _finish(work: Work, call: ToolCall) -> AsyncGenerator[Item]:
    """The ``finish`` tool: its result says whether the finish was accepted."""
    async for item in _judge(work, str(call.arguments["summary"])):
        yield item
        if isinstance(item, ev.FinishAccepted):
            yield result_of(call, Status.OK, words.ACCEPTED)
        elif isinstance(item, ev.FinishRejected):
            yield result_of(call, Status.ERROR, item.reason)


async def _judge(work: Work, summary: str) -> AsyncGenerator[Item]:
    """Run the checks; accept the finish if all pass."""
    if running := work.cells.running():
        yield ev.FinishRejected(reason=words.still_running([cell.call.call_id for cell in running]))
        return
    checks = []
    async for check in work.gate():
        yield check
        checks.append(check)
    if all(check.passed for check in checks):
        yield ev.FinishAccepted(summary=summary, checks=len(checks))
    else:
        yield ev.FinishRejected(reason=words.refused(checks, lambda text: enveloped(text, work.tag)))
