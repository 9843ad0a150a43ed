"""What may be done: rules over calls and the source they render to. Pure; the loop asks ``decide``."""

from harness_nb.policy.kinds import Kind, allow_kind, allow_kinds, kind_of
from harness_nb.policy.masked import deny_masked_secrets
from harness_nb.policy.rules import (
    Rule,
    ask_before_dangerous_commands,
    decide,
    deny_outside_workspace,
    deny_read_only,
)

__all__ = [
    "Kind",
    "Rule",
    "allow_kind",
    "allow_kinds",
    "ask_before_dangerous_commands",
    "decide",
    "deny_masked_secrets",
    "deny_outside_workspace",
    "deny_read_only",
    "kind_of",
]
