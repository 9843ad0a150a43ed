from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness_nb.tools import workspace as places


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A workspace of its own, with a secret beside it."""
    root = tmp_path / "project"
    root.mkdir()
    (tmp_path / "secrets.txt").write_text("secret")
    monkeypatch.chdir(root)
    monkeypatch.setattr(places, "_places", {})
    places.workspace(".")
    yield root
