"""Secrets in a verification: a source with a mask in it is not run, and what a run prints is masked before it is kept.

``verification`` uses it. It reads the environment and a few files, as ``secrets_kept`` says.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from harness_nb.outputs.masking import Masker, masks_in
from harness_nb.secrets_kept import known_secrets
from harness_nb.verify.document import Document
from harness_nb.verify.failures import CannotRunError
from harness_nb.verify.runs import CellRun, Run


def refuse_masked_sources(document: Document) -> None:
    """Refuse a notebook in which a mask stands for a value: run as it is, it would use the words of the mask.

    Raises:
        CannotRunError: with the first such cell, and the way out.
    """
    for cell in document.cells:
        if not cell.rules.skip and (masks := masks_in(cell.source)):
            raise CannotRunError(
                f"cell {cell.number} holds {masks[0]} in the place of a secret that is not in the notebook; have it "
                "read the value from the environment or a file, and verify again"
            )


def masked_run(run: Run, document: Document) -> Run:
    """The run with masks in the place of what is secret here, so that it compares with what was recorded."""
    masker = Masker(known_secrets(os.environ, document.path.parent, Path.home()))
    return replace(run, cells={number: _masked(cell, masker) for number, cell in run.cells.items()})


def _masked(cell: CellRun, masker: Masker) -> CellRun:
    failure = cell.failure
    if failure is not None:
        ename, evalue, words = (masker.mask(text) for text in (failure.ename, failure.evalue, failure.words))
        failure = replace(failure, ename=ename, evalue=evalue, words=words)
    return replace(cell, outputs=tuple(masker.mask_json(output) for output in cell.outputs), failure=failure)
