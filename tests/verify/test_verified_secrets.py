"""Secrets in verifications: masked sources are not run, and what a run prints is masked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from written_notebooks import code, printed, raised, read, write

KEY = "Zx81hQm2Lw9RtVb4KcNe73YpJd5Gs6Ua"


async def test_a_source_with_a_mask_is_not_run_and_is_named(tmp_path: Path, check: Any) -> None:
    cells = (code("open('ran', 'w').close()"), code("key = '[secret SERVICE_KEY]'\nprint(1)", printed("1\n")))
    verdict = await check(write(tmp_path / "masked.ipynb", *cells))
    assert (verdict.state, verdict.reproduced) == ("not run", False)
    assert "cell 2 holds [secret SERVICE_KEY] in the place of a secret" in verdict.reason
    assert not (tmp_path / "ran").exists()


async def test_what_is_printed_is_compared_and_written_with_masks(
    tmp_path: Path, check: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVICE_KEY", KEY)
    (tmp_path / "key.txt").write_text(KEY)
    show = code("key = open('key.txt').read()\nprint('with', key)", printed("with [secret SERVICE_KEY]\n"))
    same = await check(write(tmp_path / "same.ipynb", show))
    assert same.reproduced, same.lines()
    cells = (show, code("print(key)", printed("another\n")), code("raise ValueError(key)", raised("ValueError", "x")))
    differs = await check(path := write(tmp_path / "differs.ipynb", *cells))
    assert not differs.reproduced and "[secret SERVICE_KEY]" in str(differs.lines())
    assert KEY[:12] not in str(differs) + str(read(path))
