"""Which cell of somebody's notebook is which of ours, where ids and numbers do not tell it. Pure.

``merge`` calls it before it compares. An old program takes the ids of cells away; and a record that was damaged is
written anew with other numbers, so that a file from before says other ids and numbers for the same events.
"""

from __future__ import annotations

from collections.abc import Iterator

from harness_nb.notebook.cells import KEY
from harness_nb.notebook.serial import Snapshot
from harness_nb.notebook.upgrade import free_id, with_id
from harness_nb.types import JsonObject

_Key = tuple[str, ...]


class _Places:
    """Where our events are: the id of the cell and the number of each."""

    def __init__(self, ours: Snapshot) -> None:
        found = [(_key(event), piece.id, event["seq"]) for piece in ours.pieces for event in _events(piece.cell)]
        self._exact = {(key, seq): name for key, name, seq in found}
        self._any = {key: (name, seq) for key, name, seq in found}

    def of(self, event: JsonObject) -> tuple[str, int] | None:
        """The place of an event of theirs; ``None`` where we have it not. The same number goes first."""
        key, seq = _key(event), event["seq"]
        name = self._exact.get((key, seq))
        return self._any.get(key) if name is None else (name, seq)


def recognised(theirs: JsonObject, ours: Snapshot) -> JsonObject:
    """``theirs`` with our ids and numbers for our cells."""
    places = _Places(ours)
    told = [(event["seq"], places.of(event)) for cell in theirs["cells"] for event in _events(cell)]
    if any(place is not None and place[1] != number for number, place in told):
        theirs = _renumbered(theirs, ours, places)
    return _identified(theirs, ours)


def numbers_of(cell: JsonObject) -> list[int]:
    """The numbers of the events in a cell's machine data."""
    return [event["seq"] for event in _events(cell)]


def _events(cell: JsonObject) -> Iterator[JsonObject]:
    """The events in a cell's machine data that have a number."""
    machine = cell["metadata"].get(KEY)
    events = machine.get("events") if isinstance(machine, dict) else None
    for event in events if isinstance(events, list) else ():
        if isinstance(event, dict) and isinstance(event.get("seq"), int):
            yield event


def _key(event: JsonObject) -> _Key:
    """What tells an event, whatever its number."""
    names = ("type", "call_id", "text", "command")
    return str(event.get("time") or event.get("seq")), *(str(event.get(name, "")) for name in names)


def _renumbered(theirs: JsonObject, ours: Snapshot, places: _Places) -> JsonObject:
    """``theirs`` with the ids and numbers that its events have now.

    A cell of which we know nothing any more, and a copy of one, is a cell that they added: its machine data, whose
    numbers mean something else now, goes. Up to where the file goes is then told by its cells.
    """
    taken = {piece.id for piece in ours.pieces} | {str(cell.get("id")) for cell in theirs["cells"]}
    used: set[str] = set()
    cells: list[JsonObject] = []
    for cell in theirs["cells"]:
        found = [(event, place) for event in _events(cell) if (place := places.of(event)) is not None]
        known = [{**event, "seq": seq} for event, (_, seq) in found]
        name = found[0][1][0] if found else ""
        if known and name not in used:
            used.add(name)
            if cells and f"{cells[-1].get('id')}-".startswith(f"{cell.get('id')}-why-"):  # it introduces this one
                cells[-1] = with_id(cells[-1], f"{name}-why")
            machine = {**cell["metadata"][KEY], "events": known}
            cells.append(with_id({**cell, "metadata": {**cell["metadata"], KEY: machine}}, name))
            continue
        metadata = {key: value for key, value in cell["metadata"].items() if key != KEY}
        name = free_id(f"{str(cell.get('id', 'cell'))[:50]}-added", taken) if _collides(cell, ours) else ""
        cells.append({**(with_id(cell, name) if name else cell), "metadata": metadata})
    machine = theirs["metadata"].get(KEY)
    told = {key: value for key, value in machine.items() if key != "last_seq"} if isinstance(machine, dict) else {}
    return {**theirs, "cells": cells, "metadata": {**theirs["metadata"], KEY: told}}


def _collides(cell: JsonObject, ours: Snapshot) -> bool:
    return any(piece.id == cell.get("id") for piece in ours.pieces)


def _identified(theirs: JsonObject, ours: Snapshot) -> JsonObject:
    """``theirs`` with our ids put back where an old program took them away; the machine data tells the cells."""
    names = {numbers[0]: piece.id for piece in ours.pieces if (numbers := numbers_of(piece.cell))}
    pairs = zip(ours.pieces, ours.pieces[1:], strict=False)
    before = {piece.id: ahead.id for ahead, piece in pairs if not numbers_of(ahead.cell)}
    free = {piece.id for piece in ours.pieces} - {cell.get("id") for cell in theirs["cells"]}
    cells = list(theirs["cells"])
    for at, cell in enumerate(cells):
        numbers = numbers_of(cell)
        name = names.get(numbers[0]) if numbers else None
        if "id" in cell or name not in free:
            continue
        cells[at] = with_id(cell, name)
        free.discard(name)
        ahead = before.get(name)
        if at and ahead in free and "id" not in cells[at - 1] and not numbers_of(cells[at - 1]):
            cells[at - 1] = with_id(cells[at - 1], ahead)
            free.discard(ahead)
    return {**theirs, "cells": cells}
