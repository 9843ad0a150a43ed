"""``%agent audit [ID]``: what a session did and who let it. Called by the magic; read-only."""

from __future__ import annotations

from typing import Protocol

from harness_nb.audit import audit_session, report
from harness_nb.errors import UsageError
from harness_nb.record import latest_session
from harness_nb.ui import html
from harness_nb.ui.current import CurrentSession
from harness_nb.ui.publish import Bundle
from harness_nb.ui.verbs import workspace_of

VERB = "audit"
FORM = "[ID]"
WORDS = "every call of a session: decision, reason, approval and effect"


class Desk(Protocol):
    """What the verb works with."""

    current: CurrentSession


def audit(desk: Desk, line: str) -> Bundle:
    """The audit of the session that is named, else of this notebook's, else of the latest one.

    Raises:
        UsageError: if there is no such session.
    """
    if len(words := line.split()) > 1:
        raise UsageError(f"%agent {VERB} takes the id of one session; {' '.join(words[1:])!r} is left over.")
    workspace = workspace_of(desk.current)
    session_id = words[0] if words else desk.current.id or latest_session(workspace)
    found = audit_session(workspace, session_id)
    totals = found["totals"]
    told = (
        f"{session_id}: {totals['calls']} calls, {totals['asked']} asked about, {totals['files_changed']} files changed"
    )
    lines = [*(f"warning: {text}" for text in found["warnings"]), *report(found)]
    return html.note_block("≡", told, html.GREY, detail="\n".join(lines), summary="all of it")
