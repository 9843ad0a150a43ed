"""The notebook as the bytes of its file, each cell written out once: ``Piece`` and ``Snapshot``.

``NotebookFold`` hands out snapshots, ``NotebookFile`` writes them. The layout is that of ``json.dumps`` with
``indent=1``, as Jupyter's own programs write notebooks, so that files differ in the lines that changed only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from harness_nb.types import JsonObject


class Piece:
    """One cell as it stands, frozen. A cell that changes is another piece afterwards.

    ``first_seq`` and ``last_seq`` are the numbers of the first and the last event that the cell, or the one that it
    introduces, holds.
    """

    def __init__(self, cell: JsonObject, first_seq: int = 0, last_seq: int = 0) -> None:
        self.cell = cell
        self.id = str(cell["id"])
        self.first_seq = first_seq
        self.last_seq = last_seq

    @cached_property
    def text(self) -> bytes:
        """The cell as it stands in the file, without the indent of its first line."""
        return _dump(self.cell).replace(b"\n", b"\n  ")


@dataclass(frozen=True)
class Snapshot:
    """A notebook at one moment. May be handed to another thread.

    ``around`` is the notebook without its cells; ``seq`` is the number of the last event in it.
    """

    session_id: str
    seq: int
    pieces: tuple[Piece, ...]
    around: Mapping[str, Any]

    def chunks(self) -> list[bytes]:
        """The whole file in parts. Lone surrogates are written as JSON escapes.

        Joined, the parts are what ``json.dumps`` with ``indent=1, ensure_ascii=False`` makes of it, and a newline.
        """
        end = _dump(dict(self.around)).removeprefix(b"{")
        if not self.pieces:
            return [b'{\n "cells": [],', end, b"\n"]
        texts = [chunk for piece in self.pieces for chunk in (b",\n  ", piece.text)][1:]
        return [b'{\n "cells": [\n  ', *texts, b"\n ],", end, b"\n"]


def _dump(value: JsonObject) -> bytes:
    return json.dumps(value, indent=1, ensure_ascii=False).encode("utf-8", "backslashreplace")
