"""The widget models of one kernel: their state, as its comm messages tell it.

The kernel's router feeds every comm message, and asks of every output whether an output widget captures it; nothing
here knows of cells. Formats: the Jupyter messaging protocol 5.4 (comms), the Jupyter widget messaging protocol 2.1.0
(state, buffers) and ipywidgets 8 (the output widget's ``msg_id`` and ``outputs``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from harness_nb.outputs.widgets.captured import add_captured, update_captured
from harness_nb.ports import Output
from harness_nb.types import JsonObject

TARGET = "jupyter.widget"
COMM_KINDS = frozenset({"comm_open", "comm_msg", "comm_close"})
REFERENCE = "IPY_MODEL_"
"""What stands before the id of a model in the state of another one."""

MOST_MODELS = 5000
"""Models that are kept; the oldest go first. A progress bar of tqdm has ten."""


class WidgetModels:
    """The widgets of a kernel. ``revision`` counts changes."""

    def __init__(self) -> None:
        self.revision = 0
        self._states: dict[str, JsonObject] = {}
        self._changed: dict[str, int] = {}
        self._capturing: dict[str, str] = {}
        self._holding: set[str] = set()
        self._clear_next: set[str] = set()

    @property
    def states(self) -> Mapping[str, JsonObject]:
        """The states of the open models, in the order of their opening.

        A state, and each value in it, is replaced when it changes and never changed in place.
        """
        return self._states

    def changed_since(self, model_ids: Iterable[str], revision: int) -> bool:
        """Whether one of these models has changed, or was closed, after ``revision``."""
        return any(self._changed.get(model_id, 0) > revision for model_id in model_ids)

    def take(self, message: JsonObject) -> None:
        """A ``comm_open``, ``comm_msg`` or ``comm_close`` that the kernel has published."""
        content: JsonObject = message["content"]
        model_id, data = str(content["comm_id"]), content.get("data") or {}
        buffers = [bytes(buffer) for buffer in message.get("buffers") or ()]
        match message["msg_type"]:
            case "comm_open" if content.get("target_name") == TARGET:
                while len(self._states) >= MOST_MODELS:
                    self._forget(next(iter(self._states)))
                self._set(model_id, _state_of(data, buffers))
            case "comm_msg" if model_id in self._states:
                if data.get("method") in ("update", "echo_update"):
                    self._set(model_id, _state_of(data, buffers))
            case "comm_close" if model_id in self._states:
                self._forget(model_id)
            case _:
                pass

    def capture(self, request: str, output: Output) -> bool:
        """Whether an output widget takes an output of this request; it is in its state then."""
        if output.kind == "update_display_data":
            for model_id in self._holding:
                self._set_outputs(model_id, update_captured(tuple(self._states[model_id]["outputs"]), output))
            return False
        takers = [model_id for model_id, captured in self._capturing.items() if captured == request]
        if not takers:
            return False
        model_id = takers[-1]
        outputs = tuple(self._states[model_id].get("outputs") or ())
        if output.kind == "clear_output" and output.content.get("wait"):
            self._clear_next.add(model_id)
        elif output.kind == "clear_output":
            self._clear_next.discard(model_id)
            self._set_outputs(model_id, ())
        else:
            kept = () if model_id in self._clear_next else outputs
            self._clear_next.discard(model_id)
            self._set_outputs(model_id, add_captured(kept, output))
        return True

    def _set_outputs(self, model_id: str, outputs: tuple[JsonObject, ...]) -> None:
        self._holding.add(model_id)
        if outputs != tuple(self._states[model_id].get("outputs") or ()):
            self._set(model_id, {"outputs": outputs})

    def _set(self, model_id: str, state: JsonObject) -> None:
        if "msg_id" in state:
            self._capturing.pop(model_id, None)
            if state["msg_id"]:
                self._capturing[model_id] = state["msg_id"]
        self._states[model_id] = {**self._states.get(model_id, {}), **state}
        self._note_change(model_id)

    def _forget(self, model_id: str) -> None:
        del self._states[model_id]
        self._capturing.pop(model_id, None)
        self._holding.discard(model_id)
        self._clear_next.discard(model_id)
        self._note_change(model_id)

    def _note_change(self, model_id: str) -> None:
        self.revision += 1
        self._changed.pop(model_id, None)
        self._changed[model_id] = self.revision
        if len(self._changed) > 2 * MOST_MODELS:
            del self._changed[next(iter(self._changed))]


def _state_of(data: JsonObject, buffers: Sequence[bytes]) -> JsonObject:
    """The state of a message, with its binary values where they belong."""
    state: JsonObject = dict(data.get("state") or {})
    for path, buffer in zip(data.get("buffer_paths") or (), buffers, strict=False):
        place: Any = state
        with suppress(LookupError, TypeError):  # tool code can send anything
            for step in path[:-1]:
                place = place[step]
            place[path[-1]] = buffer
    return state
