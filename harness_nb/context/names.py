"""The names of a kernel in words.

What the model is told when they are lost. Pure; rows as in ``CellFinished.names``.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness_nb.types import JsonObject

NAMED = 12
"""How many names are listed; the others are counted."""


def list_names(names: Sequence[JsonObject]) -> str:
    """``df (DataFrame, 1000 x 5), model (Net), …, 3 imported modules``, from a manifest."""
    modules = sum(row.get("type") == "module" for row in names)
    values = [row for row in names if row.get("type") != "module"]
    parts = []
    for row in values[:NAMED]:
        about = ", ".join(filter(None, (str(row.get("type", "")), str(row.get("size", "")))))
        parts.append(f"{row.get('name')} ({about})")
    if len(values) > NAMED:
        parts.append(f"{len(values) - NAMED} more")
    if modules:
        parts.append(f"{modules} imported {'module' if modules == 1 else 'modules'}")
    return ", ".join(parts)


def describe_loss(names: Sequence[JsonObject]) -> str:
    """``all names and imports are lost: df (DataFrame, 1000 x 5), model (Net), …, 3 modules``, from a manifest."""
    listed = list_names(names)
    return "all names and imports are lost" + (f": {listed}" if listed else "")
