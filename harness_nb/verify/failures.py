"""What can go wrong while a notebook runs, as data: a failure of a cell, or a reason why nothing was run.

``execution`` makes them, ``explanation`` finds words for people, ``repair`` looks for missing names. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from harness_nb.errors import HarnessError

_NOT_DEFINED = re.compile(r"name '(\w+)' is not defined")


class CannotRunError(HarnessError):
    """No cell was run: no such kernel, or it does not start. The text says the way out."""


@dataclass(frozen=True, slots=True)
class Failure:
    """How a cell failed.

    ``kind``: an ``error`` of the code, ``timeout``, the kernel ``died``. ``ename`` and ``evalue`` are of an error;
    ``words`` say the rest (seconds, signal, what a dying kernel printed).
    """

    kind: Literal["error", "timeout", "died"]
    ename: str = ""
    evalue: str = ""
    words: str = ""

    @property
    def missing_name(self) -> str:
        """The name that is not defined, where that is the error."""
        match = _NOT_DEFINED.search(self.evalue) if self.ename == "NameError" else None
        return match[1] if match else ""
