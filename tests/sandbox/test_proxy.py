"""The proxy by itself, over its unix socket: what it takes, where it connects, what it refuses.

Names and where they lead are made up here.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from servers import Echo, Secured, Site, ask, free_port, serving

from harness_nb.errors import UsageError
from harness_nb.network import Proxy, Usage
from harness_nb.network.tunnels import Greeting
from harness_nb.policy.hosts import SHORTHANDS, plain_host, read_hosts

NAMES = {
    "here.example.org": ["127.0.0.1"],
    "inside.example.org": ["10.0.0.7"],
    "cloud.example.org": ["169.254.169.254"],
    "half.example.org": ["192.0.2.1", "::1"],
    "mapped.example.org": ["::ffff:127.0.0.1"],
    "nowhere.example.org": [],
}


async def look_up(host: str, port: int) -> list[str]:
    if host == "unknown.example.org":
        raise OSError(-2, "Name or service not known")
    return NAMES[host]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    (folder / "hello.txt").write_text("hello")
    found = Site(folder)
    with serving(found):
        yield found


@pytest.fixture(scope="module")
def echo() -> Iterator[Echo]:
    found = Echo()
    with serving(found):
        yield found


@asynccontextmanager
async def proxy_for(folder: Path, network: str, *, seconds: float = 30, most: int = 128) -> AsyncIterator[Proxy]:
    proxy = Proxy(read_hosts(network), Usage(), resolve=look_up, head_seconds=seconds, most=most)
    await proxy.start(folder / "proxy")
    try:
        yield proxy
    finally:
        await proxy.aclose()


async def answer(folder: Path, network: str, request: str | bytes, *, end: bool = False) -> tuple[str, Usage]:
    """What a proxy with that list says to a request, and what it has counted."""
    async with proxy_for(folder, network) as proxy:
        data = request.encode("latin-1") if isinstance(request, str) else request
        return (await ask(folder / "proxy", data, end=end)).decode("latin-1"), proxy.usage


def get(url: str, *headers: str) -> str:
    return "\r\n".join([f"GET {url} HTTP/1.1", "Host: elsewhere.example.org", *headers, "", ""])


def connect(place: str) -> str:
    return f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n"


def hello(name: str | None) -> bytes:
    """What a TLS client says first."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    outgoing = ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=name).do_handshake()
    return outgoing.read()


# Plain HTTP


async def test_a_request_goes_to_what_its_target_names_with_that_host(tmp_path: Path, site: Site) -> None:
    url = f"http://here.example.org:{site.port}/hello.txt"
    network = f"allow:here.example.org:{site.port},127.0.0.1:{site.port}"
    told = get(url, "Proxy-Authorization: Basic eA==", "X-Kept: 1", "X-Hop: 2", "Connection: keep-alive, X-Hop")
    said, usage = await answer(tmp_path, network, told)
    assert said.startswith("HTTP/1.1 200") and said.endswith("\r\n\r\nhello") and "connection: close" in said.lower()
    method, path, headers = site.seen[-1]
    assert (method, path, headers["host"]) == ("GET", "/hello.txt", f"here.example.org:{site.port}")
    assert headers["x-kept"] == "1" and not {"x-hop", "proxy-authorization"} & set(headers)
    (use,) = usage.take()
    assert (use.host, use.port, use.allowed, use.connections) == ("here.example.org", site.port, True, 1)
    assert use.received > len("hello") and not usage.take()


@pytest.mark.parametrize(
    "body", ["Content-Length: 4\r\n\r\nbody", "Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n"]
)
async def test_a_body_is_passed_on(tmp_path: Path, site: Site, body: str) -> None:
    place = f"127.0.0.1:{site.port}"
    said, _ = await answer(tmp_path, f"allow:{place}", f"POST http://{place}/ HTTP/1.1\r\nHost: x\r\n{body}")
    assert said.endswith("\r\n\r\nbody")


async def test_what_comes_behind_a_request_is_no_second_one(tmp_path: Path, site: Site) -> None:
    place, before = f"127.0.0.1:{site.port}", len(site.seen)
    said, _ = await answer(tmp_path, f"allow:{place}", get(f"http://{place}/hello.txt") + get(f"http://{place}/two"))
    assert said.count("HTTP/1.1") == 1 and len(site.seen) == before + 1


