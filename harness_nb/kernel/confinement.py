"""What a sandbox lets in: values that the sandbox kernel and the checks of a session are confined by.

``safeguards`` makes a ``Confinement`` from the settings; ``sandbox`` turns it into a command line. No I/O here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

KILO, MEGA, GIGA = 10**3, 10**6, 10**9


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of one sandbox; ``None`` is no limit. Sizes in bytes.

    ``memory`` is address space of each process (setrlimit(2), RLIMIT_AS; RLIMIT_DATA where a GPU is passed through,
    whose driver reserves more addresses than there is memory), ``processes`` counts processes and threads together,
    ``file_size`` and ``open_files`` are of each process, ``cpu_seconds`` too. ``temporary`` is what /tmp, /dev/shm and
    the home folder hold, each. ``free_disk`` has to stay free on the disk of the workspace, or half of what was
    free at the start where that was less: below it the kernel is killed.
    """

    memory: int | None = None
    processes: int | None = 2_000
    open_files: int | None = 4_096
    file_size: int | None = 20 * GIGA
    cpu_seconds: int | None = None
    temporary: int = 2 * GIGA
    free_disk: int | None = 1 * GIGA


@dataclass(frozen=True, slots=True)
class Additions:
    """What somebody else needs inside: the relay to a proxy, for one.

    ``read_only`` and ``writable`` are paths of this machine that are bound at the same place, files, folders or
    sockets; ``environment`` are variables that are set; ``before`` is a command that is started inside before the
    kernel and goes on beside it. The kernel starts once that command has written a line or closed its standard output.
    """

    read_only: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    before: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Confinement:
    """One sandbox: ``workspace`` is writable, but for ``protected`` (existing paths below it).

    ``network`` is ``off``, ``on`` or ``allow:HOST,…`` as in the settings; ``readable`` are further folders and files
    of the person's choice; ``layer`` is the one to be used (see ``sandbox``), the strongest here if empty. Equal values
    give equal sandboxes, so that a kernel in reserve can be told to fit. A ``copy`` stands in the workspace's place
    (bubblewrap only); what is ``protected`` is then the original.
    """

    workspace: Path
    network: str = "off"
    protected: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()
    bounds: Bounds = field(default_factory=Bounds)
    additions: Additions = field(default_factory=Additions)
    layer: str = ""
    copy: Path | None = None
