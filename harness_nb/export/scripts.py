"""Cells for a script: what cell magics do, in Python that runs without IPython. Pure."""

from __future__ import annotations

import shlex

from harness_nb.toolset import literal

NEEDS_IPYTHON = "# It needs IPython: run it with `ipython` in place of `python`."


def without_magics(source: str) -> str:
    """The source of a cell, with ``%%writefile`` and ``%%bash`` as the Python that does the same."""
    head, _, body = source.partition("\n")
    try:
        name, *words = shlex.split(head)
    except ValueError:
        return source
    if name == "%%writefile" and len(words) == 1:
        text = literal(body if not body or body.endswith("\n") else body + "\n")
        return f'from pathlib import Path\n\nPath({literal(words[0])}).write_text({text}, encoding="utf-8")'
    if name == "%%bash" and not words:
        return f'import subprocess\n\nsubprocess.run(["bash", "-c", {literal(body)}], check=True)'
    return source
