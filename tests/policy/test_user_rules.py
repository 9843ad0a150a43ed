"""Rules of the user: what they match, what they lift, and what is said of mistakes in them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness_nb.errors import UsageError
from harness_nb.policy import decide, deny_outside_workspace, ground_for, judge_by, read_rules
from harness_nb.settings import Settings
from harness_nb.types import Decision, ToolCall


def decision(rules: dict[str, Any], name: str = "bash", **arguments: Any) -> Decision:
    rule = judge_by(read_rules(rules), ground_for("/home/me/project", ["tests/**"]))
    call = ToolCall(call_id="c", name=name, arguments=arguments)
    return decide([deny_outside_workspace, rule], call, "source")


def verdict(rules: dict[str, Any], command: str) -> str:
    return decision(rules, command=command).verdict


def test_a_rule_that_allows_lifts_what_is_asked() -> None:
    assert verdict({}, "git push origin main") == "ask"
    found = decision({"allow": ["git push *"]}, command="git push origin main")
    assert (found.verdict, found.policy) == ("allow", "user_rules")
    assert "git push *" in found.reason


@pytest.mark.parametrize(
    ("pattern", "command", "expected"),
    [
        ("git push *", "git push", "allow"),
        ("git push", "git push", "allow"),
        ("git push", "git push origin", "ask"),
        ("git push origin main", "git push origin main", "allow"),
        ("git push origin *", "git push upstream", "ask"),
        ("git push *", "git pull && git push", "allow"),
        ("git push *", "git push && rm -rf build", "ask"),
        ("git push *", "sudo git push", "ask"),
        ("git push *", "bash -c 'git push'", "allow"),
        ("git *", "git reset --hard", "allow"),
        ("rm -r build", "rm -r build", "allow"),
        ("rm -r *", "rm -rf build", "ask"),
        ("rm -* build*", "rm -rf build2", "allow"),
        ("docker run --rm *", "/usr/bin/docker run --rm alpine", "allow"),
        ("kill *", "kill -9 -1", "deny"),
        ("rm *", "rm -rf /", "deny"),
        ("*", "rm tests/test_a.py", "deny"),
        ("ls *", "ls ~", "ask"),
    ],
)
def test_patterns_are_matched_word_by_word_for_each_command(pattern: str, command: str, expected: str) -> None:
    assert verdict({"allow": [pattern]}, command) == expected


def test_paths_are_lifted_by_rules_about_paths() -> None:
    assert verdict({"allow": [{"path": "~/data/**"}]}, "cat ~/data/a.csv") == "allow"
    assert verdict({"allow": [{"path": "~/data/**"}]}, "cat ~/other/a.csv") == "ask"
    assert verdict({"allow": [{"path": "conftest.py"}]}, "echo x > conftest.py") == "allow"
    assert (
        decision({"allow": [{"path": "conftest.py"}]}, "write_file", path="conftest.py", content="").verdict == "allow"
    )
    assert decision({}, "write_file", path="conftest.py", content="").verdict == "ask"


def test_a_rule_that_asks_or_denies_is_about_each_command() -> None:
    rules = {
        "ask": ["pip install *"],
        "deny": ["pip uninstall *", {"command": "curl *", "reason": "no downloads here"}],
    }
    assert verdict(rules, "ls && pip install x") == "ask"
    assert verdict(rules, "python -m pip install x") == "ask"
    assert verdict(rules, "bash -c 'pip uninstall x'") == "deny"
    assert verdict(rules, "pip list") == "allow"
    found = decision(rules, command="ls; curl http://x.example")
    assert (found.verdict, found.reason) == ("deny", "no downloads here")
    code = decision(rules, "python", code="import subprocess; subprocess.run(['pip', 'install', 'x'])")
    assert code.verdict == "ask"


def test_the_strictest_wins() -> None:
    both = {"allow": ["git push *"], "ask": ["git push --force *"], "deny": ["git push * production"]}
    assert verdict(both, "git push origin") == "allow"
    assert verdict(both, "git push --force origin") == "ask"
    assert verdict(both, "git push origin production") == "deny"


def test_an_allowed_part_does_not_allow_the_whole_by_name() -> None:
    found = decision({"allow": ["git push *"]}, command="git push && ls")
    assert (found.verdict, found.policy) == ("allow", "default")


def test_rules_about_tools_and_paths() -> None:
    rules: dict[str, Any] = {
        "ask": [{"tool": "python"}],
        "deny": [{"path": "data/**"}, {"tool": "read_file", "path": "*.key"}],
        "allow": [{"tool": "search_replace", "path": "src/**"}],
    }
    assert decision(rules, "python", code="1").verdict == "ask"
    assert decision(rules, "write_file", path="data/a.csv", content="").verdict == "deny"
    assert decision(rules, "read_file", path="a/b.key").verdict == "deny"
    assert decision(rules, "list_files", path="a/b.key").verdict == "allow"
    assert decision(rules, command="echo x > data/a.csv").verdict == "deny"
    assert decision(rules, command="rm data/a.csv").verdict == "deny"
    assert decision({"deny": [{"path": "data/**"}]}, "python", code="open('data/a.csv')").verdict == "deny"
    found = decision(rules, "search_replace", path="src/a.py", search="a", replace="b")
    assert (found.verdict, found.policy) == ("allow", "user_rules")
    assert decision({"allow": [{"tool": "read_file"}]}, "read_file", path="../a").verdict == "deny"


def test_a_regular_expression_is_matched_with_the_words() -> None:
    rules = {"deny": [{"regex": r"^git push( .*)? --force"}]}
    assert verdict(rules, "git push origin --force") == "deny"
    assert verdict(rules, "git push") == "ask"
    assert verdict(rules, "echo 'git push --force'") == "allow"


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        ({"alow": []}, "has no key 'alow'"),
        ({"allow": "git push *"}, "allow in [tool.harness-nb.policy] is 'git push *' and not a list"),
        ({"ask": [3]}, "The rule 3 under ask"),
        ({"ask": [{}]}, "it is about nothing; give tool, path, command or regex"),
        ({"deny": [{"tool": "bsh"}]}, "there is no tool named 'bsh'"),
        ({"deny": [{"regex": "("}]}, "is no regular expression"),
        ({"deny": [{"command": "echo 'a"}]}, "cannot be split into words"),
        ({"deny": ["a && b"]}, "is not one command"),
        ({"deny": [{"cmd": "a"}]}, "cmd is no part of a rule"),
        ({"allow": [{"tool": "read_file", "command": "ls"}]}, "read_file runs no commands"),
        ({"deny": [""]}, "it is about nothing"),
        ({"deny": [{"path": 3}]}, "path Input should be a valid string"),
    ],
)
def test_mistakes_are_told_with_key_value_and_way_out(rules: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_rules(rules)
    assert told in str(caught.value)


def test_mistakes_in_pyproject_name_the_file_and_nothing_is_started(
    tmp_path: Path,
) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.harness-nb.policy]\nallow = ["ls *"]\ndeny = [{ tol = "bash" }]\n')
    with pytest.raises(UsageError, match=r"pyproject\.toml is wrong: The rule .*tol"):
        Settings.load(tmp_path, {}, {})
    command = [sys.executable, "-m", "harness_nb.cli", "run", "say hello", "--model", "scripted:none.json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "tol is no part of a rule" in done.stderr
    assert not (tmp_path / "harness_sessions").exists()


def test_the_table_may_say_the_default_and_thresholds_too(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.harness-nb.policy]\ndefault = "deny"\nallow = ["git push *"]\nthresholds = { allow_risk = 1 }\n'
    )
    settings = Settings.load(tmp_path, {}, {})
    assert settings.policy == "deny"
    assert read_rules(settings.rules).allow[0].command == "git push *"
