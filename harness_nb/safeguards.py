"""What keeps the work of one session safe, put together from its settings: rules, approver, classifier.

The session asks here when it makes the ``Work`` of a prompt.
"""

from __future__ import annotations

from harness_nb.approval import DenyApprover
from harness_nb.policy import Rule, ask_before_dangerous_commands, deny_outside_workspace, deny_read_only
from harness_nb.ports import Approver
from harness_nb.replaying import Playing
from harness_nb.settings import Settings
from harness_nb.workplace import Workplace


def rules_for(settings: Settings, place: Workplace, playing: Playing | None) -> tuple[Rule, ...]:
    """The rules in force; the strictest decision of all of them counts."""
    own = (deny_outside_workspace, deny_read_only(place.read_only), ask_before_dangerous_commands)
    return (*own, playing.pass_over) if playing else own


def approver_for(settings: Settings, approver: Approver) -> Approver:
    """Who is asked, for approvals and by tool code."""
    if settings.policy == "deny":
        return DenyApprover("the policy of this session is deny")
    return approver
