"""From a session notebook back to its events. Resume, fork and replay call it when there is no journal."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from harness_nb.errors import StoreError
from harness_nb.events import CellStarted, Event, parse_event
from harness_nb.notebook.cells import KEY
from harness_nb.notebook.machine import Restorer, output_events
from harness_nb.types import JsonObject

FORMAT_VERSION = 2
"""Version of the machine data. Raised when an older reader would misread it."""


def events_of(notebook: JsonObject) -> list[Event]:
    """The events that a session notebook records, in their order: enough to resume the conversation.

    ``notebook`` is the JSON object of the file, in any of the forms that Jupyter's programs save. Outputs come back as
    one event each. Cells that a person added are passed over, cells that were copied count once.

    Raises:
        StoreError: if it is not the notebook of a session, is of a newer format, or its machine data is damaged.
    """
    events, damage = readable_events(notebook)
    if damage:
        raise StoreError(f"{damage[0]} Resume from the journal of the session instead.")
    return events


def readable_events(notebook: JsonObject) -> tuple[list[Event], list[str]]:
    """As ``events_of``, with a sentence for each cell whose machine data is damaged in place of its events.

    Raises:
        StoreError: if it is not the notebook of a session, or is of a newer format.
    """
    _check(notebook)
    found: list[_Found] = []
    damage: list[str] = []
    cells = notebook.get("cells")
    for cell in cells if isinstance(cells, list) else ():
        name = str(cell.get("id", "")) if isinstance(cell, dict) else ""
        try:
            outputs = [_joined_output(output) for output in cell.get("outputs", ())]
            found += [(data, outputs, name) for data in _machine_data(cell).get("events", ())]
        except (TypeError, ValueError, AttributeError):
            damage.append(f"The cell {name!r} is damaged.")
    if all(isinstance(data, dict) and _number(data) > 0 for data, _, _ in found):
        found.sort(key=lambda item: _number(item[0]))
    events, more = _restored(found)
    return events, damage + more


_Found = tuple[Any, list[JsonObject], str]
"""The machine data of an event, the outputs of its cell and the id of the cell."""


def _number(data: JsonObject) -> int:
    """The number of an event, 0 where it has none."""
    seq = data.get("seq", 0)
    return seq if isinstance(seq, int) else 0


def _restored(found: list[_Found]) -> tuple[list[Event], list[str]]:
    events: list[Event] = []
    damage: list[str] = []
    restorer = Restorer()
    last_seq = 0
    for data, outputs, name in found:
        try:
            event = parse_event(restorer.complete(data, outputs))
        except (ValidationError, TypeError, ValueError, AttributeError, RecursionError) as error:
            damage.append(f"The machine data of cell {name!r} is damaged: {problem_of(error, data)}.")
            continue
        if event.seq and event.seq == last_seq:
            continue
        last_seq = event.seq
        restorer.learn(event)
        events.append(event)
        if isinstance(event, CellStarted):
            events += output_events(event.call_id, event.name, outputs)
    return events, damage


def problem_of(error: Exception, value: Any) -> str:
    """Why ``value``, which was read from a journal or a notebook, is no event: half a sentence."""
    kind = value.get("type") if isinstance(value, dict) else None
    if isinstance(error, ValidationError) and isinstance(kind, str):
        first = error.errors(include_url=False, include_input=False)[0]
        if not first["type"].startswith("union_tag"):
            return f"its {'.'.join(map(str, first['loc'][1:]))} does not fit the event {kind}"
    return "it is no event that this version of harness_nb knows"


def _check(notebook: JsonObject) -> None:
    machine = _machine_data(notebook)
    if not machine:
        raise StoreError(
            "This notebook was not written by harness_nb: it has no metadata under the key 'harness_nb'. "
            "Session notebooks are in the folder harness_sessions."
        )
    version = machine.get("format_version")
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise StoreError(
            f"This session notebook has format version {version!r}, and this harness_nb reads up to {FORMAT_VERSION}. "
            "Update harness-nb."
        )


def _machine_data(part: Any) -> JsonObject:
    """What is under our key in the metadata of a notebook or a cell; empty if nothing of ours is there."""
    metadata = part.get("metadata") if isinstance(part, dict) else None
    machine = metadata.get(KEY) if isinstance(metadata, dict) else None
    return machine if isinstance(machine, dict) else {}


def _joined_output(output: JsonObject) -> JsonObject:
    """An output with its texts as one string each: files may hold lists of lines."""
    joined = dict(output)
    if "text" in joined:
        joined["text"] = _text(joined["text"])
    if isinstance(joined.get("data"), dict):
        joined["data"] = {kind: _text(value) for kind, value in joined["data"].items()}
    return joined


def _text(value: Any) -> Any:
    lines = isinstance(value, list) and all(isinstance(line, str) for line in value)
    return "".join(value) if lines else value
