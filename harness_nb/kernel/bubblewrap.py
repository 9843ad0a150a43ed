"""The command line of bubblewrap for a confinement: namespaces, and which file stands where. Source: bwrap(1), 0.8.

``sandbox`` uses it. The root of the sandbox is an empty, read-only file system into which only what is named here is
bound; everything else of the machine is absent, not merely forbidden.
"""

from __future__ import annotations

import functools
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from harness_nb.kernel.confinement import Confinement
from harness_nb.kernel.places import (
    devices,
    font_caches,
    holds_what_is_private,
    python_paths,
    system_paths,
    without_nested,
)

NAMESPACES = ("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")
LAST_LOCK = "--disable-userns"
"""No further user namespaces inside; not every kernel lets it be set."""

HOST_NAME = "sandbox"
SETTINGS_OF_THE_KERNEL = ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/scsi")
PROBE_SECONDS = 20
CREDENTIALS = (".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".config", ".netrc", ".pypirc", ".local/share")
"""Where a home folder keeps credentials and running kernels: hidden where the workspace holds the home folder."""


@functools.cache
def why_not() -> str:
    """Why bubblewrap cannot be used here; empty if it can. Runs it once in a process; blocks for a moment."""
    if sys.platform != "linux":
        return "bubblewrap is for Linux"
    if shutil.which("bwrap") is None:
        return "bwrap is not there (install bubblewrap)"
    said = _try([*NAMESPACES, "--unshare-net"])
    return f"bwrap does not work here ({said})" if said else ""


@functools.cache
def last_lock() -> tuple[str, ...]:
    """The option that closes user namespaces inside, where it works."""
    return () if _try([*NAMESPACES, LAST_LOCK]) else (LAST_LOCK,)


def sized(size: int) -> tuple[str, ...]:
    """The option that bounds the next folder in memory to ``size`` bytes; none before bubblewrap 0.7."""
    return ("--size", str(size)) if _knows_sizes() else ()


@functools.cache
def _knows_sizes() -> bool:
    return not _try([*NAMESPACES, "--size", "4096", "--tmpfs", "/tmp"])


def _try(options: Sequence[str]) -> str:
    """What bubblewrap says against ``options``; empty if nothing."""
    program = shutil.which("true") or "/bin/true"
    command = ["bwrap", *options, "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--", program]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PROBE_SECONDS, errors="replace")
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1] if done.returncode else ""


@functools.cache
def version() -> str:
    """``bubblewrap 0.8.0``, as the program says it."""
    try:
        return subprocess.run(
            ["bwrap", "--version"], capture_output=True, text=True, timeout=PROBE_SECONDS
        ).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return "bubblewrap"


def bubblewrap(
    command: Sequence[str],
    confinement: Confinement,
    *,
    directory: Path,
    environment: Mapping[str, str],
    private: Sequence[Path] = (),
) -> list[str]:
    """``command`` inside a sandbox, with ``directory`` as its working directory.

    bubblewrap itself has to be started with ``environment``, which is what the command sees: values are not put on a
    command line, where other users could read them. ``private`` are folders that are writable beside the workspace,
    those of the sockets.
    """
    additions = confinement.additions
    options = ["bwrap", *NAMESPACES, *last_lock(), "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    options += ["--hostname", HOST_NAME, *([] if confinement.network == "on" else ["--unshare-net"])]
    options += [*_system(), *_own_folders(confinement, environment)]
    shown = without_nested([*python_paths(environment), *_existing(confinement.readable), *additions.read_only])
    for path in _outside_of_system(shown):
        options += ["--ro-bind", str(path), str(path)]
    options += [*_workspace(confinement)]
    for path in [*private, *additions.writable]:
        options += ["--bind", str(path), str(path)]
    options += [*_runtime(confinement, shown), "--remount-ro", "/dev", "--remount-ro", "/"]
    for name, value in (("TMPDIR", "/tmp"), ("JPY_PARENT_PID", "1"), *additions.environment):
        options += ["--setenv", name, value]
    return [*options, "--chdir", str(directory), "--", *command]


def _system() -> Iterator[str]:
    """Programs and libraries read-only, links as links; fresh /proc and /dev, and the GPU's devices."""
    for path in system_paths():
        if path.is_symlink() and path.parent == Path("/"):
            yield from ("--symlink", str(path.readlink()), str(path))
        elif path.is_symlink():
            yield from ("--ro-bind", str(path.resolve()), str(path))
        else:
            yield from ("--ro-bind", str(path), str(path))
    yield from ("--proc", "/proc", "--dev", "/dev")
    for name in SETTINGS_OF_THE_KERNEL:  # root may write them in any namespace, and bubblewrap may leave them open
        if Path(name).exists():
            yield from ("--ro-bind", name, name)
    graphics = devices()
    for path in graphics:
        yield from ("--dev-bind", str(path), str(path))
    if graphics:
        yield from ("--ro-bind", "/sys", "/sys")


def _own_folders(confinement: Confinement, environment: Mapping[str, str]) -> Iterator[str]:
    """Empty folders of a bounded size in memory for temporary files and the home, which a font list is put into."""
    home = Path.home()
    for folder in dict.fromkeys(("/tmp", "/var/tmp", "/dev/shm", str(home))):
        yield from (*sized(confinement.bounds.temporary), "--tmpfs", folder)
    for cache in font_caches(environment):
        yield from ("--ro-bind", str(cache), str(cache))


def _existing(paths: Iterable[Path]) -> list[Path]:
    return [path for path in paths if path.exists() and not holds_what_is_private(path)]


def _outside_of_system(paths: Iterable[Path]) -> list[Path]:
    """Those that are not there already with the system."""
    system = system_paths()
    return [path for path in paths if not any(path.is_relative_to(folder) for folder in system)]


def _workspace(confinement: Confinement) -> Iterator[str]:
    """The workspace, writable, and in it what is protected.

    Each folder between the two becomes a mount of its own as well: a mount can be neither renamed nor removed, and so
    nobody can put another folder into the place of the one above what is protected.
    """
    root = confinement.workspace
    yield from ("--bind", str(confinement.copy or root), str(root))
    if confinement.copy is not None:  # the copy is thrown away: nothing of it needs to be held
        for path in confinement.protected:
            yield from ("--ro-bind", str(path), str(path))
        return
    fixed: dict[Path, None] = {}
    for path in confinement.protected:
        above = [folder for folder in path.parents if folder != root and folder.is_relative_to(root)]
        fixed |= dict.fromkeys(reversed(above))
    protected = without_nested(confinement.protected)
    for folder in sorted(fixed):
        if not any(folder.is_relative_to(path) for path in protected):
            yield from ("--bind", str(folder), str(folder))
    for path in protected:
        yield from ("--ro-bind", str(path), str(path))


def _runtime(confinement: Confinement, shown: Sequence[Path]) -> Iterator[str]:
    """Empty folders over what must not be seen and lies within what is shown: connection files and credentials."""
    from jupyter_core.paths import jupyter_runtime_dir

    home = Path.home()
    within = [confinement.workspace, *shown]
    hidden = [Path(jupyter_runtime_dir())]
    if home.is_relative_to(confinement.workspace):
        hidden += [home / name for name in CREDENTIALS]
    for path in hidden:
        if not path.exists() or not any(path.is_relative_to(folder) for folder in within):
            continue
        yield from ("--tmpfs", str(path)) if path.is_dir() else ("--ro-bind", "/dev/null", str(path))
