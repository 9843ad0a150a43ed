"""One call in a Python cell, with what the rules about it need. Pure."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from harness_nb.policy.code.names import Names
from harness_nb.policy.findings import Finding, Ground, Report


@dataclass(frozen=True, slots=True)
class Site:
    """A call in a cell: its node, the dotted name of what is called, the names of the cell, the ground."""

    node: ast.Call
    dotted: str
    names: Names
    ground: Ground
    downloads: bool

    @property
    def part(self) -> str:
        """The call as a text."""
        return ast.unparse(self.node)

    def ask(self, kind: str, why: str, path: str = "") -> Report:
        """One thing to ask about."""
        return Report((Finding("ask", kind, why, self.part, path=path),))
