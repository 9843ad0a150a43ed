"""What may be done: rules over calls and the source they render to. Pure; the loop asks ``decide``."""

from harness_nb.policy.rules import (
    Rule,
    ask_before_dangerous_commands,
    decide,
    deny_outside_workspace,
    deny_read_only,
)

__all__ = ["Rule", "ask_before_dangerous_commands", "decide", "deny_outside_workspace", "deny_read_only"]
