"""What a record says: which steps were taken, where the work stopped, what the session was at an earlier step. Pure.

The session reads its own past with it when it is continued; forks and listings use it too. A **step** is a tool call as
the record counts them: the N-th ``call_decided`` of the session, from 1. Step 0 is the state before the first call.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import pairwise, zip_longest

from harness_nb import events as ev
from harness_nb.budget import add_usage
from harness_nb.context import Conversation, words
from harness_nb.errors import UsageError
from harness_nb.outputs import Firewall, apply_output, clean_text, is_derived, result_content
from harness_nb.outputs.envelope import tag_of
from harness_nb.ports import ExecuteReply, Output
from harness_nb.types import JsonObject, Part, Status, TextPart, ToolCall, Usage, text_content

_VOLATILE = re.compile(r"0x[0-9a-f]{6,}|\d+(?:\.\d+)? ?(?:ns|µs|us|ms|s|sec|seconds|min|h|it/s|s/it)\b|(?<=\.\d{3})\d+")
"""Addresses, durations, and digits after the third."""

_AT_ONCE = 2.0
"""Seconds between two events that are written at once are fewer, whatever the disk; before a resumption more pass."""

SETUP = "setup"
FINISH = "finish"
REBUILD = "rebuild"


@dataclass(frozen=True, slots=True)
class Step:
    """One tool call of a record. ``status`` is ``None`` while it is open; ``elapsed`` is in seconds.

    ``status`` is of the cell where one ran, else of the result. ``outputs`` are the cell's, in nbformat's form.
    """

    number: int
    call: ToolCall
    source: str
    status: Status | None = None
    outputs: tuple[JsonObject, ...] = ()
    started: bool = False
    elapsed: float = 0.0


@dataclass(frozen=True, slots=True)
class Spent:
    """What the work on one prompt has taken so far; ``seconds`` are those in which somebody worked on it."""

    turns: int = 0
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0


def steps_of(events: Iterable[ev.Event]) -> list[Step]:
    """The steps of a record, in order."""
    steps: dict[str, Step] = {}
    outputs: dict[str, list[JsonObject]] = {}
    order: list[str] = []
    for event in events:
        match event:
            case ev.CallDecided() if _is_open(steps.get(event.call_id)):  # judged again, as a person has changed it
                steps[event.call_id] = replace(steps[event.call_id], call=event.call, source=event.source)
            case ev.CallDecided():
                key = event.call_id
                if key in steps:
                    order = [f"{key} (before)" if each == key else each for each in order]
                    steps[f"{key} (before)"] = replace(steps.pop(key), outputs=tuple(outputs[key]))
                steps[key] = Step(len(order) + 1, event.call, event.source)
                outputs[key] = []
                order.append(key)
            case ev.CellStarted() if event.call_id in steps:
                steps[event.call_id] = replace(steps[event.call_id], started=True)
            case ev.CellOutput() if event.call_id in steps:
                apply_output(outputs[event.call_id], event)
            case ev.CellFinished() if event.call_id in steps:
                steps[event.call_id] = replace(steps[event.call_id], status=event.status, elapsed=event.elapsed)
            case ev.ResultAdded() if event.call_id in steps and steps[event.call_id].status is None:
                steps[event.call_id] = replace(steps[event.call_id], status=event.status)
            case _:
                pass
    for key in steps.keys() & outputs.keys():  # what a cell that never ended had shown
        steps[key] = replace(steps[key], outputs=tuple(outputs[key]))
    return [steps[key] for key in order]


def _is_open(step: Step | None) -> bool:
    return step is not None and not step.started and step.status is None


def difference(step: Step, status: Status, outputs: Sequence[JsonObject]) -> str:
    """A sentence on how a step that was taken again differs from the record; empty where it does not.

    Status and text are compared; pictures, times, addresses and digits after the third are not.
    """
    about = f"Step {step.number} ({_first_line(step.source)})"
    if status is not step.status:
        return f"{about} was {step.status or 'open'} and is {status} now."
    was, now = _comparable(step.outputs), _comparable(outputs)
    if was == now:
        return ""
    pair = next((pair for pair in zip_longest(was, now, fillvalue="nothing") if pair[0] != pair[1]), ("", ""))
    return f"{about} printed {pair[0][:80]!r} and prints {pair[1][:80]!r} now."


def _comparable(outputs: Sequence[JsonObject]) -> list[str]:
    """The lines of a cell's texts, without what differs in each run."""
    texts = []
    for output in outputs:
        if not is_derived(output) and output.get("output_type") != "error":
            texts.append(str(output.get("text") or (output.get("data") or {}).get("text/plain", "")))
    return [_VOLATILE.sub("…", clean_text(line)).rstrip() for line in "".join(texts).splitlines()]