@pytest.mark.parametrize(
    "headers",
    [
        ("Content-Length: 4", "Content-Length: 5"),
        ("Host: second.example.org",),
        ("Transfer-Encoding: gzip",),
        ("X: a\x00b",),
    ],
    ids=["two lengths", "two hosts", "another coding", "a null"],
)
async def test_a_request_that_could_be_read_in_two_ways_is_refused(
    tmp_path: Path, site: Site, headers: tuple[str, ...]
) -> None:
    place, before = f"127.0.0.1:{site.port}", len(site.seen)
    said, _ = await answer(tmp_path, f"allow:{place}", get(f"http://{place}/", *headers), end=True)
    assert said.startswith("HTTP/1.1 400") and len(site.seen) == before


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (get("/hello.txt"), 400),
        (get("http://user@here.example.org/"), 400),
        (get("http://here.example.org@evil.example.com/"), 400),
        (get("http://here.example.org:0/"), 400),
        (get("http://here.example.org:99999/"), 400),
        (get("https://here.example.org/"), 400),
        (get("ftp://here.example.org/"), 400),
        (get("http://2130706433/"), 400),
        (get("http://127.1/"), 400),
        (get("http://0x7f000001/"), 400),
        (get("http://127.0.0.1%2eevil.example.com/"), 400),
        (get("http://here.example.org.evil.example.com/"), 403),
        (get("http://127.0.0.1/"), 403),
        (get("http://localhost/"), 403),
        (get("http://[::1]/"), 403),
        (get("http://[::ffff:127.0.0.1]/"), 403),
        (get("http://0.0.0.0/"), 403),
        (get("http://here.example.org:22/"), 403),
        (connect("here.example.org"), 400),
        (connect("user@here.example.org:443"), 400),
        (connect("here.example.org:22"), 403),
        (connect("127.0.0.1:443"), 403),
        (connect("192.0.2.9:443"), 403),
        ("\x16\x03\x01\x00\x05hello", 400),
        ("hello\r\n\r\n", 400),
        ("\x05\x01\x00", 400),
    ],
)
async def test_what_is_no_request_for_an_allowed_host_is_refused(tmp_path: Path, request_: str, status: int) -> None:
    said, usage = await answer(tmp_path, "allow:here.example.org", request_, end=True)
    assert said.startswith(f"HTTP/1.1 {status} ")
    assert not [use for use in usage.take() if use.allowed]


async def test_a_refusal_names_the_host_and_the_option(tmp_path: Path) -> None:
    said, usage = await answer(tmp_path, "allow:here.example.org", connect("other.example.org:443"))
    assert said.startswith("HTTP/1.1 403 Not allowed by --network\r\n")
    assert "other.example.org is refused" in said and "--network allow:other.example.org." in said
    (use,) = usage.take()
    assert (use.host, use.port, use.allowed, use.connections) == ("other.example.org", 443, False, 1)


# Where a name leads


@pytest.mark.parametrize("host", ["here", "inside", "cloud", "half", "mapped"])
async def test_an_allowed_name_that_leads_inside_is_refused(tmp_path: Path, host: str) -> None:
    place = f"{host}.example.org"
    for request in (connect(f"{place}:443"), get(f"http://{place}/")):
        said, usage = await answer(tmp_path, f"allow:{place}", request)
        assert said.startswith("HTTP/1.1 403") and "--network allow:" in said
        (use,) = usage.take()
        assert use.host == place and not use.allowed
        (tmp_path / "proxy").unlink(missing_ok=True)


async def test_an_address_that_is_listed_is_reached_at_its_port_only(tmp_path: Path, site: Site) -> None:
    url = f"http://here.example.org:{site.port}/hello.txt"
    said, _ = await answer(tmp_path, f"allow:here.example.org:{site.port},127.0.0.1:1", get(url))
    assert said.startswith("HTTP/1.1 403") and f"--network allow:127.0.0.1:{site.port}" in said


@pytest.mark.parametrize("host", ["unknown", "nowhere"])
async def test_a_name_without_an_address_is_told(tmp_path: Path, host: str) -> None:
    said, usage = await answer(tmp_path, "allow:*.example.org", connect(f"{host}.example.org:443"))
    assert said.startswith("HTTP/1.1 502") and "has no address" in said
    (use,) = usage.take()
    assert use.allowed and "no address" in use.reason


async def test_a_server_that_is_not_there_is_told(tmp_path: Path) -> None:
    place = f"127.0.0.1:{free_port()}"
    said, usage = await answer(tmp_path, f"allow:{place}", get(f"http://{place}/"))
    assert said.startswith("HTTP/1.1 502") and "cannot be connected to" in said
    assert "cannot be connected to" in usage.take()[0].reason


