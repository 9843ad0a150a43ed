"""Brings a page from the web: public addresses only, checked where the name leads, after each redirect again.

The name is resolved here, every address that it has is checked, and the connection goes to the address that was
checked: a name that leads elsewhere a moment later changes nothing. Size, time and redirects are bounded. Proxies of
the environment are not used: they would resolve the name anew. The session makes a ``Fetcher``; ``Cells`` asks it.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection
from dataclasses import dataclass
from urllib.parse import urljoin

import httpx2

from harness_nb.outputs import format_bytes
from harness_nb.policy.addresses import PORTS, address_problem, url_problem
from harness_nb.ports import ExecuteReply, Output
from harness_nb.types import Status
from harness_nb.web.pages import is_text, page_text

MOST_BYTES = 2_000_000
MOST_REDIRECTS = 5
SECONDS = 30.0
"""The longest that one page may take, with all its redirects."""

CONNECT_SECONDS = 10.0
AGENT = "harness_nb (a notebook agent; +https://pypi.org/project/harness-nb/)"
ACCEPT = "text/markdown, text/html;q=0.9, text/*;q=0.8, application/json;q=0.8, */*;q=0.1"

Resolve = Callable[[str, int], Awaitable[list[str]]]


@dataclass(frozen=True, slots=True)
class Page:
    """What came: the address it came from in the end, the HTTP status, the media type, the text, its size in bytes."""

    url: str
    status: int
    media_type: str
    text: str
    size: int
    whole: bool = True


class FetchError(Exception):
    """Why there is no page, as a sentence for the model."""


async def resolve(host: str, port: int) -> list[str]:
    """The addresses of a host, by the system's resolver."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class Pinned(httpx2.AsyncBaseTransport):
    """Connects to the address that was checked, and to no other; the host stays in the header and the certificate."""

    def __init__(self, resolve: Resolve, problem: Callable[[str], str]) -> None:
        self._inner = httpx2.AsyncHTTPTransport(trust_env=False, limits=httpx2.Limits(max_keepalive_connections=0))
        self._resolve = resolve
        self._problem = problem

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Resolve, check, connect.

        Raises:
            FetchError: if the name has no address, or one that is not public.
        """
        host = request.url.host
        port = request.url.port or (443 if request.url.scheme == "https" else 80)
        try:
            addresses = await self._resolve(host, port)
        except OSError as error:
            raise FetchError(f"The host {host} has no address ({error.strerror or error}).") from error
        if problem := next((problem for address in addresses if (problem := self._problem(address))), ""):
            raise FetchError(f"{host} is not fetched: {problem}.")
        if not addresses:
            raise FetchError(f"The host {host} has no address.")
        pinned = httpx2.Request(
            request.method,
            request.url.copy_with(host=addresses[0]),
            headers=request.headers,
            extensions={**request.extensions, "sni_hostname": host},
        )
        return await self._inner.handle_async_request(pinned)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()


class Fetcher:
    """Fetches pages. ``resolve`` gives the addresses of a name, ``problem`` says why one is not connected to."""

    def __init__(
        self,
        *,
        resolve: Resolve = resolve,
        problem: Callable[[str], str] = address_problem,
        ports: Collection[int] = PORTS,
        most_bytes: int = MOST_BYTES,
        seconds: float = SECONDS,
    ) -> None:
        self._resolve = resolve
        self._problem = problem
        self._ports = ports
        self._most_bytes = most_bytes
        self._seconds = seconds

    async def outputs(self, url: str) -> AsyncGenerator[Output | ExecuteReply]:
        """The page as the outputs of a cell, then how it went; as ``ports.Kernel.execute`` gives them."""
        try:
            page = await self.fetch(url)
        except FetchError as error:
            said = str(error)
            yield Output("error", {"ename": "FetchError", "evalue": said, "traceback": [f"FetchError: {said}"]})
            yield ExecuteReply(Status.ERROR, ename="FetchError", evalue=said)
            return
        yield Output("stream", {"name": "stdout", "text": page.text if page.text.endswith("\n") else f"{page.text}\n"})
        cut = "" if page.whole else f", only the first {format_bytes(self._most_bytes)}"
        detail = f"HTTP status {page.status}, {page.media_type}, {format_bytes(page.size)}{cut}, from {page.url}"
        yield ExecuteReply(Status.OK if page.status < 400 else Status.ERROR, detail=detail)

    async def fetch(self, url: str) -> Page:
        """The page at ``url``.

        Raises:
            FetchError: if it is not fetched, cannot be had, or is no text.
        """
        transport = Pinned(self._resolve, self._problem)
        timeout = httpx2.Timeout(self._seconds, connect=CONNECT_SECONDS)
        headers = {"User-Agent": AGENT, "Accept": ACCEPT}
        try:
            async with (
                asyncio.timeout(self._seconds),
                httpx2.AsyncClient(transport=transport, timeout=timeout, headers=headers, trust_env=False) as client,
            ):
                return await self._follow(client, url)
        except TimeoutError as error:
            raise FetchError(f"{url} did not come within {self._seconds:g} s.") from error
        except (httpx2.HTTPError, httpx2.InvalidURL, UnicodeError) as error:
            raise FetchError(f"{url} cannot be had: {str(error) or type(error).__name__}.") from error

    async def _follow(self, client: httpx2.AsyncClient, url: str) -> Page:
        asked = url
        for _ in range(MOST_REDIRECTS + 1):
            if problem := url_problem(url, self._ports):
                told = "" if url == asked else f" {asked} redirects there."
                raise FetchError(f"{url[:300]} is not fetched: {problem}.{told}")
            async with client.stream("GET", url, follow_redirects=False) as response:
                if response.is_redirect and (target := response.headers.get("location")):
                    client.cookies.clear()
                    url = urljoin(url, target).partition("#")[0]
                    continue
                return await self._read(response, url)
        raise FetchError(f"{asked} redirects more than {MOST_REDIRECTS} times.")

    async def _read(self, response: httpx2.Response, url: str) -> Page:
        media_type = response.headers.get("content-type", "text/plain").partition(";")[0].strip().lower()
        if not is_text(media_type):
            size = response.headers.get("content-length", "")
            told = f", {format_bytes(int(size))}" if size.isdecimal() else ""
            raise FetchError(
                f"{url} is no text but {media_type[:80]}{told}, so it was not fetched. Where tool code may reach that "
                "host (--network), download it there."
            )
        body, whole = bytearray(), True
        async for chunk in response.aiter_bytes(65_536):
            body += chunk
            if len(body) > self._most_bytes:
                whole = False
                break
        del body[self._most_bytes :]
        text = await asyncio.to_thread(page_text, bytes(body), media_type, response.charset_encoding)
        return Page(url, response.status_code, media_type, text, len(body), whole)
