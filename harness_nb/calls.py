"""One tool call: is it valid, is it allowed, and then run it as a cell. The loop uses ``run_call``."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from harness_nb import events as ev
from harness_nb.context import words
from harness_nb.policy import decide
from harness_nb.toolset import FILE_TIMEOUT, INVALID, REBUILD, WAIT
from harness_nb.types import Decision, Status, ToolCall, text_content
from harness_nb.watch import pattern_problem
from harness_nb.work import Item, Work


async def run_call(work: Work, call: ToolCall) -> AsyncGenerator[Item]:
    """One tool call: judge it, run it as a cell, give back what came of it."""
    if problem := work.tools.problem(call):
        decision = Decision(verdict="deny", reason=problem, policy=INVALID)
        yield ev.CallDecided(call_id=call.call_id, name=call.name, call=call, source="", decision=decision)
        yield result_of(call, Status.ERROR, problem)
        return
    source = work.tools.render(call)
    decision = decide(work.rules, call, source)
    yield ev.CallDecided(call_id=call.call_id, name=call.name, call=call, source=source, decision=decision)
    allowed, reason = decision.verdict == "allow", decision.reason
    if decision.verdict == "ask":
        yield ev.ApprovalAsked(call_id=call.call_id, name=call.name, decision=decision)
        approval = await work.approver.ask(call, source, decision)
        yield ev.ApprovalAnswered(call_id=call.call_id, name=call.name, approval=approval)
        allowed, reason = approval.approved, approval.reason or decision.reason
    if allowed:
        async with aclosing(_run(work, call, source)) as items:
            async for item in items:
                yield item
    else:
        yield result_of(call, Status.DENIED, words.blocked(reason))


async def _run(work: Work, call: ToolCall, source: str) -> AsyncGenerator[ev.Event]:
    """A call that may run: as a cell, or, for ``wait``, by looking at one that runs already."""
    arguments, images = work.tools.arguments(call), work.model.accepts_images
    if call.name == WAIT:
        cell = work.cells.find(arguments["call"])
        problem = (
            pattern_problem(arguments["until"])
            if cell
            else words.nothing_to_wait_for(arguments["call"], [each.call.call_id for each in work.cells.running()])
        )
    else:
        cell, problem = None, work.cells.obstacle(call)
    if problem:
        yield result_of(call, Status.ERROR, problem)
        return
    if call.name == REBUILD:
        events = work.cells.rebuild(call)
    elif cell is not None:
        seconds, until, stop = arguments["seconds"], arguments["until"], arguments["stop"]
        events = work.cells.wait(call, cell, seconds=seconds, until=until, stop=stop, images=images)
    else:
        keep, timeout = "timeout" in arguments, arguments.get("timeout", FILE_TIMEOUT)
        events = work.cells.run(call, source, timeout=timeout, keep=keep, images=images)
    async with aclosing(events) as items:
        async for item in items:
            yield item


def result_of(call: ToolCall, status: Status, text: str) -> ev.ResultAdded:
    """The result of a call of which nothing was run."""
    return ev.ResultAdded(call_id=call.call_id, name=call.name, status=status, content=text_content(text))
