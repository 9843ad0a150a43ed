"""The page on rules: its example is read, and what it says of commands holds."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from harness_nb.policy import UserRules, decide, ground_for, judge_by, read_rules
from harness_nb.types import ToolCall

PAGE = (Path(__file__).parent.parent.parent / "docs" / "policy.md").read_text("utf-8")


def rows() -> list[str]:
    table = PAGE.split("| asked about | examples |", 1)[1].split("\n\n", 1)[0]
    cells = [re.split(r"(?<!\\)\|", line)[2].split(";")[0] for line in table.splitlines()[2:]]
    named = [text.replace("\\|", "|") for cell in cells for text in re.findall(r"`([^`]+)`", cell)]
    return [text for text in named if re.match(r"[a-z$]+ ", text) and "…" not in text]


def verdict(command: str) -> str:
    rule = judge_by(UserRules(), ground_for("/home/me/project"))
    return decide([rule], ToolCall(call_id="c", name="bash", arguments={"command": command}), "").verdict


@pytest.mark.parametrize("command", rows())
def test_what_the_page_calls_asked_about_is_asked_about(command: str) -> None:
    assert verdict(command) == "ask"


def test_what_the_page_calls_denied_is_denied() -> None:
    denied = PAGE.split("Denied are commands", 1)[1].split("\n\n", 1)[0]
    for command in re.findall(r"`([^`]+)`", denied):
        assert verdict(f"{command} x" if command == "mkfs" else command) == "deny", command


def test_the_example_of_the_page_is_read() -> None:
    example = re.search(r"```toml\n(.*?)```", PAGE, re.S)
    assert example is not None
    table = tomllib.loads(example[1])["tool"]["harness-nb"]["policy"]
    rules = read_rules(table)
    assert [len(rules.allow), len(rules.ask), len(rules.deny)] == [2, 2, 2]
    rule = judge_by(rules, ground_for("/home/me/project"))
    forced = ToolCall(call_id="c", name="bash", arguments={"command": "git push --force"})
    found = rule(forced, "")
    assert found is not None and (found.verdict, found.reason) == ("deny", "nobody forces a push here")
