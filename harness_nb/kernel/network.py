"""``--network allow:HOST,…``: the proxy of a kernel outside of its sandbox, and what leads to it inside.

The sandbox keeps a network of its own that leads nowhere. A folder with the proxy's socket is bound into it, a relay
listens on its loopback, and variables tell programs of it. ``started`` has one proxy for each kernel.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from harness_nb.errors import UsageError
from harness_nb.kernel.confinement import Confinement
from harness_nb.kernel.places import TOOLS
from harness_nb.network import Proxy, Usage
from harness_nb.policy.hosts import AllowedHosts, read_hosts

RELAY = TOOLS / "relay.py"
PORT = 3128
"""Of the sandbox's own loopback, where nothing else listens at the start."""

FOLDER, SOCKET = "net", "proxy"
LOCAL = ("localhost", "127.0.0.1", "::1")
"""Where programs within the sandbox talk to each other, not through the proxy."""


def wants_proxy(confinement: Confinement | None) -> bool:
    """Whether hosts are to be allowed, and nobody else has seen to it."""
    return confinement is not None and confinement.network.startswith("allow:") and not confinement.additions.before


def check_network(network: str, layer: str) -> None:
    """Refuse a list that is wrong, or that ``layer`` cannot hold.

    Raises:
        UsageError: with what can be done instead.
    """
    if not network.startswith("allow:"):
        return
    read_hosts(network)
    if layer != "bubblewrap":
        raise UsageError(
            f"--network {network} needs bubblewrap: without a network of its own, a sandbox cannot be held to a list "
            f"of hosts ({layer or 'none'} is what works here). Use --network off or --network on."
        )


async def start_proxy(confinement: Confinement, private: Path, usage: Usage) -> Proxy:
    """The proxy for a sandbox that was made ``with_proxy``, listening in ``private``."""
    proxy = Proxy(read_hosts(confinement.network), usage)
    await proxy.start(private / FOLDER / SOCKET)
    return proxy


def with_proxy(confinement: Confinement, private: Path) -> Confinement:
    """The same sandbox with the way to the proxy that listens in ``private``, which only this user can enter."""
    folder = private / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    additions = replace(
        confinement.additions,
        writable=(*confinement.additions.writable, folder),
        environment=(*confinement.additions.environment, *variables(read_hosts(confinement.network))),
        before=(sys.executable, "-I", "-S", str(RELAY), str(PORT), str(folder / SOCKET)),
    )
    return replace(confinement, additions=additions)


def variables(hosts: AllowedHosts) -> Iterator[tuple[str, str]]:
    """What tells programs of the proxy: curl, pip, requests, httpx, urllib, conda and R by the first, git and Node too.

    Addresses of the sandbox's own loopback go past it, unless the list means those of the machine by them.
    """
    url = f"http://127.0.0.1:{PORT}"
    own = ",".join(name for name in LOCAL if name not in hosts.literal)
    for name, value in (("HTTP_PROXY", url), ("HTTPS_PROXY", url), ("ALL_PROXY", url), ("NO_PROXY", own)):
        yield from ((name, value), (name.lower(), value))
    yield from (("GIT_CONFIG_COUNT", "1"), ("GIT_CONFIG_KEY_0", "http.proxy"), ("GIT_CONFIG_VALUE_0", url))
    yield ("NODE_USE_ENV_PROXY", "1")
