"""A machine worth attacking: a person's folders, what listens there, and a sandboxed kernel among it."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from harness_nb.kernel import ToolKernel
from harness_nb.kernel.confinement import GIGA, MEGA, Bounds
from harness_nb.ports import ExecuteReply, Output
from harness_nb.types import Status

KEY = "sk-escape-4711"
BOUNDS = Bounds(
    memory=3 * GIGA, processes=150, open_files=500, file_size=60 * MEGA, temporary=40 * MEGA, free_disk=100 * MEGA
)


@dataclass
class Machine:
    """The folders of a person, what listens on this machine, and what has reached it."""

    base: Path
    port: int = 0
    reached: list[str] = field(default_factory=list)

    @property
    def workspace(self) -> Path:
        return self.base / "ws"

    @property
    def home(self) -> Path:
        return self.base / "home"

    @property
    def runtime(self) -> Path:
        return self.home / ".local" / "share" / "jupyter" / "runtime"


def furnish(machine: Machine) -> None:
    """A home with credentials, another workspace, and a workspace with tests, a record, a repository and settings."""
    files = {
        "home/.ssh/id_ed25519": "PRIVATE",
        "home/.netrc": "machine example.com password secret",
        "home/.bashrc": "true",
        "other/secret.txt": "secret",
        "ws/tests/test_it.py": "def test_it(): assert 1 == 1",
        "ws/deep/down/frozen.txt": "frozen",
        "ws/harness_sessions/20260101-aaaa/journal.jsonl": "{}",
        "ws/harness_sessions/20260101-aaaa.ipynb": "{}",
        "ws/.git/HEAD": "ref: refs/heads/main",
        "ws/.git/config": "[core]",
        "ws/pyproject.toml": "[tool.harness-nb]\nmodel = 'scripted:x.json'\n",
        "home/.local/share/jupyter/runtime/kernel-1.json": json.dumps({"transport": "ipc", "key": "k"}),
    }
    for name, text in files.items():
        path = machine.base / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (machine.workspace / "empty").mkdir()
    (machine.workspace / "leak").symlink_to(machine.base / "other" / "secret.txt")


def listen(machine: Machine, kind: int, family: int, address: object) -> socket.socket:
    """A socket that notes each contact; closing it ends its thread."""
    listening = socket.socket(family, kind)
    listening.bind(address)
    if kind == socket.SOCK_STREAM:
        listening.listen()

    def note() -> None:
        with suppress(OSError):
            while True:
                if kind == socket.SOCK_STREAM:
                    listening.accept()[0].close()
                else:
                    if not listening.recvfrom(100)[0]:
                        return  # it was closed
                machine.reached.append(f"{family.name if hasattr(family, 'name') else family} {kind}")

    threading.Thread(target=note, daemon=True).start()
    return listening


@dataclass
class Attacked:
    """A sandboxed kernel, the machine around it, and a kernel and a program of the person beside it."""

    machine: Machine
    kernel: ToolKernel
    users_kernel: ToolKernel
    victim: subprocess.Popen[bytes]
    layer: str

    async def run(self, source: str) -> tuple[str, str]:
        """What a cell prints, and the error that the model sees; empty if there is none."""
        printed, error = "", ""
        async for item in self.kernel.execute(source, 60):
            if isinstance(item, Output) and item.kind == "stream":
                printed += item.content["text"]
            elif isinstance(item, ExecuteReply) and item.status is not Status.OK:
                error = f"{item.ename}: {item.evalue} {item.detail}"
        return printed, error
