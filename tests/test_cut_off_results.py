"""A call whose work was cut off between the end of its cell and its result is told as it ended."""

from __future__ import annotations

from typing import Any

import pytest

from harness_nb import events as ev
from harness_nb.past import closing_events
from harness_nb.types import Decision, Message, Status, ToolCall

ALLOW = Decision(verdict="allow", reason="", policy="default")
STREAM = {"output_type": "stream", "name": "stdout", "text": "42 rows\n"}
ERROR = {"output_type": "error", "ename": "KeyError", "evalue": "'x'", "traceback": ["KeyError: 'x'"]}


def record(name: str, *later: ev.Event) -> list[ev.Event]:
    call = ToolCall(call_id="c1", name=name)
    return [
        ev.PromptAdded(prompt="go"),
        ev.ModelReplied(turn=1, message=Message(role="assistant", tool_calls=(call,))),
        ev.CallDecided(call_id="c1", name=name, call=call, source="x", decision=ALLOW),
        *later,
    ]


def cell(status: Status, *outputs: dict[str, Any]) -> list[ev.Event]:
    ids: dict[str, Any] = {"call_id": "c1", "name": "python"}
    shown = [ev.CellOutput(**ids, output=output) for output in outputs]
    return [ev.CellStarted(**ids, source="x"), *shown, ev.CellFinished(**ids, status=status, elapsed=2)]


def result_of(events: list[ev.Event]) -> tuple[Status, str]:
    (result,) = [event for event in closing_events(events) if isinstance(event, ev.ResultAdded)]
    return result.status, "".join(part.text for part in result.content if part.type == "text")


def test_a_cell_that_had_ended_is_told_with_its_output() -> None:
    status, text = result_of(record("python", *cell(Status.OK, STREAM)))
    assert (status, text) == (Status.OK, "42 rows\n[ok, 2.0 s; the work was cut off after it]")


def test_a_cell_that_had_failed_is_told_with_its_error() -> None:
    status, text = result_of(record("python", *cell(Status.ERROR, STREAM, ERROR)))
    assert status is Status.ERROR
    assert "42 rows" in text and "KeyError: 'x'" in text and "not run" not in text


def test_a_kernel_that_is_gone_is_not_said_to_live_on() -> None:
    status, text = result_of(record("python", *cell(Status.TIMED_OUT, STREAM)))
    assert status is Status.TIMED_OUT and "lives on" not in text


def test_what_a_cell_had_shown_until_it_was_cut_off_is_told() -> None:
    status, text = result_of(record("python", *cell(Status.OK, STREAM)[:2]))
    assert status is Status.UNKNOWN and text.startswith("The outcome of this call is unknown")
    assert text.endswith("look before you repeat it. Its output until then, as far as it is recorded:\n42 rows")


@pytest.mark.parametrize(
    ("name", "later", "status"),
    [
        ("python", [], Status.INTERRUPTED),
        ("python", cell(Status.OK)[:1], Status.UNKNOWN),
        ("rebuild", [], Status.UNKNOWN),
    ],
)
def test_what_is_not_known_is_not_guessed(name: str, later: list[ev.Event], status: Status) -> None:
    assert result_of(record(name, *later))[0] is status
