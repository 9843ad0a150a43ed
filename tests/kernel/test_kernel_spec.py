"""Names of kernels become commands, and a kernel of another environment gets the same tools."""

from __future__ import annotations

import json
import sys
import venv
from pathlib import Path
from typing import Any

import ipykernel
import pytest
from kernel_cells import run_cell

from harness_nb.errors import KernelError, UsageError
from harness_nb.kernel import ToolKernel, started
from harness_nb.kernel.spec import LAUNCHER, kernel_names, resolve_kernel, through_launcher
from harness_nb.tools import SETUP_SOURCE


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Puts a kernel spec where jupyter looks for it."""
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "share"))

    def write(name: str, **spec: Any) -> None:
        folder = tmp_path / "share" / "kernels" / name
        folder.mkdir(parents=True)
        (folder / "kernel.json").write_text(json.dumps({"display_name": name, "language": "python", **spec}))

    return write


def test_the_default_is_always_there() -> None:
    command = resolve_kernel()
    assert command.arguments == (sys.executable, str(LAUNCHER), "-f", "{connection_file}")
    assert LAUNCHER.is_file()
    assert kernel_names()[0] == "harness-tools"


def test_an_ipykernel_keeps_its_python_and_arguments() -> None:
    argv = [
        "/opt/env/bin/python",
        "-Xfrozen_modules=off",
        "-m",
        "ipykernel_launcher",
        "-f",
        "{connection_file}",
        "--x=1",
    ]
    assert through_launcher(argv) == (
        "/opt/env/bin/python", "-Xfrozen_modules=off", str(LAUNCHER), "-f", "{connection_file}", "--x=1",
    )  # fmt: skip
    assert through_launcher(["python3", "-m", "ipykernel", "-f", "{connection_file}"])[0] == sys.executable
    assert through_launcher(["xpython", "-f", "{connection_file}"]) == ("xpython", "-f", "{connection_file}")


def test_installed_specs_are_found_and_others_listed(install: Any) -> None:
    install("mine", argv=["python", "-m", "ipykernel_launcher", "-f", "{connection_file}"], env={"A": "1"})
    install("julia", argv=["julia"], language="julia")
    command = resolve_kernel("mine")
    assert (command.arguments[1], dict(command.environment)) == (str(LAUNCHER), {"A": "1"})
    with pytest.raises(UsageError, match=r"no kernel 'other'; there are: harness-tools.*mine"):
        resolve_kernel("other")
    with pytest.raises(UsageError, match="speaks julia"):
        resolve_kernel("julia")


def test_the_wheel_ships_the_same_launcher() -> None:
    spec = json.loads((Path(__file__).parents[2] / "kernels" / "harness-tools" / "kernel.json").read_text())
    assert spec["argv"] == ["python", "-m", "harness_nb.tools.launch", "-f", "{connection_file}"]
    assert through_launcher(spec["argv"]) == resolve_kernel().arguments


async def test_an_environment_without_harness_nb_has_the_tools(
    install: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bare virtual environment that borrows ipykernel's packages, but not harness_nb."""
    monkeypatch.delenv("PYTHONPATH", raising=False)
    venv.create(tmp_path / "env", symlinks=True)
    site = Path(ipykernel.__file__).parents[1]
    packages = next((tmp_path / "env" / "lib").glob("python*/site-packages"))
    for entry in site.iterdir():
        if "harness" not in entry.name and entry.suffix not in (".pth", ".egg-link"):
            (packages / entry.name).symlink_to(entry)
    python = str(tmp_path / "env" / "bin" / "python")
    install("bare", argv=[python, "-m", "ipykernel_launcher", "-f", "{connection_file}"])
    (tmp_path / "work").mkdir()
    kernel = ToolKernel(name="bare", directory=tmp_path / "work" / "harness_sessions", setup=SETUP_SOURCE)
    try:
        ran = await run_cell(
            kernel,
            "import importlib.util, sys\nwrite_file('a.txt', 'x\\n')\nread_file('a.txt')\n"
            "kernel = importlib.util.find_spec('harness_nb.kernel')\n"
            "print(sys.executable, kernel, [p for p in sys.path if 'tools' in p])",
        )
    finally:
        await kernel.aclose()
    *tools, last = ran.text().splitlines()
    assert tools == ["Created a.txt: 1 line, 2 bytes", "     1\tx", "(all of a.txt: 1 line)"]
    assert last == f"{python} None []"


async def test_a_kernel_that_does_not_start_says_why_and_leaves_nothing(
    install: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Path] = []
    make = started.make_private_folder
    monkeypatch.setattr(started, "make_private_folder", lambda: made.append(make()) or made[-1])
    install("broken", argv=[sys.executable, "-c", "raise SystemExit('no ipykernel here')"])
    kernel = ToolKernel(name="broken", directory=tmp_path / "work")
    with pytest.raises(KernelError, match=r"(?s)'broken' did not start: it exited with status 1.*no ipykernel here"):
        await kernel.start()
    await kernel.aclose()
    install("missing", argv=["/nowhere/python", "-f", "{connection_file}"])
    kernel = ToolKernel(name="missing", directory=tmp_path / "work")
    with pytest.raises(KernelError, match="No such file"):
        await kernel.start()
    await kernel.aclose()
    assert len(made) == 2
    assert not any(folder.exists() for folder in made)
