"""A filtering HTTP proxy on a unix socket: tunnels (CONNECT) and plain HTTP, to the hosts of a list and to no others.

It runs in the harness, outside of the sandbox; ``tools/relay`` brings the connections. Names are resolved here, every
address is judged, and the connection goes to an address that was judged. Requests and replies are read and written anew
by h11, one request a connection, so that nothing can be hidden behind or within one. Source: RFC 9110, RFC 9112.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path

import h11

from harness_nb.network.requests import Target, forwarded_headers, place_of, refused, returned_headers, target_of
from harness_nb.network.tunnels import Greeting, tunnel_problem
from harness_nb.network.usage import Usage
from harness_nb.policy.addresses import address_problem
from harness_nb.policy.hosts import AllowedHosts, address_of

NOT_LISTED = "it is not on the list of this session"
MOST_CONNECTIONS = 128
HEAD_SECONDS = 30.0
SECONDS = 10.0
"""The longest that a name, and then each of its addresses, may take to answer."""

MOST_HEAD = 65_536
CHUNK = 65_536

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Refusal(Exception):
    """What a client is told instead: an HTTP status, its phrase, and a sentence."""

    def __init__(self, status: int, phrase: str, text: str) -> None:
        super().__init__(text)
        self.reply = refused(status, phrase, text)


async def resolve(host: str, port: int) -> list[str]:
    """The addresses of a host, by the system's resolver."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class Proxy:
    """One proxy, of one event loop: made by ``start``, ended by ``aclose``. It counts in ``usage``.

    ``resolve`` gives the addresses of a name; ``head_seconds`` is the longest that a client may take for the head of
    its request, ``most`` how many connections are served at a time.
    """

    def __init__(
        self,
        hosts: AllowedHosts,
        usage: Usage,
        *,
        resolve: Resolve = resolve,
        head_seconds: float = HEAD_SECONDS,
        most: int = MOST_CONNECTIONS,
    ) -> None:
        self.usage = usage
        self._hosts = hosts
        self._resolve = resolve
        self._head_seconds = head_seconds
        self._most = most
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()

    async def start(self, path: Path) -> None:
        """Listen at ``path``, which must not exist; its folder says who may connect."""
        self._server = await asyncio.start_unix_server(self._begin, path)

    async def aclose(self) -> None:
        """End all connections and listen no more. Harmless when repeated."""
        if self._server is not None:
            self._server.close()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection of a client, from its request to its end."""
        try:
            if len(self._serving) > self._most:
                raise Refusal(503, "Too many connections", f"At most {self._most} connections are open at a time.")
            await self._answer(reader, writer)
        except Refusal as refusal:
            writer.write(refusal.reply)
            with suppress(OSError):
                await writer.drain()
        except (OSError, EOFError, h11.ProtocolError):  # one of the two sides has gone, or talks nonsense
            pass
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = h11.Connection(h11.SERVER, max_incomplete_event_size=MOST_HEAD)
        try:
            async with asyncio.timeout(self._head_seconds):
                request = await next_event(client, reader)
        except TimeoutError as error:
            text = f"The request did not come within {self._head_seconds:g} s."
            raise Refusal(408, "Request Timeout", text) from error
        except h11.RemoteProtocolError as error:
            raise Refusal(400, "Bad Request", f"This is no request that the proxy takes: {error}.") from error
        if not isinstance(request, h11.Request):
            return
        target = target_of(request)
        if isinstance(target, str):
            raise Refusal(400, "Bad Request", target)
        server = await self._connect(target)
        try:
            if target.tunnel:
                client.next_event()
                await self._tunnel((reader, writer), server, target, client.trailing_data[0])
            else:
                await self._forward(client, (reader, writer), server, request, target)
        finally:
            server[1].close()

    async def _connect(self, target: Target) -> Streams:
        """A connection to what was asked for, if it may be had.

        Raises:
            Refusal: if not, with what the client is told.
        """
        host, port = target.host, target.port
        if not self._hosts.allows(host, port):
            raise self._refuse(target, NOT_LISTED, target.place)
        try:
            addresses = [host] if address_of(host) else list(await asyncio.wait_for(self._resolve(host, port), SECONDS))
            why = "it has no address"
        except (OSError, UnicodeError, TimeoutError) as error:
            addresses, why = [], f"it has no address ({getattr(error, 'strerror', None) or 'its name says nothing'})"
        for address in addresses:
            problem = address_problem(address)
            if problem and not self._hosts.allows_address(address, port):
                raise self._refuse(target, problem, place_of(address, port))
        for address in addresses:
            try:
                streams = await asyncio.wait_for(asyncio.open_connection(address, port), SECONDS)
            except (OSError, TimeoutError) as error:
                why = f"{address} cannot be connected to ({getattr(error, 'strerror', None) or 'it does not answer'})"
                continue
            self.usage.connect(host, port)
            return streams
        self.usage.fail(host, port, why)
        raise Refusal(502, "Bad Gateway", f"{target.place} is allowed and cannot be reached: {why}.")

    def _refuse(self, target: Target, reason: str, option: str) -> Refusal:
        self.usage.refuse(target.host, target.port, reason)
        text = f"{target.place} is refused: {reason}. The person can allow it with --network allow:{option}."
        return Refusal(403, "Not allowed by --network", text)

    async def _forward(
        self, client: h11.Connection, down: Streams, up: Streams, request: h11.Request, target: Target
    ) -> None:
        """One request and its reply, each written anew; then the connection ends."""
        server = h11.Connection(h11.CLIENT, max_incomplete_event_size=MOST_HEAD)
        head = h11.Request(method=request.method, target=target.path, headers=forwarded_headers(request, target))
        await self._send(up[1], server.send(head), target, sent=True)
        upload = asyncio.ensure_future(self._upload(client, server, down[0], up[1], target))
        try:
            while True:
                event = await next_event(server, up[0])
                if isinstance(event, h11.Response):
                    event = h11.Response(
                        status_code=event.status_code, reason=event.reason, headers=returned_headers(event)
                    )
                elif isinstance(event, h11.ConnectionClosed):
                    break
                await self._send(down[1], client.send(event), target)
                if isinstance(event, h11.EndOfMessage):
                    break
        except (h11.ProtocolError, EOFError) as error:
            if client.our_state is h11.SEND_RESPONSE:
                text = f"{target.place} gave no reply that the proxy takes: {error or 'it closed the connection'}."
                raise Refusal(502, "Bad Gateway", text) from error
        finally:
            upload.cancel()
            await asyncio.gather(upload, return_exceptions=True)

    async def _upload(
        self,
        client: h11.Connection,
        server: h11.Connection,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        target: Target,
    ) -> None:
        """The body of a request, to its end; where it breaks off, so does the connection to the server."""
        try:
            while True:
                event = await next_event(client, reader)
                if isinstance(event, h11.Data | h11.EndOfMessage):
                    await self._send(writer, server.send(event), target, sent=True)
                if not isinstance(event, h11.Data):
                    return
        except (OSError, EOFError, h11.ProtocolError):
            writer.close()

    async def _send(
        self, writer: asyncio.StreamWriter, data: bytes | None, target: Target, *, sent: bool = False
    ) -> None:
        if data:
            writer.write(data)
            self.usage.carry(target.host, target.port, **{"sent" if sent else "received": len(data)})
            await writer.drain()

    async def _tunnel(self, down: Streams, up: Streams, target: Target, first: bytes) -> None:
        """Bytes in both directions, once the client's first ones have been looked at."""
        down[1].write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        back = asyncio.ensure_future(self._copy(up[0], down[1], target, sent=False))
        try:
            if await self._greeted(down[0], up[1], target, first):
                await self._copy(down[0], up[1], target, sent=True)
                await back
        finally:
            back.cancel()
            await asyncio.gather(back, return_exceptions=True)

    async def _greeted(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: Target, data: bytes
    ) -> bool:
        """Pass on what a client says first in a tunnel, if it may."""
        greeting, begin = Greeting(), data
        if data:
            greeting.feed(data)
        while not greeting.known:
            if not (data := await reader.read(CHUNK)):
                return False
            begin += data
            greeting.feed(data)
        must_be_tls = not self._hosts.names_port(target.host, target.port)
        is_address = address_of(target.host) is not None
        problem = tunnel_problem(greeting, target.host, must_be_tls=must_be_tls, is_address=is_address)
        if problem:
            self.usage.refuse(target.host, target.port, problem)
            return False
        await self._send(writer, begin, target, sent=True)
        return True

    async def _copy(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: Target, *, sent: bool
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(CHUNK):
                await self._send(writer, data, target, sent=sent)
        with suppress(OSError, RuntimeError):
            writer.write_eof()


async def next_event(connection: h11.Connection, reader: asyncio.StreamReader) -> h11.Event:
    """The next event of the other side.

    Raises:
        h11.RemoteProtocolError: if it breaks the protocol.
        EOFError: if nothing more is to come.
    """
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await reader.read(CHUNK))
        elif isinstance(event, h11.Event):
            return event
        else:
            raise EOFError
