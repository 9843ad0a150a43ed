"""What the harness says to the model between its replies. Pure; the loop and the budget use it.

Each text names what happened and what can be done now; it is read by a model that knows nothing but its requests.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from harness_nb.context.names import describe_loss, list_names
from harness_nb.events import CheckFinished
from harness_nb.ports import ExecuteReply
from harness_nb.types import JsonObject, ToolCall

MAX_REFUSALS = 5
"""A finish that was refused this often ends the work."""

CUT_OFF = "Your reply was cut off at the output limit and has no whole tool call. Go on, in smaller steps."
EMPTY = "Your reply was empty. Go on with the task, or call finish if it is done."
BEHIND_FINISH = "Not run: it stood behind finish in the same reply."
REMEDY = "rebuild runs your earlier python cells again"
ACCEPTED = "The finish is accepted."
NOT_RUN = "The call was not run: the work was cut off before it. Repeat it if it is still needed."
UNKNOWN_OUTCOME = (
    "The outcome of this call is unknown: the work was cut off while it ran. It may have taken effect, wholly or in "
    "part; look before you repeat it."
)
CUT_OFF_AFTER = "the work was cut off after it"
BEHIND_CUT = "The call was not run: this session was forked before it. Repeat it if it is still needed."
GO_ON = "The work was stopped, and goes on now, in the same kernel."
CONTINUED = "session resumed"
"""The reason of the word that begins a further prompt in a session that was opened again."""
GOING_ON = "work resumed"
"""The reason of the word with which work that had stopped goes on."""


def resumed(names: Sequence[JsonObject], unknown: Sequence[str] = ()) -> str:
    """The first word of a session that is continued; ``names`` is the last manifest of its kernel.

    ``unknown`` are the ids of calls whose outcome nobody knows.
    """
    doubt = f" The outcome of {', '.join(unknown)} is unknown: look before you repeat it." if unknown else ""
    if not names:
        return f"The session is continued in a fresh kernel; files are as they were left.{doubt}"
    return (
        f"The session is continued in a fresh kernel: files are as they were left, but {describe_loss(names)}. "
        f"Load again what you need, or call rebuild.{doubt}"
    )


def rebuilt_for_fork(step: int, cells: int, differences: Sequence[str], names: Sequence[JsonObject]) -> str:
    """The first word of a fork behind ``step``, whose kernel was rebuilt from ``cells`` of its python cells.

    ``differences`` are sentences; ``names`` is the manifest of the kernel now.
    """
    told = f" These came out differently than recorded: {' '.join(differences)}" if differences else ""
    rebuilt = f"was rebuilt by running {cells} earlier python {'cell' if cells == 1 else 'cells'} again"
    how = rebuilt if cells else "is a fresh one, for no python cell had been run by then"
    there = f" It has {list_names(names)}." if cells and names else ""
    return (
        f"The session goes on behind step {step}: what was done after it does not count. The files are as they were "
        f"then, and the kernel {how}.{there}{told}"
    )


def blocked(reason: str) -> str:
    """The result of a call that a rule or a person refused."""
    return (
        f"BLOCKED: {reason}.\nNothing of this call was run, and other tools refuse the same step. Do what is advised "
        "here, or go on without it and say so in your summary."
    )


def stopped_by_denials(times: int) -> str:
    """What the last of so many results in a row says."""
    return f" Calls were denied in {times} replies in a row: the work stops here, and a person decides how it goes on."


def denied_in_a_row(times: int) -> str:
    """Why the work ends, for the person."""
    return (
        f"calls were denied in {times} replies in a row; harness-nb resume (or %agent resume) goes on, or say in a new "
        "task what is allowed"
    )


def changed_by_person(call: ToolCall) -> str:
    """The first words of the result of a call that a person has changed before it ran."""
    return f"[The person changed the call to: {call.name} {json.dumps(call.arguments, ensure_ascii=False)}]\n"


def approved_late(call: ToolCall) -> str:
    """A word on a call that was not run, and that a person has approved since."""
    return (
        f"The person has now approved this call, which was not run: {call.name} "
        f"{json.dumps(call.arguments, ensure_ascii=False)}. If it is still needed, make exactly that call again; any "
        "other is judged anew."
    )


def denied_late(call: ToolCall, word: str) -> str:
    """A word on a call that was not run, and that a person has denied since."""
    arguments = json.dumps(call.arguments, ensure_ascii=False)
    return f"The person says no to this call: {call.name} {arguments}. {word}".strip()


def refused(checks: Sequence[CheckFinished], envelope: Callable[[str], str] = str) -> str:
    """Why a finish does not count: those of ``checks`` that failed, with what they printed; those that passed.

    ``envelope`` marks what they printed as data.
    """
    failures = [check for check in checks if not check.passed]
    head = (
        f"Not finished: {'a check' if len(failures) == 1 else 'checks'} failed. Mend it, then finish again. If that "
        f"cannot be done honestly, say so in the summary and finish again: after {MAX_REFUSALS} refusals in all the "
        "work ends as not finished, with what you said."
    )
    passed = [f"Passed: {check.command}" for check in checks if check.passed]
    return "\n\n".join(
        [head, *(_failure(check, envelope) for check in failures), *(["\n".join(passed)] if passed else [])]
    )


def taken_as_finish(reason: str) -> str:
    """The same for a reply without a tool call, whose writer may not have meant to finish."""
    return f"Your reply had no tool call, so it was taken as a finish. {reason}"


def nothing_to_wait_for(call: str, running: Sequence[str]) -> str:
    """The result of a ``wait`` for a call that does not run; ``running`` are the ids of those that do."""
    if not running:
        return "Not waited: no call is running."
    return f"Not waited: {call} is not running; running now: {', '.join(running)}."


def rebuilt(steps: int, failures: Sequence[tuple[str, ExecuteReply]], took: str) -> str:
    """The result of ``rebuild``: of ``steps`` cells, ``failures`` are the sources and replies of those that failed."""
    if not steps:
        return "There is nothing to run again: no python call has ended well in this session."
    if not failures:
        return f"All {steps} python cells that had ended well were run again, in {took}."
    told = [f"{steps - len(failures)} of {steps} python cells that had ended well were run again, in {took}."]
    for source, reply in failures[:5]:
        first = (source.strip().splitlines() or [""])[0][:80]
        why = ": ".join(filter(None, (reply.ename, reply.evalue))) or reply.detail or reply.status.value
        told.append(f"The one that begins with {first} failed this time: {why}.")
    told.append("Cells that were stopped or failed the first time are not among them; run what is missing yourself.")
    return " ".join(told)


def still_running(calls: Sequence[str]) -> str:
    """Why a finish does not count while something runs."""
    running = f"{', '.join(calls)} {'is' if len(calls) == 1 else 'are'} still running"
    return f"Not finished: {running}. Wait for it with wait, or end it with wait(stop=true), then finish again."


def turns_left(left: int, limit: int) -> str:
    """A word when the limit of turns is near."""
    return (
        f"{left} turns are left before the limit of {limit}. Bring the work to an end: save what matters, and call "
        "finish with what is done and what is not."
    )


def limit_near(limit: str) -> str:
    """A word when the limit of ``tokens`` or ``cost`` is near."""
    return (
        f"The limit of this task's {limit} is near: about two more replies fit into it. Bring the work to an end: save "
        "what matters, and call finish with what is done and what is not."
    )


def compacted(times: int) -> str:
    """Why the work ends where the conversation stays too long; ``times`` it was shortened."""
    if not times:
        return (
            "Task and instructions alone are too long for this model, and there is nothing that could be shortened. "
            "Name a model with a larger context window (--model), or shorten AGENTS.md or the task."
        )
    return (
        f"The conversation was shortened {times} {'time' if times == 1 else 'times'} and is still too long. Nothing is "
        "lost: go on with this session with a model that has a larger context window (--model)."
    )


def without_summary(digest: str) -> str:
    """What stands for a summary where no model gave one: the conversation itself, shortened."""
    return f"No summary could be had. This is what was said, much shortened:\n\n{digest}"


def _failure(check: CheckFinished, envelope: Callable[[str], str]) -> str:
    how = "" if check.exit_code is None else f" with exit status {check.exit_code}"
    return f"This check failed{how}: {check.command}\n{envelope(check.output.rstrip())}"
