"""What a tunnel begins with: the name that TLS asks for must be the one that the tunnel was opened to.

Servers that share an address tell their hosts apart by that name, so without a look at it an allowed host would be a
way to its neighbours. OpenSSL reads the greeting; nothing is decrypted. Source: RFC 8446, section 4.1.2; RFC 6066,
section 3.
"""

from __future__ import annotations

import ssl

HANDSHAKE = b"\x16\x03"
"""How a TLS record with a handshake begins: its type, and the first half of its version."""

MOST_BYTES = 65_536
"""A greeting that is longer is none."""


class Greeting:
    """The first bytes of a client in a tunnel. ``feed`` until ``known``; ``name`` is then what TLS asks for."""

    def __init__(self) -> None:
        self.known = False
        self.is_tls = False
        self.name: str | None = None
        self._begin = b""
        self._size = 0
        self._incoming = ssl.MemoryBIO()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.sni_callback = self._note
        self._reader = context.wrap_bio(self._incoming, ssl.MemoryBIO(), server_side=True)

    def _note(self, _socket: object, name: str | None, _context: ssl.SSLContext) -> int:
        self.known = self.is_tls = True
        self.name = name
        return ssl.ALERT_DESCRIPTION_HANDSHAKE_FAILURE  # enough is known, no answer is wanted

    def feed(self, data: bytes) -> None:
        """Take further bytes of the client."""
        self._begin = (self._begin + data)[: len(HANDSHAKE)]
        self._size += len(data)
        if not HANDSHAKE.startswith(self._begin[: len(HANDSHAKE)]):
            self.known = True
            return
        self._incoming.write(data)
        try:
            self._reader.do_handshake()
        except ssl.SSLWantReadError:
            self.known = self._size > MOST_BYTES
        except ssl.SSLError:
            self.known = True


def tunnel_problem(greeting: Greeting, host: str, *, must_be_tls: bool, is_address: bool) -> str:
    """Why a tunnel to ``host`` that begins so is closed, as a clause; empty if nothing speaks against it."""
    if not greeting.is_tls:
        return "a tunnel to port 80 or 443 has to carry TLS" if must_be_tls else ""
    if greeting.name is None:
        return "" if is_address or not must_be_tls else "TLS in the tunnel names no host (SNI)"
    asked = greeting.name.lower().removesuffix(".")
    return "" if asked == host else f"a tunnel to {host} asked for {asked[:253]} inside (SNI)"
