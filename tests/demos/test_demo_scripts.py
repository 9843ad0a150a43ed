"""The scripts that ship: they are what their sources say, and what is in them can be played."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from harness_nb.demos import DEMOS
from harness_nb.demos.script import build_script, script_sources
from harness_nb.models.scripted import read_script
from harness_nb.toolset import STANDARD_TOOLS, Toolset
from harness_nb.types import ToolCall

SOURCES = script_sources()
TOOLS = Toolset(STANDARD_TOOLS)


def calls(source: Path) -> list[ToolCall]:
    replies = json.loads(source.with_suffix(".json").read_text("utf-8"))
    found = [call for reply in replies for call in reply.get("calls", [])]
    return [ToolCall(call_id=str(n), name=call["name"], arguments=call["arguments"]) for n, call in enumerate(found)]


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_json_is_what_the_yaml_says(source: Path) -> None:
    hint = "run python -m harness_nb.demos.script"
    assert source.with_suffix(".json").read_text("utf-8") == build_script(source), hint


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_call_has_a_tool_that_takes_it(source: Path) -> None:
    assert read_script(source.with_suffix(".json"))
    assert [problem for call in calls(source) if (problem := TOOLS.problem(call))] == []


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_python_cells_are_formatted_like_all_code_here(source: Path) -> None:
    for call in calls(source):
        code = str(call.arguments.get("code", ""))
        if not code:
            continue
        lines = [line for line in code.splitlines() if not line.startswith("%")]
        plain = "\n".join(lines).strip("\n").removesuffix(";") + "\n"
        ast.parse(plain)
        command = [sys.executable, "-m", "ruff", "format", "--isolated", "--line-length=120", "-"]
        done = subprocess.run(command, input=plain, capture_output=True, text=True, check=True)
        assert done.stdout == plain


def test_every_act_plays_a_script_that_ships(tmp_path: Path) -> None:
    scripts = {act.script for demo in DEMOS.values() for act in demo.acts(tmp_path)}
    assert scripts == {source.with_suffix(".json") for source in SOURCES}
