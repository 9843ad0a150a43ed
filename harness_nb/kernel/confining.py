"""The confinement that the settings of a session ask for; ``safeguards`` and ``doctor`` use it."""

from __future__ import annotations

from pathlib import Path

from harness_nb.kernel.confinement import GIGA, Bounds, Confinement
from harness_nb.kernel.memory import memory_limit
from harness_nb.kernel.network import check_network
from harness_nb.kernel.protected import git_folders, protected_paths
from harness_nb.kernel.sandbox import layer_here
from harness_nb.settings import SandboxSettings, Settings

SHARE_OF_MEMORY = 0.8
LEAST_MEMORY = 8 * GIGA
"""Address space that libraries such as torch reserve without using it has room in this, however small the machine."""


def confinement_for(settings: Settings, layer: str = "") -> Confinement:
    """The sandbox of a session in the workspace of ``settings``; looks at the disk, for what is to be protected.

    Raises:
        UsageError: if the network setting cannot be held.
    """
    if settings.network.startswith("allow:"):
        check_network(settings.network, layer or layer_here())
    workspace = settings.directory
    named = tuple(Path(word).expanduser() for word in settings.sandbox.readable)
    return Confinement(
        workspace,
        network=settings.network,
        protected=protected_paths(workspace, settings.read_only_globs),
        readable=(*named, *git_folders(workspace)),
        bounds=bounds_for(settings.sandbox),
        layer=layer,
    )


def bounds_for(given: SandboxSettings) -> Bounds:
    """The limits that the settings give, and sensible ones for the rest."""
    memory = given.memory_gb * GIGA if given.memory_gb else max(SHARE_OF_MEMORY * (memory_limit() or 0), LEAST_MEMORY)
    return Bounds(
        memory=int(memory),
        processes=given.processes,
        open_files=given.open_files,
        file_size=int(given.file_gb * GIGA),
        cpu_seconds=int(given.cpu_minutes * 60) if given.cpu_minutes else None,
        temporary=int(given.temporary_gb * GIGA),
        free_disk=int(given.free_disk_gb * GIGA) or None,
    )