def _first_line(source: str) -> str:
    return (source.strip().splitlines() or ["empty"])[0][:60]


def work_is_open(events: Sequence[ev.Event]) -> bool:
    """Whether the work on the last prompt has not ended."""
    for event in reversed(events):
        if isinstance(event, ev.SessionEnded):
            return False
        if isinstance(event, ev.PromptAdded):
            return True
    return False


def last_ending(events: Sequence[ev.Event]) -> ev.SessionEnded | None:
    """How the last work ended; ``None`` while it is open or has not begun."""
    for event in reversed(events):
        if isinstance(event, ev.SessionEnded):
            return event
        if isinstance(event, ev.PromptAdded):
            return None
    return None


def nothing_to_resume(events: Sequence[ev.Event], session_id: str) -> str:
    """Why a session cannot be resumed, with the way out; empty if it can."""
    if not any(isinstance(event, ev.PromptAdded) for event in events):
        return f"The session {session_id} has no task yet; give it one with --session {session_id}."
    ending = last_ending(events)
    if ending is not None and ending.reason == "finished":
        return (
            f"The session {session_id} is finished, there is nothing to resume. Give it a further task with "
            f"--session {session_id}, or go back with fork."
        )
    return ""


def spent_on_last_prompt(events: Sequence[ev.Event]) -> Spent:
    """Turns, usage and seconds of the last prompt, also if its work never ended."""
    spent = Spent()
    began = 0
    for at, event in enumerate(events):
        match event:
            case ev.PromptAdded():
                spent, began = Spent(), at
            case ev.ModelReplied() | ev.ContextCompacted() | ev.CallDecided():
                usage = add_usage(spent.usage, ev.usage_of(event) or Usage())
                spent = replace(spent, turns=spent.turns + isinstance(event, ev.ModelReplied), usage=usage)
            case _:
                pass
    return replace(spent, seconds=_seconds_of_work(events[began:]))


def is_fresh_fork(events: Sequence[ev.Event]) -> bool:
    """Whether the session is a fork of which nothing has been done since: its kernel is still to be rebuilt."""
    started = next((event for event in events if isinstance(event, ev.SessionStarted)), None)
    if started is None or started.origin.get("kind") != "fork":
        return False
    return len(events) == started.origin.get("events")


def options_of(events: Iterable[ev.Event]) -> JsonObject:
    """The options that were last in force, by field name of ``Settings``."""
    options: JsonObject = {}
    for event in events:
        if isinstance(event, ev.SessionStarted | ev.PromptAdded) and event.options:
            options = event.options
        elif isinstance(event, ev.ModelSwitched):
            options = {**options, "model": event.model, "base_url": event.base_url}
    return options


def replies_since_opened(events: Iterable[ev.Event], model: str) -> int:
    """How many replies ``model`` has given, summaries counted, since the session was last opened for a new prompt.

    A script that is played across a crash goes on behind them.
    """
    count = 0
    for event in events:
        if isinstance(event, ev.Nudged) and event.reason == words.CONTINUED:
            count = 0
        elif isinstance(event, ev.ModelReplied):
            count += event.message.model == model
        elif isinstance(event, ev.ContextCompacted):
            count += event.model == model
    return count


