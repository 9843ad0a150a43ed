"""Which files of this machine a sandbox shows, all read-only: the system, the Python environment, what variables name.

``bubblewrap`` and ``landlock`` use it. What holds the home folder or /tmp is never shown whole, whatever names it.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/gnu/store")
"""Programs and libraries."""

ETC = (
    "alternatives", "ca-certificates", "ca-certificates.conf", "crypto-policies", "debian_version", "fonts",
    "gai.conf", "group", "host.conf", "hosts", "java*", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ldap.conf",
    "localtime", "locale.alias", "locale.conf", "lsb-release", "magic", "mailcap", "matplotlibrc", "mime.types",
    "nsswitch.conf", "OpenCL", "os-release", "passwd", "perl", "pki", "profile", "protocols", "python3", "R",
    "redhat-release", "resolv.conf", "rpc", "services", "shells", "skel", "ssl/certs", "ssl/openssl.cnf",
    "ssl/cert.pem", "static", "subuid", "terminfo", "timezone", "vulkan", "xattr.conf",
)  # fmt: skip
"""Of /etc, what programs need and nobody keeps secret."""

KERNEL_FACTS = ("/sys/devices/system",)
DEVICES = ("nvidia*", "dri", "kfd")
PATH_VARIABLES = (
    "PYTHONPATH", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "HARNESS_NB_CIFAR10", "TORCH_HOME", "HF_HOME", "KERAS_HOME",
    "SCIKIT_LEARN_DATA", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "CONDA_PREFIX",
)  # fmt: skip
"""Variables of the kernel's environment whose files and folders it needs. Those of demos are taken too."""

DEMO_PREFIX = "HARNESS_NB_DEMO_"
TOOLS = Path(__file__).resolve().parent.parent / "tools"


def system_paths() -> list[Path]:
    """Programs, libraries and the harmless part of /etc, as far as they are there."""
    found = [path for path in map(Path, (*SYSTEM, *KERNEL_FACTS)) if path.exists()]
    return found + [path for name in ETC for path in sorted(Path("/etc").glob(name)) if path.exists()]


def python_paths(environment: Mapping[str, str]) -> list[Path]:
    """The Python of this process with its packages, our tools, and what ``environment`` names; existing paths.

    A link on the way (a virtual environment's ``python``, a folder on ``sys.path``) is followed, and both ends count.
    """
    named = [sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix, *sys.path, str(TOOLS)]
    named += _steps(Path(sys.executable))
    for name, value in environment.items():
        if name in PATH_VARIABLES or name.startswith(DEMO_PREFIX):
            named += value.split(os.pathsep)
    found: dict[Path, None] = {}
    for word in named:
        path = Path(word)
        if path.is_absolute() and path.exists():
            found |= dict.fromkeys((Path(os.path.normpath(path)), path.resolve()))
    return without_nested(path for path in found if not holds_what_is_private(path))


def _steps(program: Path) -> list[str]:
    """The links from ``program`` to the file itself."""
    steps: list[str] = []
    while program.is_symlink() and len(steps) < 20:
        program = program.parent / program.readlink()
        steps.append(os.path.normpath(program))
    return steps


def holds_what_is_private(path: Path) -> bool:
    """Whether ``path`` is, or is above, the home folder or a folder for temporary files."""
    private = {Path.home(), Path.home().resolve(), Path("/tmp"), Path("/var/tmp"), Path(tempfile.gettempdir())}
    return any(place == path or place.is_relative_to(path) for place in private)


def without_nested(paths: Iterable[Path]) -> list[Path]:
    """The paths without those that lie below another one of them, sorted."""
    kept: list[Path] = []
    for path in sorted(paths):
        if not kept or not path.is_relative_to(kept[-1]):
            kept.append(path)
    return kept


def devices() -> list[Path]:
    """The GPU devices of this machine."""
    return [path for pattern in DEVICES for path in sorted(Path("/dev").glob(pattern))]


def font_caches(environment: Mapping[str, str]) -> list[Path]:
    """matplotlib's list of fonts, which takes it seconds to make anew; existing files."""
    folders = [Path.home() / ".cache" / "matplotlib"]
    if environment.get("XDG_CACHE_HOME"):
        folders.insert(0, Path(environment["XDG_CACHE_HOME"]) / "matplotlib")
    return [path for folder in folders for path in sorted(folder.glob("fontlist-*.json"))]
