"""Runs sessions in IPython, exports them, and runs the export anew: each half in a forked process of its own.

A script for ``test_hard_sessions``: it reads sessions as JSON from stdin (name to cells) and writes what came of each
as one line of JSON. A fork costs little once NumPy and pandas are loaded, and nothing of a session, not even a patched
module, is left for the next one, or for the run of its export.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import io
import json
import os
import pickle
import re
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib.pyplot  # noqa: F401  loaded once, before the forks
import numpy  # noqa: F401
import pandas  # noqa: F401
import recorded
from IPython.core.displayhook import DisplayHook
from IPython.core.interactiveshell import InteractiveShell
from recorded import Recorded, code_of
from traitlets.config import Config

from harness_nb.events import Event
from harness_nb.export import clean_notebook
from harness_nb.export.writing import WorkspaceNow
from harness_nb.types import JsonObject, Status

TOOLS = {"bash": ("command",), "write_file": ("path", "content"), "search_replace": ("path", "search", "replace")}


class _Plain(DisplayHook):
    """Shows values without their number, which is another one in the export."""

    def write_output_prompt(self) -> None:
        """Nothing."""


class _Shell(InteractiveShell):
    displayhook_class = _Plain  # type: ignore[assignment]


def run_in_ipython(
    source: str, tool: str, namespace: dict[str, Any], workspace: Path, count: int
) -> tuple[Status, list[JsonObject]]:
    """``recorded.run_source`` for Python, with magics, top-level ``await`` and real tracebacks."""
    if tool != "python":
        return recorded_run(source, tool, namespace, workspace, count)
    shell = _Shell.instance()
    shell.execution_count = count
    stdout = io.StringIO()
    with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(io.StringIO()):
        result = shell.run_cell(source, store_history=True)
    namespace.clear()
    hidden = {"In", "Out", "exit", "quit", "open", "get_ipython"}
    namespace.update({name: value for name, value in shell.user_ns.items() if name not in hidden})
    error = result.error_before_exec or result.error_in_exec
    text = stdout.getvalue() if error is None else ""
    made: list[JsonObject] = [{"output_type": "stream", "name": "stdout", "text": text}] if text else []
    if error is None:
        return Status.OK, made
    lines = shell.InteractiveTB.structured_traceback(type(error), error, error.__traceback__)
    shown = {"output_type": "error", "ename": type(error).__name__, "evalue": str(error), "traceback": lines}
    return Status.ERROR, [*made, shown]


recorded_run, recorded.run_source = recorded.run_source, run_in_ipython


def record(cells: list[Any], folder: str) -> tuple[list[Event], dict[str, bytes]]:
    """Run a session in a folder; its events and the contents of its files."""
    _enter(folder)
    session = Recorded(Path(folder))
    for cell in cells:
        tool, *values = ["python", cell] if isinstance(cell, str) else cell
        session.call(tool, dict(zip(TOOLS.get(tool, ("code",)), values, strict=True)))
    return session.events, session.blobs


def rerun(notebook: JsonObject) -> dict[str, Any]:
    """Run an export in an empty folder: what each cell that had put out something puts out now, up to a failure."""
    pairs: list[tuple[str, str]] = []
    with tempfile.TemporaryDirectory() as folder:
        _enter(folder)
        for count, cell in enumerate((cell for cell in notebook["cells"] if cell["cell_type"] == "code"), start=1):
            status, outputs = run_in_ipython(cell["source"], "python", {}, Path(folder), count)
            if status is not Status.OK:
                return {"failed": f"{cell['source']}: {outputs[-1].get('evalue')}", "outputs": pairs}
            if cell["outputs"] and not cell["source"].startswith("%%"):
                pairs.append((_text(cell["outputs"]), _text(outputs)))
    return {"failed": "", "outputs": pairs}


def _text(outputs: list[JsonObject]) -> str:
    text = "".join(str(output.get("text", "")) for output in outputs)
    return re.sub(r"0x[0-9a-f]{6,}", "0x", text)


def _enter(folder: str) -> None:
    os.chdir(folder)
    sys.path.insert(0, folder)


def in_a_fork(work: Callable[[], Any]) -> Any:
    """The value of ``work``, which runs in a copy of this process."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            value = work()
        except BaseException as error:
            traceback.print_exc()
            value = error
        with os.fdopen(writing, "wb") as stream:
            pickle.dump(value, stream)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        data = stream.read()
    os.waitpid(child, 0)
    if isinstance(value := pickle.loads(data), BaseException):
        raise value
    return value


def main() -> None:
    """All sessions of stdin."""
    sys.dont_write_bytecode = True  # a helper module may be edited twice within a second
    warnings.simplefilter("ignore")
    config = Config()
    config.HistoryManager.enabled = False
    _Shell.instance(config=config, colors="nocolor")
    sessions = json.load(sys.stdin)
    for name in sorted(sessions, key=lambda one: "import torch" in str(sessions[one])):
        cells = sessions[name]
        if "import torch" in str(cells):
            importlib.import_module("torch")  # last, since it makes each fork dearer
        gc.freeze()
        with tempfile.TemporaryDirectory() as folder:
            events, blobs = in_a_fork(partial(record, cells, folder))
            export = clean_notebook(events, blobs.get, WorkspaceNow(Path(folder)))
        again = in_a_fork(partial(rerun, export.notebook))
        missing = [str(one) for one in export.unresolved]
        print(json.dumps({"name": name, "sources": code_of(export.notebook), "missing": missing, **again}), flush=True)


if __name__ == "__main__":
    main()
