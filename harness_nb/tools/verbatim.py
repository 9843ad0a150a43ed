"""Cells reach their magic as they were written.

IPython strips what looks like a pasted prompt (``>>> ``, ``In [1]: ``) from every line of a cell, also from the text
of a ``%%writefile`` cell, where it is a doctest that belongs into the file. Called by ``extension``; standard library
only.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

Transform = Callable[[list[str]], list[str]]


def keep_cells_verbatim(manager: Any) -> None:
    """Let ``manager`` (IPython's ``TransformerManager``) strip prompts only from code that is no Python with them."""
    transforms = manager.cleanup_transforms
    for position, transform in enumerate(transforms):
        if type(transform).__name__ == "PromptStripper":
            transforms[position] = Verbatim(transform)


class Verbatim:
    """A prompt stripper that leaves cell magics and valid Python alone."""

    def __init__(self, strip: Transform) -> None:
        self._strip = strip

    def __call__(self, lines: list[str]) -> list[str]:
        """The lines of a cell, without prompts where they cannot be meant. (``In [1]: x`` would be valid Python.)"""
        if lines and lines[0].startswith("%%"):
            return lines
        stripped = self._strip(lines)
        if stripped == lines or lines[0].startswith("In ["):
            return stripped
        try:
            ast.parse("".join(lines))
        except (SyntaxError, ValueError):
            return stripped
        return lines