async def test_a_server_that_talks_nonsense_is_told(tmp_path: Path, echo: Echo) -> None:
    place = f"127.0.0.1:{echo.port}"
    said, _ = await answer(tmp_path, f"allow:{place}", get(f"http://{place}/"))
    assert said.startswith("HTTP/1.1 502") and "gave no reply" in said


# Tunnels


async def tunnelled(folder: Path, network: str, place: str, first: bytes) -> tuple[bytes, Usage]:
    """What comes back through a tunnel."""
    async with proxy_for(folder, network) as proxy:
        reader, writer = await asyncio.open_unix_connection(folder / "proxy")
        writer.write(connect(place).encode())
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        for start in range(0, len(first), 100):
            writer.write(first[start : start + 100])
            await writer.drain()
        writer.write_eof()
        data = await asyncio.wait_for(reader.read(), 30)
        writer.close()
        return data, proxy.usage


async def test_a_tunnel_carries_tls_for_its_host_as_it_is(tmp_path: Path, echo: Echo) -> None:
    network, place = f"allow:*.example.org:{echo.port},127.0.0.1:{echo.port}", f"here.example.org:{echo.port}"
    first = hello("here.example.org") + b"and more" * 10_000
    data, usage = await tunnelled(tmp_path, network, place, first)
    assert data == first
    (use,) = usage.take()
    assert (use.sent, use.received) == (len(first), len(first))


async def test_a_tls_session_through_a_tunnel_is_that_of_the_server(tmp_path: Path, site: Site) -> None:
    secured = Secured(tmp_path)
    server = await asyncio.start_server(_greet, "127.0.0.1", 0, ssl=secured.context)
    port = server.sockets[0].getsockname()[1]
    async with server, proxy_for(tmp_path, f"allow:here.example.org:{port},127.0.0.1:{port}"):
        reader, writer = await asyncio.open_unix_connection(tmp_path / "proxy")
        writer.write(connect(f"here.example.org:{port}").encode())
        await reader.readuntil(b"\r\n\r\n")
        context = ssl.create_default_context(cafile=str(secured.certificate))
        await writer.start_tls(context, server_hostname="here.example.org")
        assert await reader.readline() == b"hello\n"
        writer.close()


async def _greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"hello\n")
    await writer.drain()
    writer.close()


async def test_a_tunnel_for_another_host_inside_is_closed(tmp_path: Path, echo: Echo) -> None:
    network, place = f"allow:here.example.org:{echo.port},127.0.0.1:{echo.port}", f"here.example.org:{echo.port}"
    data, usage = await tunnelled(tmp_path, network, place, hello("evil.example.com"))
    assert data == b""
    assert [use.reason for use in usage.take() if not use.allowed] == [
        "a tunnel to here.example.org asked for evil.example.com inside (SNI)"
    ]


async def test_a_port_that_is_listed_may_carry_anything(tmp_path: Path, echo: Echo) -> None:
    place = f"127.0.0.1:{echo.port}"
    data, _ = await tunnelled(tmp_path, f"allow:{place}", place, b"SSH-2.0-x\r\n")
    assert data == b"SSH-2.0-x\r\n"


async def test_the_usual_ports_carry_tls_only(tmp_path: Path, echo: Echo, monkeypatch: pytest.MonkeyPatch) -> None:
    place = f"127.0.0.1:{echo.port}"
    monkeypatch.setattr("harness_nb.policy.hosts.PORTS", {echo.port})  # an entry without a port stands for these
    data, usage = await tunnelled(tmp_path, "allow:127.0.0.1", place, b"GET / HTTP/1.1\r\nHost: evil\r\n\r\n")
    assert data == b"" and "has to carry TLS" in usage.take()[1].reason
    (tmp_path / "proxy").unlink(missing_ok=True)
    data, _ = await tunnelled(tmp_path, "allow:127.0.0.1", place, hello(None))
    assert data.startswith(b"\x16\x03")


@pytest.mark.parametrize(
    ("data", "tls"),
    [
        (b"GET", False),
        (b"\x16\x03\x01\x00\x05hello", False),
        (b"\x16\x02", False),
        (b"\x16\x03" + b"\0" * 70_000, False),
    ],
)
def test_what_only_looks_like_tls_is_known_to_be_none(data: bytes, tls: bool) -> None:
    greeting = Greeting()
    for place in range(0, len(data), 7):
        greeting.feed(data[place : place + 7])
        if greeting.known:
            break
    assert (greeting.known, greeting.is_tls) == (True, tls)


# Bounds


