"""How output events add up to the outputs of a cell: the one fold that firewall, notebook, screen and tests share.

An output that the harness derived from the others, such as a plot of the metrics that were printed, always stands last.
So the indices of the cell's own outputs, and what an ``append`` is joined to, are the same with it and without it.
"""

from __future__ import annotations

from harness_nb.events import CellOutput
from harness_nb.types import JsonObject

MARK = "harness_nb"
"""The key, in the metadata of an output, that says what it was derived from: ``{"derived": "metrics"}``."""


def is_derived(output: JsonObject) -> bool:
    """Whether the harness made this output. What a kernel sends never has the mark: the firewall takes it away."""
    mark = (output.get("metadata") or {}).get(MARK)
    return isinstance(mark, dict) and "derived" in mark


def apply_output(outputs: list[JsonObject], event: CellOutput) -> None:
    """Carry out ``event`` on the list of nbformat outputs.

    Output dicts are replaced, never changed, so that they may be shared. A ``set`` past the end adds the output as it
    is, without joining it to a stream before it; so an event that was lost before it does no further harm. A derived
    output takes the place of the one before it, whatever the index.
    """
    if event.op == "clear":
        outputs.clear()
        return
    output = event.output
    if output is None:
        return
    derived = [outputs.pop()] if outputs and is_derived(outputs[-1]) else []
    if is_derived(output):
        outputs.append(output)
        return
    last = outputs[-1] if outputs else None
    if event.op == "set":
        index = event.index if event.index is not None else len(outputs)
        outputs[index : index + 1] = [output]
    elif last is not None and _is_stream(output) and _is_stream(last) and last["name"] == output["name"]:
        outputs[-1] = {**last, "text": last["text"] + output["text"]}
    else:
        outputs.append(output)
    outputs += derived


def _is_stream(output: JsonObject) -> bool:
    return output.get("output_type") == "stream"
