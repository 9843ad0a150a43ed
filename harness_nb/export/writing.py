"""Export to a file: ``.ipynb``, ``.py`` or ``.html`` by the suffix. The disk's part of the export, and nbconvert's.

The command line and ``%agent export`` call ``export_session``. What is written says in its own way that it was written
here (notebook metadata, a first comment, a meta element), so that a second export may replace it and nothing else.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import posixpath
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness_nb.errors import UsageError
from harness_nb.events import Event, SessionStarted
from harness_nb.export.clean import CleanExport, clean_notebook
from harness_nb.export.history import Blob, is_junk
from harness_nb.export.scripts import NEEDS_IPYTHON, without_magics
from harness_nb.files import FileStore
from harness_nb.notebook import NotebookFold
from harness_nb.record import read_record
from harness_nb.store import FOLDER, write_atomically
from harness_nb.tools import SETUP_SOURCE
from harness_nb.types import JsonObject

SUFFIXES = (".ipynb", ".py", ".html")
MARK = "Exported by harness_nb from the session"
FILES_LIMIT = 20_000
READ_LIMIT = 1_000_000
_SKIPPED = frozenset({FOLDER, ".git", ".venv", "venv", "node_modules", "__pycache__", ".ipynb_checkpoints"})


@dataclass(frozen=True)
class Exported:
    """Where it went, what a person should know, and whether the notebook has all that it needs."""

    path: Path
    notes: tuple[str, ...]
    complete: bool


def export_session(
    workspace: Path,
    session_id: str,
    target: Path | None = None,
    *,
    clean: bool = False,
    force: bool = False,
    blob: Blob | None = None,
    events: list[Event] | None = None,
) -> Exported:
    """Write a session out; the suffix of ``target`` says in which form.

    Without a ``target`` it is ``<workspace>/<title>.ipynb`` for a clean export: the paths in a session's code start in
    the workspace, so that is where the notebook runs without a change of folder; and ``<workspace>/<session>.ipynb``
    for the session as it is. ``blob`` gives contents of files by hash, by default from the session's own store;
    ``events`` are given for a session that is open.

    Raises:
        UsageError: for an unknown suffix, a missing session or folder, a folder as target, or a file that is there and
            was not written by an export (``force`` replaces it).
        StoreError: if the file cannot be written.
    """
    workspace = workspace.resolve()
    told = events if events is not None else read_record(workspace, session_id)[0]
    result = (
        clean_notebook(
            told, blob or FileStore(workspace / FOLDER / session_id, workspace).blob, WorkspaceNow(workspace)
        )
        if clean
        else None
    )
    path = target or workspace / f"{slug(result.title) if result else session_id}.ipynb"
    check_target(path, force=force)
    notebook = result.notebook if result else plain_notebook(told, session_id, workspace, path)
    write_export(notebook, path, session_id)
    return Exported(path, _notes(result, workspace, path), result is None or result.complete)


class WorkspaceNow:
    """The workspace as it is now; files are listed once and hashed when asked."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._paths: list[str] | None = None

    def paths(self) -> Collection[str]:
        """The files there, without those of tools and sessions; at most ``FILES_LIMIT``."""
        if self._paths is None:
            self._paths = []
            for folder, folders, names in os.walk(self._root):
                folders[:] = sorted(name for name in folders if name not in _SKIPPED)
                relative = Path(folder).relative_to(self._root).as_posix()
                found = (posixpath.normpath(f"{relative}/{name}") for name in sorted(names))
                self._paths += [path for path in found if not is_junk(path)]
                if len(self._paths) > FILES_LIMIT:
                    del self._paths[FILES_LIMIT:]
                    break
        return self._paths

    def read(self, path: str) -> bytes | None:
        """The content of a file of at most ``READ_LIMIT`` bytes."""
        file = self._root / path
        try:
            return file.read_bytes() if file.is_file() and file.stat().st_size <= READ_LIMIT else None
        except OSError:
            return None

    def fact(self, path: str) -> tuple[int, str] | None:
        """Size and SHA-256."""
        try:
            with (self._root / path).open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
                return file.tell(), digest
        except OSError:
            return None


