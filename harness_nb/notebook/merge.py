"""A session notebook that somebody else has changed on disk: what of it is theirs, and how it goes into what we write.

``NotebookFile`` reads an ``Overlay`` off a file that is not as it wrote it, and puts it over every later state of the
session with ``arranged``. Pure.

The rules. A file says in its metadata up to which event it goes (``last_seq``), so what its cells were before somebody
touched them is known, also if they worked on a copy that is older than our latest.

* A part of our cell (source; outputs with execution count; tags and other metadata; type) that differs from what it was
  then is theirs and stays. If the session has changed the same part since, that is a conflict, and theirs stays too.
* A cell that they added stays behind the cell that it was put behind. New cells of ours come after the cell that they
  follow in the session and after what was added there.
* A cell of ours that they deleted stays deleted, unless the session has recorded anything in it since: then it comes
  back. The journal has it in any case.
* Their order of cells and their metadata of the notebook stay. The machine data under our own key is always ours.
* Whoever saves last is right among others: an edit that is no longer in their next save is gone.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness_nb.events import Event
from harness_nb.notebook.cells import KEY
from harness_nb.notebook.fold import NotebookFold
from harness_nb.notebook.identity import numbers_of, recognised
from harness_nb.notebook.parts import Digests, composed, digests_of, parts_of
from harness_nb.notebook.serial import Piece, Snapshot
from harness_nb.notebook.upgrade import free_id, upgraded, with_id
from harness_nb.types import JsonObject

_CELL_TYPES = ("code", "markdown", "raw")


@dataclass(frozen=True)
class Edit:
    """What somebody made of one cell of ours: the parts that are theirs, and the hashes of what they were before."""

    values: Mapping[str, Any]
    theirs: Mapping[str, bytes | None]
    base: Mapping[str, bytes | None]


@dataclass(frozen=True)
class Overlay:
    """Everything in a file that is somebody else's.

    ``order`` are all its cell ids; ``removed`` has for each cell that they deleted the last event that it held then.
    """

    order: tuple[str, ...]
    added: Mapping[str, Piece]
    edits: Mapping[str, Edit]
    removed: Mapping[str, int]
    metadata: JsonObject


class Versions:
    """What our cells were at each moment at which the file was written.

    ``past`` are the events before this process took the session up; what was written then is folded from them.
    """

    def __init__(self, past: Sequence[Event] = ()) -> None:
        self._past = past
        self._first: int | None = None
        self._latest: dict[str, tuple[Piece, Digests]] = {}
        self._known: dict[str, list[tuple[int, Digests]]] = {}

    def record(self, snapshot: Snapshot) -> None:
        """``snapshot`` is about to be in the file."""
        if self._first is None:
            self._first = snapshot.seq
        for piece in snapshot.pieces:
            if self._latest.get(piece.id, (None,))[0] is not piece:
                digests = digests_of(parts_of(piece.cell))
                self._latest[piece.id] = piece, digests
                self._known.setdefault(piece.id, []).append((snapshot.seq, digests))

    def digests(self, piece: Piece) -> Digests:
        """The parts of a cell of ours."""
        latest, digests = self._latest.get(piece.id, (None, {}))
        return digests if latest is piece else digests_of(parts_of(piece.cell))

    def at(self, seq: int) -> dict[str, Digests]:
        """The cells of the file that went up to the event ``seq``; those that did not exist are missing."""
        if self._first is not None and seq >= self._first:
            versions = {name: [parts for since, parts in known if since <= seq] for name, known in self._known.items()}
            return {name: parts[-1] for name, parts in versions.items() if parts}
        fold = NotebookFold("")
        for event in self._past:
            if event.seq <= seq:
                fold.apply(event)
        return {piece.id: digests_of(parts_of(piece.cell)) for piece in fold.snapshot().pieces}


def parse(data: bytes) -> JsonObject | None:
    """The notebook in a file, ``None`` if there is none in it: no JSON, or not of the shape that nbformat 4 has."""
    try:
        notebook = json.loads(data)
    except (ValueError, RecursionError):
        return None
    well = isinstance(notebook, dict) and notebook.get("nbformat") == 4 and isinstance(notebook.get("cells"), list)
    if not well or not isinstance(notebook.get("metadata"), dict) or not all(map(_is_cell, notebook["cells"])):
        return None
    return dict(notebook)


def _is_cell(cell: Any) -> bool:
    if not isinstance(cell, dict) or cell.get("cell_type") not in _CELL_TYPES:
        return False
    outputs = cell.get("outputs", [])
    well = isinstance(cell.get("source"), str | list) and isinstance(cell.get("metadata"), dict)
    return well and isinstance(outputs, list) and all(isinstance(output, dict) for output in outputs)


def foreign(notebook: JsonObject, ours: Snapshot, names: Collection[str] = ()) -> str:
    """Why a notebook is not that of our session; empty if it is, also if a program took the machine data away.

    ``names`` are other ids that the session has had: a notebook that was renamed still says the old one.
    """
    machine = notebook["metadata"].get(KEY)
    if isinstance(machine, dict) and machine:
        other = machine.get("session_id")
        return "" if other == ours.session_id or other in names else f"it is the notebook of the session {other!r}"
    sources = {(piece.id, parts_of(piece.cell)["source"]) for piece in ours.pieces if not piece.id.endswith("-setup")}
    cells = upgraded(recognised(notebook, ours))["cells"]
    known = any((cell["id"], parts_of(cell)["source"]) in sources for cell in cells)
    return "" if known else "it is a notebook of something else"


def overlay_of(theirs: JsonObject, ours: Snapshot, versions: Versions) -> Overlay | None:
    """What is somebody else's in the notebook ``theirs``; ``None`` if nothing is."""
    theirs = upgraded(recognised(theirs, ours))
    seen, exact = _seen(theirs)
    base = versions.at(seen)
    mine = {piece.id: piece for piece in ours.pieces}
    taken = {*mine, *(cell["id"] for cell in theirs["cells"])}
    order: list[str] = []
    added: dict[str, Piece] = {}
    edits: dict[str, Edit] = {}
    for cell in theirs["cells"]:
        piece = mine.get(cell["id"])
        if piece is not None and piece.first_seq <= seen:
            order.append(piece.id)
            sure = exact or piece.last_seq <= seen
            edit = _edit_of(cell, base.get(piece.id), versions.digests(piece), sure)
            edits |= {piece.id: edit} if edit else {}
        else:  # theirs, though it may have an id that a cell of ours has got since
            named = with_id(cell, free_id(cell["id"][:56], taken)) if piece is not None else cell
            order.append(named["id"])
            added[named["id"]] = Piece(named)
    there = set(order)
    removed = {
        piece.id: piece.last_seq
        for piece in ours.pieces
        if piece.id not in there and piece.first_seq <= seen and piece.last_seq <= seen
    }
    own = ours.around["metadata"]
    metadata = {key: value for key, value in theirs["metadata"].items() if key != KEY and value != own.get(key)}
    in_order = [name for name in mine if name in there] == [name for name in order if name in mine]
    if in_order and not (added or edits or removed or metadata):
        return None
    return Overlay(tuple(order), added, edits, removed, metadata)


