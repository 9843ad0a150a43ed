"""The rounds of ``--repair``: propose a missing definition, run again, until nothing is missing or nothing is found.

``verification`` calls it with a way to run a notebook. The result is a file beside the original, whose cells stay
untouched. Writes that one file.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

from harness_nb.errors import StoreError
from harness_nb.store import write_atomically
from harness_nb.verify.badge import write_verdict
from harness_nb.verify.document import KEY, CodeCell, Document, digest_of
from harness_nb.verify.past import past_cells
from harness_nb.verify.repair import Proposal, apply_proposal, propose
from harness_nb.verify.splice import replace_value
from harness_nb.verify.verdict import Repaired, Verdict

MOST_ROUNDS = 8

Again = Callable[[Document], Awaitable[Verdict]]


async def repair_notebook(document: Document, verdict: Verdict, again: Again, write: bool) -> Verdict:
    """The verdict with what would repair the notebook, if anything is found. ``again`` runs a changed notebook."""
    past = await asyncio.to_thread(past_cells, document)
    repaired, latest = document, verdict
    proposals: list[Proposal] = []
    while len(proposals) < MOST_ROUNDS:
        cell, name = _missing(repaired, latest)
        proposal = propose(name, cell, repaired, past) if cell is not None else None
        if proposal is None or (proposal.name, proposal.source) in [(p.name, p.source) for p in proposals]:
            break
        proposals.append(proposal)
        repaired = apply_proposal(repaired, proposal)
        latest = await again(repaired)
    if not proposals:
        cell, name = _missing(document, verdict)
        reason = f"no definition of `{name}` was found" if cell else "the failure is not a missing name"
        return replace(verdict, notes=(*verdict.notes, f"--repair has no proposal: {reason}"))
    path = await asyncio.to_thread(_free_path, document.path)
    latest = replace(latest, path=path)
    if write:
        latest = await asyncio.to_thread(_write, path, repaired, document.path.name, latest)
    return replace(verdict, repaired=Repaired(path, tuple(proposals), latest))


def _missing(document: Document, verdict: Verdict) -> tuple[CodeCell | None, str]:
    """The cell that failed for a missing name, and the name."""
    for told in verdict.cells:
        if told.missing:
            return document.cells[told.number - 1], told.missing
    return None, ""


def _free_path(path: Path) -> Path:
    """``<name>.repaired.ipynb``, or with a number where such a file is somebody else's."""
    number = 1
    while True:
        candidate = path.with_name(f"{path.stem}.repaired{'' if number == 1 else f'-{number}'}.ipynb")
        if not candidate.exists() or _is_ours(candidate, path.name):
            return candidate
        number += 1


def _is_ours(candidate: Path, original: str) -> bool:
    """Whether the file is an earlier repair of the same notebook that nobody has changed since."""
    try:
        data = json.loads(candidate.read_text("utf-8"))
        repair = data["metadata"][KEY]["repair_of"]
        return bool(repair["notebook"] == original and repair["digest"] == digest_of(data))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _write(path: Path, repaired: Document, original: str, verdict: Verdict) -> Verdict:
    about = {"notebook": original, "digest": digest_of(repaired.data)}
    try:
        write_atomically(path, replace_value(repaired.text, ["metadata", KEY, "repair_of"], about))
    except (StoreError, ValueError) as error:
        return replace(verdict, notes=(*verdict.notes, f"the repaired notebook is not written: {error}"))
    return write_verdict(path, verdict)