def closing_events(events: Sequence[ev.Event]) -> list[ev.Event]:
    """What completes a record that a crash cut off: nothing is left open, and nothing is guessed.

    A cell that had started and not ended is ``unknown``; one that had ended is told as it ended; a call that had not
    started was not run. Work that had come to its end but for the last event gets that event.
    """
    open_cells: dict[str, str] = {}
    refusal = ""
    for event in events:
        match event:
            case ev.CellStarted():
                open_cells[event.call_id] = event.name
            case ev.CellFinished():
                open_cells.pop(event.call_id, None)
            case ev.ModelReplied():
                refusal = ""
            case ev.FinishRejected():
                refusal = event.reason
            case _:
                pass
    closing: list[ev.Event] = []
    for call_id, name in open_cells.items():
        status = Status.OK if name == SETUP else Status.UNKNOWN
        count = 1 if name == SETUP else None
        closing.append(ev.CellFinished(call_id=call_id, name=name, status=status, execution_count=count))
    ended = _reached_end(events)
    steps, tag = {step.call.call_id: step for step in steps_of(events)}, tag_of(events)
    for call in Conversation(events).open_calls:
        status, content = _told_late(call, steps.get(call.call_id), call.call_id in open_cells, tag)
        if call.name == FINISH and ended == "finished":
            status, content = Status.OK, text_content(words.ACCEPTED)
        elif call.name == FINISH and refusal:
            status, content = Status.ERROR, text_content(refusal)
        closing.append(ev.ResultAdded(call_id=call.call_id, name=call.name, status=status, content=content))
    if ended and work_is_open(events):
        spent = spent_on_last_prompt(events)
        figures = {"turns": spent.turns, "usage": spent.usage, "elapsed": spent.seconds}
        closing.append(ev.SessionEnded.model_validate({"reason": ended, **figures}))
    return closing


def _told_late(call: ToolCall, step: Step | None, was_open: bool, tag: str) -> tuple[Status, tuple[Part, ...]]:
    """The result of a call that has none; of a cell that had ended it is made from the outputs in the record.

    ``rebuild`` runs earlier cells and leaves no trace of its own, so it may have run.
    """
    if step is None or not (step.started or call.name == REBUILD):
        return Status.INTERRUPTED, text_content(words.NOT_RUN)
    firewall = Firewall(call.call_id, call.name, tag=tag, plot=False)
    error: JsonObject = {}
    for output in step.outputs:
        if not is_derived(output):
            error = output if output["output_type"] == "error" else error
            firewall.feed(Output(output["output_type"], output))
    firewall.close(0.0)
    if was_open or step.status is None:
        return Status.UNKNOWN, _unknown_outcome(firewall)
    reply = ExecuteReply(
        step.status,
        ename=error.get("ename"),
        evalue=error.get("evalue"),
        detail=words.CUT_OFF_AFTER,
        extra={"names_lost": True},
    )
    return step.status, result_content(reply, firewall, step.elapsed, images=False)


def _unknown_outcome(firewall: Firewall) -> tuple[Part, ...]:
    """What is told of a call of which only the first outputs are known, if any."""
    if not firewall.items:
        return text_content(words.UNKNOWN_OUTCOME)
    told = result_content(ExecuteReply(Status.UNKNOWN), firewall, 0.0, images=False)
    output, _, _status = "".join(part.text for part in told if isinstance(part, TextPart)).rpartition("\n")
    return text_content(f"{words.UNKNOWN_OUTCOME} Its output until then, as far as it is recorded:\n{output}")


def unknown_cells(events: Sequence[ev.Event]) -> list[ev.CellFinished]:
    """The cells that a crash cut off, as ``closing_events`` completes them."""
    closing = closing_events(events)
    return [event for event in closing if isinstance(event, ev.CellFinished) and event.status is Status.UNKNOWN]


