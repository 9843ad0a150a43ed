"""A notebook file as the verification reads it: its code cells, numbered as a person counts them, and a digest.

Read without nbformat, so that old minor versions and cells without ids are taken as they stand. ``verification`` reads
a file once at the start, ``badge`` again before it writes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness_nb.errors import StoreError
from harness_nb.types import JsonObject
from harness_nb.verify.markers import Rules, rules_of

KEY = "harness_nb"
BADGE = "verification"
_NOT_COMPARED = ("metadata", "execution_count", "prompt_number", "traceback")


@dataclass(frozen=True, slots=True)
class CodeCell:
    """One code cell. ``number`` counts the code cells from 1, ``index`` is its place in the list of all cells, from 0.

    ``outputs`` are nbformat outputs with their texts as one string each.
    """

    number: int
    index: int
    id: str
    source: str
    outputs: tuple[JsonObject, ...]
    execution_count: int | None
    metadata: JsonObject
    rules: Rules

    @property
    def recorded(self) -> bool:
        """Whether the file says that the cell was run."""
        return self.execution_count is not None

    @property
    def call_id(self) -> str:
        """The call of a session that made the cell; empty for a cell that a person wrote."""
        ours = self.metadata.get(KEY)
        return str(ours.get("call_id", "")) if isinstance(ours, dict) else ""


@dataclass(frozen=True, slots=True)
class Document:
    """A notebook file: its text as it is on disk, the JSON object, and its code cells."""

    path: Path
    text: str
    data: JsonObject
    cells: tuple[CodeCell, ...]

    @property
    def kernel(self) -> str:
        """The name of the kernel spec that the file asks for; empty when it names none."""
        return str(_mapping(_mapping(self.data.get("metadata")).get("kernelspec")).get("name") or "")

    @property
    def language(self) -> str:
        """The language of the cells, in lower case."""
        metadata = _mapping(self.data.get("metadata"))
        for name, key in (("kernelspec", "language"), ("language_info", "name")):
            if language := _mapping(metadata.get(name)).get(key):
                return str(language).lower()
        return "python"

    @property
    def machine(self) -> Mapping[str, Any]:
        """The data of harness_nb in the notebook's metadata."""
        return _mapping(_mapping(self.data.get("metadata")).get(KEY))


def read_document(path: Path) -> Document:
    """Read a notebook file.

    Raises:
        StoreError: if it cannot be read, or is not a notebook of nbformat 4.
    """
    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise StoreError(f"{path} is not a notebook: it is not UTF-8 text ({error.reason})") from error
    return parse_document(path, text)


def parse_document(path: Path, text: str) -> Document:
    """The document that ``text`` is; ``path`` is for messages.

    Raises:
        StoreError: if it is not a notebook of nbformat 4.
    """
    try:
        data = json.loads(text.lstrip("\ufeff"))
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{path} is not a notebook: it is not JSON ({error})") from error
    if not isinstance(data, dict) or "nbformat" not in data:
        raise StoreError(f"{path} is not a notebook: it has no key 'nbformat'")
    cells = data.get("cells")
    if data["nbformat"] != 4 or not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
        raise StoreError(
            f"{path} is a notebook of format {data['nbformat']!r}, and format 4 is needed: "
            "open it in Jupyter and save it, or run: jupyter nbconvert --to notebook"
        )
    return Document(path, text, data, tuple(_code_cells(cells)))


def _code_cells(cells: list[JsonObject]) -> list[CodeCell]:
    found: list[CodeCell] = []
    for index, cell in enumerate(cells):
        if cell.get("cell_type") != "code":
            continue
        source, metadata = joined(cell.get("source", "")), dict(_mapping(cell.get("metadata")))
        count = cell.get("execution_count")
        found.append(
            CodeCell(
                number=len(found) + 1,
                index=index,
                id=str(cell.get("id", "")),
                source=source,
                outputs=tuple(
                    joined_output(output) for output in cell.get("outputs") or () if isinstance(output, dict)
                ),
                execution_count=count if isinstance(count, int) else None,
                metadata=metadata,
                rules=rules_of(source, metadata),
            )
        )
    return found


def is_badge(cell: JsonObject) -> bool:
    """Whether a verification wrote this cell."""
    return _mapping(_mapping(cell.get("metadata")).get(KEY)).get("badge") == BADGE


def digest_of(notebook: JsonObject) -> str:
    """SHA-256 (hexadecimal) of what a verdict is about: sources, outputs and rules of the code cells, in their order.

    Prose, the badge, ids and execution counts are not in it, nor whether a text is stored as one string or as lines.
    """
    told = [
        [cell.source, [_essence(output) for output in cell.outputs], _rules_told(cell.rules), cell.recorded]
        for cell in _code_cells(list(notebook.get("cells") or ()))
    ]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode("ascii")).hexdigest()


def _essence(output: JsonObject) -> JsonObject:
    return {key: value for key, value in output.items() if key not in _NOT_COMPARED}


def _rules_told(rules: Rules) -> list[Any]:
    return [rules.check, rules.raises, rules.skip, rules.tolerance]


def joined(text: Any) -> str:
    """A multi-line text of nbformat, which is a string or a list of lines."""
    return "".join(map(str, text)) if isinstance(text, list) else str(text)


def joined_output(output: JsonObject) -> JsonObject:
    """An output with its texts as one string each; JSON data stays what it is."""
    whole = dict(output)
    if "text" in whole:
        whole["text"] = joined(whole["text"])
    if isinstance(whole.get("data"), dict):
        whole["data"] = {
            kind: joined(value) if isinstance(value, list) and not kind.endswith("json") else value
            for kind, value in whole["data"].items()
        }
    return whole


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
