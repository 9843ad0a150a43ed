"""Older notebooks as nbformat 4.5: every cell gets a valid id of its own, nothing else is touched.

Merging, resuming, exporting and verifying call it on what they have read. Ids: nbformat 4.5, JEP 62.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

from harness_nb.errors import StoreError
from harness_nb.types import JsonObject

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")


def upgraded(notebook: JsonObject) -> JsonObject:
    """``notebook`` with valid, unique cell ids and at least minor version 5; the same object if it has them already.

    A missing, invalid or repeated id is replaced by one that is made of the cell's type and source, so that it is the
    same each time the file is read, also after cells were added elsewhere. Cells that have a good id are the same
    objects in the result. The argument is not changed.

    Raises:
        StoreError: if it is not a notebook of nbformat 4.
    """
    cells = notebook.get("cells")
    if notebook.get("nbformat") != 4 or not isinstance(cells, list):
        raise StoreError(
            f"This is a notebook of nbformat {notebook.get('nbformat')!r}, and harness_nb reads nbformat 4. "
            "Open it in JupyterLab and save it: that upgrades it."
        )
    made = _with_ids(cells)
    minor = notebook.get("nbformat_minor")
    minor_is_new = isinstance(minor, int) and minor >= 5
    if minor_is_new and all(new is old for new, old in zip(made, cells, strict=True)):
        return notebook
    return {**notebook, "cells": made, "nbformat_minor": minor if minor_is_new else 5}


def joined_text(value: Any) -> str:
    """A multi-line text of a notebook, which files hold as one string or as a list of lines."""
    return "".join(map(str, value)) if isinstance(value, list) else str(value)


def free_id(wanted: str, taken: set[str]) -> str:
    """``wanted``, or the first of ``wanted-2``, ``wanted-3`` … that is not taken; it is taken afterwards."""
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted}-{number}"
    taken.add(name)
    return name


def _with_ids(cells: list[JsonObject]) -> list[JsonObject]:
    taken = {cell["id"] for cell in cells if _is_id(cell.get("id"))}
    kept: set[str] = set()
    made = []
    for cell in cells:
        name = str(cell.get("id"))
        if _is_id(cell.get("id")) and name not in kept:
            kept.add(name)
            made.append(cell)
            continue
        content = f"{cell.get('cell_type')}\n{joined_text(cell.get('source', ''))}"
        digest = hashlib.sha256(content.encode("utf-8", "backslashreplace")).hexdigest()
        made.append(with_id(cell, free_id(f"cell-{digest[:12]}", taken)))
    return made


def with_id(cell: JsonObject, name: str) -> JsonObject:
    """A copy of ``cell`` that has this id, at the place among its keys where Jupyter's programs write it."""
    if "id" in cell:
        return {**cell, "id": name}
    before = {key: value for key, value in cell.items() if key in ("attachments", "cell_type", "execution_count")}
    return {**before, "id": name, **cell}


def _is_id(value: Any) -> bool:
    return isinstance(value, str) and _ID.match(value) is not None
