"""Asking about calls: together, before the first runs; what an approval holds for; edits; three denials in a row."""

from __future__ import annotations

import asyncio

from test_loop import calls, says, work_on

from harness_nb import events as ev
from harness_nb.approval import DenyApprover, FixedApprover
from harness_nb.consent import Grants
from harness_nb.past import closing_events, cut_at, steps_of
from harness_nb.types import Approval, Decision, Status, ToolCall

YES, NO = Approval(approved=True), Approval(approved=False, reason="a person said no")
REMOVE = ("bash", {"command": "rm -rf build"})
PUSH = ("bash", {"command": "git push origin main"})
LIST = ("bash", {"command": "ls"})


def kinds(events: list[ev.Event]) -> list[str]:
    return [event.type for event in events if isinstance(event, ev.CallEvent)]


def results(events: list[ev.Event]) -> list[tuple[Status, str]]:
    return [
        (event.status, "".join(part.text for part in event.content if part.type == "text"))
        for event in events
        if isinstance(event, ev.ResultAdded)
    ]


async def test_all_calls_of_a_reply_are_asked_about_before_the_first_runs() -> None:
    approver = FixedApprover([NO, YES])
    events, _, _, kernel = await work_on(calls(LIST, REMOVE, PUSH), says("done"), approver=approver)
    assert kinds(events)[:7] == ["call_decided"] * 3 + ["approval_asked"] * 2 + ["approval_answered"] * 2
    assert [status for status, _ in results(events)] == [Status.OK, Status.DENIED, Status.OK]
    ran = [source for source in kernel.executed if "%%bash" in source]
    assert ran == ["%%bash\nls", "%%bash\ngit push origin main"]


async def test_calls_behind_a_finish_are_not_asked_about() -> None:
    approver = FixedApprover([YES])
    await work_on(calls(("finish", {"summary": "done"}), REMOVE), approver=approver)
    assert approver.asked == []


async def test_who_allows_a_kind_answers_for_all_that_wait_of_that_kind() -> None:
    class Person(FixedApprover):
        async def ask(self, call: ToolCall, source: str, decision: Decision) -> Approval:
            self.asked.append(call)
            if len(self.asked) == 1:
                await asyncio.sleep(0)
                return Approval(approved=True, scope="kind")
            return await asyncio.get_running_loop().create_future()

    person = Person()
    again = ("bash", {"command": "git push origin docs"})
    events, _, _, _ = await work_on(calls(PUSH, again), says("done"), approver=person)
    assert [status for status, _ in results(events)] == [Status.OK, Status.OK]
    answers = [event.approval for event in events if isinstance(event, ev.ApprovalAnswered)]
    assert [answer.scope for answer in answers] == ["kind", "once"]


async def test_an_edited_call_is_judged_shown_run_and_told_to_the_model() -> None:
    edited = ToolCall(call_id="x", name="bash", arguments={"command": "rm -r build/tmp"})
    approver = FixedApprover([Approval(approved=True, edited=edited)])
    events, _, model, kernel = await work_on(calls(REMOVE), says("done"), approver=approver)
    assert "%%bash\nrm -r build/tmp" in kernel.executed and "%%bash\nrm -rf build" not in kernel.executed
    (status, told), *_ = results(events)
    assert status is Status.OK and told.startswith("[The person changed the call to: bash {")
    assert "rm -r build/tmp" in model.requests[-1][-1].text
    decided = [event.source for event in events if isinstance(event, ev.CallDecided)]
    assert decided == ["%%bash\nrm -rf build", "%%bash\nrm -r build/tmp"]


async def test_an_edit_does_not_get_past_a_denial() -> None:
    edited = ToolCall(call_id="x", name="bash", arguments={"commands": "ls"})
    approver = FixedApprover([Approval(approved=True, edited=edited)])
    events, _, _, kernel = await work_on(calls(REMOVE), says("done"), approver=approver)
    assert results(events)[0][0] is Status.DENIED
    assert not any("%%bash" in source for source in kernel.executed)


async def test_three_denials_in_a_row_stop_the_work_and_both_are_told() -> None:
    events, _, model, _ = await work_on(
        calls(REMOVE), calls(PUSH), calls(REMOVE), says("done"), approver=DenyApprover()
    )
    ending = events[-1]
    assert isinstance(ending, ev.SessionEnded)
    assert ending.reason == "denied" and ending.text.startswith("calls were denied in 3 replies in a row")
    assert "denied in 3 replies in a row" in results(events)[-1][1]
    assert len(model.requests) == 3


async def test_several_denials_of_one_reply_count_once_for_the_model_has_read_none_of_them() -> None:
    batch = calls(REMOVE, PUSH, REMOVE, PUSH)
    events, _, model, _ = await work_on(batch, says("I leave it."), approver=DenyApprover())
    assert isinstance(events[-1], ev.SessionEnded) and events[-1].reason == "finished"
    assert len(model.requests) == 2


async def test_a_call_that_runs_sets_the_count_back() -> None:
    replies = [calls(REMOVE), calls(PUSH), calls(LIST), calls(REMOVE), calls(PUSH), says("done")]
    events, *_ = await work_on(*replies, approver=DenyApprover())
    assert isinstance(events[-1], ev.SessionEnded) and events[-1].reason == "finished"


