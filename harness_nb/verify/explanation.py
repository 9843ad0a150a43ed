"""Why a cell failed, in words that name the way out: a missing name and where it is defined, a question, a file.

``verification`` asks for each failure. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from harness_nb.verify.difference import short_text
from harness_nb.verify.document import CodeCell, Document
from harness_nb.verify.failures import Failure
from harness_nb.verify.names import statements_of

_MOST_WORDS = 300


def explain(failure: Failure, cell: CodeCell, document: Document, sandboxed: bool, copied: bool) -> str:
    """A sentence about the failure of ``cell``, without a full stop."""
    if failure.kind == "timeout":
        return f"cell {cell.number} was stopped: {failure.words}. Give it more with --timeout"
    if failure.kind == "died":
        return f"the kernel died in cell {cell.number}" + (f" {failure.words}" if failure.words else "")
    if failure.missing_name:
        return explain_name(failure.missing_name, cell, document.cells)
    said = f"cell {cell.number} raises {failure.ename}: {short_text(failure.evalue, _MOST_WORDS)}".rstrip(": ")
    hint = _hint(failure, sandboxed, copied)
    if any(output.get("ename") == failure.ename for output in cell.outputs):
        hint += " (the recorded run raised it too; if that is meant, give the cell the tag raises-exception)"
    return said + hint


def explain_name(name: str, cell: CodeCell, cells: Sequence[CodeCell]) -> str:
    """Where the notebook defines a name that ``cell`` misses."""
    needs = f"cell {cell.number} needs `{name}`"
    places = [other for other in cells if defines(other, name)]
    below = [other for other in places if other.number > cell.number]
    above = [other for other in places if other.number < cell.number]
    if above:
        last = above[-1]
        if last.rules.skip:
            return f"{needs}; cell {last.number} defines it, and is skipped by its tags or markers"
        return f"{needs}; cell {last.number}, above, would define it and did not (or it was deleted since)"
    if below:
        numbers = ", ".join(str(other.number) for other in below)
        return f"{needs}; it is defined only in cell{'s' if len(below) > 1 else ''} {numbers}, below"
    if places:
        return f"{needs} before it defines it"
    return f"{needs}; no cell of this notebook defines it"


def defines(cell: CodeCell, name: str) -> bool:
    """Whether the cell binds ``name`` at its top level."""
    return any(name in statement.binds for statement in statements_of(cell.source))


def order_notes(cells: Sequence[CodeCell]) -> list[str]:
    """What the recorded execution counts say against a run from top to bottom."""
    counted = [cell for cell in cells if cell.execution_count is not None and not cell.rules.skip]
    notes = []
    for before, after in pairwise(counted):
        if (after.execution_count or 0) <= (before.execution_count or 0):
            notes.append(
                f"recorded out of order: cell {after.number} was run as [{after.execution_count}], "
                f"cell {before.number} above it as [{before.execution_count}]"
            )
            return notes
    numbers = {cell.execution_count or 0 for cell in cells if cell.execution_count is not None}
    missing = sorted(set(range(1, max(numbers, default=0) + 1)) - numbers)
    if missing:
        told = ", ".join(map(str, missing[:8])) + ("…" if len(missing) > 8 else "")
        notes.append(
            f"the recorded counts have gaps ([{told}] is missing): cells were run again, or deleted after their run"
        )
    return notes


def _hint(failure: Failure, sandboxed: bool, copied: bool) -> str:
    if failure.ename == "StdinNotImplementedError" or "input()" in failure.evalue:
        return ". Nobody can answer questions in a run from top to bottom: put the value into the code"
    if failure.ename == "ModuleNotFoundError":
        return ". It is not installed for this kernel: install it, or choose another kernel with --kernel"
    if sandboxed and ("Read-only file system" in failure.evalue or failure.ename == "PermissionError"):
        return ". Only the notebook's folder and /tmp can be written in the sandbox; --no-sandbox runs without it"
    if failure.ename == "FileNotFoundError" and copied and not sandboxed:
        return ". The run has a copy of the notebook's folder only; --in-place runs in the folder itself"
    if failure.ename == "FileNotFoundError" and sandboxed:
        return ". No cell above makes it, and it is not in the notebook's folder (/tmp is empty at the start)"
    return ""
