"""Events as the machine data of a cell, and back. What the notebook says elsewhere is not said twice.

Left out when a cell is written, and put back when it is read: the call in ``call_decided`` (it is in the reply), the
source in ``cell_started`` (it is in ``call_decided``), and images of ``result_added`` that are in the cell's outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness_nb.events import CallDecided, CellOutput, CellStarted, EventBase, ModelReplied
from harness_nb.outputs.mime import clean_json
from harness_nb.types import JsonObject, ToolCall

LOST_IMAGE = {"type": "text", "text": "[an image that is no longer in the notebook]"}
_IN_OUTPUT = "output"


def dump_event(
    event: EventBase, events: Sequence[EventBase], outputs: Sequence[JsonObject], replied: ToolCall | None
) -> JsonObject:
    """The JSON object for ``event`` of a cell with these ``events`` and ``outputs``.

    ``replied`` is the call as it stands in the model's reply.
    """
    compact = event.model_dump(mode="json", exclude_defaults=True)
    data: JsonObject = _with_types(compact, event.model_dump(mode="json"))
    if isinstance(event, CallDecided) and event.call == replied:
        del data["call"]
    elif isinstance(event, CellStarted) and any(
        isinstance(other, CallDecided) and other.source == event.source for other in events
    ):
        del data["source"]
    elif data["type"] == "result_added":
        data["content"] = [_refer(part, outputs) for part in data["content"]]
    cleaned: JsonObject = clean_json(data)
    return cleaned


def _with_types(compact: Any, whole: Any) -> Any:
    """The compact form with the ``type`` of each part, which is a default and yet tells what the part is."""
    if isinstance(compact, dict):
        kept = {key: _with_types(value, whole[key]) for key, value in compact.items()}
        return {"type": whole["type"], **kept} if "type" in whole else kept
    if isinstance(compact, list):
        return [_with_types(*pair) for pair in zip(compact, whole, strict=True)]
    return compact


def _refer(part: JsonObject, outputs: Sequence[JsonObject]) -> JsonObject:
    """An image part as a reference to the output that holds the same image, if one does."""
    if part.get("data"):
        for index, output in enumerate(outputs):
            if output.get("data", {}).get(part["media_type"]) == part["data"]:
                return {"type": "image", "media_type": part["media_type"], _IN_OUTPUT: index}
    return part


class Restorer:
    """Puts back what ``dump_event`` left out. Takes the events of a notebook in their order."""

    def __init__(self) -> None:
        self._calls: dict[str, ToolCall] = {}
        self._sources: dict[str, str] = {}

    def complete(self, data: JsonObject, outputs: Sequence[JsonObject]) -> JsonObject:
        """The whole object of an event, from a cell with these ``outputs``."""
        data = dict(data)
        call_id = str(data.get("call_id", ""))
        match data.get("type"):
            case "call_decided" if "call" not in data:
                call = self._calls.get(call_id) or ToolCall(call_id=call_id, name=str(data.get("name", "")))
                data["call"] = call
            case "cell_started" if "source" not in data:
                data["source"] = self._sources.get(call_id, "")
            case "result_added":
                data["content"] = [_resolve(part, outputs) for part in data.get("content", ())]
            case _:
                pass
        return data

    def learn(self, event: EventBase) -> None:
        """Remember what later events refer to."""
        if isinstance(event, ModelReplied):
            self._calls.update({call.call_id: call for call in event.message.tool_calls})
        elif isinstance(event, CallDecided):
            self._sources[event.call_id] = event.source


def _resolve(part: Any, outputs: Sequence[JsonObject]) -> Any:
    if not isinstance(part, dict) or _IN_OUTPUT not in part:
        return part
    index, media_type = part[_IN_OUTPUT], part.get("media_type", "")
    data = outputs[index].get("data", {}).get(media_type) if 0 <= index < len(outputs) else None
    if not isinstance(data, str):
        return LOST_IMAGE
    return {"type": "image", "media_type": media_type, "data": "".join(data.split())}


def output_events(call_id: str, name: str, outputs: Sequence[JsonObject]) -> list[CellOutput]:
    """The outputs of a cell as the events that would have made them."""
    return [
        CellOutput(call_id=call_id, name=name, op="set", index=index, output=output)
        if index and _same_stream(outputs[index - 1], output)
        else CellOutput(call_id=call_id, name=name, output=output)
        for index, output in enumerate(outputs)
    ]


def _same_stream(one: JsonObject, other: JsonObject) -> bool:
    streams = one.get("output_type") == other.get("output_type") == "stream"
    return streams and one.get("name") == other.get("name")