def cut_at(events: Sequence[ev.Event], step: int) -> list[ev.Event]:
    """The session as it was after ``step``: its events up to the result of that step.

    Calls that stood behind it in the same reply get a result that says that they were not run. At step 0 only the
    first prompt is left.

    Raises:
        UsageError: if there is no such step.
    """
    decided = _decisions(events)
    if not 0 <= step <= len(decided):
        known = f"it has the steps 0 to {len(decided)}" if decided else "it has no steps but 0, its start"
        raise UsageError(f"There is no step {step} in that session; {known}. `harness-nb sessions ID` lists them.")
    if step == 0:
        first = next((index for index, event in enumerate(events) if isinstance(event, ev.PromptAdded)), -1)
        return list(events[: first + 1])
    call_id = _call_id(events[decided[step - 1]])
    end = next(
        (
            index
            for index, event in enumerate(events)
            if index > decided[step - 1] and isinstance(event, ev.ResultAdded) and event.call_id == call_id
        ),
        len(events) - 1,
    )
    behind = {_call_id(events[index]) for index in decided[step:]} - {_call_id(events[i]) for i in decided[:step]}
    kept = [event for event in events[: end + 1] if getattr(event, "call_id", None) not in behind]
    return [*kept, *(_answer_as_cut(event) for event in closing_events(kept))]


def _decisions(events: Sequence[ev.Event]) -> list[int]:
    """Where each step begins: a call that is judged again, because a person has changed it, is the same step."""
    found, open_calls = [], set[str]()
    for index, event in enumerate(events):
        if isinstance(event, ev.CallDecided) and event.call_id not in open_calls:
            found.append(index)
            open_calls.add(event.call_id)
        elif isinstance(event, ev.ResultAdded):
            open_calls.discard(event.call_id)
    return found


def _answer_as_cut(event: ev.Event) -> ev.Event:
    """A call behind the cut was not run in this session, whatever became of it in the other one."""
    if isinstance(event, ev.ResultAdded) and event.status is Status.INTERRUPTED:
        return event.model_copy(update={"content": text_content(words.BEHIND_CUT)})
    return event


def _call_id(event: ev.Event) -> str:
    assert isinstance(event, ev.CallDecided)
    return event.call_id


def renumbered(events: Iterable[ev.Event]) -> list[ev.Event]:
    """The events with the numbers 1, 2, 3, …; their times stay."""
    return [event.model_copy(update={"seq": number}) for number, event in enumerate(events, start=1)]


def _reached_end(events: Sequence[ev.Event]) -> str:
    """The reason with which open work had ended, if only ``session_ended`` is missing."""
    for event in reversed(events):
        match event:
            case ev.FinishAccepted():
                return "finished"
            case ev.LimitReached():
                return "limit"
            case ev.FinishRejected() if event.final:
                return "rejected"
            case ev.PromptAdded() | ev.SessionEnded() | ev.ModelRequested():
                return ""
            case _:
                pass
    return ""


def _seconds_of_work(events: Sequence[ev.Event]) -> float:
    """Seconds from the first to the last event, without the time in which nobody worked: after a crash.

    What completes the record of a crash is written at once, in front of the word with which the work goes on.
    """
    seconds, idle, closing = 0.0, 0.0, 0.0
    for before, event in pairwise(events):
        passed = _seconds_between(before.time, event.time)
        seconds += passed
        if isinstance(event, ev.Nudged) and event.reason == words.GOING_ON:
            idle += closing if passed < _AT_ONCE else passed
        elif not (isinstance(event, ev.CellFinished | ev.ResultAdded) and passed < _AT_ONCE):
            closing = passed
    return seconds - idle


def _seconds_between(first: str, last: str) -> float:
    try:
        return max(0.0, (datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds())
    except (ValueError, TypeError):  # no time, or none that can be read
        return 0.0
