"""A journal and a session notebook as one record: what the one lacks comes from the other. Pure.

``record`` calls it for a journal that is damaged, or that does not go as far as the notebook.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from harness_nb.events import CellFinished, CellOutput, CellStarted, Event

Key = tuple[str, ...]
Missing = tuple[int, Event]
"""An event that the journal lacks, and the place in the journal of the one before it; -1 where that is the start."""


def joined(journal: Sequence[Event], notebook: Sequence[Event]) -> list[Event]:
    """The journal, with what it lacks taken from the notebook: lines that were damaged or are lost, or all of it.

    Events are told by their kind, time and call, for the numbers of a notebook are others where the journal has been
    written anew since. Outputs are not told apart in a notebook, so those of a cell come from there as a whole when the
    journal lacks a line between its start and its end. A notebook that has other events under the same numbers, and
    none in common, is of another record and adds nothing.
    """
    if not journal:
        return list(notebook)
    missing, common, alike = _missing(journal, notebook)
    numbers = {event.seq for event in journal}
    if not common and any(event.seq in numbers for _, event in missing):
        return list(journal)
    refilled = _cells_with_holes(journal, [event for _, event in missing], notebook, alike)
    if not missing and not refilled:
        return list(journal)
    kept = [
        (at, event)
        for at, event in enumerate(journal)
        if not (isinstance(event, CellOutput) and event.call_id in refilled)
    ]
    if alike:
        result = sorted([event for _, event in [*kept, *missing]], key=lambda event: event.seq)
    else:  # each behind the one that it follows in the notebook
        result = [event for _, event in sorted([*kept, *missing], key=lambda item: item[0])]
    return _with_outputs(result, refilled, notebook)


def _missing(journal: Sequence[Event], notebook: Sequence[Event]) -> tuple[list[Missing], int, bool]:
    """What the journal lacks, how many events both have, and whether both number them alike.

    Of events of one kind and moment, those with the same number are the same.
    """
    exact = {(event.seq, _key(event)) for event in notebook}
    numbered: dict[tuple[int, Key], int] = {}
    others: dict[Key, deque[int]] = {}
    for at, event in enumerate(journal):
        if (event.seq, _key(event)) in exact:
            numbered[event.seq, _key(event)] = at
        else:
            others.setdefault(_key(event), deque()).append(at)
    missing: list[Missing] = []
    alike, last = True, -1
    for event in notebook:
        if isinstance(event, CellOutput):
            continue
        found = numbered.get((event.seq, _key(event)))
        if found is None and (renumbered := others.get(_key(event))):
            found, alike = renumbered.popleft(), False
        if found is None:
            missing.append((last, event))
            continue
        last = found
        # its outputs belong to it: a notebook has no numbers for them
        while last + 1 < len(journal) and isinstance(journal[last + 1], CellOutput):
            last += 1
    common = sum(not isinstance(event, CellOutput) for event in notebook) - len(missing)
    return missing, common, alike


def _key(event: Event) -> Key:
    """What tells an event, whatever its number."""
    names = ("type", "call_id", "text", "command")
    return event.time or str(event.seq), *(str(getattr(event, name, "")) for name in names)


def _cells_with_holes(
    journal: Sequence[Event], found: Sequence[Event], notebook: Sequence[Event], alike: bool
) -> set[str]:
    """Ids of cells of whose outputs the journal may lack some, and the notebook has all.

    Those are the cells between whose start and end neither the journal nor ``found`` has a line of some number; and
    all whose start the journal lacks. Numbers count only where both number ``alike``.
    """
    cells = {event.call_id for event in found if isinstance(event, CellStarted)}
    ended = {event.call_id for event in notebook if isinstance(event, CellFinished)}
    events = [*journal, *found] if alike else list(journal)
    numbers = {event.seq for event in events}
    spans: dict[str, list[int]] = {}
    for event in events:
        if isinstance(event, CellStarted | CellFinished):
            spans.setdefault(event.call_id, []).append(event.seq)
    holed = {
        call_id
        for call_id, ends in spans.items()
        if any(number not in numbers for number in range(min(ends), max(ends)))
    }
    return cells | holed & ended


def _with_outputs(events: list[Event], cells: set[str], notebook: Sequence[Event]) -> list[Event]:
    """The outputs that the notebook has of ``cells``, each behind the start of its cell."""
    result = list(events)
    for call_id in cells:
        own = [event for event in notebook if isinstance(event, CellOutput) and event.call_id == call_id]
        starts = (at for at, event in enumerate(result) if isinstance(event, CellStarted) and event.call_id == call_id)
        at = next(starts, None)
        if at is not None:
            result[at + 1 : at + 1] = own
    return result
