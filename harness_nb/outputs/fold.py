"""How output events add up to the outputs of a cell: the one fold that firewall, notebook, screen and tests share."""

from __future__ import annotations

from harness_nb.events import CellOutput
from harness_nb.types import JsonObject


def apply_output(outputs: list[JsonObject], event: CellOutput) -> None:
    """Carry out ``event`` on the list of nbformat outputs.

    Output dicts are replaced, never changed, so that they may be shared. A ``set`` past the end adds the output as it
    is, without joining it to a stream before it; so an event that was lost before it does no further harm.
    """
    if event.op == "clear":
        outputs.clear()
        return
    output = event.output
    if output is None:
        return
    if event.op == "set":
        index = event.index if event.index is not None else len(outputs)
        outputs[index : index + 1] = [output]
        return
    last = outputs[-1] if outputs else None
    if last is not None and _is_stream(output) and _is_stream(last) and last["name"] == output["name"]:
        outputs[-1] = {**last, "text": last["text"] + output["text"]}
    else:
        outputs.append(output)


def _is_stream(output: JsonObject) -> bool:
    return output.get("output_type") == "stream"
