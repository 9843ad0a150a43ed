"""What may be done: rules over calls and the source they render to. Pure; the loop asks ``decide``."""

from harness_nb.policy.dangers import ground_for
from harness_nb.policy.kinds import Kind, allow_kind, allow_kinds, kind_of
from harness_nb.policy.masked import deny_masked_secrets
from harness_nb.policy.rules import Rule, decide, deny_outside_workspace, deny_read_only
from harness_nb.policy.user_rules import UserRules, ask_before_dangerous_commands, judge_by, read_rules

__all__ = [
    "Kind",
    "Rule",
    "UserRules",
    "allow_kind",
    "allow_kinds",
    "ask_before_dangerous_commands",
    "decide",
    "deny_masked_secrets",
    "deny_outside_workspace",
    "deny_read_only",
    "ground_for",
    "judge_by",
    "kind_of",
    "read_rules",
]
