"""What a model is told where the sandbox refused something: why, and which option of the person would allow it. Pure.

The kernel asks with the text of a call that has failed. An error of the system says what did not work, not that a
sandbox is the reason; without a word the same call would be tried again in other ways.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_NAMES = re.compile(
    r"name resolution|Name or service not known|nodename nor servname|No address associated|Could not resolve|"
    r"getaddrinfo failed|NameResolutionError|Unknown host|unable to resolve",
    re.IGNORECASE,
)
_UNREACHABLE = re.compile(r"Network is unreachable|ENETUNREACH|Errno 101\b|Couldn't connect to server", re.IGNORECASE)
_READ_ONLY = re.compile(r"Read-only file system|EROFS|Errno 30\b", re.IGNORECASE)
_BUSY = re.compile(r"Device or resource busy|Errno 16\b", re.IGNORECASE)
_ABSENT = re.compile(r"(?:No such file or directory|Permission denied)\W+(/[^'\"\s:]+)|(/[^'\"\s:]+)'?: No such file")
_SYSTEM = ("/usr/", "/bin/", "/lib", "/sbin/", "/etc/", "/proc/", "/dev/", "/sys/", "/tmp/", "/opt/")

MOST_REFUSED = 5
"""Refused hosts that are named in a result; the record has all."""

_LIMITS = (
    (re.compile(r"MemoryError|Cannot allocate memory|can't allocate memory|bad_alloc", re.IGNORECASE), "memory_gb"),
    (re.compile(r"Resource temporarily unavailable|can't start new thread", re.IGNORECASE), "processes"),
    (re.compile(r"Too many open files", re.IGNORECASE), "open_files"),
    (re.compile(r"File too large|File size limit exceeded", re.IGNORECASE), "file_gb"),
    (re.compile(r"No space left on device", re.IGNORECASE), "temporary_gb"),
)


def sandbox_hint(text: str, *, network: str, workspace: str, protected: Sequence[str] = ()) -> str:
    """A sentence or two on what the sandbox may have refused in ``text``; empty if it looks like nothing of it.

    ``text`` is what a failed call said, ``network`` the setting, ``workspace`` its absolute path, ``protected`` are
    the paths in it that are read-only, relative to it.
    """
    found = [_network(text, network), _files(text, workspace, protected), _limit(text)]
    return " ".join(hint for hint in found if hint)


def refused_hint(refused: Sequence[tuple[str, int, str]]) -> str:
    """A sentence on the hosts that the proxy of a sandbox has refused: (host, port, reason). Empty if none.

    The option takes all hosts at once, so those that are allowed already have to be named again with the new one.
    """
    if not refused:
        return ""
    told = [f"{host}:{port} ({reason})" for host, port, reason in refused[:MOST_REFUSED]]
    more = f" and {len(refused) - MOST_REFUSED} more" if len(refused) > MOST_REFUSED else ""
    return (
        f"The sandbox refused {', '.join(told)}{more}. The person can allow hosts with --network allow:HOST,…, beside "
        "those that are allowed already."
    )


def _network(text: str, network: str) -> str:
    if network == "on" or not (_NAMES.search(text) or _UNREACHABLE.search(text)):
        return ""
    if network == "off":
        return (
            "The network is off in this session; the person can allow hosts with --network allow:HOST, "
            "or all of it with --network on."
        )
    hosts = network.removeprefix("allow:").replace(",", ", ")
    return (
        f"Only {hosts} can be reached in this session, through the proxy of the environment (HTTPS_PROXY); the person "
        "can allow more with --network allow:HOST,HOST."
    )


def _files(text: str, workspace: str, protected: Sequence[str]) -> str:
    if _READ_ONLY.search(text) or (protected and _BUSY.search(text)):
        names = [name for name in protected if name in text] or list(protected)
        kept = f", and in it not {', '.join(names[:5])}" if names else ""
        return (
            f"Only the workspace can be written{kept}. The system and the Python environment are read-only: packages "
            "are installed by the person."
        )
    for match in _ABSENT.finditer(text):
        path = match[1] or match[2]
        if not path.startswith((f"{workspace.rstrip('/')}/", *_SYSTEM)) and path != workspace:
            return (
                f"Of this machine tool code has only the workspace and the system; {path} is in neither. The "
                "person can show a folder with readable in [tool.harness-nb.sandbox], or copy it into the workspace."
            )
    return ""


def _limit(text: str) -> str:
    for pattern, name in _LIMITS:
        if pattern.search(text):
            return (
                f"This may be a limit of the sandbox: {name} in [tool.harness-nb.sandbox], which the person can raise."
            )
    return ""
