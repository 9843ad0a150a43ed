"""What a request to a proxy asks for, and what of it and of its reply is passed on. Pure.

The proxy connects to what the target of the request names and to nothing else; the Host header is written anew from it.
Source: RFC 9110, sections 7.6 and 9.3.6.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

import h11

from harness_nb.policy.addresses import PORTS
from harness_nb.policy.hosts import plain_host

HOP_BY_HOP = frozenset(
    {b"connection", b"proxy-connection", b"keep-alive", b"proxy-authorization", b"proxy-authenticate", b"te"}
    | {b"trailer", b"upgrade", b"host"}
)
_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\[\]:@/?#\s]+):(\d{1,5})\Z")

Headers = list[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class Target:
    """Where a request is to go: a host as ``plain_host`` gives it; ``path`` with the query, empty for a tunnel."""

    host: str
    port: int
    path: str = ""

    @property
    def tunnel(self) -> bool:
        """Whether bytes are to be carried, and no request."""
        return not self.path

    @property
    def place(self) -> str:
        """Host and port, as a person writes them."""
        return place_of(self.host, self.port)


def place_of(host: str, port: int) -> str:
    """A host and a port as the option takes them: without the port where it is a usual one."""
    shown = f"[{host}]" if ":" in host else host
    return shown if port in PORTS else f"{shown}:{port}"


def target_of(request: h11.Request) -> Target | str:
    """What a request asks for, or a sentence on why the proxy does not take it."""
    wanted = request.target.decode("latin-1")
    if request.method == b"CONNECT":
        match = _AUTHORITY.match(wanted)
        return _checked(match[1], int(match[2]), "") if match else "CONNECT takes HOST:PORT."
    try:
        parts = urlsplit(wanted)
        port = parts.port
    except ValueError:
        return "The target of the request is no URL."
    if parts.scheme != "http" or not parts.hostname:
        return "This is a proxy: it takes http:// URLs, and CONNECT for https."
    if "@" in parts.netloc:
        return "A URL with a user name or a password is not taken; send an Authorization header."
    path = parts.path or ("*" if request.method == b"OPTIONS" else "/")
    return _checked(parts.hostname, 80 if port is None else port, path + (f"?{parts.query}" if parts.query else ""))


def _checked(host: str, port: int, path: str) -> Target | str:
    plain = plain_host(host)
    if not plain:
        return f"{host[:253]!r} is no host in its usual form: a name in ASCII (xn--), or an address."
    return Target(plain, port, path) if 0 < port < 65536 else f"{port} is no port."


def forwarded_headers(request: h11.Request, target: Target) -> Headers:
    """The headers that the server gets: the client's own, without those for the proxy; one request, then the end."""
    shown = f"[{target.host}]" if ":" in target.host else target.host
    host = shown if target.port == 80 else f"{shown}:{target.port}"
    return [(b"host", host.encode()), *_end_to_end(request.headers), (b"connection", b"close")]


def returned_headers(response: h11.Response) -> Headers:
    """The headers that the client gets."""
    return [*_end_to_end(response.headers), (b"connection", b"close")]


def _end_to_end(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Headers without those that are between two neighbours, by the standard or as ``Connection`` names them."""
    pairs = list(headers)
    named = {word.strip().lower() for name, value in pairs if name == b"connection" for word in value.split(b",")}
    dropped = HOP_BY_HOP | (named - {b"content-length", b"transfer-encoding"})
    return [(name, value) for name, value in pairs if name not in dropped]


def refused(status: int, phrase: str, text: str) -> bytes:
    """A reply of the proxy's own, after which the connection ends."""
    body = f"{text}\n".encode()
    head = f"HTTP/1.1 {status} {phrase}\r\nContent-Type: text/plain; charset=utf-8\r\n"
    return f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body
