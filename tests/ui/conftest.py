from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.manager import start_new_kernel
from user_kernel import execute


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A client of a kernel in ``tmp_path``, with the extension loaded."""
    monkeypatch.chdir(tmp_path)
    manager, made = start_new_kernel(kernel_name="python3")
    made.manager = manager
    try:
        reply, _ = execute(made, "%load_ext harness_nb")
        assert reply["status"] == "ok", reply
        yield made
    finally:
        made.stop_channels()
        if manager.has_kernel:
            manager.shutdown_kernel()
