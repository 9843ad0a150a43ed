"""Verify: does a notebook, run top to bottom in a fresh kernel, give what it says? The verdict goes into the file.

The command line and ``%agent verify`` call ``verify``; anyone may ask ``standing_verdict`` what a file claims and
whether that still stands. The only place for nbclient. See ``verification`` for the order of things.
"""

from harness_nb.verify.badge import StandingVerdict, standing_verdict
from harness_nb.verify.verdict import CellVerdict, Repaired, Verdict
from harness_nb.verify.verification import Options, verify

__all__ = ["CellVerdict", "Options", "Repaired", "StandingVerdict", "Verdict", "standing_verdict", "verify"]
