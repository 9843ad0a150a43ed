"""The input transformer, and the edge of a run: waiting, interrupting, failing."""

from __future__ import annotations

import ast
from types import SimpleNamespace
from typing import Any

import pytest

from harness_nb.ui.magics import AgentCell

KERNEL = SimpleNamespace(kernel=object(), autoawait=True)


def call_of(lines: list[str]) -> tuple[str, bool, list[str]]:
    """Method, whether it is awaited, and the arguments of a transformed cell."""
    (line,) = lines
    value: Any = ast.parse(line, mode="exec", feature_version=(3, 11)).body[0]
    awaited = isinstance(value.value, ast.Await)
    call = value.value.value if awaited else value.value
    return call.func.attr, awaited, [ast.literal_eval(argument) for argument in call.args]


@pytest.mark.parametrize(
    ("cell", "options", "task"),
    [
        ("%%agent\nDo it\n", "", "Do it"),
        ("%%agent   --model x  \nDo it\n", "--model x", "Do it"),
        ("\n\n%%agent -x\r\na\r\nb\n", "-x", "a\r\nb"),
        ("%%agent\n>>> a\n>>> b\n", "", ">>> a\n>>> b"),
        ("%%agent\nIn [1]: x\n\n  {y} $z ? !ls %t\n", "", "In [1]: x\n\n  {y} $z ? !ls %t"),
        ('%%agent\n"""\\n\'\n', "", '"""\\n\''),
        ("%%agent\na\u2028b\x0cc\x85d\n", "", "a\u2028b\x0cc\x85d"),
        ("%%agent\n\n  indented\n\n\n", "", "\n  indented\n\n"),
        ("%%agent\n", "", ""),
    ],
)
def test_options_and_task_are_taken_as_they_are(cell: str, options: str, task: str) -> None:
    transformed = AgentCell(KERNEL)(cell.splitlines(keepends=True))
    assert call_of(transformed) == ("work", True, [options, task])


@pytest.mark.parametrize(
    "cell", ["", "\n", "x = 1\n%%agent\n", "%%agents\nx\n", "%%agent?\n", "%agent status\n", "# %%agent\n"]
)
def test_other_cells_stay_as_they_are(cell: str) -> None:
    lines = cell.splitlines(keepends=True)
    assert AgentCell(KERNEL)(list(lines)) == lines


@pytest.mark.parametrize("shell", [SimpleNamespace(autoawait=True), SimpleNamespace(kernel=object(), autoawait=False)])
def test_it_blocks_where_nothing_can_be_awaited(shell: Any) -> None:
    assert call_of(AgentCell(shell)(["%%agent -x\n", "Do it\n"])) == ("work_blocking", False, ["-x", "Do it"])


def test_a_console_does_not_take_the_first_line_for_the_whole_cell() -> None:
    from IPython.core.inputtransformer2 import TransformerManager

    manager = TransformerManager()
    manager.cleanup_transforms.insert(0, AgentCell(KERNEL))
    assert manager.check_complete("%%agent --model x")[0] == "incomplete"
    assert "await" in manager.transform_cell("%%agent\nx")
