"""Values of a run: where it happens, and what came of its cells. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness_nb.types import JsonObject
from harness_nb.verify.failures import Failure
from harness_nb.verify.sandbox import Mounts


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run happens: ``mounts`` if in a sandbox; ``directory`` is the working directory as the kernel sees it."""

    directory: Path
    private: Path
    mounts: Mounts | None = None


@dataclass(frozen=True, slots=True)
class CellRun:
    """What a cell gave: outputs in nbformat's form, its seconds, and the failure that ended the run, if it did."""

    outputs: tuple[JsonObject, ...]
    seconds: float
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """What came of the cells that were run, by their number; ``facts`` say Python, platform and distributions."""

    cells: Mapping[int, CellRun]
    facts: JsonObject = field(default_factory=dict)
