"""A JupyterLab on loopback, as the browser tests drive it."""

from __future__ import annotations

import json
import socket
import subprocess
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import pytest
from playwright.sync_api import Page

TOKEN = "browser-test"


@dataclass(frozen=True)
class Lab:
    """A running server: its address, and the folder that it serves."""

    url: str
    root: Path

    def write(self, name: str, script: list[dict[str, Any]], *cells: str) -> None:
        """A notebook of these cells, and the script of a model beside it."""
        (self.root / f"{name}.json").write_text(json.dumps(script))
        made = [nbformat.v4.new_code_cell(cell) for cell in cells]
        kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(
            nbformat.v4.new_notebook(cells=made, metadata={"kernelspec": kernelspec}), self.root / f"{name}.ipynb"
        )

    def open(self, page: Page, name: str) -> None:
        """Open a notebook of this server, and wait until its kernel is idle."""
        page.goto(f"{self.url}/lab/tree/{name}.ipynb?token={TOKEN}&reset")
        page.wait_for_selector(".jp-Notebook .jp-CodeCell")
        page.wait_for_selector("#jp-main-statusbar >> text=/ipykernel. . Idle/")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    """Until the server answers; fails with its log if it does not."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    pytest.fail(f"JupyterLab did not start:\n{log.read_text()[-3000:]}")
