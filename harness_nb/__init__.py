"""harness_nb: a notebook agent whose tool calls are cells.

``%load_ext harness_nb`` adds ``%%agent`` and ``%agent`` to IPython. Importing this package loads
nothing else: the magics and what they need are imported when the extension is loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

__version__ = "0.1.0"

__all__ = ["__version__", "load_ipython_extension", "unload_ipython_extension"]


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Register the magics; called by ``%load_ext harness_nb``."""
    from harness_nb.ui.magics import register

    register(shell)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Remove the magics; called by ``%unload_ext harness_nb``."""
    from harness_nb.ui.magics import unregister

    unregister(shell)