def check_target(path: Path, *, force: bool) -> None:
    """Refuse what cannot or should not be written.

    Raises:
        UsageError: with the way out.
    """
    if path.suffix not in SUFFIXES:
        raise UsageError(f"{path.name!r} has the suffix {path.suffix!r}; an export is one of {', '.join(SUFFIXES)}.")
    if path.is_dir():
        raise UsageError(f"{path} is a folder; name a file in it.")
    if not path.parent.is_dir():
        raise UsageError(f"The folder {path.parent} is not there; make it first.")
    if path.exists() and not force and not was_exported(path):
        raise UsageError(f"{path} is there and was not written by an export; use another name, or --force.")


def was_exported(path: Path) -> bool:
    """Whether an export wrote a file."""
    try:
        text = path.read_text("utf-8", errors="replace")
    except OSError:
        return False
    if path.suffix != ".ipynb":
        return MARK in text[:4000]
    try:
        metadata = json.loads(text)["metadata"]
        return "export" in metadata["harness_nb"]
    except (ValueError, KeyError, TypeError):
        return False


def plain_notebook(events: list[Event], session_id: str, workspace: Path, path: Path) -> JsonObject:
    """The session notebook as it is; its first cell finds the workspace from where the export will be."""
    started = next((event for event in events if isinstance(event, SessionStarted)), None)
    fold = NotebookFold(started.session_id if started else session_id)
    for event in events:
        fold.apply(event)
    notebook: JsonObject = copy.deepcopy(fold.notebook())
    way = Path(os.path.relpath(workspace, path.resolve().parent)).as_posix()
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code" and cell["source"] == SETUP_SOURCE:
            cell["source"] = SETUP_SOURCE.replace('".."', json.dumps(way))
            break
    notebook["metadata"]["harness_nb"]["export"] = {"session_id": session_id, "as_it_is": True}
    return notebook


def write_export(notebook: JsonObject, path: Path, session_id: str) -> None:
    """Write a notebook in the form that the suffix names.

    Raises:
        StoreError: if it cannot be written.
    """
    if path.suffix == ".ipynb":
        text = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
    elif path.suffix == ".py":
        text = _script(notebook, path.stem, f"# {MARK} {session_id}.")
    else:
        meta = f'<meta name="generator" content="{MARK} {session_id}">'
        text = re.sub(
            r"<head>", lambda match: match[0] + meta, _converted(notebook, "HTMLExporter", path.stem), count=1
        )
    write_atomically(path, text)


def _script(notebook: JsonObject, title: str, mark: str) -> str:
    """The notebook as a script, which needs no IPython if that can be."""
    cells = [
        {**cell, "source": without_magics(cell["source"])} if cell["cell_type"] == "code" else cell
        for cell in notebook["cells"]
    ]
    text = _converted({**notebook, "cells": cells}, "PythonExporter", title)
    return "\n".join([mark, *([NEEDS_IPYTHON] if "get_ipython()" in text else []), text])


def _converted(notebook: JsonObject, exporter: str, title: str) -> str:
    """The notebook through nbconvert, without warnings of its own about cells that are as they should be."""
    import nbconvert
    import nbformat

    reads: Any = nbformat.reads
    node = reads(json.dumps(notebook), as_version=4)
    converter = getattr(nbconvert, exporter)()
    return str(converter.from_notebook_node(node, resources={"metadata": {"name": title}})[0])


def slug(title: str) -> str:
    """A file name from a title: lower-case words of ASCII letters and digits, at most 60 characters."""
    words = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
    return words[:60].rsplit("-", 1)[0] if len(words) > 60 else words or "session"


def _notes(result: CleanExport | None, workspace: Path, path: Path) -> tuple[str, ...]:
    if result is None:
        return ()
    elsewhere = path.resolve().parent != workspace and path.suffix == ".ipynb"
    told = f"The paths in it start in {workspace}: run it there."
    return (*result.notes, *([told] if elsewhere else []))
