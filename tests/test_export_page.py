"""docs/export.md against the code: options, verdicts, markers, numbers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import click
import pytest

from harness_nb.cli.main import commands
from harness_nb.verify import pictures
from harness_nb.verify.markers import COMMENTS, TAGS, rules_of
from harness_nb.verify.sanitise import SUFFIX
from harness_nb.verify.verdict import State

PAGE = (Path(__file__).parent.parent / "docs" / "export.md").read_text("utf-8")


@pytest.mark.parametrize("name", ["export", "verify"])
def test_the_options_are_those_of_the_commands(name: str) -> None:
    options = [option for one in commands.commands[name].params if isinstance(one, click.Option) for option in one.opts]
    told = set(re.findall(r"(?<![-\w])--[a-z][a-z-]*", PAGE))
    if name == "verify":
        assert {option for option in options if option.startswith("--")} <= told
    else:
        assert {"--clean", "--verify", "--force"} <= told & set(options) and "-o" in options


def test_the_verdicts_are_those_of_the_code() -> None:
    table = PAGE[PAGE.index("| verdict |") :]
    assert re.findall(r"^\| `([a-z ]+)` \|", table[: table.index("\n\n")], re.MULTILINE) == list(get_args(State))


def test_the_markers_and_tags_are_those_of_the_code() -> None:
    table = PAGE[PAGE.index("| in the cell |") :]
    table = table[: table.index("\n\n")]
    words = re.findall(r"`([^`]+)`", table)
    assert {word[2:] for word in words if word.startswith("# ")} - {"HARNESS_NB_TOLERANCE 0.01"} == set(COMMENTS)
    assert {word for word in words if not word.startswith("#")} == set(TAGS)
    assert rules_of("# HARNESS_NB_TOLERANCE 0.01", {}).tolerance == 0.01
    assert rules_of("", {"harness_nb": {"tolerance": 0.01}}).tolerance == 0.01


def test_the_numbers_and_names_are_those_of_the_code() -> None:
    assert f"{pictures.GRID} x {pictures.GRID} blocks" in PAGE
    assert f"differ by more than {pictures.THRESHOLD:g}\n" in PAGE
    assert f"NAME{SUFFIX}" in PAGE
