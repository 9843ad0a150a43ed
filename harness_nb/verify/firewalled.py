"""The outputs of a run in the form in which a session records them: bounded, with their control characters carried out.

A cell of a session was recorded through the output firewall; to be compared, its new outputs pass it too. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness_nb.outputs import Firewall, is_derived
from harness_nb.ports import Output
from harness_nb.types import JsonObject
from harness_nb.verify.document import KEY, CodeCell

_KINDS = ("stream", "display_data", "execute_result", "error")


class _Nowhere:
    """A sink that keeps nothing, under the path that the record names."""

    def __init__(self, path: str) -> None:
        self.path = path

    def write(self, text: str) -> None:
        """Forget the text."""


def as_recorded(cell: CodeCell, outputs: Sequence[JsonObject], session_id: str) -> tuple[JsonObject, ...]:
    """The outputs as the session would have recorded them for ``cell``."""
    name = str(cell.metadata[KEY].get("name", ""))
    safe = "".join(character if character.isalnum() or character in "-_" else "_" for character in cell.call_id)
    sink = _Nowhere(f"harness_sessions/{session_id}/outputs/{safe}.txt")
    firewall = Firewall(cell.call_id, name, sink=sink, plot=any(is_derived(output) for output in cell.outputs))
    for output in outputs:
        if output.get("output_type") in _KINDS:
            content = {key: value for key, value in output.items() if key != "output_type"}
            firewall.feed(Output(output["output_type"], content))
    firewall.drain(0.0)
    firewall.close(1.0)
    return tuple(firewall.outputs)
