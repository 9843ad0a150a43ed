"""One line of a diagnosis. ``doctor`` prints it, ``probes`` and ``doctor`` find it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """What works, or not; ``way_out`` is said when it does not.

    What is not ``needed`` can be done without: it does not count in the exit code.
    """

    name: str
    passed: bool
    detail: str
    way_out: str = ""
    needed: bool = True
