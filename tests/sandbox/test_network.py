"""``--network allow:HOST,…`` for real: programs in a bubblewrap sandbox, servers on the loopback of the machine.

An address of the loopback is reached because the list has it literally; nothing goes further.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from servers import Echo, Site, serving

from harness_nb.kernel import ToolKernel
from harness_nb.kernel.confinement import Bounds, Confinement
from harness_nb.kernel.sandbox import layer_here
from harness_nb.ports import ExecuteReply, HostUse, Output
from harness_nb.tools import SETUP_SOURCE
from harness_nb.types import Status

pytestmark = [
    pytest.mark.skipif(layer_here() != "bubblewrap", reason="bubblewrap does not work here"),
    pytest.mark.asyncio(loop_scope="module"),
]


@dataclass
class Net:
    """A kernel in a sandbox that may reach ``site`` and ``echo``, and a site that it may not reach."""

    kernel: ToolKernel
    workspace: Path
    site: Site
    other: Site
    echo: Echo

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
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, Site, Echo]]:
    folder = tmp_path_factory.mktemp("site")
    (folder / "hello.txt").write_text("hello from outside")
    make_repository(folder)
    make_index(folder)
    site, other, echo = Site(folder), Site(folder), Echo()
    with serving(site), serving(other), serving(echo):
        yield site, other, echo


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
async def net(sites: tuple[Site, Site, Echo], tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Net]:
    site, other, echo = sites
    workspace = tmp_path_factory.mktemp("workspace").resolve()
    network = f"allow:127.0.0.1:{site.port},127.0.0.1:{echo.port},example.invalid,*.below.invalid"
    confinement = Confinement(workspace, network=network, bounds=Bounds(free_disk=None))
    kernel = ToolKernel(
        name="harness-sandbox", directory=workspace / "harness_sessions", setup=SETUP_SOURCE, confinement=confinement
    )
    yield Net(kernel, workspace, site, other, echo)
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
