"""The kernel ``harness-sandbox``: what it shares with the plain one, and what only a sandbox has."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from harness_nb.errors import UsageError
from harness_nb.kernel import Spare, ToolKernel, guardian, process
from harness_nb.kernel.confinement import Additions, Bounds, Confinement
from harness_nb.kernel.environment import kernel_environment
from harness_nb.kernel.guardian import Guardian, parent_of
from harness_nb.kernel.sandbox import layer_here, sandboxed
from harness_nb.ports import ExecuteReply, Output
from harness_nb.tools import SETUP_SOURCE
from harness_nb.types import Status

pytestmark = pytest.mark.skipif(layer_here() != "bubblewrap", reason="bubblewrap does not work here")


def confinement_of(workspace: Path) -> Confinement:
    (workspace / "harness_sessions").mkdir(exist_ok=True)
    return Confinement(workspace, protected=(workspace / "harness_sessions",), bounds=Bounds(free_disk=None))


def kernel_in(workspace: Path, confinement: Confinement) -> ToolKernel:
    folder = workspace / "harness_sessions"
    return ToolKernel(name="harness-sandbox", directory=folder, setup=SETUP_SOURCE, grace=2.0, confinement=confinement)


@pytest_asyncio.fixture
async def kernel(tmp_path: Path) -> AsyncIterator[ToolKernel]:
    made = kernel_in(tmp_path, confinement_of(tmp_path))
    yield made
    await made.aclose()


async def run(kernel: ToolKernel, source: str, *, beside: bool = False) -> tuple[str, ExecuteReply]:
    printed, reply = "", ExecuteReply(Status.UNKNOWN)
    async with aclosing(kernel.execute(source, 60, beside=beside)) as items:
        async for item in items:
            if isinstance(item, ExecuteReply):
                reply = item
            elif isinstance(item, Output) and item.kind == "stream":
                printed += item.content["text"]
    return printed, reply


async def interrupted(kernel: ToolKernel, source: str) -> ExecuteReply:
    """The reply of a cell that is interrupted once it has printed something."""
    reply = ExecuteReply(Status.UNKNOWN)
    async with aclosing(kernel.execute(source, 60)) as items:
        async for item in items:
            if isinstance(item, ExecuteReply):
                reply = item
            else:
                await kernel.interrupt()
    return reply


async def test_a_cell_works_in_the_workspace(kernel: ToolKernel, tmp_path: Path) -> None:
    printed, reply = await run(kernel, "open('new.txt', 'w').write('x')\nimport os; print(os.getcwd(), os.getppid())")
    assert reply.status is Status.OK
    assert printed.split() == [str(tmp_path), "1"]
    assert (tmp_path / "new.txt").read_text() == "x"


@pytest.mark.parametrize(
    "source",
    [
        "print(1); import time; time.sleep(60)",
        "print(1); import asyncio; await asyncio.sleep(60)",
        "print(1); import os; os.system('sleep 60')",
        "%%bash\necho 1; sleep 60",
    ],
)
async def test_an_interrupt_by_message_stops_it(kernel: ToolKernel, source: str) -> None:
    await run(kernel, "kept = 1")
    assert (await interrupted(kernel, source)).status is Status.INTERRUPTED
    assert (await run(kernel, "print(kept)"))[0] == "1\n"


async def test_code_that_ignores_the_interrupt_is_killed(kernel: ToolKernel) -> None:
    stubborn = (
        "while True:\n    try:\n        print(1, flush=True)\n        while True: pass\n    except BaseException: pass"
    )
    reply = await interrupted(kernel, stubborn)
    assert reply.status is Status.INTERRUPTED and "was killed" in reply.detail
    assert (await run(kernel, "print(2)"))[0] == "2\n"


async def test_a_death_inside_is_told_by_its_signal(kernel: ToolKernel) -> None:
    _, reply = await run(kernel, "import os; os.kill(os.getpid(), 11)")
    assert reply.status is Status.KERNEL_DIED and "SIGSEGV" in reply.detail
    _, reply = await run(kernel, "import os; os._exit(3)")
    assert "status 3" in reply.detail


async def test_nothing_outlives_it(kernel: ToolKernel) -> None:
    await run(kernel, "import subprocess; subprocess.Popen(['sleep', '6173'], start_new_session=True)")
    assert processes("sleep\x006173")
    await kernel.aclose()
    assert not processes("sleep\x006173")


async def test_a_killed_guardian_takes_the_sandbox_along(kernel: ToolKernel) -> None:
    await run(kernel, "import subprocess; subprocess.Popen(['sleep', '6175'], start_new_session=True)")
    (own,) = (pid for pid in processes("kernel/guardian.py") if parent_of(int(pid)) == os.getpid())
    running = asyncio.create_task(run(kernel, "import time; time.sleep(60)"))
    await asyncio.sleep(0)
    os.kill(int(own), 9)
    assert (await running)[1].status is Status.KERNEL_DIED
    await kernel.aclose()
    assert not processes("sleep\x006175")


async def test_a_stopped_cell_ends_what_it_has_started(kernel: ToolKernel) -> None:
    start = "import subprocess, time; subprocess.Popen(['sleep', '6174'], start_new_session=True); print(1)"
    reply = await interrupted(kernel, f"{start}; time.sleep(60)")
    assert reply.status is Status.INTERRUPTED
    assert not processes("sleep\x006174")
    assert (await run(kernel, "print(2)"))[0] == "2\n"


def processes(words: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if words in path.read_text(errors="replace"):
                found.append(path.parent.name)
        except OSError:
            continue
    return found


async def test_cells_beside_another_run_in_the_same_sandbox(kernel: ToolKernel, tmp_path: Path) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-secret"
    outside.write_text("secret")
    waiting = "import os, time\nwhile not os.path.exists('go'): time.sleep(.01)"
    running = asyncio.create_task(run(kernel, waiting))
    printed, reply = await run(kernel, f"%%bash\ntouch go; cat {outside}", beside=True)
    assert reply.status is Status.ERROR and "No such file" in printed
    assert (await running)[1].status is Status.OK


def test_a_nearly_full_disk_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watching = Guardian.__new__(Guardian)
    watching.processes, watching.disks = None, {str(tmp_path): 10**9}
    monkeypatch.setattr(guardian, "free_on", lambda folder: 2 * 10**9)
    assert watching.broken_bound() == ""
    monkeypatch.setattr(guardian, "free_on", lambda folder: 5 * 10**8)
    assert watching.broken_bound() == "the disk was nearly full (500 MB free), so the sandbox ended this kernel"


@pytest.mark.skipif(os.geteuid() != 0, reason="a limit of the system holds for other users")
async def test_too_many_processes_of_root_end_it_where_there_is_no_control_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "make_groups", lambda processes, memory: {})
    kernel = kernel_in(tmp_path, replace(confinement_of(tmp_path), bounds=Bounds(processes=60, free_disk=None)))
    _, reply = await run(
        kernel, "import os, time\nfor _ in range(200):\n    if not os.fork(): time.sleep(600)\ntime.sleep(60)"
    )
    assert reply.status is Status.KERNEL_DIED
    assert "processes (at most 60), so the sandbox ended this kernel" in reply.extra["words"]
    await kernel.aclose()


async def test_another_sandbox_takes_a_fresh_kernel_and_is_told(kernel: ToolKernel, tmp_path: Path) -> None:
    spaces = "import os; kept = 1; print(os.readlink('/proc/self/ns/net'))"
    own, _ = await run(kernel, spaces)
    here = str(Path("/proc/self/ns/net").readlink())
    assert own.strip() != here
    assert "network is off" in kernel.sandbox
    await kernel.confine(replace(confinement_of(tmp_path), network="on"))
    shared, reply = await run(kernel, spaces)
    assert shared.strip() == here
    assert "its sandbox has changed" in reply.detail and "kept" in reply.detail
    assert "network is on" in kernel.sandbox


async def test_checks_run_in_the_same_sandbox(kernel: ToolKernel, tmp_path: Path) -> None:
    command = kernel.wrap(["bash", "-c", "pwd; touch new; touch harness_sessions/new"])
    done = await finished(command, kernel)
    assert done.stdout == f"{tmp_path}\n" and "Read-only" in done.stderr
    assert (tmp_path / "new").exists() and not (tmp_path / "harness_sessions" / "new").exists()


async def test_a_check_reads_what_it_names_and_tool_code_does_not(kernel: ToolKernel, tmp_path: Path) -> None:
    labels = tmp_path.parent / f"{tmp_path.name}.labels"
    labels.mkdir()
    (labels / "wanted.txt").write_text("0.8")
    assert (await run(kernel, f"%%bash\ncat {labels}/wanted.txt"))[1].status is Status.ERROR
    done = await finished(
        kernel.wrap(["bash", "-c", f"cat '{labels}/wanted.txt'; echo 1 > {labels}/wanted.txt"]), kernel
    )
    assert done.stdout == "0.8" and "Read-only" in done.stderr


async def finished(command: list[str], kernel: ToolKernel) -> subprocess.CompletedProcess[str]:
    return await asyncio.to_thread(
        subprocess.run, command, env=dict(kernel.environment), capture_output=True, text=True, timeout=60
    )


async def test_additions_are_there_before_the_kernel(tmp_path: Path) -> None:
    shown, socket = tmp_path.parent / f"{tmp_path.name}-shown", tmp_path.parent / f"{tmp_path.name}-socket"
    shown.write_text("shown")
    socket.mkdir()
    additions = Additions(
        read_only=(shown,),
        writable=(socket,),
        environment=(("HTTPS_PROXY", "http://127.0.0.1:1"),),
        before=("bash", "-c", f"echo ready > {socket}/started; echo ready; exec sleep 600"),
    )
    confinement = replace(confinement_of(tmp_path), network="allow:example.com", additions=additions)
    kernel = kernel_in(tmp_path, confinement)
    source = f"print(open('{shown}').read(), open('{socket}/started').read(), os.environ['HTTPS_PROXY'])"
    printed, _ = await run(kernel, f"import os; {source}")
    assert printed.split() == ["shown", "ready", "http://127.0.0.1:1"]
    await kernel.aclose()


def test_a_list_of_hosts_needs_its_proxy(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--network off"):
        sandboxed(["true"], Confinement(tmp_path, network="allow:example.com"), environment={})


async def test_a_spare_is_taken_where_its_sandbox_fits(tmp_path: Path) -> None:
    confinement, spare = confinement_of(tmp_path), Spare()
    spare.prepare(tmp_path, confinement)
    assert not spare.fits("harness-tools", None)
    assert not spare.fits("harness-sandbox", replace(confinement, network="on"))
    assert spare.fits("harness-sandbox", confinement_of(tmp_path))
    kernel = ToolKernel(
        name="harness-sandbox", directory=tmp_path / "harness_sessions", spare=spare, confinement=confinement
    )
    assert (await run(kernel, "import os; print(os.getcwd())"))[0].strip() == str(tmp_path / "harness_sessions")
    await kernel.aclose()
    await spare.aclose()


def test_no_value_of_the_environment_is_on_the_command_line(tmp_path: Path) -> None:
    environment = {**kernel_environment(os.environ), "GRANTED": "value-4711"}
    assert "value-4711" not in " ".join(sandboxed(["true"], confinement_of(tmp_path), environment=environment))


async def test_training_with_torch_works_within_the_limits(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from harness_nb.kernel.confining import bounds_for
    from harness_nb.settings import SandboxSettings

    kernel = kernel_in(tmp_path, replace(confinement_of(tmp_path), bounds=bounds_for(SandboxSettings(free_disk_gb=0))))
    source = """
import torch
from torch.utils.data import DataLoader, TensorDataset
net = torch.nn.Linear(20, 2)
data = DataLoader(TensorDataset(torch.randn(256, 20), torch.randint(2, (256,))), batch_size=64, num_workers=2)
optimiser = torch.optim.SGD(net.parameters(), 0.1)
for x, y in data:
    optimiser.zero_grad(); torch.nn.functional.cross_entropy(net(x), y).backward(); optimiser.step()
torch.save(net.state_dict(), 'net.pt'); print('trained')
"""
    printed, reply = await run(kernel, source)
    await kernel.aclose()
    assert printed.endswith("trained\n"), reply
