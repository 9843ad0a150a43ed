"""What other programs and people make of a session notebook, for the tests of merging."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from typing import Any

from harness_nb import events as ev
from harness_nb.notebook import NotebookFold
from harness_nb.notebook.serial import Snapshot

Notebook = dict[str, Any]


def folded(events: Sequence[ev.Event], session_id: str = "s") -> NotebookFold:
    fold = NotebookFold(session_id)
    for event in events:
        fold.apply(event)
    return fold


def notebook_of(snapshot: Snapshot) -> Notebook:
    """The file's own content, for the reader to change."""
    parsed: Notebook = json.loads(b"".join(snapshot.chunks()))
    return parsed


def saved_by_lab(notebook: Notebook) -> Notebook:
    """What JupyterLab makes of a notebook by saving it: other order of keys, lines, notes of its own."""
    saved = copy.deepcopy(notebook)
    for cell in saved["cells"]:
        cell["source"] = lines(cell["source"])
        cell["metadata"] = {"trusted": True, "collapsed": False, **cell["metadata"]}
        for output in cell.get("outputs", ()):
            if "text" in output:
                output["text"] = lines(output["text"])
            for kind, value in output.get("data", {}).items():
                output["data"][kind] = value if kind.endswith("json") else lines(value)
    return dict(json.loads(json.dumps(saved, sort_keys=True)))


def lines(text: str | list[str]) -> list[str]:
    return "".join(text).splitlines(keepends=True)


def without_ids(notebook: Notebook) -> Notebook:
    """The notebook as a tool of the days of nbformat 4.4 saves it."""
    old = copy.deepcopy(notebook)
    for cell in old["cells"]:
        del cell["id"]
    return {**old, "nbformat_minor": 4}


def cell_of(notebook: Notebook, ending: str) -> Notebook:
    """The first cell whose id ends so."""
    return next(cell for cell in notebook["cells"] if cell["id"].endswith(ending))


def ids(notebook: Notebook) -> list[str]:
    return [cell["id"] for cell in notebook["cells"]]


def markdown(name: str, text: str = "mine") -> Notebook:
    return {"cell_type": "markdown", "id": name, "metadata": {}, "source": text}
