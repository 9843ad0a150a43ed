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
    _check(notebook)
    found = []
    for cell in notebook.get("cells", ()):
        outputs = [_joined_output(output) for output in cell.get("outputs", ())]
        for data in _machine_data(cell).get("events", ()):
            found.append((data, outputs, str(cell.get("id", ""))))
    numbers = [data.get("seq", 0) for data, _, _ in found if isinstance(data, dict)]
    if all(numbers) and len(numbers) == len(found):
        found.sort(key=lambda item: item[0]["seq"])
    return _restored(found)


def _restored(found: list[tuple[Any, list[JsonObject], str]]) -> list[Event]:
    events: list[Event] = []
    restorer = Restorer()
    last_seq = 0
    for data, outputs, cell_id in found:
        try:
            event = parse_event(restorer.complete(data, outputs))
        except (ValidationError, TypeError, ValueError, AttributeError) as error:
            raise StoreError(
                f"The machine data of cell {cell_id!r} is damaged ({str(error).splitlines()[0]}). "
                "Resume from the journal of the session instead."
            ) from error
        if event.seq and event.seq == last_seq:
            continue
        last_seq = event.seq
        restorer.learn(event)
        events.append(event)
        if isinstance(event, CellStarted):
            events += output_events(event.call_id, event.name, outputs)
    return events


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
