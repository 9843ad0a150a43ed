"""The cell of a tool call: what was run with what came of it, or the reason why it was not run.

``NotebookFold`` makes one for each call and hands it the events about that call.
"""

from __future__ import annotations

import json
from typing import assert_never

from harness_nb import events as ev
from harness_nb.notebook import texts
from harness_nb.notebook.cells import KEY, Cell, markdown_cell
from harness_nb.outputs import apply_output, is_derived
from harness_nb.outputs.mime import clean_json, replace_surrogates
from harness_nb.types import JsonObject, Status, ToolCall

CallEvent = ev.CallEvent | ev.ContextOffloaded

_TAGS: dict[Status | None, list[str]] = {Status.OK: [], Status.ERROR: ["raises-exception"]}
_TAGS_OF_OTHERS = ["raises-exception", "skip-execution", "nbval-skip"]
"""A cell that did not come to an end would not on a re-run either, or would do what was never seen to end well.

A cell with an output that was derived from the others gets ``nbval-ignore-output`` besides: a re-run does not make it.
"""


class CallCell(Cell):
    """A code cell with its outputs, or the reason and a raw cell when the call was not run.

    ``replied`` is the call as the model made it.
    """

    def __init__(self, number: int, name: str, call_id: str, replied: ToolCall | None) -> None:
        super().__init__(number, name)
        self.name = name
        self.call_id = call_id
        self._replied = replied
        self._source = ""
        self._outputs: list[JsonObject] = []
        self._started = False
        self._status: Status | None = None
        self._execution_count: int | None = None
        self._refusal = ""

    def fold(self, event: CallEvent) -> None:
        """Fold an event about this call in. Outputs are kept as outputs, everything else as machine data too."""
        if isinstance(event, ev.CellOutput):
            if not event.transient:
                clean = event.model_copy(update={"output": clean_json(event.output)})
                apply_output(self._outputs, clean)
                self.touch()
            return
        self.add(event)
        match event:
            case ev.CallDecided():
                self._source = event.source
                self._refusal = event.decision.reason if event.decision.verdict == "deny" else ""
            case ev.ApprovalAnswered() if self._status is None:  # a later one is for another call like this
                self._refusal = "" if event.approval.approved else event.approval.reason or "it was not approved"
            case ev.CellStarted():
                self._source, self._started = event.source, True
            case ev.CellFinished():
                self._status, self._execution_count = event.status, event.execution_count
                self._started = True  # also where the line that said so is lost
            case ev.ResultAdded():
                self._status = event.status
                self._refusal = self._refusal or texts.first_text(event.content)
            case ev.ApprovalAsked() | ev.ApprovalAnswered() | ev.ContextOffloaded():
                pass
            case _:
                assert_never(event)

    def _build(self) -> list[JsonObject]:
        refused = bool(self._refusal) and not self._started
        status = str(self._status or (Status.DENIED if refused else Status.RUNNING if self._started else "not started"))
        machine = self._machine_data(self._outputs, self._replied, call_id=self.call_id, name=self.name, status=status)
        if refused:
            reason = markdown_cell(f"{self.id}-why", texts.refusal(self.name, self._refusal), {})
            return [reason, self._raw_cell({KEY: machine, "raw_mimetype": "text/plain"})]
        derived = ["nbval-ignore-output"] if any(map(is_derived, self._outputs)) else []
        tags = [*_TAGS.get(self._status, _TAGS_OF_OTHERS), *derived]
        return [self._code_cell({KEY: machine, **({"tags": tags} if tags else {})})]

    def _code_cell(self, metadata: JsonObject) -> JsonObject:
        return {
            "cell_type": "code",
            "execution_count": self._execution_count,
            "id": self.id,
            "metadata": metadata,
            "outputs": list(self._outputs),
            "source": replace_surrogates(self._source),
        }

    def _raw_cell(self, metadata: JsonObject) -> JsonObject:
        """The source that was not run. Marked as plain text, so that no exporter takes it for HTML."""
        source = self._source or describe_call(self._replied, self.name)
        return {"cell_type": "raw", "id": self.id, "metadata": metadata, "source": replace_surrogates(source)}


def describe_call(call: ToolCall | None, name: str) -> str:
    """A call that renders to no cell, as text: the tool and its arguments as the model gave them."""
    if call is None:
        return name
    if call.malformed is not None:
        return f"{name} {call.malformed}"
    return f"{name} {json.dumps(clean_json(call.arguments), indent=2, ensure_ascii=False)}"
