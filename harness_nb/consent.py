"""What people have allowed and refused in a session, as folds over its events. Pure; the loop asks, the session feeds.

A call that was approved is run once. What outlives it: a kind of calls that was allowed for the session; an approval
of one call that did not come to run, or that was given after the call had been refused; and how many calls were denied
in a row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from harness_nb import events as ev
from harness_nb.policy import Kind, allow_kinds, kind_of
from harness_nb.policy.kinds import POLICY as KIND
from harness_nb.policy.untrusted import POLICY as AFTER_UNTRUSTED
from harness_nb.policy.web import WEB_FETCH
from harness_nb.types import Decision, Status, ToolCall

AGAIN = "approved_before"
"""``Decision.policy`` of a call that is the very same as one that a person has approved and that has not run."""

AUTO = "auto"
"""``Decision.policy`` of a call that would be asked about, and that the sandbox makes harmless enough."""

INVALID = "deny_invalid_calls"
"""``Decision.policy`` of a call that cannot be rendered."""

NOT_RUN = (Status.INTERRUPTED, Status.KERNEL_DIED)
"""A call that came to this has not done its work; an approval of it still holds, once."""

MAX_DENIALS = 3
"""So many denials in a row stop the work."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """A call on its way: the call and source that run if it is allowed."""

    call: ToolCall
    source: str
    decision: Decision
    approved: bool = False
    over: bool = False


class Grants:
    """What a person has allowed in a session beyond the moment. ``apply`` takes every event of the session.

    ``kinds`` hold for the session. An approval that is left over holds for exactly that call, once, and until the work
    on the next prompt ends.
    """

    def __init__(self) -> None:
        self.kinds: set[Kind] = set()
        self.auto: Callable[[], bool] = lambda: False
        """Whether what would be asked about is allowed: the policy is ``auto``, and the tool kernel is in a sandbox."""
        self._calls: dict[str, _Asked] = {}
        self._left: dict[tuple[str, str], int] = {}
        self._prompt = 0

    def apply(self, event: ev.EventBase) -> None:
        """Fold one event in."""
        match event:
            case ev.PromptAdded():
                self._prompt += 1
                self._left = {key: given for key, given in self._left.items() if given >= self._prompt - 1}
            case ev.CallDecided():
                asked = self._calls.get(event.call_id)
                changed = asked is not None and asked.approved and not asked.over
                self._calls[event.call_id] = _Asked(event.call, event.source, event.decision, approved=changed)
                if event.decision.policy == AGAIN:
                    self._left.pop((event.name, event.source), None)
            case ev.ApprovalAnswered() if event.call_id in self._calls:
                self._learn(event)
            case ev.ResultAdded() if event.call_id in self._calls:
                asked = self._calls[event.call_id]
                self._calls[event.call_id] = replace(asked, over=True)
                if asked.approved and event.status in NOT_RUN:
                    self._keep(asked)
            case _:
                pass

    def lift(self, call: ToolCall, source: str, decision: Decision) -> Decision:
        """The decision on a call that rules and classifier ask about, with what has been allowed; never over a denial.

        What was allowed before text of others came up does not hold right after it, and no sandbox holds ``web_fetch``.
        """
        if decision.verdict != "ask" or decision.policy == AFTER_UNTRUSTED:
            return decision
        if self.kinds and (allowed := allow_kinds(self.kinds)(call, source)) is not None:
            return allowed
        if self.auto() and call.name != WEB_FETCH:
            reason = f"{decision.reason} (the policy is auto, and tool code runs in a sandbox)"
            return decision.model_copy(update={"verdict": "allow", "reason": reason, "policy": AUTO})
        return decision

    def honour(self, call: ToolCall, source: str, decision: Decision) -> Decision | None:
        """Allow the very call that a person has approved and that has not run; ``None`` for any other.

        ``decision`` is the one of the rules; what they deny stays denied. The classifier is not asked again: a person
        has answered what it would ask.
        """
        if decision.verdict == "deny" or (call.name, source) not in self._left:
            return None
        return Decision(verdict="allow", reason="approved before, and not run then", policy=AGAIN)

    def may_approve_late(self, call_id: str) -> bool:
        """Whether an approval of this call can still do something: it was asked about, or the classifier denied it."""
        asked = self._calls.get(call_id)
        return asked is not None and asked.over and _is_judged(asked.decision) and not asked.approved

    def _learn(self, event: ev.ApprovalAnswered) -> None:
        asked, approval = self._calls[event.call_id], event.approval
        if not approval.approved:
            return
        if approval.scope == "kind":
            self.kinds.add(kind_of(approval.edited or asked.call, asked.source))
        if asked.over:
            self._keep(asked)
        self._calls[event.call_id] = replace(asked, approved=True)

    def _keep(self, asked: _Asked) -> None:
        self._left[asked.call.name, asked.source] = self._prompt


class Breaker:
    """Counts denials in a row, one for a reply: a model has read none before the next. A call that runs sets it back.

    ``apply`` takes the events of a run.
    """

    def __init__(self) -> None:
        self.denied = 0
        self._counted = False
        self._decided: dict[str, Decision] = {}

    def apply(self, event: object) -> None:
        """Fold one item of the loop in."""
        match event:
            case ev.CallDecided():
                self._decided[event.call_id] = event.decision
            case ev.ResultAdded() if event.call_id in self._decided:
                if self._decided.pop(event.call_id).policy == INVALID:
                    return
                if event.status is not Status.DENIED:
                    self.denied = 0
                elif not self._counted:
                    self.denied, self._counted = self.denied + 1, True
            case _:
                pass

    def begin_reply(self) -> None:
        """The calls of another reply come."""
        self._counted = False

    @property
    def next_stops(self) -> bool:
        """Whether a denial now stops the work."""
        return self.denied + (not self._counted) >= MAX_DENIALS

    @property
    def tripped(self) -> bool:
        """Whether the work has to stop."""
        return self.denied >= MAX_DENIALS


def _is_judged(decision: Decision) -> bool:
    return decision.verdict == "ask" or (decision.verdict == "deny" and decision.judgement is not None)


__all__ = ["AGAIN", "AUTO", "INVALID", "KIND", "MAX_DENIALS", "Breaker", "Grants"]
