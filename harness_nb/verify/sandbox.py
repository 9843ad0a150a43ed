"""The sandbox of a verification: bubblewrap around the kernel's command, where it works on this machine.

Enforced: the system is read-only, writable are the folder (or its copy, which stands in the folder's place) and an
empty /tmp; the kernel has its own process numbers, sees no environment of other processes, no connection files of other
kernels and none of the folders in ``HIDDEN``, and dies with the harness. The network stays on. Nothing else is claimed.
``execution`` uses it. Source of the options: bwrap(1), version 0.8.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

TEMPORARY = Path("/tmp")
HIDDEN = (".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".config/gcloud", ".config/gh", ".netrc", ".pypirc")
"""Places in the home folder that usually hold credentials: empty inside, where they exist."""

PROBE_SECONDS = 20
_PATH_VARIABLES = (
    "PATH",
    "PYTHONPATH",
    "VIRTUAL_ENV",
    "LD_LIBRARY_PATH",
    "HARNESS_NB_CIFAR10",
    "TORCH_HOME",
    "HF_HOME",
)


@dataclass(frozen=True, slots=True)
class Sandbox:
    """What is enforced: ``works``, and a clause for people that starts with ``in a sandbox`` or ``without``."""

    works: bool
    words: str


@dataclass(frozen=True, slots=True)
class Mounts:
    """Where things stand: ``copy`` in the place of ``root``; ``shared`` of the root read-only; ``private`` writable."""

    root: Path
    copy: Path
    private: Path
    shared: tuple[Path, ...] = ()


def find_sandbox(wanted: bool = True) -> Sandbox:
    """The sandbox of this machine. Runs a probe once in a process; blocks for a moment."""
    if not wanted:
        return Sandbox(False, "without a sandbox: it was switched off")
    reason = _probe()
    if reason:
        return Sandbox(False, f"without a sandbox: {reason}")
    return Sandbox(
        True, "in a sandbox: system read-only, only the notebook's folder and an empty /tmp writable, own processes; "
        "network on",
    )  # fmt: skip


def wrap(command: Sequence[str], mounts: Mounts, directory: Path, environment: Mapping[str, str]) -> list[str]:
    """The command, inside of the sandbox, with ``directory`` as its working directory.

    ``JPY_PARENT_PID`` must not pass: its number means nothing inside, and the kernel would take it for a lost parent.
    """
    inside = [*_system(), *_temporary(_needed_in_temporary(command, mounts, environment)), *_hidden()]
    inside += ["--bind", str(mounts.copy), str(mounts.root)]
    for path in mounts.shared:
        inside += ["--ro-bind", str(mounts.root / path), str(mounts.root / path)]
    inside += ["--bind", str(mounts.private), str(mounts.private)]
    return [*inside, "--unsetenv", "JPY_PARENT_PID", "--chdir", str(directory), "--", *command]


@functools.cache
def _probe() -> str:
    """Why bubblewrap cannot be used; empty if it can."""
    if sys.platform != "linux":
        return "bubblewrap is for Linux"
    if shutil.which("bwrap") is None:
        return "bwrap is not there (install bubblewrap)"
    command = [*_system(), *_temporary(()), "--", sys.executable, "-I", "-S", "-c", "pass"]
    if Path(sys.executable).is_relative_to(TEMPORARY):
        command = [*_system(), *_temporary(()), "--", "/bin/sh", "-c", "true"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PROBE_SECONDS, errors="replace")
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bwrap does not work here ({error})"
    said = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
    return f"bwrap does not work here ({said})" if done.returncode else ""


def _system() -> list[str]:
    options = ["bwrap", "--die-with-parent", "--unshare-pid", "--unshare-ipc", "--ro-bind", "/", "/", "--dev", "/dev"]
    for device in [*sorted(Path("/dev").glob("nvidia*")), Path("/dev/dri"), Path("/dev/kfd")]:
        if device.exists():
            options += ["--dev-bind", str(device), str(device)]
    return [*options, "--proc", "/proc"]


def _temporary(needed: Iterable[Path]) -> list[str]:
    """An empty /tmp, but for the entries that the kernel itself is started from."""
    options = ["--tmpfs", str(TEMPORARY)]
    for path in needed:
        options += ["--ro-bind", str(path), str(path)]
    return options


def _needed_in_temporary(command: Sequence[str], mounts: Mounts, environment: Mapping[str, str]) -> list[Path]:
    """The entries of /tmp that hold the Python, its packages, what its environment names, or the notebook's folder."""
    told = [*command[:1], sys.prefix, sys.base_prefix, *sys.path, str(Path(__file__)), str(mounts.root)]
    for name in _PATH_VARIABLES:
        told += environment.get(name, "").split(os.pathsep)
    entries = {TEMPORARY / Path(path).relative_to(TEMPORARY).parts[0] for path in told if _below_temporary(path)}
    return sorted(entry for entry in entries if entry.exists() and entry != mounts.private)


def _below_temporary(path: str) -> bool:
    return Path(path) != TEMPORARY and Path(path).is_relative_to(TEMPORARY)


def _hidden() -> list[str]:
    """Options that empty the places of credentials and of other kernels' connection files."""
    from jupyter_core.paths import jupyter_runtime_dir

    options: list[str] = []
    for path in [Path(jupyter_runtime_dir()), *(Path.home() / name for name in HIDDEN)]:
        if path.is_dir():
            options += ["--tmpfs", str(path)]
        elif path.is_file():
            options += ["--ro-bind", "/dev/null", str(path)]
    return options
