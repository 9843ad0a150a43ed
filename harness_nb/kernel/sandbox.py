"""The sandbox that tool code and checks run in: which one works here, and the command line of a command inside it.

Three layers are known. ``bubblewrap`` (Linux) gives namespaces and an almost empty file system, with Landlock and a
filter of system calls inside as a second line. ``landlock`` is for Linux machines that allow no user namespaces: the
same paths, by rules of the kernel. ``seatbelt`` is macOS's own. ``enforced`` says what each one holds.

``opened`` uses it for session notebooks that are opened in Jupyter, ``started`` for the kernels of sessions.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness_nb.errors import UsageError
from harness_nb.kernel import bubblewrap, seatbelt
from harness_nb.kernel.confinement import Confinement
from harness_nb.kernel.places import TOOLS, devices, holds_what_is_private, python_paths, system_paths
from harness_nb.tools import landlock, syscall_filter

CONFINE = TOOLS / "confine.py"
ABSOLUTE = re.compile(r"(?<![\w.~/-])/[^\s'\"`;|&<>()$*?=]+")
WRITABLE_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/shm", "/dev/ptmx")


def layer_here() -> str:
    """The strongest layer that works on this machine: ``bubblewrap``, ``landlock``, ``seatbelt``, or empty.

    The first call in a process runs bubblewrap once and blocks for a moment.
    """
    if sys.platform == "darwin":
        return "" if seatbelt.why_not() else "seatbelt"
    if not bubblewrap.why_not():
        return "bubblewrap"
    return "landlock" if landlock.abi() and syscall_filter.supported() else ""


def layer_of(confinement: Confinement) -> str:
    """The layer that confines it: the one it asks for, or the strongest here."""
    return confinement.layer or layer_here()


def sandboxed(
    command: Sequence[str],
    confinement: Confinement,
    *,
    environment: Mapping[str, str],
    directory: Path | None = None,
    private: Sequence[Path] = (),
) -> list[str]:
    """The command line that runs ``command`` inside the sandbox, in ``directory`` (the workspace by default).

    It has to be started with ``environment``, a scrubbed one: that is what the command sees. ``private`` are existing
    folders that are writable beside the workspace. Nothing is started here, and the result is good for many starts.

    Raises:
        UsageError: where there is no sandbox, or it cannot hold what ``confinement`` says.
    """
    if confinement.network.startswith("allow:") and not confinement.additions.before:
        raise UsageError(f"--network {confinement.network} needs its proxy. Use --network off or --network on.")
    layer = layer_of(confinement)
    if not layer:
        raise UsageError(f"There is no sandbox here: {why_none()}. Without one: --kernel harness-tools.")
    order = _order(layer, confinement, environment, private)
    inner = [sys.executable, "-I", "-S", str(CONFINE), json.dumps(order), *command]
    place = directory or confinement.workspace
    if layer == "bubblewrap":
        return bubblewrap.bubblewrap(inner, confinement, directory=place, environment=environment, private=private)
    if layer == "seatbelt":
        return seatbelt.seatbelt(inner, confinement, environment=environment, private=private)
    return inner


def named_paths(command: Sequence[str]) -> tuple[Path, ...]:
    """Existing files and folders that a command names by absolute paths, in its words or within its scripts."""
    found = {Path(match.rstrip(".,:")) for word in command for match in ABSOLUTE.findall(word)}
    return tuple(sorted(path for path in found if path.exists() and not holds_what_is_private(path)))


def why_none() -> str:
    """Why no layer works here, for people."""
    if sys.platform == "darwin":
        return seatbelt.why_not()
    lacking = (
        "this kernel has no Landlock" if not landlock.abi() else "the filter of system calls does not know this CPU"
    )
    return f"{bubblewrap.why_not()}, and {lacking}"


def _order(
    layer: str, confinement: Confinement, environment: Mapping[str, str], private: Sequence[Path]
) -> dict[str, Any]:
    """What ``tools/confine`` does inside, before the command starts."""
    order: dict[str, Any] = {"limits": limits_of(confinement)}
    if confinement.additions.before:
        order["before"] = list(confinement.additions.before)
    own = [confinement.workspace, *private, *confinement.additions.writable]
    if layer == "bubblewrap":
        writable = [*own, "/tmp", "/var/tmp", "/dev", Path.home()]
        if landlock.abi():
            order["landlock"] = {"readable": ["/"], "writable": [str(path) for path in writable], "tcp": True}
        if syscall_filter.supported():
            order["filter"] = {"network": True}
    elif layer == "landlock":
        online = confinement.network == "on"
        readable = [*system_paths(), *python_paths(environment), *confinement.readable, "/proc", "/dev"]
        readable += confinement.additions.read_only
        writable = [*own, *WRITABLE_DEVICES, *devices()]
        order["landlock"] = {
            "readable": [str(path) for path in readable],
            "writable": [str(path) for path in writable],
            "tcp": online,
        }
        order["filter"] = {"network": online}
        order["environment"] = dict(confinement.additions.environment)
    if layer != "bubblewrap" and private:
        home, temporary = private[0] / "home", private[0] / "tmp"
        order["folders"] = [str(home), str(temporary)]
        own_places = {"HOME": str(home), "TMPDIR": str(temporary)}
        order["environment"] = {**own_places, **dict(confinement.additions.environment)}
    return order


def limits_of(confinement: Confinement) -> dict[str, int]:
    """The limits of setrlimit(2) for the bounds of a confinement, by name without ``RLIMIT_``."""
    bounds = confinement.bounds
    memory = "DATA" if devices() else "AS"
    wanted = {
        memory: bounds.memory,
        "NPROC": bounds.processes if layer_of(confinement) == "bubblewrap" else None,
        "NOFILE": bounds.open_files,
        "FSIZE": bounds.file_size,
        "CPU": bounds.cpu_seconds,
        "CORE": 0,
    }
    return {name: most for name, most in wanted.items() if most is not None}
