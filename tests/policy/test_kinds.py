"""Kinds of calls: what a person allows for a session, and what that does not allow."""

from __future__ import annotations

from typing import Any

import pytest

from harness_nb.policy import Kind, Rule, allow_kind, allow_kinds, decide, ground_for, judge_by, kind_of, read_rules
from harness_nb.types import ToolCall


def bash(command: str) -> ToolCall:
    return ToolCall(call_id="c", name="bash", arguments={"command": command})


def call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall(call_id="c", name=name, arguments=arguments)


def verdict(kinds: Rule, given: ToolCall, source: str = "") -> str:
    return decide([judge_by(read_rules({}), ground_for()), kinds], given, source).verdict


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("git push origin main", "git push"),
        ("ls && git push", "git push"),
        ("git push --force", "git push --force"),
        ("rm -rf build", "delete folders with rm -r"),
        ("git push; rm -rf a", "git push; delete folders with rm -r"),
        ("pip install numpy && ls -l", "ls, pip install"),
        ("make test", "make test"),
        ("$X a", "run: $X a"),
    ],
)
def test_kinds_are_said_in_words(command: str, words: str) -> None:
    kind = kind_of(bash(command), "")
    assert kind.words == words
    assert kind in {kind}


def test_one_kind_is_allowed_and_no_other() -> None:
    rule = allow_kind(kind_of(bash("git push origin main"), ""))
    assert verdict(rule, bash("cd src && git push origin dev")) == "allow"
    assert verdict(rule, bash("git push --force")) == "ask"
    assert verdict(rule, bash("git push && rm -rf build")) == "ask"
    assert verdict(rule, call("python", code="import os; os.system('git push')")) == "ask"


def test_several_kinds_hold_together_and_may_grow() -> None:
    kinds = set[Kind]()
    rule = allow_kinds(kinds)
    both = bash("git push && rm -rf build")
    assert verdict(rule, both) == "ask"
    kinds.add(kind_of(bash("git push"), ""))
    assert verdict(rule, both) == "ask"
    kinds.add(kind_of(bash("rm -r other"), ""))
    assert verdict(rule, both) == "allow"


def test_what_is_denied_stays_denied() -> None:
    rule = allow_kind(kind_of(bash("rm -rf /"), ""))
    assert verdict(rule, bash("rm -rf /")) == "deny"


def test_what_is_not_known_is_allowed_for_the_very_same_text_only() -> None:
    rule = allow_kind(kind_of(bash('bash -c "$A"'), ""))
    assert verdict(rule, bash('bash -c "$A"')) == "allow"
    assert verdict(rule, bash('bash -c "$B"')) == "ask"
    rule = allow_kind(kind_of(call("python", code="os.system(a)"), "os.system(a)"))
    assert verdict(rule, call("python", code="os.system(b)"), "os.system(b)") == "ask"


def test_paths_outside_are_allowed_one_by_one() -> None:
    rule = allow_kind(kind_of(bash("cat ~/a.csv"), ""))
    assert verdict(rule, bash("head ~/a.csv")) == "allow"
    assert verdict(rule, bash("head ~/.ssh/id_rsa")) == "ask"


def test_code_without_an_objection_is_a_kind_of_its_own() -> None:
    first, second = call("python", code="x = 1"), call("python", code="x = 2")
    assert kind_of(first, "x = 1") == kind_of(first, "x = 1")
    assert kind_of(first, "x = 1") != kind_of(second, "x = 2")
    assert kind_of(call("write_file", path="a", content=""), "").words == "write_file of a"


def test_a_rule_that_allows_by_name_keeps_the_classifier_out() -> None:
    decision = decide([allow_kind(kind_of(bash("make test"), ""))], bash("make test"), "")
    assert (decision.verdict, decision.policy) == ("allow", "allowed_kind")
    assert "make test" in decision.reason
