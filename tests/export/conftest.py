"""A workspace and a session that is recorded in it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from recorded import Recorded


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def session(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorded]:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(str(workspace))
    before = set(sys.modules)
    yield Recorded(workspace)
    for name in set(sys.modules) - before:
        if name in ("model", "helpers"):
            del sys.modules[name]
