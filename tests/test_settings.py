"""Where settings come from, and how wrong ones are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_nb.errors import UsageError
from harness_nb.options import parse_options
from harness_nb.ports import ModelSettings
from harness_nb.settings import Settings


def test_later_sources_win(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.harness-nb]\nmodel = "chat:a"\nmax-turns = 7\nmax_cost = 1.5\n')
    environment = {"HARNESS_NB_MODEL": "chat:b", "HARNESS_NB_MAX_TURNS": "8"}
    settings = Settings.load(tmp_path, {"max_turns": 9}, environment)
    assert (settings.model, settings.max_turns, settings.max_cost) == ("chat:b", 9, 1.5)
    assert Settings.load(tmp_path, {}, {}).max_turns == 7


def test_the_workspace_is_relative_to_where_one_is(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    assert Settings.load(tmp_path, {"dir": "work"}, {}).directory == tmp_path / "work"
    with pytest.raises(UsageError, match="is not a folder"):
        Settings.load(tmp_path, {"dir": "nowhere"}, {})


def test_tests_are_read_only_by_default_where_there_is_a_check(tmp_path: Path) -> None:
    assert Settings.load(tmp_path, {}, {}).read_only_globs == ()
    assert Settings.load(tmp_path, {"check": ("true",)}, {}).read_only_globs == ("tests/**",)
    assert Settings.load(tmp_path, {"check": ("true",), "read_only": ("a",)}, {}).read_only_globs == ("a",)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[tool.harness-nb]\nmax-turn = 3\n", "max_turn"),
        ("[tool.harness-nb]\nmax-turns = 0\n", "greater than or equal to 1"),
        ("[tool.harness-nb\n", "cannot be read"),
    ],
)
def test_a_wrong_setting_names_its_source(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(UsageError, match=words) as raised:
        Settings.load(tmp_path, {}, {})
    assert "pyproject.toml" in str(raised.value)


def test_options_of_a_line() -> None:
    line = "--model scripted:a.json --check 'make test' --check \"x y\" --max-turns 3 --new"
    assert parse_options(line) == {
        "model": "scripted:a.json",
        "check": ("make test", "x y"),
        "max_turns": 3,
        "new": True,
    }
    assert parse_options("") == {}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--modell x", "--modell"),
        ("--max-turns many", "many"),
        ("--check 'open", "quote"),
        ("do the thing", "The task goes below"),
        ("--policy maybe", "maybe"),
    ],
)
def test_a_wrong_option_is_named(line: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse_options(line)


def test_the_options_of_models_reach_what_is_asked_of_them(tmp_path: Path) -> None:
    line = "--web --small-model chat:tiny --context-window 8192 --reasoning-effort low --temperature 0.3"
    settings = Settings.load(tmp_path, parse_options(f"{line} --max-output-tokens 900"), {})
    assert (settings.small_model, settings.context_window) == ("chat:tiny", 8192)
    assert settings.for_model("key") == ModelSettings(
        max_output_tokens=900, temperature=0.3, reasoning_effort="low", cache_key="key", web_search=True
    )
    assert not Settings.load(tmp_path, {}, {}).for_model("key").web_search
    assert (
        Settings.load(tmp_path, {}, {"HARNESS_NB_SMALL_MODEL": "chat:a", "HARNESS_NB_PRICES": "x"}).small_model
        == "chat:a"
    )


def test_every_option_is_a_setting(tmp_path: Path) -> None:
    from harness_nb.options import make_options

    names = {option.name for option in make_options()} - {"dir"}
    assert names <= set(Settings.model_fields)


def test_fresh_and_replay_exclude_each_other_and_are_not_recorded(tmp_path: Path) -> None:
    given = parse_options("--fresh --replay")
    with pytest.raises(UsageError, match=r"--fresh works anew and --replay plays only"):
        Settings.load(tmp_path, given, {})
    settings = Settings.load(tmp_path, {"fresh": True, "max_turns": 3}, {"HARNESS_NB_REPLAY": "1"})
    assert (settings.fresh, settings.replay, settings.options) == (True, False, {"max_turns": 3})
    (tmp_path / "pyproject.toml").write_text("[tool.harness-nb]\nreplay = true\n")
    assert Settings.load(tmp_path, {}, {}).replay
    assert not Settings.load(tmp_path, {"fresh": True}, {}).replay
