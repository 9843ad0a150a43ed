"""The kernel spec ``harness-sandbox`` as Jupyter starts it, over TCP and over ipc."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from jupyter_client.manager import KernelManager

from harness_nb.kernel.opened import command_for
from harness_nb.kernel.sandbox import layer_here

SPEC = Path(__file__).parents[2] / "kernels" / "harness-sandbox" / "kernel.json"


def test_the_spec_names_this_module() -> None:
    spec = json.loads(SPEC.read_text())
    assert spec["argv"][1:] == ["-m", "harness_nb.kernel.opened", "-f", "{connection_file}"]
    assert spec["interrupt_mode"] == "message"


def test_the_network_is_on_only_where_messages_need_it(tmp_path: Path) -> None:
    for transport, own in (("ipc", True), ("tcp", False)):
        file = tmp_path / f"{transport}.json"
        file.write_text(json.dumps({"transport": transport, "ip": str(tmp_path / "s")}))
        assert ("--unshare-net" in command_for(file, tmp_path, {})) is own


@pytest.mark.skipif(layer_here() != "bubblewrap", reason="bubblewrap does not work here")
@pytest.mark.parametrize("transport", ["tcp", "ipc"])
def test_jupyter_starts_and_interrupts_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, transport: str) -> None:
    folder = tmp_path / "data" / "kernels" / "harness-sandbox"
    folder.mkdir(parents=True)
    spec = json.loads(SPEC.read_text())
    spec["argv"][0] = sys.executable
    (folder / "kernel.json").write_text(json.dumps(spec))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "data"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "none"))
    work = tmp_path / "work" / "harness_sessions"
    work.mkdir(parents=True)
    manager = KernelManager(kernel_name="harness-sandbox", transport=transport)
    if transport == "ipc":
        manager.ip = str(tmp_path / "i")
    manager.start_kernel(cwd=str(work))
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=60)
        source = "import os; open('../new.txt', 'w').write('x'); print(os.getcwd(), os.path.exists('/root/.ssh'))"
        printed: list[str] = []
        reply = client.execute_interactive(
            source, timeout=60, output_hook=lambda message: printed.append(message["content"].get("text", ""))
        )
        assert reply["content"]["status"] == "ok"
        assert "".join(printed).split() == [str(work), "False"]
        assert (work.parent / "new.txt").read_text() == "x"
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
        manager.cleanup_resources()
