"""A training on a terminal: its lines as they settle, and one line of its metrics instead of a plot."""

from __future__ import annotations

import io

from rich.console import Console
from ui_cells import decided, finished, output, result, started

from harness_nb import events as ev
from harness_nb.ui.terminal import TerminalDisplay

PLOT = {
    "output_type": "display_data",
    "data": {
        "image/png": "aGk=",
        "text/html": "<div></div>",
        "text/plain": "epoch 3: loss 0.3\n\nepoch  loss\n    3   0.3",
    },
    "metadata": {"harness_nb": {"derived": "metrics"}},
}


def plotted(transient: bool) -> ev.CellOutput:
    return ev.CellOutput(call_id="c1", name="python", op="set", index=1, output=PLOT, transient=transient)


RUN = [
    decided("train()"),
    started("train()"),
    output("epoch 1 loss 0.5\n"),
    plotted(transient=True),
    output("epoch 2 loss 0.4\n"),
    output("epoch 3 loss 0.3\n"),
    plotted(transient=False),
    finished(),
    result(),
]


def test_a_terminal_shows_all_lines_and_the_summary_once() -> None:
    display = TerminalDisplay(Console(file=io.StringIO(), width=100, highlight=False))
    for item in RUN:
        display.apply(item)
    assert isinstance(display._console.file, io.StringIO)
    lines = display._console.file.getvalue().splitlines()
    at = lines.index("epoch 1 loss 0.5")
    assert lines[at : at + 4] == ["epoch 1 loss 0.5", "epoch 2 loss 0.4", "epoch 3 loss 0.3", "epoch 3: loss 0.3"]
    assert "image/png" not in "\n".join(lines)
