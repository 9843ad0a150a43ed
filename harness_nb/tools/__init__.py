"""What the tool kernel itself knows: the functions and magics that tool cells call.

This package runs INSIDE the tool kernel, in whatever environment that kernel has. It uses the standard library only,
imports nothing of harness_nb outside this folder and keeps to syntax that Python 3.9 reads. ``%load_ext
harness_nb.tools`` loads it; the session imports ``SETUP_SOURCE`` from here, so this module must stay free of imports
that cost time.
"""

from __future__ import annotations

from typing import Any

SETUP_SOURCE = '%load_ext harness_nb.tools\nworkspace("..")'
"""The first cell of each session notebook. It runs with the folder of that notebook as working directory."""

__all__ = ["SETUP_SOURCE", "load_ipython_extension"]


def load_ipython_extension(ipython: Any) -> None:
    """Put the functions into the user's namespace and replace ``%%bash`` and ``%%writefile``.

    Loading twice changes nothing. ``ipython`` is the running ``InteractiveShell``.
    """
    from harness_nb.tools.extension import install

    install(ipython)
