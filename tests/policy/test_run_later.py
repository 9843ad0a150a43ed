"""Files that something runs later, and files with credentials, in the file tools."""

from __future__ import annotations

from typing import Any

import pytest

from harness_nb.policy import UserRules, decide, deny_outside_workspace, ground_for, judge_by
from harness_nb.types import ToolCall


def verdict(name: str, **arguments: Any) -> str:
    rules = (deny_outside_workspace, judge_by(UserRules(), ground_for("/home/me/project", ["tests/**"])))
    return decide(rules, ToolCall(call_id="c", name=name, arguments=arguments), "").verdict


@pytest.mark.parametrize(
    "path",
    [
        "conftest.py",
        "a/conftest.py",
        "src/sitecustomize.py",
        "usercustomize.py",
        "venv/lib/evil.pth",
        ".git/hooks/pre-commit",
        ".git/config",
        "./.git/hooks/../hooks/post-merge",
        ".github/workflows/ci.yml",
        ".gitlab-ci.yml",
        ".pre-commit-config.yaml",
        ".bashrc",
        ".envrc",
        ".vscode/tasks.json",
        ".ipython/profile_default/startup/a.py",
        "jupyter_server_config.py",
        ".env",
    ],
)
def test_files_that_run_later_are_asked_about(path: str) -> None:
    assert verdict("write_file", path=path, content="x") == "ask"
    assert verdict("search_replace", path=path, search="a", replace="b") == "ask"


@pytest.mark.parametrize(
    "path", ["a.py", "src/config.py", "setup.py", "Makefile", "README.md", ".gitignore", ".env.example"]
)
def test_ordinary_files_pass(path: str) -> None:
    assert verdict("write_file", path=path, content="import os; os.system('x')") == "allow"


def test_pyproject_is_asked_about_where_it_says_what_runs() -> None:
    assert verdict("write_file", path="pyproject.toml", content="[project]\nname = 'a'\n") == "allow"
    assert verdict("search_replace", path="pyproject.toml", search='version = "1"', replace='version = "2"') == "allow"
    assert verdict("write_file", path="pyproject.toml", content="[build-system]\nbuild-backend = 'evil'\n") == "ask"
    assert verdict("search_replace", path="pyproject.toml", search="x", replace="[tool.harness-nb.policy]") == "ask"
    assert verdict("write_file", path="package.json", content='{"scripts": {"postinstall": "x"}}') == "ask"
    assert verdict("write_file", path="package.json", content='{"name": "a"}') == "allow"


def test_credentials_are_asked_about_when_they_are_read() -> None:
    assert verdict("read_file", path=".env") == "ask"
    assert verdict("read_file", path="config/id_rsa") == "ask"
    assert verdict("read_file", path="config/id_rsa.pub") == "allow"
    assert verdict("read_file", path="environment.yml") == "allow"
    assert verdict("read_file", path="~/.ssh/id_rsa") == "deny"
