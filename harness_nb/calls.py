"""The calls of one reply: are they valid and allowed, who has to be asked, and then each is run as a cell.

All calls of a reply are judged first, and all that have to be asked about are asked about at once, before the first
runs; then they are run in order. The loop uses ``Calls``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from harness_nb import events as ev
from harness_nb.consent import INVALID, MAX_DENIALS, Breaker
from harness_nb.context import words
from harness_nb.judging import judged
from harness_nb.policy import decide, kind_of
from harness_nb.toolset import FILE_TIMEOUT, REBUILD, WAIT, WEB_FETCH
from harness_nb.types import Approval, Decision, Status, TextPart, ToolCall, Usage, text_content
from harness_nb.watch import pattern_problem
from harness_nb.work import Item, Work


class JudgedCall:
    """A call, the cell that it renders to, and what was decided about it."""

    def __init__(self, call: ToolCall, source: str, decision: Decision, usage: Usage) -> None:
        self.call = call
        self.source = source
        self.decision = decision
        self.approval: Approval | None = None
        self._usage = usage
        self._told = False

    def tell(self) -> list[ev.Event]:
        """The event that says what was decided, once."""
        if self._told:
            return []
        self._told = True
        return [self.decided(self.call, self.source, self.decision, self._usage)]

    def decided(self, call: ToolCall, source: str, decision: Decision, usage: Usage) -> ev.CallDecided:
        """The event of a decision on this call, or on what a person has made of it."""
        return ev.CallDecided(
            call_id=call.call_id, name=call.name, call=call, source=source, decision=decision, usage=usage
        )


class Calls:
    """The calls of one reply that are to be run, in order."""

    def __init__(self, work: Work, calls: Sequence[ToolCall], breaker: Breaker) -> None:
        self._work = work
        self._calls = calls
        self._breaker = breaker
        self._judged: list[JudgedCall] = []

    async def judge(self) -> AsyncGenerator[Item]:
        """Judge all of them; ask about those that have to be asked about, all at once, and wait for the answers."""
        for call in self._calls:
            self._judged.append(await judge_call(self._work, call))
        asking = [each for each in self._judged if each.decision.verdict == "ask"]
        if not asking:
            return
        for each in self._judged[: self._judged.index(asking[-1]) + 1]:
            for event in each.tell():
                yield event
        for each in asking:
            yield ev.ApprovalAsked(call_id=each.call.call_id, name=each.call.name, decision=each.decision)
        async with aclosing(self._answers(asking)) as answers:
            async for event in answers:
                yield event

    async def _answers(self, asking: Sequence[JudgedCall]) -> AsyncGenerator[ev.Event]:
        """The answers as they come. Who allows a kind has answered for all that wait and are of that kind."""
        ask = self._work.approver.ask
        tasks = {asyncio.ensure_future(ask(each.call, each.source, each.decision)): each for each in asking}
        try:
            while waiting := [task for task, each in tasks.items() if each.approval is None]:
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for task in [task for task in waiting if task.done() and tasks[task].approval is None]:
                    each = tasks[task]
                    each.approval = task.result()
                    alike = _alike(each, [tasks[other] for other in waiting])
                    for other in [each, *alike]:
                        assert other.approval is not None
                        yield ev.ApprovalAnswered(
                            call_id=other.call.call_id, name=other.call.name, approval=other.approval
                        )
        finally:
            for task in tasks:
                task.cancel()

    async def run(self, number: int) -> AsyncGenerator[Item]:
        """Run one of them, or say why not."""
        each = self._judged[number]
        for event in each.tell():
            yield event
        call, source, decision, approval = each.call, each.source, each.decision, each.approval
        if decision.policy == INVALID:
            yield result_of(call, Status.ERROR, decision.reason)
            return
        refusal = "" if decision.verdict == "allow" else decision.reason
        note = ""
        if approval is not None:
            refusal = "" if approval.approved else approval.reason or decision.reason
            if approval.approved and approval.edited is not None:
                call, source, changed = judge_edit(self._work, call, approval.edited)
                yield each.decided(call, source, changed, Usage())
                refusal = changed.reason if changed.verdict == "deny" else ""
                note = words.changed_by_person(call)
        if refusal:
            last = self._breaker.next_stops
            text = note + words.blocked(refusal) + (words.stopped_by_denials(MAX_DENIALS) if last else "")
            yield result_of(call, Status.DENIED, text)
            return
        async with aclosing(_run(self._work, call, source)) as items:
            async for item in items:
                if note and isinstance(item, ev.ResultAdded):
                    item = item.model_copy(update={"content": (TextPart(text=note), *item.content)})
                yield item


async def judge_call(work: Work, call: ToolCall) -> JudgedCall:
    """What rules, earlier approvals and the classifier say of a call."""
    if problem := work.tools.problem(call):
        return JudgedCall(call, "", Decision(verdict="deny", reason=problem, policy=INVALID), Usage())
    source = work.tools.render(call)
    by_rules = decide(work.rules, call, source)
    if honoured := work.grants.honour(call, source, by_rules):
        return JudgedCall(call, source, honoured, Usage())
    decision, usage = await judged(work, call, source, by_rules)
    return JudgedCall(call, source, work.grants.lift(call, source, decision), usage)


def judge_edit(work: Work, call: ToolCall, edited: ToolCall) -> tuple[ToolCall, str, Decision]:
    """The call that a person has made of another, its source, and what the rules say: a denial stays one."""
    made = work.tools.localise(ToolCall(call_id=call.call_id, name=call.name, arguments=edited.arguments))
    if problem := work.tools.problem(made):
        return made, "", Decision(verdict="deny", reason=f"changed by the person: {problem}", policy="edited")
    source = work.tools.render(made)
    decision = decide(work.rules, made, source)
    if decision.verdict != "deny":
        decision = Decision(verdict="allow", reason="changed and allowed by the person", policy="edited")
    return made, source, decision


def _alike(answered: JudgedCall, others: Sequence[JudgedCall]) -> list[JudgedCall]:
    """The calls that are answered with this one, because their kind was allowed."""
    approval = answered.approval
    if approval is None or not approval.approved or approval.scope != "kind":
        return []
    kind = kind_of(approval.edited or answered.call, answered.source)
    alike = []
    for other in others:
        theirs = kind_of(other.call, other.source)
        if other.approval is None and theirs.tool == kind.tool and set(theirs.keys) <= set(kind.keys):
            other.approval = Approval(approved=True, by=approval.by, reason=f"allowed with others: {kind.words}")
            alike.append(other)
    return alike


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
    elif call.name == WEB_FETCH and work.fetch is not None:
        events = work.cells.bring(call, work.fetch(arguments["url"]), images)
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
