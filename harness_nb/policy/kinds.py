"""Kinds of calls: what a person allows who allows "this kind for the session". Pure; approvers use it.

The kind of a call is what the rules object to in it: all calls with nothing else to object to are of that kind. Where
no rule objects, because the classifier asks, commands are of a kind by their first words, and Python code only with
the very same code.
"""

from __future__ import annotations

from collections.abc import Collection

from harness_nb.policy.rules import Rule
from harness_nb.types import Decision, Frozen, ToolCall

POLICY = "allowed_kind"
"""``Decision.policy`` of a call that a person has allowed with others of its kind."""


class Kind(Frozen):
    """A kind of calls: ``keys`` tell it from others, ``words`` say it to people: "git push". Hashable."""

    tool: str
    keys: tuple[str, ...]
    words: str


def kind_of(call: ToolCall, source: str) -> Kind:
    """The kind of a call. The same call is always of the same kind."""
    return Kind(tool=call.name, keys=(source,), words=f"this very call of {call.name}")


def allow_kind(kind: Kind) -> Rule:
    """A rule that allows calls of one kind; it lifts what the rules ask, never what they deny."""
    return allow_kinds((kind,))


def allow_kinds(kinds: Collection[Kind]) -> Rule:
    """A rule that allows calls whose parts are all of these kinds. ``kinds`` may grow while the rule is in force."""

    def allow_kinds_of_the_session(call: ToolCall, source: str) -> Decision | None:
        if not kinds:
            return None
        asked = kind_of(call, source)
        allowed = {key for kind in kinds if kind.tool == call.name for key in kind.keys}
        if not allowed.issuperset(asked.keys):
            return None
        return Decision(verdict="allow", reason=f"allowed for this session: {asked.words}", policy=POLICY)

    return allow_kinds_of_the_session
