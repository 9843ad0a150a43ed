"""The hosts that ``--network allow:HOST,…`` opens: how the list is read, and what is on it. Pure.

``kernel.network`` refuses a wrong list before a session starts; the proxy in ``network`` asks for each connection.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address

from harness_nb.errors import UsageError
from harness_nb.policy.addresses import PORTS

SHORTHANDS = {"pypi": ("pypi.org", "files.pythonhosted.org")}
"""Words that stand for hosts: the index and the files that pip needs."""

_LABEL = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*\Z")
_NUMERIC = re.compile(r"(0x[0-9a-f]*|\d+)\Z")
_WITH_PORT = re.compile(r"(?P<host>\[[^\]]*\]|[^:]*)(:(?P<port>\d{1,5}))?\Z")
LONGEST_NAME = 253

Address = IPv4Address | IPv6Address


@dataclass(frozen=True, slots=True)
class Entry:
    """One item of the list: a name, the names ``below`` it (``*.example.org``), or an address that is meant literally.

    ``port`` is the one that it names; without one, 80 and 443.
    """

    name: str
    below: bool = False
    port: int | None = None
    address: Address | None = None

    def covers_port(self, port: int) -> bool:
        """Whether the port is open on what this entry stands for."""
        return port == self.port if self.port is not None else port in PORTS

    def covers(self, host: str) -> bool:
        """Whether a host, as ``plain_host`` gives it, is one that this entry stands for."""
        if self.address is not None:
            return address_of(host) == self.address
        return host.endswith(f".{self.name}") if self.below else host == self.name


@dataclass(frozen=True, slots=True)
class AllowedHosts:
    """The hosts of a session; hosts are given as ``plain_host`` gives them."""

    entries: tuple[Entry, ...]

    def allows(self, host: str, port: int) -> bool:
        """Whether a connection may be asked for by this name or address."""
        return any(entry.covers(host) and entry.covers_port(port) for entry in self.entries)

    def allows_address(self, address: str, port: int) -> bool:
        """Whether an address that no name may lead to by itself is on the list literally."""
        wanted = address_of(address)
        return wanted is not None and any(
            entry.address == wanted and entry.covers_port(port) for entry in self.entries if entry.address is not None
        )

    def names_port(self, host: str, port: int) -> bool:
        """Whether the list opens this port by its number: then it need not carry TLS."""
        return any(entry.port == port and entry.covers(host) for entry in self.entries)

    @property
    def literal(self) -> frozenset[str]:
        """The addresses of the list, as text."""
        return frozenset(str(entry.address) for entry in self.entries if entry.address is not None)


def read_hosts(network: str) -> AllowedHosts:
    """The list of ``allow:HOST,…``.

    Raises:
        UsageError: for an item that is no host, with what can be written.
    """
    entries: list[Entry] = []
    for word in network.removeprefix("allow:").split(","):
        for item in SHORTHANDS.get(word.strip().lower(), (word,)):
            entries.append(_entry(item.strip().lower()))
    return AllowedHosts(tuple(entries))


def _entry(word: str) -> Entry:
    bare = address_of(word)
    parts = _WITH_PORT.match(word)
    if bare is not None:
        return Entry(str(bare), address=bare)
    if parts is None:
        raise UsageError(_wrong(word))
    host, port = parts["host"], int(parts["port"]) if parts["port"] else None
    if port is not None and not 0 < port < 65536:
        raise UsageError(f"--network allow:{word}: {port} is no port.")
    if (address := address_of(host)) is not None:
        return Entry(str(address), port=port, address=address)
    below = host.startswith("*.")
    name = host.removeprefix("*.")
    if not plain_host(name) or (below and "." not in name):
        raise UsageError(_wrong(word))
    return Entry(plain_host(name), below=below, port=port)


def _wrong(word: str) -> str:
    return (
        f"--network allow:{word}: this is no host. Write names (example.org), names below one (*.example.org), "
        "addresses (192.0.2.7, [2001:db8::7]), each with :PORT if it is not 80 or 443, or pypi for what pip needs."
    )


def plain_host(host: str) -> str:
    """A host in the one form that is compared: lower case, no final dot, an address as it is usually written.

    Empty for what is neither a name in ASCII nor an address in its usual form.
    """
    host = host.lower()
    if (address := address_of(host)) is not None:
        return str(address)
    host = host.removesuffix(".")
    if len(host) > LONGEST_NAME or not _NAME.match(host) or _NUMERIC.match(host.rsplit(".", 1)[-1]):
        return ""
    return host


def address_of(host: str) -> Address | None:
    """The address that a host is, with or without brackets; ``None`` for a name, and for one that has a zone."""
    inner = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    try:
        found = ip_address(inner)
    except ValueError:
        return None
    return None if isinstance(found, IPv6Address) and found.scope_id else found
