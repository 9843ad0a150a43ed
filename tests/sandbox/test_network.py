"""``--network allow:HOST,…`` for real: programs in a bubblewrap sandbox, servers on the loopback of the machine.

An address of the loopback is reached because the list has it literally; nothing goes further.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from servers import Secured, Site, serving

from harness_nb.approval import DenyApprover
from harness_nb.cells import Cells
from harness_nb.errors import UsageError
from harness_nb.events import NetworkUsed, ResultAdded
from harness_nb.kernel import FakeKernel, ToolKernel
from harness_nb.kernel.confinement import Bounds, Confinement
from harness_nb.kernel.confining import confinement_for
from harness_nb.kernel.sandbox import layer_here
from harness_nb.outputs import Firewall
from harness_nb.ports import ExecuteReply, HostUse, Output
from harness_nb.session import Session
from harness_nb.settings import Settings
from harness_nb.tools import SETUP_SOURCE
from harness_nb.types import Status, TextPart, ToolCall

pytestmark = [
    pytest.mark.skipif(layer_here() != "bubblewrap", reason="bubblewrap does not work here"),
    pytest.mark.asyncio(loop_scope="module"),
]


@dataclass
class Net:
    """A kernel in a sandbox that may reach ``site`` and ``secure`` (TLS), and another site that it may not reach."""

    kernel: ToolKernel
    workspace: Path
    site: Site
    other: Site
    secure: Site

    async def run(self, source: str) -> str:
        """What a cell prints, or the error that ends it."""
        said = ""
        async with aclosing(self.kernel.execute(source, 60)) as items:
            async for item in items:
                if isinstance(item, Output) and item.kind == "stream":
                    said += item.content["text"]
                elif isinstance(item, Output) and item.kind == "error":
                    said += f"{item.content['ename']}: {item.content['evalue']}"
                elif isinstance(item, ExecuteReply):
                    assert item.status in (Status.OK, Status.ERROR), item
        return said

    def used(self) -> dict[tuple[str, int], HostUse]:
        """What the proxy has counted since this was last asked."""
        return {(use.host, use.port): use for use in self.kernel.network_use()}


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Secured:
    return Secured(tmp_path_factory.mktemp("secured"))


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory, secured: Secured) -> Iterator[tuple[Site, Site, Site]]:
    folder = tmp_path_factory.mktemp("site")
    (folder / "hello.txt").write_text("hello from outside")
    make_repository(folder)
    make_index(folder)
    site, other, secure = Site(folder), Site(folder), Site(folder)
    secure.socket = secured.context.wrap_socket(secure.socket, server_side=True)
    with serving(site), serving(other), serving(secure):
        yield site, other, secure


def make_repository(folder: Path) -> None:
    """A repository that can be cloned over plain files."""
    work = folder / "work"
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    for command in (
        ["git", "init", "-q", str(work)],
        ["git", "-C", str(work), *who, "commit", "-q", "--allow-empty", "-m", "first"],
        ["git", "clone", "-q", "--bare", str(work), str(folder / "repository.git")],
        ["git", "-C", str(folder / "repository.git"), "update-server-info"],
    ):
        subprocess.run(command, check=True, env=environment)


def make_index(folder: Path) -> None:
    """An index with one package."""
    page = folder / "simple" / "nothing-much"
    page.mkdir(parents=True)
    (page / "nothing_much-1.0.tar.gz").write_bytes(b"no archive, and not looked at")
    (page / "index.html").write_text('<a href="nothing_much-1.0.tar.gz">nothing_much-1.0.tar.gz</a>')


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def net(sites: tuple[Site, Site, Site], tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Net]:
    site, other, secure = sites
    workspace = tmp_path_factory.mktemp("workspace").resolve()
    network = f"allow:127.0.0.1:{site.port},127.0.0.1:{secure.port}"
    confinement = Confinement(workspace, network=network, bounds=Bounds(free_disk=None))
    kernel = ToolKernel(
        name="harness-sandbox", directory=workspace / "harness_sessions", setup=SETUP_SOURCE, confinement=confinement
    )
    yield Net(kernel, workspace, site, other, secure)
    await kernel.aclose()


URLLIB = "import urllib.request; print(urllib.request.urlopen('{url}').read().decode())"
REQUESTS = "import requests; print(requests.get('{url}').text)"
HTTPX = "import httpx2; print(httpx2.get('{url}').text)"
CURL = "%%bash\ncurl -sS --fail-with-body {url}"
CLIENTS = [URLLIB, REQUESTS, HTTPX, CURL]
IDS = ["urllib", "requests", "httpx2", "curl"]


@pytest.mark.parametrize("source", CLIENTS, ids=IDS)
async def test_clients_reach_an_allowed_host(net: Net, source: str) -> None:
    net.used()
    assert "hello from outside" in await net.run(source.format(url=f"http://127.0.0.1:{net.site.port}/hello.txt"))
    use = net.used()["127.0.0.1", net.site.port]
    assert use.allowed and use.connections == 1 and use.received > 18 and use.sent > 20


@pytest.mark.parametrize("source", CLIENTS, ids=IDS)
async def test_clients_are_refused_another_port(net: Net, source: str) -> None:
    net.used()
    said = await net.run(source.format(url=f"http://127.0.0.1:{net.other.port}/hello.txt"))
    assert "hello" not in said and not net.other.seen
    if source != URLLIB:  # which drops the body
        assert f"--network allow:127.0.0.1:{net.other.port}" in said
    use = net.used()["127.0.0.1", net.other.port]
    assert not use.allowed and use.reason == "it is not on the list of this session"


async def test_git_clones(net: Net) -> None:
    url = f"http://127.0.0.1:{net.site.port}/repository.git"
    said = await net.run(f"%%bash\ngit clone -q {url} && git -C repository log")
    assert "first" in said and (net.workspace / "repository").is_dir()


async def test_pip_downloads(net: Net) -> None:
    index = f"http://127.0.0.1:{net.site.port}/simple"
    said = await net.run(
        f"%%bash\npip --isolated download --no-deps --no-build-isolation -i {index} nothing-much 2>&1; true"
    )
    assert "Downloading" in said and "nothing_much-1.0.tar.gz" in said
    assert any(path.endswith("nothing_much-1.0.tar.gz") for _, path, _ in net.site.seen)


async def test_a_tls_session_passes_unbroken(net: Net, secured: Secured) -> None:
    (net.workspace / "ca.pem").write_text(secured.certificate.read_text())
    url = f"https://127.0.0.1:{net.secure.port}/hello.txt"
    for source in (
        f"import requests; print(requests.get('{url}', verify='ca.pem').text)",
        f"%%bash\ncurl -sS --cacert ca.pem {url}",
    ):
        assert "hello from outside" in await net.run(source)
    said = await net.run(f"%%bash\ncurl -sS {url}")
    assert "certificate" in said


async def test_a_body_waits_for_the_word_to_go_on_and_heads_have_none(net: Net) -> None:
    url = f"http://127.0.0.1:{net.site.port}/hello.txt"
    said = await net.run(f"%%bash\ncurl -sS -v -H 'Expect: 100-continue' -d sent-body {url} 2>&1")
    assert "HTTP/1.1 100" in said and "sent-body" in said
    assert "content-length: 18" in (await net.run(f"%%bash\ncurl -sS -I {url}")).lower()


async def test_many_at_a_time(net: Net) -> None:
    said = await net.run(
        "from concurrent.futures import ThreadPoolExecutor\nimport requests\n"
        f"get = lambda number: requests.get('http://127.0.0.1:{net.site.port}/hello.txt').text\n"
        "with ThreadPoolExecutor(20) as pool:\n    print(sum('hello' in one for one in pool.map(get, range(60))))"
    )
    assert said.strip() == "60"


TALK = """
import socket
def talk(place, text):
    with socket.create_connection(place, 10) as one:
        one.sendall(text.encode() + b"\\r\\n\\r\\n")
        one.settimeout(10)
        said = b""
        while data := one.recv(65536):
            said += data
        return said.decode("latin-1")
