"""Which addresses of the web may be fetched: the URL as it is written, and where its name leads. Pure.

``policy.web`` judges a call by it, and ``web.fetching`` asks again for each address that a name resolves to and for
each redirect. Ranges are those of IANA's special-purpose registries (RFC 6890), as ``ipaddress`` knows them.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from urllib.parse import SplitResult, urlsplit

PORTS = frozenset({80, 443})
"""The ports that a URL may name."""

LONGEST = 2000
"""Characters of a URL; a longer one is no address but a message."""

_LOCAL_NAMES = re.compile(
    r"(^|\.)(localhost|local|localdomain|internal|intranet|lan|home|corp|private|home\.arpa|test|invalid|onion)\Z"
)
_METADATA = frozenset({"168.63.129.16", "100.100.100.200", "192.0.0.192", "fd00:ec2::254"})
"""Addresses at which clouds tell a machine its credentials, and that are not link-local."""

_NUMERIC = re.compile(r"(0x[0-9a-f]*|\d+)\Z", re.IGNORECASE)
_NAT64 = (IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48"))
_CONTROL = re.compile(r"[\x00-\x20\x7f\\]|[^\x00-\x7f]")


def url_problem(url: str, ports: Collection[int] = PORTS) -> str:
    """Why a URL is not fetched, as a clause; empty if nothing speaks against it as it is written."""
    if len(url) > LONGEST:
        return f"it is {len(url):,} characters long, and {LONGEST:,} are the most"
    if _CONTROL.search(url):
        return "it has characters that no URL has; write them percent-encoded, and a host in its xn-- form"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        return f"it is no URL: {error}"
    if parts.scheme not in ("http", "https"):
        return f"only http and https are fetched, not {parts.scheme or 'an address without a scheme'}"
    if not parts.hostname:
        return "it names no host"
    if parts.username is not None or parts.password is not None:
        return "it holds a user name or a password"
    if port is not None and port not in ports:
        return f"port {port} is not fetched, only {' and '.join(map(str, sorted(ports)))}"
    return _host_problem(parts)


def _host_problem(parts: SplitResult) -> str:
    host = (parts.hostname or "").rstrip(".")
    if (address := _as_address(host)) is not None:
        return address_problem(address)
    if "%" in host or ":" in host:
        return f"{host} is no name of a host"
    if _NUMERIC.match(host.rsplit(".", 1)[-1]):
        return f"{host} is an IP address in an unusual form; write it in the usual one"
    if "." not in host or _LOCAL_NAMES.search(host):
        return f"{host} is a name of this machine or of a local network"
    return ""


def address_problem(address: IPv4Address | IPv6Address | str) -> str:
    """Why nothing is fetched from an IP address, as a clause; empty if it is a public one."""
    known = _as_address(address) if isinstance(address, str) else address
    if known is None:
        return f"{address} is no IP address"
    if str(known) in _METADATA:
        return f"{known} is where a cloud tells machines their credentials"
    if isinstance(known, IPv6Address):
        if known.scope_id:
            return f"{known} is an address of a local network"
        if (within := _embedded(known)) is not None:
            return address_problem(within) and f"{known} stands for {within}: {address_problem(within)}"
    for kind in ("loopback", "link_local", "multicast", "unspecified", "private", "reserved"):
        if getattr(known, f"is_{kind}"):
            return f"{known} is no public address but {kind.replace('_', '-')}"
    return "" if known.is_global else f"{known} is not a public address"


def _embedded(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that an IPv6 address stands for: mapped, compatible, translated (NAT64), 6to4, Teredo."""
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if any(address in network for network in _NAT64) or (int(address) >> 32 == 0 and int(address) > 1):
        return IPv4Address(int(address) & 0xFFFFFFFF)
    if address.sixtofour is not None:
        return address.sixtofour
    return address.teredo[1] if address.teredo is not None else None


def _as_address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None
