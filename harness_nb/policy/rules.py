"""Rules: functions from a call and its source to a decision, or ``None`` for "nothing to say". Pure.

The path rules are lexical; the functions in the tool kernel resolve symbolic links and refuse again. A rule reads as a
sentence. The strictest decision wins, and a rule that fails counts as a denial.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable

from pathspec import GitIgnoreSpec

from harness_nb.policy.paths import RECORD_GLOBS, leaves_workspace
from harness_nb.types import Decision, ToolCall

Rule = Callable[[ToolCall, str], Decision | None]

ALLOWED = Decision(verdict="allow", reason="no rule objects", policy="default")
_STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}
_WRITERS = ("write_file", "search_replace")


def decide(rules: Iterable[Rule], call: ToolCall, source: str) -> Decision:
    """The strictest decision of all rules; allow when none objects.

    A rule that allows a call by name lifts what others ask, never what they deny.
    """
    decisions = [ALLOWED]
    for rule in rules:
        try:
            decision = rule(call, source)
        except Exception as error:
            name = getattr(rule, "__name__", "rule")
            decision = Decision(verdict="deny", reason=f"the rule {name} failed: {error}", policy=name)
        if decision is not None:
            decisions.append(decision)
    strictest = max(decisions, key=lambda decision: _STRICTNESS[decision.verdict])
    allowing = [decision for decision in decisions[1:] if decision.verdict == "allow"]
    return allowing[0] if allowing and strictest.verdict != "deny" else strictest


def deny_outside_workspace(call: ToolCall, source: str) -> Decision | None:
    """Paths of the file tools stay in the workspace."""
    path = call.arguments.get("path")
    if not isinstance(path, str) or not leaves_workspace(path):
        return None
    return Decision(
        verdict="deny",
        reason=f"the path {path} is outside the workspace; only paths inside it can be used",
        policy="deny_outside_workspace",
    )


def deny_read_only(globs: Iterable[str]) -> Rule:
    """A rule that keeps the file tools from writing to what matches ``globs`` (gitignore patterns)."""
    spec = GitIgnoreSpec.from_lines([*globs, *RECORD_GLOBS])

    def deny_writing_read_only_files(call: ToolCall, source: str) -> Decision | None:
        path = call.arguments.get("path")
        if call.name not in _WRITERS or not isinstance(path, str):
            return None
        if not spec.match_file(posixpath.normpath(path)):
            return None
        return Decision(verdict="deny", reason=f"{path} is read-only in this session", policy="deny_read_only")

    return deny_writing_read_only_files
