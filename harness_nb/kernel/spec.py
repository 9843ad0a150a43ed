"""Which command starts a tool kernel: the name of a kernel spec becomes an argument list.

``harness-tools`` is always there, from inside the package, and ``harness-sandbox`` is the same in a sandbox. Any other
name is an installed kernel spec; an ipykernel keeps its own Python and arguments but is started through our launcher,
by path, so that it needs no harness_nb.
Used by ``ToolKernel``, ``doctor`` and the command line; imports jupyter_client lazily.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness_nb.errors import UsageError

DEFAULT_NAME = "harness-tools"
SANDBOX_NAME = "harness-sandbox"
AUTO = "auto"
"""Stands for the sandbox where it works, and for ``harness-tools`` elsewhere."""

LAUNCHER = Path(__file__).resolve().parent.parent / "tools" / "launch.py"
LAUNCHER_MODULES = ("ipykernel_launcher", "ipykernel", "harness_nb.tools.launch")


@dataclass(frozen=True, slots=True)
class KernelCommand:
    """How a kernel is started. ``arguments`` still holds ``{connection_file}``; ``environment`` is set on top.

    ``in_sandbox`` says that it runs in one; its process must then not be signalled.
    """

    name: str
    display_name: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    interrupt_by_message: bool = False
    in_sandbox: bool = False


def name_here(name: str) -> str:
    """The name itself, or for ``auto`` the one that it stands for on this machine. May block for a moment."""
    if name != AUTO:
        return name
    from harness_nb.kernel.sandbox import layer_here

    return SANDBOX_NAME if layer_here() else DEFAULT_NAME


def resolve_kernel(name: str = DEFAULT_NAME) -> KernelCommand:
    """The command of the kernel spec ``name``.

    Raises:
        UsageError: if there is no such spec (lists those there are), or it is not a Python one.
    """
    if name in (DEFAULT_NAME, SANDBOX_NAME):
        arguments = (sys.executable, str(LAUNCHER), "-f", "{connection_file}")
        inside, shown = name == SANDBOX_NAME, name.replace("-", " ")
        return KernelCommand(name, f"Python 3 ({shown})", arguments, interrupt_by_message=inside, in_sandbox=inside)
    from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

    try:
        spec = KernelSpecManager().get_kernel_spec(name)
    except NoSuchKernel:
        raise UsageError(f"there is no kernel {name!r}; there are: {', '.join(kernel_names())}") from None
    if spec.language.lower() != "python":
        raise UsageError(f"kernel {name!r} speaks {spec.language}; tools need a Python kernel")
    return KernelCommand(
        name=name,
        display_name=spec.display_name,
        arguments=through_launcher(spec.argv),
        environment=dict(spec.env),
        interrupt_by_message=spec.interrupt_mode == "message",
    )


def kernel_names() -> list[str]:
    """Names that ``resolve_kernel`` knows, our own first."""
    from jupyter_client.kernelspec import KernelSpecManager

    own = (DEFAULT_NAME, SANDBOX_NAME)
    return [*own, *sorted(set(KernelSpecManager().find_kernel_specs()) - set(own))]


def through_launcher(arguments: list[str]) -> tuple[str, ...]:
    """The arguments of a kernel spec with ipykernel's module replaced by our launcher; others stay as they are.

    A bare ``python`` means the Python that runs the harness, as for jupyter_client.
    """
    program, *rest = arguments
    if program in ("python", "python3", f"python3.{sys.version_info.minor}"):
        program = sys.executable
    for position in range(len(rest) - 1):
        if rest[position] == "-m" and rest[position + 1] in LAUNCHER_MODULES:
            rest[position : position + 2] = [str(LAUNCHER)]
            break
    return (program, *rest)
