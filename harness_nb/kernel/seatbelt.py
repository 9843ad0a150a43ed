"""The profile of macOS's own sandbox (``sandbox-exec``) for a confinement. Written by its documentation, not run yet.

``sandbox`` uses it where the system is macOS. Source: sandbox-exec(1) and the profiles in /System/Library/Sandbox;
Apple calls the program deprecated and ships it.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness_nb.kernel.confinement import Confinement
from harness_nb.kernel.places import python_paths

SYSTEM = ("/usr", "/bin", "/sbin", "/System", "/Library", "/opt", "/private/etc", "/private/var/db/timezone", "/dev")
TOOLCHAINS = ("/Applications/Xcode.app", "/private/var/select")
DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/dtracehelper")


def why_not() -> str:
    """Why it cannot be used here; empty if it can."""
    if sys.platform != "darwin":
        return "sandbox-exec is for macOS"
    return "" if shutil.which("sandbox-exec") else "sandbox-exec is not there"


def seatbelt(
    command: Sequence[str], confinement: Confinement, *, environment: Mapping[str, str], private: Sequence[Path] = ()
) -> list[str]:
    """``command`` inside a sandbox; see ``bubblewrap.bubblewrap``."""
    readable = [*python_paths(environment), *confinement.readable, *confinement.additions.read_only]
    writable = [confinement.workspace, *private, *confinement.additions.writable]
    return ["sandbox-exec", "-p", profile(confinement, readable, writable), *command]


def profile(confinement: Confinement, readable: Sequence[Path], writable: Sequence[Path]) -> str:
    """The profile in Seatbelt's language: of two rules that fit, the last one counts.

    ``readable`` and ``writable`` are resolved paths; a path that cannot be written into a profile is refused.

    Raises:
        ValueError: for a path with a control character.
    """
    lines = [
        "(version 1)",
        "(deny default)",
        '(import "bsd.sb")',
        "(allow process-fork)",
        "(allow process-exec)",
        "(allow signal (target same-sandbox))",
        "(allow sysctl-read)",
        "(allow mach-lookup)",
        "(allow ipc-posix-shm ipc-posix-sem)",
        "(allow file-read-metadata)",
        *(f"(allow file-read* (subpath {quoted(path)}))" for path in (*SYSTEM, *TOOLCHAINS, *readable)),
        *(f"(allow file-write* (literal {quoted(path)}))" for path in DEVICES),
        *(f"(allow file-read* file-write* (subpath {quoted(path)}))" for path in writable),
        *(f"(allow network* (local unix-socket (subpath {quoted(path)})))" for path in writable),
        *(f"(allow network* (remote unix-socket (subpath {quoted(path)})))" for path in writable),
        *(f"(deny file-write* (subpath {quoted(path)}))" for path in confinement.protected),
    ]
    if confinement.network == "on":
        lines += ["(allow network-outbound)", "(allow network-inbound)", "(allow system-socket)"]
    elif confinement.network.startswith("allow:"):
        lines += ['(allow network* (local ip "localhost:*"))', '(allow network* (remote ip "localhost:*"))']
    return "\n".join(lines) + "\n"


def quoted(path: object) -> str:
    """A path as a string of the profile's language."""
    text = str(path)
    if not text.isprintable():
        raise ValueError(f"the path {text!r} cannot be named in a sandbox profile; rename the folder")
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