"""
PROXY = "print(talk(('127.0.0.1', 3128), '''{}'''))"
ATTEMPTS = {
    "a socket to the other site": "print(talk(('127.0.0.1', {other}), 'GET / HTTP/1.0'))",
    "a socket to the allowed site": "print(talk(('127.0.0.1', {site}), 'GET / HTTP/1.0'))",
    "a socket to the internet": "socket.create_connection(('192.0.2.1', 443), 10)",
    "a socket by IPv6": "socket.create_connection(('2001:db8::1', 443), 10)",
    "UDP to a name server": "socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.53', 53)); print('sent')",
    "the name server of the system": "print(socket.getaddrinfo('example.org', 443))",
    "urllib without the proxy": (
        "import urllib.request as u; u.build_opener(u.ProxyHandler({{}})).open('http://127.0.0.1:{other}/')"
    ),
    "curl without the proxy": (
        "import subprocess; subprocess.run(['curl', '-sS', '--noproxy', '*', 'http://127.0.0.1:{other}/'], check=True)"
    ),
    "a tunnel to the other site": PROXY.format("CONNECT 127.0.0.1:{other} HTTP/1.1"),
    "a tunnel to an address": PROXY.format("CONNECT 192.0.2.1:443 HTTP/1.1"),
    "a tunnel to localhost": PROXY.format("CONNECT localhost:{other} HTTP/1.1"),
    "an allowed host in the header": PROXY.format("GET http://127.0.0.1:{other}/ HTTP/1.1\\r\\nHost: 127.0.0.1:{site}"),
    "a user name that looks like a host": PROXY.format(
        "GET http://127.0.0.1:{site}@127.0.0.1:{other}/ HTTP/1.1\\r\\nHost: x"
    ),
    "the socket itself": (
        "one = socket.socket(socket.AF_UNIX); one.connect('{socket}')\n"
        "one.sendall(b'CONNECT 127.0.0.1:{other} HTTP/1.1\\r\\n\\r\\n'); print(one.recv(999).decode())"
    ),
    "noise on the socket": (
        "one = socket.socket(socket.AF_UNIX); one.connect('{socket}')\n"
        "one.sendall(bytes(range(256)) * 4); print(one.recv(999).decode())"
    ),
}
REFUSALS = (
    *("Connection refused", "Network is unreachable", "name resolution", "HTTP/1.1 403", "HTTP/1.1 400"),
    "returned non-zero exit status 7",
)


@pytest.mark.parametrize("attempt", ATTEMPTS)
async def test_there_is_no_way_past_the_proxy(net: Net, attempt: str) -> None:
    await net.kernel.start()
    file = net.kernel.connection_file
    assert file is not None
    before = len(net.site.seen)
    values = {"site": net.site.port, "other": net.other.port, "socket": file.parent / "net" / "proxy"}
    said = await net.run(TALK + ATTEMPTS[attempt].format(**values))
    assert any(refusal in said for refusal in REFUSALS), said
    assert "hello" not in said and "sent" not in said
    assert not net.other.seen and len(net.site.seen) == before


async def test_servers_within_the_sandbox_are_reached_by_name(net: Net) -> None:
    said = await net.run(
        "import http.server, threading, urllib.request, urllib.error\n"
        "own = http.server.HTTPServer(('127.0.0.1', 0), http.server.BaseHTTPRequestHandler)\n"
        "threading.Thread(target=own.serve_forever, daemon=True).start()\n"
        "try:\n    urllib.request.urlopen(f'http://localhost:{own.server_port}/')\n"
        "except urllib.error.HTTPError as error:\n    print(error.code)\n"
    )
    assert "501" in said


async def test_the_relay_is_no_child_of_the_kernel(net: Net) -> None:
    assert "ChildProcessError" in await net.run("import os; os.wait()")


async def test_an_interrupt_leaves_the_relay_alone(net: Net) -> None:
    async with aclosing(net.kernel.execute("print(1); import time; time.sleep(60)", 60)) as items:
        async for item in items:
            if isinstance(item, Output):
                await net.kernel.interrupt()
    assert "hello" in await net.run(CURL.format(url=f"http://127.0.0.1:{net.site.port}/hello.txt"))


async def test_a_check_reaches_the_same_hosts(net: Net) -> None:
    await net.kernel.start()
    for port, reached in ((net.site.port, True), (net.other.port, False)):
        command = net.kernel.wrap(["curl", "-sS", f"http://127.0.0.1:{port}/hello.txt"])
        process = await asyncio.create_subprocess_exec(
            *command, env=dict(net.kernel.environment), stdout=asyncio.subprocess.PIPE
        )
        printed, _ = await process.communicate()
        assert (printed == b"hello from outside") is reached


async def test_a_cell_beside_another_reaches_the_same_hosts(net: Net) -> None:
    net.used()
    source = CURL.format(url=f"http://127.0.0.1:{net.site.port}/hello.txt")
    async with aclosing(net.kernel.execute(source, 60, beside=True)) as items:
        said = "".join([item.content.get("text", "") async for item in items if isinstance(item, Output)])
    assert "hello from outside" in said
    assert net.used()["127.0.0.1", net.site.port].connections == 1


@pytest.mark.parametrize("how", ["closed", "guardian killed"])
async def test_nothing_is_left_behind(net: Net, how: str) -> None:
    folder = net.workspace / "harness_sessions"
    kernel = ToolKernel(name="harness-sandbox", directory=folder, confinement=net.kernel.confinement)
    await kernel.start()
    file = kernel.connection_file
    assert file is not None
    private = file.parent
    assert (private / "net" / "proxy").is_socket() and processes(f"relay.py\x003128\x00{private}")
    if how == "guardian killed":
        (own,) = [pid for pid in processes("kernel/guardian.py") if Path(f"/proc/{pid}/cwd").readlink() == private]
        os.kill(int(own), 9)
    await kernel.aclose()
    assert not private.exists() and not processes(f"relay.py\x003128\x00{private}")


def processes(words: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if words in path.read_text(errors="replace"):
                found.append(path.parent.name)
    return found


# In a session


async def test_a_session_tells_the_model_and_records_it(net: Net, tmp_path: Path) -> None:
    ports = (net.site.port, net.other.port)
    script = tmp_path / "script.json"
    calls = [
        {"name": "bash", "arguments": {"command": f"curl -s http://127.0.0.1:{port}/hello.txt; true"}} for port in ports
    ]
    finish = {"name": "finish", "arguments": {"summary": "done"}}
    script.write_text(json.dumps([{"calls": calls}, {"calls": [finish]}]))
    options = {"model": f"scripted:{script}", "policy": "auto", "network": f"allow:127.0.0.1:{ports[0]}"}
    session = await Session.open(Settings.load(tmp_path, options, {}), DenyApprover())
    try:
        events = [item async for item in session.send("go")]
    finally:
        await session.aclose()
    results = [event for event in events if isinstance(event, ResultAdded)]
    told = ["".join(part.text for part in event.content if isinstance(part, TextPart)) for event in results]
    used = [event for event in events if isinstance(event, NetworkUsed)]
    assert [(event.port, event.allowed, event.connections) for event in used] == [
        (ports[0], True, 1),
        (ports[1], False, 1),
    ]
    assert [event.call_id for event in used] == [event.call_id for event in results][:2]
    assert "hello from outside" in told[0] and "refused" not in told[0]
    assert f"The sandbox refused 127.0.0.1:{ports[1]} (it is not on the list of this session)" in told[1]
    assert "--network allow:HOST" in told[1]
    assert types_in(json.loads(session.notebook_path.read_text())).count("network_used") == 2


class Reaching(FakeKernel):
    """Has reached a host each time that it is asked, as often as ``times``."""

    times = 0

    def network_use(self) -> Sequence[HostUse]:
        self.times -= 1
        return (HostUse("example.org", 443, True, connections=1),) if self.times >= 0 else ()


async def test_a_call_that_is_stopped_has_its_hosts_in_the_record() -> None:
    kernel = Reaching({"forever": ExecuteReply(Status.RUNNING)})
    cells = Cells(kernel, lambda call, _: Firewall(call.call_id, call.name), time.monotonic, lambda: ("", ()))
    call = ToolCall(call_id="c1", name="python", arguments={})
    running = cells.run(call, "forever", timeout=60, keep=True, images=False)
    assert (await anext(running)).type == "cell_started"
    kernel.times = 2
    events = [event async for event in cells.end_all()]
    assert [event.call_id for event in events if isinstance(event, NetworkUsed)] == ["c1", "outside"]
    await running.aclose()


def types_in(notebook: dict[str, Any]) -> list[str]:
    """The types of the events in a session notebook."""
    data = [cell["metadata"].get("harness_nb", {}) for cell in notebook["cells"]]
    return [event["type"] for each in data for event in each.get("events", [])]


async def test_a_sandbox_that_cannot_hold_it_says_so(tmp_path: Path) -> None:
    settings = Settings.load(tmp_path, {"network": "allow:example.org"}, {})
    with pytest.raises(UsageError, match="needs bubblewrap"):
        confinement_for(settings, layer="landlock")


async def test_a_wrong_list_is_refused_at_the_start(tmp_path: Path) -> None:
    settings = Settings.load(tmp_path, {"network": "allow:*"}, {})
    with pytest.raises(UsageError, match="this is no host"):
        confinement_for(settings, layer="bubblewrap")
