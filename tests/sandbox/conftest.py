"""One sandboxed kernel for all attempts of a module; the same again where only Landlock holds."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress

import pytest
import pytest_asyncio
from attacked import BOUNDS, KEY, Attacked, Machine, furnish, listen
from attempts import PREPARE, Attempt

from harness_nb.kernel import ToolKernel, sandbox
from harness_nb.kernel.confinement import Confinement
from harness_nb.kernel.protected import protected_paths
from harness_nb.kernel.spec import LAUNCHER
from harness_nb.tools import SETUP_SOURCE


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """Everything of it lives in a folder for temporary files; HOME is set to a part of that."""
    found = Machine(tmp_path_factory.mktemp("machine").resolve())
    furnish(found)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(found.home))
        patch.setenv("JUPYTER_RUNTIME_DIR", str(found.runtime))
        patch.setenv("ESCAPE_API_KEY", KEY)
        yield found


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out what is not promised where only Landlock holds; ``enforced`` does not claim it either."""
    items[:] = [item for item in items if not _not_promised(item)]


def _not_promised(item: pytest.Item) -> bool:
    params = item.callspec.params if hasattr(item, "callspec") else {}
    attempt = params.get("attempt")
    return isinstance(attempt, Attempt) and params.get("attacked") == "landlock" and attempt.in_landlock is None


def start_victim() -> subprocess.Popen[bytes]:
    """A program of the person, with the key in its environment."""
    return subprocess.Popen(["sleep", "600"], env={**os.environ, "VICTIM": KEY})


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["bubblewrap", "landlock"])
async def attacked(machine: Machine, request: pytest.FixtureRequest) -> AsyncIterator[Attacked]:
    """Not skipped: where a layer is there it must work, and bubblewrap has to be there on Linux."""
    if sys.platform != "linux":
        pytest.skip("the layers that are tried here are those of Linux")
    layer = request.param
    if layer == "landlock" and not sandbox.landlock.abi():
        pytest.skip("this kernel has no Landlock")
    assert layer != "bubblewrap" or not sandbox.bubblewrap.why_not(), sandbox.bubblewrap.why_not()
    workspace = machine.workspace
    protected = protected_paths(workspace, ["tests/**", "deep/down/frozen.txt"])
    confinement = Confinement(workspace, protected=protected, bounds=BOUNDS, layer=layer)
    victim = start_victim()
    users_kernel = ToolKernel(directory=machine.base / "other")
    kernel = ToolKernel(
        name="harness-sandbox",
        directory=workspace / "harness_sessions",
        setup=SETUP_SOURCE,
        confinement=confinement,
    )
    abstract = f"harness-nb-test-{os.getpid()}-{layer}"
    unix = str(machine.base / f"{layer}.sock")
    tcp = listen(machine, socket.SOCK_STREAM, socket.AF_INET, ("127.0.0.1", 0))
    listening = [
        tcp,
        udp := listen(machine, socket.SOCK_DGRAM, socket.AF_INET, ("127.0.0.1", 0)),
        listen(machine, socket.SOCK_STREAM, socket.AF_UNIX, unix),
        listen(machine, socket.SOCK_STREAM, socket.AF_UNIX, f"\0{abstract}"),
    ]
    try:
        await users_kernel.start()
        await kernel.start()
        file = users_kernel.connection_file
        assert file is not None
        told = json.loads(file.read_text())
        values = (
            *(str(machine.home), str(machine.base / "other"), str(machine.runtime)),
            *(tcp.getsockname()[1], udp.getsockname()[1], unix, abstract, victim.pid, str(LAUNCHER)),
            *(str(file), f"{told['ip']}-{told['shell_port']}", KEY[::-1]),
        )
        attacked = Attacked(machine, kernel, users_kernel, victim, layer)
        assert await attacked.run(PREPARE.format(values=values)) == ("", "")
        yield attacked
    finally:
        for one in listening:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        await kernel.aclose()
        await users_kernel.aclose()
        victim.kill()
        victim.wait()
