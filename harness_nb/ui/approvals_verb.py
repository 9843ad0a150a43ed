"""``%agent approve`` and ``%agent deny``: answers to approvals, also to those that were refused before.

Called by the magic. An answer that comes late does not run anything: it is recorded, the model is told, and the very
same call, made again, is then run without being asked about.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from harness_nb import events as ev
from harness_nb.context import words
from harness_nb.errors import UsageError
from harness_nb.session import Session
from harness_nb.types import Approval
from harness_nb.ui import html
from harness_nb.ui.asks import Ask, Asks
from harness_nb.ui.current import CurrentSession
from harness_nb.ui.engine import in_engine
from harness_nb.ui.publish import Bundle

FORMS = {
    "approve": ("[N]", "allow approval N; one that was refused: the very same call, once"),
    "deny": ("[N] [WORD]", "deny approval N, with a word to the model"),
}


class Desk(Protocol):
    """What the verbs work with."""

    current: CurrentSession
    asks: Asks

    @property
    def running(self) -> bool:
        """Whether a task is being worked on."""
        ...


def approve(desk: Desk, line: str) -> Bundle:
    """Allow."""
    ask, rest = _find(desk, line)
    if rest:
        raise UsageError(f"%agent approve takes a number and nothing else; {rest!r} is left over.")
    return _answer(desk, ask, Approval(approved=True))


def deny(desk: Desk, line: str) -> Bundle:
    """Deny."""
    ask, word = _find(desk, line)
    return _answer(desk, ask, Approval(approved=False, reason="a person said no" + (f": {word}" if word else "")))


def _answer(desk: Desk, ask: Ask, approval: Approval) -> Bundle:
    said = "allowed" if approval.approved else "denied"
    if not ask.said:
        if before := ask.settle(approval):
            return html.note_block("○", f"Approval {ask.number} is {before}.", html.GREY)
        return html.note_block("✓" if approval.approved else "⊘", f"{said.capitalize()}: {ask.title}", html.GREEN)
    session = desk.current.session
    if session is None or not session.grants.may_approve_late(ask.call.call_id):
        raise UsageError(f"Approval {ask.number} is over ({ask.said}): {ask.title}.")
    if desk.running:
        raise UsageError(f"Approval {ask.number} is over. It can be answered anew when the task has ended.")
    in_engine(_record(session, ask, approval))
    ask.said = f"{said} later"
    how = "Allowed once, if the model makes exactly this call again" if approval.approved else "The model is told no"
    return html.note_block("✓", f"{how}: {ask.title}. %agent resume goes on, or another %%agent cell.", html.GREEN)


async def _record(session: Session, ask: Ask, approval: Approval) -> None:
    call = ask.call
    session.note(ev.ApprovalAnswered(call_id=call.call_id, name=call.name, approval=approval))
    told = words.approved_late(call) if approval.approved else words.denied_late(call, approval.reason)
    session.note(ev.Nudged(reason="answered later", text=told))


def _find(desk: Desk, line: str) -> tuple[Ask, str]:
    """The approval that is meant, and the words behind its number."""
    first, _, rest = line.strip().partition(" ")
    asks = desk.asks.all()
    if first.isdecimal():
        found = next((ask for ask in asks if ask.number == int(first)), None)
        if found is None:
            raise UsageError(f"There is no approval {first}; {_known(asks)}.")
        return found, rest.strip()
    waiting = desk.asks.open() or asks[-1:]
    if len(waiting) != 1:
        raise UsageError(f"Say which one; {_known(waiting)}.")
    return waiting[0], line.strip()


def _known(asks: list[Ask]) -> str:
    return "there are " + ", ".join(f"{ask.number} ({ask.title})" for ask in asks) if asks else "none was asked for"


def lines_of_help() -> list[tuple[str, str]]:
    """Verb with its arguments, and what it does."""
    return [(f"{verb} {form}", told) for verb, (form, told) in FORMS.items()]


RUNNERS: dict[str, Callable[[Desk, str], Bundle]] = {"approve": approve, "deny": deny}
