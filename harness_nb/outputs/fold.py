"""How output events add up to the outputs of a cell: the one fold that firewall, notebook, screen and tests share."""

from __future__ import annotations

from harness_nb.events import CellOutput
from harness_nb.types import JsonObject


def apply_output(outputs: list[JsonObject], event: CellOutput) -> None:
    """Carry out ``event`` on the list of nbformat outputs.

    Output dicts are replaced, never changed, so that they may be shared. A ``set`` one past the end adds the output as
    it is, without joining it to a stream before it.

    Raises:
        IndexError: if a ``set`` points further away; the events were not folded from the start.
    """
    if event.op == "clear":
        outputs.clear()
        return
    output = event.output
    if output is None:
        raise IndexError(f"a cell_output {event.op} carries no output")
    if event.op == "append":
        last = outputs[-1] if outputs else None
        if last is not None and _is_stream(output) and _is_stream(last) and last["name"] == output["name"]:
            outputs[-1] = {**last, "text": last["text"] + output["text"]}
        else:
            outputs.append(output)
        return
    index = event.index if event.index is not None else -1
    if index == len(outputs):
        outputs.append(output)
    elif 0 <= index < len(outputs):
        outputs[index] = output
    else:
        raise IndexError(f"a cell_output sets output {index} of {len(outputs)}")


def _is_stream(output: JsonObject) -> bool:
    return output.get("output_type") == "stream"
