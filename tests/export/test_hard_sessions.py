"""A clean export gives the session's result when it runs anew, or names what is missing: it is never silently wrong.

The sessions are in the modules ``hard_*``; ``rerun`` runs each in IPython, exports it, and runs the export in an empty
folder.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hard_forms import SHARED, SYNTAX
from hard_sessions import CHANGED
from hard_surroundings import CHANCE, FAILED, HELPERS, LEFT_OUT, SETTINGS, TORCH

SESSIONS = CHANGED | SYNTAX | SHARED | SETTINGS | CHANCE | HELPERS | FAILED | TORCH
NAMED = {
    "failed cell half ran": "y",
    "failed mutation mid loop": "xs",
    "import effect": "MAGICV",
    "failed for var": "k",
    "failed with file": "z.txt",
    "failed augmented": "a",
    "failed extend generator": "a",
    "function failed inside": "log",
    "failed method halfway": "b",
    "failed function global": "n",
    "failed helper state": "helpers",
    "failed with patch": "math",
    "failed generator": "g",
    "failed seed": "the generator of random",
    "failed in function with seed": "the generator of random",
    "failed import": "math",
    "failed try finally": "xs",
    "failed exec": "xs",
    "ipython underscore": "_",
    "ipython Out": "Out",
}
"""What the export must name as missing; all other sessions must come out complete."""

Found = dict[str, Any]

pytestmark = pytest.mark.timeout(900)  # the first test waits for all sessions, about a minute of a free core


@pytest.fixture(scope="module")
def exports() -> dict[str, Found]:
    """What came of each session, by its name: one process runs them all."""
    script = Path(__file__).parent / "rerun.py"
    sessions = SESSIONS | {name: cells for name, (cells, _) in LEFT_OUT.items()}
    if importlib.util.find_spec("torch") is None:
        sessions = {name: cells for name, cells in sessions.items() if name not in TORCH}
    environment = {**os.environ, "MPLBACKEND": "agg"}
    done = subprocess.run(
        [sys.executable, str(script)], input=json.dumps(sessions), capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    return {found["name"]: found for found in map(json.loads, done.stdout.splitlines())}


def assert_same(found: Found) -> None:
    """The export is called complete, all of it ran, it shows something, and all that it shows is what was recorded."""
    assert found["missing"] == []
    assert not found["failed"]
    assert found["outputs"]
    for recorded, now in found["outputs"]:
        assert now == recorded, found["sources"]


@pytest.mark.parametrize("name", SESSIONS)
def test_an_export_gives_the_same_or_names_what_is_missing(exports: dict[str, Found], name: str) -> None:
    if name in TORCH:
        pytest.importorskip("torch")
    if name in NAMED:
        assert any(f"`{NAMED[name]}`" in one for one in exports[name]["missing"]), exports[name]
    else:
        assert_same(exports[name])


@pytest.mark.parametrize("name", LEFT_OUT)
def test_what_nothing_needs_is_left_out(exports: dict[str, Found], name: str) -> None:
    assert_same(exports[name])
    kept = "\n".join(exports[name]["sources"])
    assert [start for start in LEFT_OUT[name][1] if start in kept] == []
