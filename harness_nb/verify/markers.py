"""What a cell asks of a verification: nbval's comment markers and tags, and a numeric tolerance.

Source of the rules: the documentation of nbval 0.11 ("Using markers", "Using tags"): a comment line that is exactly a
marker, or a tag of the same name in lower case with hyphens; a comment outranks a tag, the later of two the earlier.
Ours besides: the tag ``skip-execution`` (nbclient's), and a tolerance, as ``# HARNESS_NB_TOLERANCE 0.01`` or in the
cell's metadata, ``{"harness_nb": {"tolerance": 0.01}}``. Pure.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness_nb.types import JsonObject

COMMENTS: Mapping[str, tuple[str, bool]] = {
    "PYTEST_VALIDATE_IGNORE_OUTPUT": ("check", False),
    "NBVAL_IGNORE_OUTPUT": ("check", False),
    "NBVAL_CHECK_OUTPUT": ("check", True),
    "NBVAL_RAISES_EXCEPTION": ("raises", True),
    "NBVAL_SKIP": ("skip", True),
}
TAGS: Mapping[str, tuple[str, bool]] = {
    **{name.lower().replace("_", "-"): meaning for name, meaning in COMMENTS.items()},
    "raises-exception": ("raises", True),
    "skip-execution": ("skip", True),
}
_TOLERANCE = re.compile(r"HARNESS_NB_TOLERANCE\s*[:=]?\s*([-+.\deE]+)")


@dataclass(frozen=True, slots=True)
class Rules:
    """How one cell is run and compared.

    ``check``: its outputs are compared; ``raises``: it may raise; ``skip``: it is not run. ``tolerance`` is what two
    numbers may differ by: absolutely up to 1, above that as a part of the recorded number; 0 is exact.
    """

    check: bool = True
    raises: bool = False
    skip: bool = False
    tolerance: float = 0.0


def rules_of(source: str, metadata: JsonObject) -> Rules:
    """The rules of a cell; what is not understood means nothing."""
    found: dict[str, Any] = {}
    tags = metadata.get("tags")
    for tag in tags if isinstance(tags, list) else ():
        if isinstance(tag, str) and tag in TAGS:
            name, value = TAGS[tag]
            found[name] = value
    ours = metadata.get("harness_nb")
    if isinstance(ours, dict):
        found["tolerance"] = _number(ours.get("tolerance"))
    for line in source.splitlines():
        comment = line.strip()
        if not comment.startswith("#"):
            continue
        comment = comment.lstrip("#").strip()
        if comment in COMMENTS:
            name, value = COMMENTS[comment]
            found[name] = value
        elif match := _TOLERANCE.fullmatch(comment):
            found["tolerance"] = _number(match[1])
    return Rules(**found)


def _number(value: Any) -> float:
    """A tolerance that makes sense, else 0: exact."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return 0.0
    return number if math.isfinite(number) and number > 0 else 0.0
