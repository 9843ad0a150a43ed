"""What ``%load_ext harness_nb.tools`` does: names, magics, and clear errors for questions.

Called by ``load_ipython_extension`` in the tool kernel, or in any IPython that runs a session notebook again.
Standard library only, but for the running IPython itself.
"""

from __future__ import annotations

from typing import Any

from harness_nb.tools.answers import explain_missing_answers
from harness_nb.tools.bash import run_bash
from harness_nb.tools.editing import search_replace, write_file, writefile_magic
from harness_nb.tools.frames import describe_frames
from harness_nb.tools.images import view_image
from harness_nb.tools.listing import list_files
from harness_nb.tools.reading import read_file
from harness_nb.tools.searching import search_files
from harness_nb.tools.verbatim import keep_cells_verbatim
from harness_nb.tools.workspace import workspace

FUNCTIONS = {
    function.__name__: function
    for function in (read_file, list_files, search_files, search_replace, write_file, view_image, workspace)
}


def install(ipython: Any) -> None:
    """Make functions and magics known to ``ipython`` (an ``InteractiveShell``). Harmless when repeated."""
    ipython.push(FUNCTIONS, interactive=False)
    _replace_bash(ipython)
    _replace_writefile(ipython)
    manager = getattr(ipython, "input_transformer_manager", None)
    if hasattr(manager, "cleanup_transforms"):
        keep_cells_verbatim(manager)
    describe_frames(ipython)
    kernel = getattr(ipython, "kernel", None)
    if kernel is not None:
        explain_missing_answers(kernel)


def _replace_bash(ipython: Any) -> None:
    original = ipython.find_cell_magic("bash")
    if getattr(original, "is_harness_magic", False):
        return

    def bash(line: str, cell: str) -> None:
        """Run the cell with bash, live; IPython's own magic answers when options are given."""
        if line.strip() and original is not None:
            original(line, cell)
        else:
            run_bash(cell)

    _register(ipython, bash)


def _replace_writefile(ipython: Any) -> None:
    def writefile(line: str, cell: str) -> None:
        """Write the cell's text to a file of the workspace: ``%%writefile [-a] path``."""
        writefile_magic(line, cell)

    _register(ipython, writefile)


def _register(ipython: Any, magic: Any) -> None:
    """Register a cell magic whose line is taken as it stands: braces and dollar signs mean nothing in it."""
    magic.is_harness_magic = True
    magic._ipython_magic_no_var_expand = True
    ipython.register_magic_function(magic, magic_kind="cell", magic_name=magic.__name__)