async def test_a_client_that_does_not_end_its_request_is_let_go(tmp_path: Path) -> None:
    async with proxy_for(tmp_path, "allow:example.org", seconds=0.05):
        assert (await ask(tmp_path / "proxy", b"GET http://example.org/ HTTP/1.1\r\nX: ")).startswith(b"HTTP/1.1 408")


@pytest.mark.parametrize("lines", [1, 300], ids=["a long header", "many headers"])
async def test_the_head_of_a_request_is_bounded(tmp_path: Path, site: Site, lines: int) -> None:
    place, before = f"127.0.0.1:{site.port}", len(site.seen)
    headers = [f"X-{number}: {'y' * (300_000 // lines)}" for number in range(lines)]
    said, _ = await answer(tmp_path, f"allow:{place}", get(f"http://{place}/", *headers))
    assert said == "" or said.startswith("HTTP/1.1 400")  # it does not read to the end, so its answer may be lost
    assert len(site.seen) == before


async def test_connections_are_bounded_and_freed(tmp_path: Path) -> None:
    async with proxy_for(tmp_path, "allow:example.org", most=2):
        waiting = [await asyncio.open_unix_connection(tmp_path / "proxy") for _ in range(2)]
        for _, writer in waiting:
            writer.write(b"GET ")
        assert (await ask(tmp_path / "proxy", b"")).startswith(b"HTTP/1.1 503")
        for reader, writer in waiting:
            writer.write_eof()
            await reader.read()
            writer.close()
        assert (await ask(tmp_path / "proxy", b"x\r\n\r\n")).startswith(b"HTTP/1.1 400")


async def test_many_refused_hosts_are_counted_together() -> None:
    usage = Usage()
    for number in range(1000):
        usage.refuse(f"h{number}.example.org", 443, "no")
    uses = usage.take()
    assert len(uses) == 201 and uses[-1].host == "(others)" and uses[-1].connections == 800


async def test_its_end_ends_what_is_open(tmp_path: Path, echo: Echo) -> None:
    place = f"127.0.0.1:{echo.port}"
    async with proxy_for(tmp_path, f"allow:{place}") as proxy:
        reader, writer = await asyncio.open_unix_connection(tmp_path / "proxy")
        writer.write(connect(place).encode())
        await reader.readuntil(b"\r\n\r\n")
        await proxy.aclose()
        assert await reader.read() == b""
        writer.close()


# The list


@pytest.mark.parametrize(
    "word",
    [
        *("*", "*.org", "http://example.org", "example.org/x", "a..b", "ex*mple.org", "*.*.org", "127.1", "0x7f.1"),
        *("a b", "münchen.de", "example.org:", "example.org:x", "user@example.org", "[::1", "::1]:80", "fe80::1%eth0"),
    ],
)
def test_what_is_no_host_is_refused_with_what_can_be_written(word: str) -> None:
    with pytest.raises(UsageError, match=r"this is no host\. Write names"):
        read_hosts(f"allow:{word}")


def test_a_port_has_to_be_one() -> None:
    with pytest.raises(UsageError, match="99999 is no port"):
        read_hosts("allow:example.org:99999")


@pytest.mark.parametrize(
    ("network", "host", "port", "allowed"),
    [
        ("allow:example.org", "example.org", 443, True),
        ("allow:Example.ORG.", "example.org", 80, True),
        ("allow:example.org", "example.org", 8080, False),
        ("allow:example.org", "www.example.org", 443, False),
        ("allow:example.org", "notexample.org", 443, False),
        ("allow:*.example.org", "a.b.example.org", 443, True),
        ("allow:*.example.org", "example.org", 443, False),
        ("allow:*.example.org", "notexample.org", 443, False),
        ("allow:example.org:8080", "example.org", 8080, True),
        ("allow:example.org:8080", "example.org", 443, False),
        ("allow:[::1]:8080", "::1", 8080, True),
        ("allow:::1", "::1", 443, True),
        ("allow:2001:DB8::0:7", "2001:db8::7", 443, True),
        ("allow:127.0.0.1", "::ffff:127.0.0.1", 443, False),
        ("allow:pypi", "files.pythonhosted.org", 443, True),
        ("allow:pypi", "pypi", 443, False),
    ],
)
def test_what_an_item_stands_for(network: str, host: str, port: int, allowed: bool) -> None:
    assert read_hosts(network).allows(plain_host(host), port) is allowed


def test_the_word_for_pip_is_two_hosts() -> None:
    assert [entry.name for entry in read_hosts("allow:pypi").entries] == list(SHORTHANDS["pypi"])
