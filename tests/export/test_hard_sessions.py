"""A clean export gives the session's result when it runs anew, or names what is missing: it is never silently wrong.

The sessions are in ``hard_sessions``; ``rerun`` runs each in IPython, exports it, and runs the export in an empty
folder.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hard_sessions import CHANGED

SESSIONS = CHANGED
NAMED = {
    "failed cell half ran": "y",
    "failed mutation mid loop": "xs",
    "exec": "z",
    "globals": "z",
    "import effect": "MAGICV",
    "failed for var": "k",
    "failed with file": "z.txt",
    "failed augmented": "a",
    "failed extend generator": "a",
    "function failed inside": "log",
}
"""What the export must name as missing; all other sessions must come out complete."""


@pytest.fixture(scope="module")
def exports() -> dict[str, dict[str, Any]]:
    """What came of each session, by its name: one process runs them all."""
    script = Path(__file__).parent / "rerun.py"
    environment = {**os.environ, "MPLBACKEND": "agg"}
    done = subprocess.run(
        [sys.executable, str(script)], input=json.dumps(SESSIONS), capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    return {found["name"]: found for found in map(json.loads, done.stdout.splitlines())}


@pytest.mark.parametrize("name", SESSIONS)
def test_an_export_gives_the_same_or_names_what_is_missing(exports: dict[str, dict[str, Any]], name: str) -> None:
    found = exports[name]
    if name in NAMED:
        assert any(f"`{NAMED[name]}`" in one for one in found["missing"]), found
        return
    assert found["missing"] == []
    assert not found["failed"]
    assert found["outputs"], "the export shows nothing"
    for recorded, now in found["outputs"]:
        assert now == recorded, found["sources"]