ASK = Decision(verdict="ask", reason="it deletes folders", policy="p")
CALL = ToolCall(call_id="c1", name="bash", arguments={"command": "rm -rf build"})
SOURCE = "%%bash\nrm -rf build"


def asked(call_id: str = "c1", decision: Decision = ASK) -> ev.CallDecided:
    call = CALL.model_copy(update={"call_id": call_id})
    return ev.CallDecided(call_id=call_id, name="bash", call=call, source=SOURCE, decision=decision)


def answered(approval: Approval) -> ev.ApprovalAnswered:
    return ev.ApprovalAnswered(call_id="c1", name="bash", approval=approval)


def result(status: Status, call_id: str = "c1") -> ev.ResultAdded:
    return ev.ResultAdded(call_id=call_id, name="bash", status=status, content=())


def grants(*events: ev.Event) -> Grants:
    made = Grants()
    for event in [ev.PromptAdded(prompt="go"), *events]:
        made.apply(event)
    return made


def test_an_approval_holds_for_one_run() -> None:
    made = grants(asked(), answered(YES), result(Status.OK))
    assert made.honour(CALL, SOURCE, ASK) is None


def test_a_call_that_was_approved_and_did_not_run_is_not_asked_about_again_and_only_it() -> None:
    for status in (Status.INTERRUPTED, Status.KERNEL_DIED):
        made = grants(asked(), answered(YES), result(status))
        honoured = made.honour(CALL, SOURCE, ASK)
        assert honoured is not None and honoured.verdict == "allow"
        assert made.honour(CALL, SOURCE + " ", ASK) is None
        assert made.honour(CALL, SOURCE, ASK.model_copy(update={"verdict": "deny"})) is None
        made.apply(asked("c2", honoured))
        assert made.honour(CALL, SOURCE, ASK) is None


def test_an_approval_after_the_refusal_is_honoured_once_also_against_the_classifier() -> None:
    made = grants(asked(), answered(NO), result(Status.DENIED))
    assert made.may_approve_late("c1")
    made.apply(answered(YES))
    assert made.honour(CALL, SOURCE, ASK) is not None
    assert not made.may_approve_late("c1")
    for _ in range(2):
        made.apply(ev.PromptAdded(prompt="next"))
    assert made.honour(CALL, SOURCE, ASK) is None


def test_what_only_a_rule_denied_cannot_be_approved_later() -> None:
    made = grants(asked(decision=ASK.model_copy(update={"verdict": "deny"})), result(Status.DENIED))
    assert not made.may_approve_late("c1")


def test_a_kind_holds_for_the_session_and_never_over_a_denial() -> None:
    made = grants(asked(), answered(Approval(approved=True, scope="kind")), result(Status.OK))
    assert made.lift(CALL, SOURCE, ASK).verdict == "allow"
    deny = ASK.model_copy(update={"verdict": "deny"})
    assert made.lift(CALL, SOURCE, deny) is deny
    other = ToolCall(call_id="c2", name="bash", arguments={"command": "git push"})
    assert made.lift(other, "%%bash\ngit push", ASK).verdict == "ask"


def test_auto_allows_what_would_be_asked_about_in_a_sandbox_only() -> None:
    made = grants()
    assert made.lift(CALL, SOURCE, ASK).verdict == "ask"
    made.auto = lambda: True
    lifted = made.lift(CALL, SOURCE, ASK)
    assert lifted.verdict == "allow" and "sandbox" in lifted.reason


def test_a_question_that_was_open_when_the_process_died_is_asked_again_and_an_answer_is_kept() -> None:
    reply = ev.ModelReplied(turn=1, message=calls(("bash", CALL.arguments)))
    call_id = reply.message.tool_calls[0].call_id
    open_ask = ev.ApprovalAsked(call_id=call_id, name="bash", decision=ASK)
    dead = [ev.PromptAdded(prompt="go"), reply, asked(call_id), open_ask]
    (closing,) = closing_events(dead)
    assert isinstance(closing, ev.ResultAdded) and closing.status is Status.INTERRUPTED
    assert grants(*dead[1:], closing).honour(CALL, SOURCE, ASK) is None
    yes = ev.ApprovalAnswered(call_id=call_id, name="bash", approval=YES)
    assert grants(*dead[1:], yes, closing).honour(CALL, SOURCE, ASK) is not None


def test_a_fork_at_a_step_has_nothing_of_the_calls_behind_it_in_the_same_reply() -> None:
    reply = ev.ModelReplied(turn=1, message=calls(("bash", CALL.arguments), ("bash", CALL.arguments)))
    one, two = (call.call_id for call in reply.message.tool_calls)
    events = [ev.PromptAdded(prompt="go"), reply, asked(one), asked(two), asked(one), result(Status.OK, one)]
    kept = cut_at([*events, result(Status.OK, two)], 1)
    assert len(steps_of(kept)) == 1
    assert [event.call_id for event in kept if isinstance(event, ev.ResultAdded)] == [one, two]
