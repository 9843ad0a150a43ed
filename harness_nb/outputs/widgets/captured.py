"""What an output widget has captured: outputs of a cell that go into the widget instead.

Used by ``models``. Outputs are in nbformat's form, as the widget's ``outputs`` trait has them; those that can be
updated keep their display id in ``transient``.
"""

from __future__ import annotations

from harness_nb.outputs.bounds import head_and_tail
from harness_nb.ports import Output
from harness_nb.types import JsonObject

Outputs = tuple[JsonObject, ...]

MOST_OUTPUTS = 100
"""Outputs that are kept in one widget; the oldest go first."""

MOST_CHARS = 40_000
"""Characters of one text that are kept, half from its start and half from its end."""


def add_captured(outputs: Outputs, output: Output) -> Outputs:
    """``outputs`` and one more; text continues the last one of its stream."""
    content = output.content
    if output.kind == "stream":
        made: JsonObject = {"output_type": "stream", "name": content.get("name", "stdout"), "text": content["text"]}
        last = outputs[-1] if outputs else None
        if last is not None and last.get("output_type") == "stream" and last.get("name") == made["name"]:
            joined = head_and_tail(last["text"] + made["text"], MOST_CHARS)
            return (*outputs[:-1], {**last, "text": joined})
    elif output.kind == "error":
        made = {"output_type": "error", **content}
    else:
        made = {"output_type": "display_data", "data": content.get("data") or {}, "metadata": {}}
        made["metadata"] = content.get("metadata") or {}
        if output.display_id is not None:
            made["transient"] = {"display_id": output.display_id}
    return (*outputs, made)[-MOST_OUTPUTS:]


def update_captured(outputs: Outputs, output: Output) -> Outputs:
    """``outputs`` after an ``update_display_data``; the same object if it concerns none of them."""
    concerned = [(each.get("transient") or {}).get("display_id") == output.display_id for each in outputs]
    if output.display_id is None or not any(concerned):
        return outputs
    data, metadata = output.content.get("data") or {}, output.content.get("metadata") or {}
    new = {"data": data, "metadata": metadata}
    return tuple({**each, **new} if hit else each for each, hit in zip(outputs, concerned, strict=True))
