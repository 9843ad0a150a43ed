"""Playing a recording in a session: its replies, its answers, and what came out differently this time.

The session makes a ``Playing`` for a prompt whose work is recorded. The code really runs, in the session's own kernel,
and the checks too; only the model is not asked, and nobody is asked again what was answered then. It must not import
IPython or a kernel library.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from harness_nb import events as ev
from harness_nb.models.replay import ReplayModel
from harness_nb.ports import Approver, Delta
from harness_nb.recordings import ENDED_WELL, REPLAY, Part, RecordedCall, Recording
from harness_nb.types import Approval, Decision, Limits, Status, ToolCall, text_content

NAMED = 5
"""So many differences are told one by one."""

NOTHING = {"input_tokens": 0, "output_tokens": 0, "cost_usd": 0.0}
"""What a replay uses."""

PASSED_OVER = "the recorded work was stopped here; it is not run in the replay"
NOT_RUN = "Not run in the replay: the recorded work was stopped here."

NOT_COMPARED = (Status.UNKNOWN, Status.INTERRUPTED, None)
"""Recorded statuses that say nothing of how the code runs."""


@dataclass(frozen=True, slots=True)
class Difference:
    """How one call came out differently than recorded; ``status`` says whether its status did."""

    text: str
    status: bool


class RecordedApprover:
    """Gives the answers of a recording, each once and for exactly the source that it was given for; else asks on."""

    def __init__(self, recording: Recording, otherwise: Approver) -> None:
        self._answers = [call for call in recording.calls if call.approval is not None]
        self._otherwise = otherwise

    async def ask(self, call: ToolCall, source: str, decision: Decision) -> Approval:
        """The recorded answer, or that of who is asked now."""
        for answered in self._answers:
            if (answered.name, answered.source) == (call.name, source) and answered.approval is not None:
                self._answers.remove(answered)
                return answered.approval.model_copy(update={"by": f"{answered.approval.by}, in the recording"})
        return await self._otherwise.ask(call, source, decision)

    @property
    def can_answer(self) -> bool:
        """Whether somebody is there now: what code asks is not recorded."""
        return self._otherwise.can_answer

    async def answer(self, question: str, *, secret: bool) -> str | None:
        """The answer of who is asked now."""
        return await self._otherwise.answer(question, secret=secret)


class Playing:
    """One recording on its way through the loop. ``approver`` is who answers what the recording does not."""

    def __init__(self, recording: Recording, approver: Approver) -> None:
        self.recording = recording
        self.model = ReplayModel(f"{REPLAY}{recording.session}", recording.replies)
        self.approver = RecordedApprover(recording, approver)
        self.differences: list[Difference] = []
        self._part = Part(recording.session, {}, ev.PromptAdded(prompt=recording.prompt))
        self._cut = {call.call_id for call in recording.calls if call.cut}
        self._passed_over: set[str] = set()
        self._replies = 0

    @property
    def limits(self) -> Limits:
        """None but the end of the recording, where that was a limit: time and money are not spent again."""
        return Limits(max_turns=len(self.recording.replies) if self.recording.reason == "limit" else None)

    def pass_over(self, call: ToolCall, source: str) -> Decision | None:
        """A rule: what was cut off in the recorded work is not run again. It may never end, or may not have begun."""
        if call.call_id not in self._passed_over:
            return None
        return Decision(verdict="deny", reason=PASSED_OVER, policy="pass_over_what_was_cut_off")

    def stopped_before(self, item: ev.Event | Delta) -> bool:
        """Whether the recorded work was stopped before this request, so that nothing may run on from before it."""
        return isinstance(item, ev.ModelRequested) and self._replies in self.recording.stops

    def follow(self, item: ev.Event | Delta) -> ev.Event | Delta:
        """Take in what the loop yields; gives back what is to be recorded and shown instead."""
        if isinstance(item, ev.ModelReplied):
            pairs = zip(self.recording.replies[self._replies].tool_calls, item.message.tool_calls, strict=True)
            self._passed_over |= {now.call_id for then, now in pairs if then.call_id in self._cut}
            self._replies += 1
        if isinstance(item, ev.ResultAdded) and item.call_id in self._passed_over:
            item = item.model_copy(update={"status": Status.INTERRUPTED, "content": text_content(NOT_RUN)})
        if isinstance(item, ev.LimitReached) and self.recording.limit is not None:
            return self.recording.limit
        if isinstance(item, ev.SessionEnded):
            return self._conclude(item)
        if isinstance(item, ev.EventBase):
            self._part.apply(item)
        return item

    def _conclude(self, ended: ev.SessionEnded) -> ev.SessionEnded:
        """How it ended, with one line on how it compares."""
        was, reason, text = self.recording, str(ended.reason), ended.text
        if reason == "model_error" and not self.model.unplayed:
            reason, text = ended_then(was)
        elif reason == was.reason == "limit":
            text = was.text
        self.differences = compare(was.calls, self._part.recording().calls)
        if reason != was.reason:
            self.differences.append(Difference(f"the work: {was.reason} → {reason}", status=True))
        line = summary_line(was, self.differences)
        turns = min(ended.turns, len(was.replies))
        told = f"{text}; {line}" if text else line
        changes = {"reason": reason, "text": told, "turns": turns, "usage": NOTHING}
        return ev.SessionEnded.model_validate({**ended.model_dump(), **changes})


def ended_then(recording: Recording) -> tuple[str, str]:
    """Reason and text of the end where the recording is used up and the work is not at its end."""
    if recording.reason in ENDED_WELL:
        return "rejected", "the recording is used up, and its finish did not count this time"
    return recording.reason, recording.text


def compare(then: Sequence[RecordedCall], now: Sequence[RecordedCall]) -> list[Difference]:
    """How calls came out differently. Statuses count strictly, outputs without what wobbles from run to run. Pure."""
    found = []
    for number, (was, is_now) in enumerate(zip_longest(then, now), start=1):
        call = was or is_now
        assert call is not None
        about = f"[{(was and was.execution_count) or number}] {call.name}"
        if is_now is None:
            found.append(Difference(f"{about} was not reached", status=True))
        elif was is None:
            found.append(Difference(f"{about} is new: {is_now.status}", status=True))
        elif was.status in NOT_COMPARED:
            continue
        elif was.status != is_now.status:
            found.append(Difference(f"{about} {was.status} → {is_now.status}", status=True))
        elif was.digest != is_now.digest:
            found.append(Difference(f"{about} says something else", status=False))
    return found


def summary_line(recording: Recording, differences: Sequence[Difference]) -> str:
    """What screen, record and notebook say of a prompt that was played."""
    calls = sum(call.name != "finish" for call in recording.calls)
    told = f"played from the recording of {recording.session}: {calls} call{'' if calls == 1 else 's'}"
    cut = sum(call.cut for call in recording.calls)
    told += f" ({cut} that {'was' if cut == 1 else 'were'} stopped then not run)" if cut else ""
    lost = "; lines of that record are lost, so not everything could be compared" if recording.broken else ""
    if not differences:
        return f"{told}, all as recorded{lost}; no model was called"
    shown = "; ".join(difference.text for difference in differences[:NAMED])
    more = f"; and {len(differences) - NAMED} more" if len(differences) > NAMED else ""
    return (
        f"{told}, {len(differences)} came out differently: {shown}{more}{lost}; no model was called; --fresh works anew"
    )