def arranged(ours: Snapshot, overlay: Overlay | None, versions: Versions) -> tuple[Snapshot, tuple[str, ...]]:
    """What belongs in the file: ``ours`` with the overlay put over it, and the ids of the cells in conflict."""
    if overlay is None:
        return ours, ()
    mine = {piece.id: piece for piece in ours.pieces if piece.last_seq > overlay.removed.get(piece.id, -1)}
    taken = {*mine, *overlay.added}
    pieces: list[Piece] = []
    conflicts = []
    for name, theirs in _places(ours, mine, overlay):
        piece = overlay.added[name] if theirs else mine[name]
        if theirs and name in mine:
            piece = Piece(with_id(piece.cell, free_id(f"{name[:50]}-added", taken)))
        edit = overlay.edits.get(name)
        if edit is not None and not theirs:
            now = versions.digests(piece)
            if any(now.get(part) not in (edit.base[part], edit.theirs[part]) for part in edit.values):
                conflicts.append(name)
            piece = Piece(composed(piece.cell, edit.values), piece.first_seq, piece.last_seq)
        pieces.append(piece)
    around = {**ours.around, "metadata": {**ours.around["metadata"], **overlay.metadata}}
    return Snapshot(ours.session_id, ours.seq, tuple(pieces), around), tuple(conflicts)


def _places(ours: Snapshot, mine: Mapping[str, Piece], overlay: Overlay) -> Iterable[tuple[str, bool]]:
    """The cells in their order: the name of each, and whether it is one that was added."""
    placed = [(name, name in overlay.added) for name in overlay.order if name in overlay.added or name in mine]
    there = {name for name, theirs in placed if not theirs}
    after: dict[str, list[str]] = {}
    anchor = ""
    for piece in ours.pieces:
        if piece.id in there:
            anchor = piece.id
        elif piece.id in mine:
            after.setdefault(anchor, []).append(piece.id)
    waiting = after.get("", [])
    for name, theirs in placed:
        if not theirs:
            yield from ((other, False) for other in waiting)
            waiting = after.get(name, [])
            yield name, False
        else:
            yield name, True
    yield from ((other, False) for other in waiting)


def _edit_of(cell: JsonObject, base: Digests | None, now: Digests, sure: bool) -> Edit | None:
    """What somebody made of a cell. Without a known ``base``, whatever differs from what the cell is ``now``.

    Not ``sure`` means that the session was at work on the cell, at a moment that is not known exactly.
    """
    parts = parts_of(cell)
    theirs = digests_of(parts)
    base = now if base is None else base
    doubtful = () if sure else ("outputs", "metadata:tags")
    changed = [
        name
        for name in {**base, **theirs}
        if theirs.get(name) not in (base.get(name), now.get(name)) and name not in doubtful
    ]
    if not changed:
        return None
    return Edit(
        {name: parts.get(name) for name in changed},
        {name: theirs.get(name) for name in changed},
        {name: base.get(name) for name in changed},
    )


def _seen(notebook: JsonObject) -> tuple[int, bool]:
    """Up to which event a file goes, and whether that is exact. Its cells tell it where its metadata does not."""
    machine = notebook["metadata"].get(KEY)
    last = machine.get("last_seq") if isinstance(machine, dict) else None
    if isinstance(last, int):
        return last, True
    return max((seq for cell in notebook["cells"] for seq in numbers_of(cell)), default=0), False
