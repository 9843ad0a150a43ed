"""A JupyterLab on loopback, and a notebook in it as the browser tests drive it."""

from __future__ import annotations

import json
import socket
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import pytest
from playwright.sync_api import Page, TimeoutError

TOKEN = "browser-test"
ENDINGS = 50
IN_FRONT = ".jp-NotebookPanel:not(.lm-mod-hidden)"
OPEN = "async path => { await jupyterapp.commands.execute('docmanager:open', {path}) }"  # not the widget itself
SHOWN = """(() => {
    const notebook = jupyterapp.shell.currentWidget?.content;
    return notebook?.model && notebook.widgets.length === notebook.model.cells.length;
})()"""
READY = f"{SHOWN} && jupyterapp.shell.currentWidget.sessionContext.session?.kernel?.status === 'idle'"
CLOSE_ALL = """() => [...jupyterapp.shell.widgets('main')].forEach(widget => {
    if (widget.context) widget.context.model.dirty = false;
    widget.dispose();
})"""
RUN_CELL = """async source => {
    const notebook = jupyterapp.shell.currentWidget.content;
    notebook.activeCellIndex = notebook.widgets.findIndex(cell => cell.model.sharedModel.source === source);
    if (notebook.activeCell.model.sharedModel.source !== source) throw new Error(`there is no cell ${source}`);
    jupyterapp.commands.execute('notebook:run-cell');
}"""


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

    def open(self, page: Page, name: str, to_run: bool = True) -> Notebook:
        """Open a notebook of this server beside those that are open, and wait until its cells are there.

        If something is ``to_run``, wait until its kernel is idle, too.
        """
        page.evaluate(OPEN, f"{name}.ipynb")
        page.wait_for_selector(f"{IN_FRONT} .jp-CodeCell")
        page.wait_for_function(READY if to_run else SHOWN)
        return Notebook(self, page, name)

    def load(self, page: Page) -> None:
        """Load the page, with no notebook open."""
        page.goto(f"{self.url}/lab?token={TOKEN}&reset")
        page.wait_for_function("window.jupyterapp?.shell.currentWidget")
        page.evaluate(CLOSE_ALL)

    def clear(self, page: Page) -> None:
        """Close all notebooks without saving, and end their kernels."""
        page.evaluate(CLOSE_ALL)
        for _ in range(ENDINGS):
            kernels = self._ask("kernels")
            for kernel in kernels:
                with suppress(urllib.error.HTTPError):  # the server says 500 of a kernel that is ending by itself
                    self._ask(f"kernels/{kernel['id']}", "DELETE")
            if not kernels:
                return
            time.sleep(0.2)
        raise AssertionError(f"the kernels do not end: {kernels}")

    def _ask(self, path: str, method: str = "GET") -> Any:
        headers = {"Authorization": f"token {TOKEN}"}
        request = urllib.request.Request(f"{self.url}/api/{path}", method=method, headers=headers)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read() or "null")


@dataclass(frozen=True)
class Notebook:
    """A notebook in a tab; it must be the one in front."""

    lab: Lab
    page: Page
    name: str

    def run_all(self) -> None:
        """As the menu does."""
        self.page.click(".lm-MenuBar-itemLabel:text-is('Run')")
        self.page.click(".lm-Menu-itemLabel:text-is('Run All Cells')")

    def run(self, source: str) -> None:
        """Run the cell with this source."""
        self.page.evaluate(RUN_CELL, source)

    def restart_and_run_all(self) -> None:
        """As the button does."""
        self.page.click(f"{IN_FRONT} [data-command='notebook:restart-run-all']")
        self.page.click(".jp-Dialog .jp-mod-accept")

    def interrupt(self) -> None:
        """As the button does."""
        self.page.click(f"{IN_FRONT} [data-command='notebook:interrupt-kernel']")

    def wait_for(self, text: str, without: str = "\0") -> None:
        """Until the outputs hold ``text`` and not ``without``."""
        shown = f"[...document.querySelectorAll('{IN_FRONT} .jp-OutputArea-output')].map(e => e.innerText).join('\\n')"
        true = f"([text, without]) => ((shown) => shown.includes(text) && !shown.includes(without))({shown})"
        try:
            self.page.wait_for_function(true, arg=[text, without])
        except TimeoutError:
            pytest.fail(f"{text!r} without {without!r} is not shown, but:\n{self.page.evaluate(shown)}")

    def save(self) -> Any:
        """The notebook as it is in the file after a save."""
        self.page.evaluate("() => jupyterapp.commands.execute('docmanager:save')")
        saved = nbformat.read(self.lab.root / f"{self.name}.ipynb", 4)
        nbformat.validate(saved)
        return saved

    def reload(self) -> None:
        """Reload the page; the notebook is opened again, with the kernel that it had."""
        self.page.reload()
        self.page.wait_for_selector(f"{IN_FRONT} .jp-CodeCell")
        self.page.wait_for_function(READY)

    def outputs(self) -> list[str]:
        """What is shown at this moment, one text an output; one after the other, some would be gone when asked."""
        return self.page.locator(f"{IN_FRONT} .jp-OutputArea-output").all_inner_texts()


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
