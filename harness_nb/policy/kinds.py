"""Kinds of calls: what a person allows who allows "this kind for the session". Pure; approvers use it.

The kind of a call is what the rules object to in it: all calls with nothing else to object to are of that kind. Where
no rule objects, because the classifier asks or a rule of the user, commands are of a kind by their first words, files
by their path, and Python code only with the very same code.
"""

from __future__ import annotations

from collections.abc import Collection
from hashlib import sha256

from harness_nb.policy.dangers import ground_for, report_of
from harness_nb.policy.findings import PLAIN, UNKNOWN, Report, shorten, words_in
from harness_nb.policy.rules import Rule
from harness_nb.policy.web import WEB_FETCH, host_of
from harness_nb.types import Decision, Frozen, ToolCall

POLICY = "allowed_kind"
"""``Decision.policy`` of a call that a person has allowed with others of its kind."""

_WITH_VERBS = words_in(
    "git pip pip3 uv conda npm yarn pnpm cargo go make docker podman gh apt apt-get brew poetry "
    "jupyter python python3 bash sh systemctl kubectl aws gcloud"
)
"""Commands whose next word says what they do."""


class Kind(Frozen):
    """A kind of calls: ``keys`` tell it from others, ``words`` say it to people: "git push". Hashable."""

    tool: str
    keys: tuple[str, ...]
    words: str


def kind_of(call: ToolCall, source: str) -> Kind:
    """The kind of a call. The same call is always of the same kind."""
    report = report_of(call, ground_for())
    if report.findings:
        words = dict.fromkeys(
            f"{each.kind} {shorten(each.part, 60)}" if each.kind.endswith(":") else each.kind
            for each in report.findings
        )
        keys = sorted({each.key for each in report.findings})
        return Kind(tool=call.name, keys=tuple(keys), words="; ".join(words))
    if call.name == "bash" and (names := _names(report)):
        return Kind(tool=call.name, keys=tuple(f"command {name}" for name in names), words=", ".join(names))
    if call.name == WEB_FETCH and (host := host_of(str(call.arguments.get("url", "")))):
        return Kind(tool=call.name, keys=(f"host {host}",), words=f"pages of {host}")
    path = call.arguments.get("path")
    if isinstance(path, str) and call.name != "python":
        return Kind(tool=call.name, keys=(f"path {path}",), words=f"{call.name} of {path}")
    digest = sha256(source.encode("utf-8", "replace")).hexdigest()
    return Kind(tool=call.name, keys=(f"source {digest}",), words=f"this very call of {call.name}")


def _names(report: Report) -> list[str]:
    """The commands of a script by their first words."""
    names = set[str]()
    for words in report.commands:
        name = words[0].rsplit("/", 1)[-1]
        if name in _WITH_VERBS:
            verbs = [word for word in words[1:] if UNKNOWN not in word and PLAIN not in word]
            verb = next((word for word in verbs if not word.startswith("-")), "")
            name = f"{name} -m {verb}" if "-m" in words[1:2] and name.startswith("python") else f"{name} {verb}".strip()
        names.add(name)
    return sorted(names)


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
