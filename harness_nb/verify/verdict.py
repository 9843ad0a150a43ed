"""The verdict of a verification: what it is, cell by cell and as a whole, for people and as JSON. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from harness_nb.types import JsonObject
from harness_nb.verify.repair import Proposal

State = Literal["reproduced", "differs", "failed", "not run", "nothing to compare"]
CellState = Literal["same", "differs", "failed", "not compared", "not recorded", "skipped", "not run"]
MARKS: Mapping[str, str] = {
    "reproduced": "✅",
    "differs": "❌",
    "failed": "❌",
    "not run": "⚪",
    "nothing to compare": "⚪",
}


@dataclass(frozen=True, slots=True)
class CellVerdict:
    """One code cell. ``number`` counts them from 1; ``detail`` says how it differs or failed; ``seconds`` it ran.

    ``aside`` names the kinds of differences that do not count; ``compared`` is the number of recorded values;
    ``missing`` is the name that was not defined, where the cell failed for that.
    """

    number: int
    id: str
    state: CellState
    detail: str = ""
    seconds: float = 0.0
    aside: tuple[str, ...] = ()
    compared: int = 0
    missing: str = ""


@dataclass(frozen=True, slots=True)
class Repaired:
    """What ``--repair`` proposes: a notebook beside the original, and the verdict on it."""

    path: Path
    proposals: tuple[Proposal, ...]
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of a verification.

    ``time`` is UTC in ISO 8601, ``seconds`` the duration; ``digest`` is of what was verified (see ``digest_of``);
    ``versions`` are those of the distributions that the cells imported. ``written`` says whether the file has it.
    """

    path: Path
    state: State
    reason: str = ""
    cells: tuple[CellVerdict, ...] = ()
    notes: tuple[str, ...] = ()
    time: str = ""
    seconds: float = 0.0
    digest: str = ""
    kernel: str = ""
    sandbox: str = ""
    python: str = ""
    platform: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    sanitise_file: str = ""
    written: bool = False
    repaired: Repaired | None = None

    @property
    def reproduced(self) -> bool:
        """Whether every cell ran and every output that was compared is the same, and at least one was."""
        return self.state == "reproduced"

    @property
    def exit_code(self) -> int:
        """0 only for reproduced."""
        return 0 if self.reproduced else 1

    @property
    def first(self) -> CellVerdict | None:
        """The first cell that differs or failed."""
        return next((cell for cell in self.cells if cell.state in ("differs", "failed")), None)

    @property
    def headline(self) -> str:
        """The verdict in one line."""
        if self.state == "reproduced":
            return f"reproduced: {self._counts()}"
        if self.state == "nothing to compare":
            return f"ran, nothing to compare: {self.reason}"
        if self.state == "not run":
            return f"not run: {self.reason}"
        failed = next((cell for cell in self.cells if cell.state == "failed"), None)
        told = failed or self.first
        line = told.detail.partition("\n")[0].rstrip(":") if told else self.reason
        if failed is None and told is not None:
            return f"{self.state}: cell {told.number}: {line}"
        before = f" (and cell {self.first.number} differs before)" if self.first and self.first is not failed else ""
        return f"{self.state}: {line}{before}"

    def _counts(self) -> str:
        compared = sum(cell.state == "same" for cell in self.cells)
        words = [f"{compared} of {_counted(len(self.cells), 'code cell')} compared, all the same"]
        for state, told in (("not compared", "not compared as marked"), ("skipped", "skipped"),
                            ("not recorded", "run without a recorded output to compare")):  # fmt: skip
            number = sum(cell.state == state for cell in self.cells)
            words += [f"{number} {told}"] if number else []
        aside = list(dict.fromkeys(kind for cell in self.cells for kind in cell.aside))
        words += [f"left aside: {', '.join(aside)}"] if aside else []
        return "; ".join(words)

    def lines(self) -> list[str]:
        """The whole report for people."""
        lines = [f"{MARKS[self.state]} {self.path.name}: {self.headline}"]
        for cell in self.cells:
            if cell.state in ("differs", "failed"):
                first, *rest = cell.detail.splitlines() or [""]
                lines += [f"  cell {cell.number} {cell.state}: {first}", *(f"    {line}" for line in rest)]
        unrun = [cell.number for cell in self.cells if cell.state == "not run"]
        if unrun and self.state != "not run":
            lines.append(f"  not run after that: {_counted(len(unrun), 'cell')} from cell {unrun[0]} on")
        lines += [f"  note: {note}" for note in self.notes]
        lines += [f"  {part}" for part in (self._surroundings(),) if part]
        if self.repaired is not None:
            lines += [f"  proposed: {proposal}" for proposal in self.repaired.proposals]
            lines += ["  with that:", *(f"    {line}" for line in self.repaired.verdict.lines())]
        return lines

    def _surroundings(self) -> str:
        python = f"Python {self.python} on {self.platform}" if self.python else ""
        return ", ".join(
            part for part in (self.sandbox, python, f"{self.seconds:.1f} s" if self.seconds else "") if part
        )

    def as_json(self) -> JsonObject:
        """The verdict as it is kept in the notebook's metadata."""
        first = self.first
        return {
            "verdict": self.state,
            "headline": self.headline,
            "time": self.time,
            "seconds": round(self.seconds, 2),
            "digest": self.digest,
            "first": {"cell": first.number, "id": first.id, "how": first.detail} if first else None,
            "cells": [_cell_json(cell) for cell in self.cells],
            "notes": list(self.notes),
            "kernel": self.kernel,
            "sandbox": self.sandbox,
            "python": self.python,
            "platform": self.platform,
            "versions": dict(self.versions),
            "sanitise_file": self.sanitise_file,
        }


def judge(cells: Sequence[CellVerdict]) -> tuple[State, str]:
    """The verdict as a whole, and the reason where the cells do not say it."""
    states = [cell.state for cell in cells]
    if "failed" in states:
        return "failed", ""
    if "differs" in states:
        return "differs", ""
    if not any(cell.compared for cell in cells):
        if any(cell.state == "not compared" for cell in cells):
            return "nothing to compare", "no cell has a recorded output that is to be compared"
        return "nothing to compare", "no cell has a recorded output"
    return "reproduced", ""


def _cell_json(cell: CellVerdict) -> JsonObject:
    told: JsonObject = {"cell": cell.number, "verdict": cell.state, "seconds": round(cell.seconds, 2)}
    if cell.id:
        told["id"] = cell.id
    if cell.detail:
        told["how"] = cell.detail
    if cell.aside:
        told["left_aside"] = list(cell.aside)
    return told


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
