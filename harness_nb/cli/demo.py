"""``harness-nb demo``: prepare a workspace, run each act, compare how it ended with how it should."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from harness_nb.cli.running import FINISHED, INTERRUPTED, UNFINISHED, run_prompts
from harness_nb.cli.screen import Screen
from harness_nb.demos import DEMOS, Act, pick_demo
from harness_nb.settings import Settings

FOLDER = "harness_demo"
"""Default workspace, below the current folder: ``harness_demo/<name>``."""


def run_demo(name: str | None, options: Mapping[str, Any], screen: Screen) -> int:
    """Run a demo, by default the one that ``pick_demo`` picks. The exit code: 0 when every act ended as it should.

    Raises:
        UsageError: if the demo needs something that is not here; nothing was started.
    """
    if name is None:
        name, why = pick_demo(os.environ)
        _say(why)
    demo = DEMOS[name]
    workspace = Path(options.get("dir") or Path(FOLDER, name)).expanduser().resolve()
    workspace.mkdir(parents=True, exist_ok=True)
    for note in [f"demo {name}: {demo.summary}", *demo.prepare(workspace, os.environ)]:
        _say(note)
    as_expected = True
    for act in demo.acts(workspace):
        _say(f"\n{act.title}")
        exit_code, ending = run_prompts(_settings(act, workspace, options), [act.task], screen)
        if exit_code == INTERRUPTED or ending is None:
            return exit_code
        met = ending.reason == act.expected
        as_expected = as_expected and met
        _say(f"{'as it should' if met else 'NOT as it should'}: {ending.reason} (expected: {act.expected})")
    return FINISHED if as_expected else UNFINISHED


def _settings(act: Act, workspace: Path, options: Mapping[str, Any]) -> Settings:
    own = {
        "model": f"scripted:{act.script}",
        "max_turns": act.max_turns,
        "check": act.checks,
        "read_only": act.read_only,
    }
    given = {key: value for key, value in options.items() if key != "dir"}
    return Settings.load(workspace, {**own, **given, "new": True})


def _say(text: str) -> None:
    click.echo(text, err=True)
