"""A plot of metrics in the session notebook: last in its cell, there again after a resume, passed over by nbval."""

from __future__ import annotations

from typing import Any

import pytest
from story import display, stream

from harness_nb import events as ev
from harness_nb.notebook import NotebookFold, events_of
from harness_nb.types import Status

IDS: dict[str, Any] = {"call_id": "c1", "name": "python"}
PLOT = display({"image/png": "aGk=", "text/plain": "epoch 3"}, {"harness_nb": {"derived": "metrics"}})


def trained(status: Status = Status.OK) -> NotebookFold:
    fold = NotebookFold("s")
    events = [
        ev.CellStarted(**IDS, source="train()"),
        ev.CellOutput(**IDS, output=stream("stdout", "epoch 1\n")),
        ev.CellOutput(**IDS, op="set", index=1, output=PLOT, transient=True),
        ev.CellOutput(**IDS, op="set", index=1, output=PLOT),
        ev.CellOutput(**IDS, output=stream("stdout", "epoch 2\n")),
        ev.CellOutput(**IDS, output=display({"text/plain": "net"})),
        ev.CellFinished(**IDS, status=status, execution_count=2),
    ]
    for event in events:
        fold.apply(event)
    return fold


def test_it_stands_last_and_survives_a_resume() -> None:
    (cell,) = trained().notebook()["cells"]
    assert cell["outputs"] == [stream("stdout", "epoch 1\nepoch 2\n"), display({"text/plain": "net"}), PLOT]
    again = NotebookFold("s")
    for event in events_of(trained().notebook()):
        again.apply(event)
    assert again.notebook()["cells"] == [cell]


@pytest.mark.parametrize(
    ("status", "tags"),
    [
        (Status.OK, ["nbval-ignore-output"]),
        (Status.ERROR, ["raises-exception", "nbval-ignore-output"]),
        (Status.INTERRUPTED, ["raises-exception", "skip-execution", "nbval-skip", "nbval-ignore-output"]),
    ],
)
def test_nbval_passes_over_its_outputs(status: Status, tags: list[str]) -> None:
    (cell,) = trained(status).notebook()["cells"]
    assert cell["metadata"]["tags"] == tags


def test_a_cell_without_one_has_no_such_tag() -> None:
    fold = NotebookFold("s")
    fold.apply(ev.CellStarted(**IDS, source="1"))
    fold.apply(ev.CellOutput(**IDS, output=display({"text/plain": "1"})))
    fold.apply(ev.CellFinished(**IDS, status=Status.OK, execution_count=2))
    assert "tags" not in fold.notebook()["cells"][0]["metadata"]
