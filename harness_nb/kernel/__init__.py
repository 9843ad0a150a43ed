"""The tool kernel: a separate ipykernel process that runs the cells of a session.

``ToolKernel`` is the real one, ``FakeKernel`` the fake that ships; both are a ``ports.Kernel``. Modules: ``spec`` and
``environment`` say what to start, ``guardian`` and ``process`` see to its life and death, ``connection`` and
``routing`` carry its messages, ``run`` and ``verdict`` follow one cell, ``tool_kernel`` puts them together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness_nb.kernel.fake import FakeKernel
    from harness_nb.kernel.spares import Spare
    from harness_nb.kernel.tool_kernel import ToolKernel

__all__ = ["FakeKernel", "Spare", "ToolKernel"]


def __getattr__(name: str) -> Any:
    """Import lazily: jupyter_client and zmq cost time that ``import harness_nb`` must not pay."""
    if name == "ToolKernel":
        from harness_nb.kernel.tool_kernel import ToolKernel

        return ToolKernel
    if name == "Spare":
        from harness_nb.kernel.spares import Spare

        return Spare
    if name == "FakeKernel":
        from harness_nb.kernel.fake import FakeKernel

        return FakeKernel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
