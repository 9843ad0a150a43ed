"""What a cell consists of, as far as a change of it is an edit: source, outputs, tags and the like, in a normal form.

Jupyter's programs change a good deal by merely saving: they re-order keys, write texts as lists of lines, join streams,
add what they remember of the screen and of times. None of that shows here. ``merge`` compares cells by these parts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from harness_nb.notebook.cells import KEY
from harness_nb.notebook.upgrade import joined_text
from harness_nb.types import JsonObject

METADATA = "metadata:"
_NO_EDIT = (KEY, "trusted", "collapsed", "scrolled", "execution", "ExecuteTime")
"""Metadata of a cell that is not the person's word: ours, and what programs note by themselves."""

Digests = Mapping[str, bytes]
"""A hash for each part."""


def parts_of(cell: JsonObject) -> dict[str, Any]:
    """The parts by name: ``type``, ``source``, ``outputs``, ``attachments``, and ``metadata:KEY`` for each key.

    Outputs and execution count are one part, for they come from one run. A part that is empty is left out.
    """
    parts: dict[str, Any] = {"type": cell["cell_type"], "source": joined_text(cell.get("source", ""))}
    if cell["cell_type"] == "code":
        outputs = normal_outputs(cell.get("outputs", ()))
        parts["outputs"] = {"outputs": outputs, "execution_count": cell.get("execution_count")}
    if cell.get("attachments"):
        parts["attachments"] = cell["attachments"]
    for key, value in cell.get("metadata", {}).items():
        if key not in _NO_EDIT and value not in ({}, [], None):
            parts[METADATA + key] = value
    return parts


def digests_of(parts: Mapping[str, Any]) -> dict[str, bytes]:
    """A hash of each part, the same however its keys are ordered."""
    return {name: _digest(value) for name, value in parts.items()}


def composed(cell: JsonObject, changed: Mapping[str, Any]) -> JsonObject:
    """``cell`` with the parts in ``changed`` in place of its own; ``None`` takes a part away. Valid nbformat 4.5."""
    made, metadata = dict(cell), dict(cell["metadata"])
    for name, value in changed.items():
        if name.startswith(METADATA):
            metadata[name.removeprefix(METADATA)] = value
        elif name == "outputs":
            made |= value or {}
        else:
            made["cell_type" if name == "type" else name] = value
    made["metadata"] = {key: value for key, value in metadata.items() if value is not None}
    if made["cell_type"] == "code":
        made = {"execution_count": None, "outputs": [], **made}
        made.pop("attachments", None)
    else:
        made.pop("outputs", None)
        made.pop("execution_count", None)
        if not made.get("attachments"):
            made.pop("attachments", None)
    return dict(sorted(made.items()))


def normal_outputs(outputs: Any) -> list[JsonObject]:
    """Outputs with texts as one string each, streams of one name joined, without what only the screen needs."""
    normal: list[JsonObject] = []
    for output in outputs:
        made = {key: value for key, value in output.items() if key != "transient"}
        if "text" in made:
            made["text"] = joined_text(made["text"])
        if isinstance(made.get("data"), dict):
            made["data"] = {kind: _normal_form(kind, value) for kind, value in made["data"].items()}
        last = normal[-1] if normal else {}
        if made.get("output_type") == last.get("output_type") == "stream" and made.get("name") == last.get("name"):
            normal[-1] = {**last, "text": last["text"] + made["text"]}
        else:
            normal.append(made)
    return normal


def _normal_form(kind: str, value: Any) -> Any:
    if isinstance(value, list) and all(isinstance(line, str) for line in value) and not kind.endswith("json"):
        value = "".join(value)
    return value.strip() if isinstance(value, str) and kind.startswith("image/") and kind != "image/svg+xml" else value


def _digest(value: Any) -> bytes:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.blake2b(text.encode("utf-8", "backslashreplace"), digest_size=16).digest()
