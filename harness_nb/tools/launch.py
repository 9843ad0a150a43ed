"""The launcher of the tool kernel: an ipykernel that dies with its parent and keeps its outputs in order.

Run by path or as ``python -m harness_nb.tools.launch``, with ipykernel's own arguments, in whatever environment the
kernel has. It makes ``harness_nb.tools`` importable from its own folder, so that environment need not have
harness_nb. Standard library and ipykernel only.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import os
import signal
import sys
import threading
import types
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PR_SET_PDEATHSIG = 1
CLOSE_SECONDS = 0.5


class OwnTools(importlib.abc.MetaPathFinder):
    """Finds ``harness_nb.tools`` in this folder, so that kernel and session always speak of the same tools."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """The spec of ``harness_nb.tools`` itself; its modules are then found by its path."""
        if name != "harness_nb.tools":
            return None
        return importlib.util.spec_from_file_location(
            name, HERE / "__init__.py", submodule_search_locations=[str(HERE)]
        )


def make_tools_importable() -> None:
    """Import ``harness_nb.tools`` from this folder; ``harness_nb`` is the installed one or else an empty package."""
    own = str(HERE)
    sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry or ".") != own or not entry]
    if importlib.util.find_spec("harness_nb") is None:
        package = types.ModuleType("harness_nb")
        package.__path__ = []
        sys.modules["harness_nb"] = package
    sys.meta_path.insert(0, OwnTools())


def die_with_parent() -> None:
    """Ask Linux for a SIGKILL when the parent dies (prctl(2)); elsewhere ipykernel itself polls for the parent.

    The parent is named in ``JPY_PARENT_PID``; if it has died before the request was made, this process ends here.
    Only where the guardian is the parent: elsewhere the thread that started the kernel may end, which Linux takes for
    the parent's death.
    """
    parent = int(os.environ.get("JPY_PARENT_PID") or 0)
    if sys.platform != "linux" or not parent or "HARNESS_NB_KERNEL" not in os.environ:
        return
    import ctypes

    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def explain_crashes() -> None:
    """Have a crash in native code print where in Python it happened, to the real stderr, which the guardian keeps."""
    import faulthandler

    faulthandler.enable(file=getattr(sys.stderr, "_original_stdstream_copy", 2), all_threads=False)


def launch() -> None:
    """Run the kernel until it is shut down."""
    die_with_parent()
    make_tools_importable()
    from ipykernel.kernelapp import IPKernelApp

    from harness_nb.tools.names import report_names
    from harness_nb.tools.streams import prepare_streams

    class ToolKernelApp(IPKernelApp):
        def init_iopub(self, context: Any) -> None:
            """A slow reader must not lose messages: the "idle" that ends a cell is one of them (default: 1,000)."""
            context.sndhwm = 100_000
            super().init_iopub(context)

        def initialize(self, argv: Any = None) -> None:
            """No history file; then order the streams, and drop what forces colours on other programs."""
            self.config.HistoryManager.enabled = False
            self.config.InteractiveShell.automagic = False  # a lost name such as ``history`` must be a NameError
            super().initialize(argv)
            prepare_streams(self.shell)
            report_names(self.shell)
            explain_crashes()
            for name in ("FORCE_COLOR", "CLICOLOR_FORCE"):
                os.environ.pop(name, None)

        def close(self) -> None:
            """Close the sockets, but not for ever: now and then threads of ipykernel 7.4 wait for each other."""
            closing = threading.Thread(target=super().close, daemon=True)
            closing.start()
            closing.join(CLOSE_SECONDS)

    ToolKernelApp.launch_instance()


if __name__ == "__main__":
    launch()
