"""The events that bring a screen and a record from what they show to what a cell's outputs are now.

The firewall calls ``advance`` with each new state. Two folds are followed: the screen's, of all events, and the
record's, of the lasting ones only. Both end at the same outputs; the record gets fewer of the states in between.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from harness_nb.events import CellOutput
from harness_nb.outputs.fold import apply_output
from harness_nb.types import JsonObject


class Changes:
    """Follows one cell. ``shown`` and ``lasting`` are what the two folds have added up to so far."""

    def __init__(self, call_id: str, name: str) -> None:
        self._call_id = call_id
        self._name = name
        self.shown: list[JsonObject] = []
        self.lasting: list[JsonObject] = []

    def owed(self) -> bool:
        """Whether the record lacks something that the screen shows."""
        return not _same(self.shown, self.lasting)

    def advance(self, outputs: list[JsonObject], lasting: bool) -> list[CellOutput]:
        """The events that lead to ``outputs``.

        What only continues the text or adds outputs is recorded at once. Anything that changes what was there is
        recorded if ``lasting`` says that a recorded state is due, and else only shown.
        """
        if self._continues(outputs):
            return self._appends(outputs)
        if not lasting:
            return self._sets(outputs, [self.shown], transient=True)
        return self._sets(outputs, [self.shown, self.lasting], transient=False)

    def derived(self, output: JsonObject, transient: bool) -> CellOutput:
        """The event for a derived output, which stands behind all others and is followed elsewhere."""
        return self._event(op="set", index=len(self.shown), output=output, transient=transient)

    def restate(self, transient: bool) -> list[CellOutput]:
        """Everything that is shown once more, after a ``clear``: what was derived from it is gone.

        The record is restated with the screen unless ``transient``.
        """
        outputs = list(self.shown)
        folds = [self.shown] if transient else [self.shown, self.lasting]
        return self._sets(outputs, folds, transient, clear=True)

    def _continues(self, outputs: list[JsonObject]) -> bool:
        count = len(self.lasting)
        if self.owed() or len(outputs) < count or not _same(outputs[: max(count - 1, 0)], self.lasting[:-1]):
            return False
        if count and not _extends(self.lasting[-1], outputs[count - 1]):
            return False
        added = outputs[max(count - 1, 0) :]
        return not any(_joins(before, after) for before, after in pairwise(added))

    def _appends(self, outputs: list[JsonObject]) -> list[CellOutput]:
        events = []
        count = len(self.lasting)
        if count and not _equal(self.lasting[-1], outputs[count - 1]):
            rest = outputs[count - 1]["text"][len(self.lasting[-1]["text"]) :]
            events.append(self._event(op="append", output={**outputs[count - 1], "text": rest}))
        events += [self._event(op="append", output=output) for output in outputs[count:]]
        self.shown, self.lasting = list(outputs), list(outputs)
        return events

    def _sets(
        self, outputs: list[JsonObject], folds: list[list[JsonObject]], transient: bool, clear: bool = False
    ) -> list[CellOutput]:
        events = []
        if clear or any(len(fold) > len(outputs) for fold in folds):
            events.append(self._event(op="clear", transient=transient))
        for index, output in enumerate(outputs):
            known = not events or events[0].op != "clear"
            if known and all(index < len(fold) and _equal(fold[index], output) for fold in folds):
                continue
            events.append(self._event(op="set", index=index, output=output, transient=transient))
        for event in events:
            for fold in folds:
                apply_output(fold, event)
        return events

    def _event(self, **fields: Any) -> CellOutput:
        return CellOutput(call_id=self._call_id, name=self._name, **fields)


def weight(event: CellOutput) -> int:
    """About how many characters an event carries."""
    output = event.output or {}
    values = [output.get("text", ""), *output.get("data", {}).values(), *output.get("traceback", ())]
    return sum(len(value) if isinstance(value, str) else 1000 for value in values)


def _equal(one: JsonObject, other: JsonObject) -> bool:
    return one is other or one == other


def _same(some: list[JsonObject], others: list[JsonObject]) -> bool:
    return len(some) == len(others) and all(map(_equal, some, others))


def _joins(before: JsonObject, after: JsonObject) -> bool:
    both_streams = before["output_type"] == after["output_type"] == "stream"
    return both_streams and bool(before["name"] == after["name"])


def _extends(before: JsonObject, after: JsonObject) -> bool:
    if _equal(before, after):
        return True
    return _joins(before, after) and bool(after["text"].startswith(before["text"]))
