"""Which command starts a tool kernel: the name of a kernel spec becomes an argument list.

``harness-tools`` is always there, from inside the package. Any other name is an installed kernel spec; an ipykernel
keeps its own Python and arguments but is started through our launcher, by path, so that it needs no harness_nb.
Used by ``ToolKernel``, ``doctor`` and the command line; imports jupyter_client lazily.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness_nb.errors import UsageError

DEFAULT_NAME = "harness-tools"
LAUNCHER = Path(__file__).resolve().parent.parent / "tools" / "launch.py"
LAUNCHER_MODULES = ("ipykernel_launcher", "ipykernel", "harness_nb.tools.launch")


@dataclass(frozen=True, slots=True)
class KernelCommand:
    """How a kernel is started. ``arguments`` still holds ``{connection_file}``; ``environment`` is set on top."""

    name: str
    display_name: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    interrupt_by_message: bool = False


def resolve_kernel(name: str = DEFAULT_NAME) -> KernelCommand:
    """The command of the kernel spec ``name``.

    Raises:
        UsageError: if there is no such spec (lists those there are), or it is not a Python one.
    """
    if name == DEFAULT_NAME:
        arguments = (sys.executable, str(LAUNCHER), "-f", "{connection_file}")
        return KernelCommand(name=name, display_name="Python 3 (harness tools)", arguments=arguments)
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
    """Names that ``resolve_kernel`` knows, ``harness-tools`` first."""
    from jupyter_client.kernelspec import KernelSpecManager

    return [DEFAULT_NAME, *sorted(set(KernelSpecManager().find_kernel_specs()) - {DEFAULT_NAME})]


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
