"""The verdict in the file: under ``metadata["harness_nb"]["verification"]`` and as a badge, one line at the top.

The badge is a Markdown cell that is replaced, not repeated, and is no part of the digest. Everything else in the file
stays as it is, byte for byte. ``standing_verdict`` reads a verdict back and says whether it still stands.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness_nb.errors import StoreError
from harness_nb.store import write_atomically
from harness_nb.types import JsonObject
from harness_nb.verify.document import BADGE, KEY, digest_of, is_badge, parse_document, read_document
from harness_nb.verify.splice import insert_element, remove_element, replace_value
from harness_nb.verify.verdict import MARKS, Verdict

BADGE_ID = "harness-nb-verification"
_MOST_CHARS = 400


@dataclass(frozen=True, slots=True)
class StandingVerdict:
    """A verdict found in a notebook. ``stale``: the code, the outputs or the markers were changed since.

    ``record`` is what ``Verdict.as_json`` gave.
    """

    state: str
    time: str
    stale: bool
    record: JsonObject

    @property
    def reproduced(self) -> bool:
        """Whether the notebook, as it is now, was reproduced."""
        return self.state == "reproduced" and not self.stale


def standing_verdict(notebook: JsonObject) -> StandingVerdict | None:
    """The verdict in a notebook's JSON object, or ``None`` if it has none."""
    metadata = notebook.get("metadata")
    machine = metadata.get(KEY) if isinstance(metadata, dict) else None
    record = machine.get("verification") if isinstance(machine, dict) else None
    if not isinstance(record, dict) or not isinstance(record.get("verdict"), str):
        return None
    stale = record.get("digest") != digest_of(notebook)
    return StandingVerdict(record["verdict"], str(record.get("time", "")), stale, record)


def write_verdict(path: Path, verdict: Verdict) -> Verdict:
    """Put the verdict into the file, if its code and outputs are still those that were verified.

    Returns the verdict, with ``written`` or with a note that says why it was not.
    """
    try:
        document = read_document(path)
        if digest_of(document.data) != verdict.digest:
            reason = "the notebook was changed during the run; the verdict is not written into it"
            return replace(verdict, notes=(*verdict.notes, reason))
        text = with_verdict(document.text, document.data, verdict)
        write_atomically(path.resolve(), text)
    except StoreError as error:
        return replace(verdict, notes=(*verdict.notes, f"the verdict is not written into the file: {error}"))
    return replace(verdict, written=True)


def with_verdict(text: str, data: JsonObject, verdict: Verdict) -> str:
    """The text of a notebook file with the verdict and the badge in it.

    Raises:
        StoreError: if the file is built in a way that this cannot be done without harm.
    """
    try:
        changed = replace_value(text, ["metadata", KEY, "verification"], verdict.as_json())
        badges = [index for index, cell in enumerate(data["cells"]) if is_badge(cell)]
        for index in reversed(badges[1:]):
            changed = remove_element(changed, ["cells"], index)
        cell = badge_cell(verdict, int(data.get("nbformat_minor") or 0) >= 5)
        if badges:
            changed = replace_value(changed, ["cells", badges[0]], cell)
        else:
            changed = insert_element(changed, ["cells"], 0, cell)
        again = parse_document(Path("the notebook with its verdict"), changed).data
    except (ValueError, IndexError, AttributeError) as error:
        raise StoreError(f"its JSON is built in an unusual way ({error})") from error
    if _rest(again) != _rest(data):
        raise StoreError("its JSON is built in an unusual way (something else would change)")
    return changed


def badge_cell(verdict: Verdict, with_id: bool) -> JsonObject:
    """The badge as a Markdown cell. It names its day and the beginning of the digest, for it cannot know of edits."""
    when = verdict.time[:16].replace("T", " ")
    line = " ".join(verdict.headline.replace("`", "'").split())
    line = line if len(line) <= _MOST_CHARS else line[: _MOST_CHARS - 1] + "…"
    sandbox = " ".join(verdict.sandbox.partition(":")[0].split())
    where = f"Python {verdict.python}, {sandbox}" if verdict.python else sandbox
    source = (
        f"{MARKS[verdict.state]} **{_escaped(line)}** — harness-nb verify, {when} UTC, {_escaped(where)}; "
        f"of the cells and outputs with digest {verdict.digest[:12]}"
    )
    named = {"id": BADGE_ID} if with_id else {}
    return {"cell_type": "markdown", **named, "metadata": {KEY: {"badge": BADGE}}, "source": [source]}


def _escaped(text: str) -> str:
    """Text that Markdown shows as it is."""
    return "".join(f"\\{character}" if character in "\\*_[]<>$|#" else character for character in text)


def _rest(data: JsonObject) -> Any:
    """What must not change: all but the badges and the verdict. An object that is empty otherwise counts as missing."""
    metadata = dict(data.get("metadata") or {})
    machine = {key: value for key, value in dict(metadata.get(KEY) or {}).items() if key != "verification"}
    metadata.pop(KEY, None)
    if machine:
        metadata[KEY] = machine
    cells = [cell for cell in data["cells"] if not is_badge(cell)]
    return {**data, "metadata": metadata, "cells": cells}
