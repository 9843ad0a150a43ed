"""A verification as a test asks for it: quiet, with a short timeout."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from harness_nb.verify import Options, Verdict, verify

Check = Callable[..., Awaitable[Verdict]]


@pytest.fixture
def check() -> Check:
    async def run(path: Path, **options: Any) -> Verdict:
        return await verify(path, Options(**{"timeout": 60, **options}))

    return run
