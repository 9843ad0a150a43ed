"""Runs the code cells of a notebook top to bottom in a fresh kernel, with nbclient, and stops at the first failure.

``verification`` calls it. The kernel gets a scrubbed environment and its own folders for IPython and matplotlib; inside
of a sandbox where there is one. It compares nothing.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import IO, Any

import nbformat
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager, NoSuchKernel
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

from harness_nb.kernel.environment import kernel_environment
from harness_nb.kernel.guardian import kill_all, marked
from harness_nb.verify.distributions import FIRST_LOOK, LAST_LOOK
from harness_nb.verify.document import CodeCell, Document
from harness_nb.verify.failures import CannotRunError, Failure
from harness_nb.verify.runs import CellRun, Place, Run
from harness_nb.verify.sandbox import wrap

START_SECONDS = 120
IOPUB_SECONDS = 30
LOOK_SECONDS = 60
LAST_WORDS = 500


def find_kernel(name: str) -> KernelSpec:
    """The kernel spec ``name``.

    Raises:
        CannotRunError: if there is none; lists those there are.
    """
    manager = KernelSpecManager()
    try:
        return manager.get_kernel_spec(name)
    except NoSuchKernel:
        known = ", ".join(sorted(manager.find_kernel_specs())) or "none"
        raise CannotRunError(
            f"there is no kernel {name!r} here; there are: {known}. Choose one with --kernel"
        ) from None


async def run_cells(
    document: Document,
    kernel: str,
    place: Place,
    timeout: float,
    started: Callable[[CodeCell], None] = lambda cell: None,
) -> Run:
    """Run the code cells, ``timeout`` seconds each at most; ``started`` is told each cell before it runs.

    Raises:
        CannotRunError: if the kernel cannot be started.
    """
    read: Callable[..., Any] = nbformat.reads
    notebook = read(document.text.lstrip("\ufeff"), as_version=4)
    for cell in notebook.cells:
        cell.pop("id", None)
    spec = find_kernel(kernel)
    runs: dict[int, CellRun] = {}
    async with _running(notebook, kernel, spec, place, timeout) as client:
        facts = (await _look(client, FIRST_LOOK) if spec.language == "python" else None) or {}
        modules = facts.pop("modules", [])
        for cell in document.cells:
            if cell.rules.skip:
                continue
            started(cell)
            runs[cell.number] = await _run_cell(client, cell, timeout, place)
            if runs[cell.number].failure is not None:
                break
        if facts and all(run.failure is None or run.failure.kind == "error" for run in runs.values()):
            facts["versions"] = await _look(client, LAST_LOOK.format(before=modules)) or {}
        final = {number: _with_outputs(run, notebook.cells[_index(document, number)]) for number, run in runs.items()}
    return Run(final, facts)


def _index(document: Document, number: int) -> int:
    return document.cells[number - 1].index


def _with_outputs(run: CellRun, cell: Any) -> CellRun:
    """The run with the outputs as they are at the end: a later cell may have changed a display of this one."""
    return CellRun(tuple(json.loads(json.dumps(cell.outputs))), run.seconds, run.failure)


async def _run_cell(client: NotebookClient, cell: CodeCell, timeout: float, place: Place) -> CellRun:
    node = client.nb.cells[cell.index]
    node.outputs = []
    if cell.rules.raises:
        node.metadata.setdefault("tags", []).append("raises-exception")
    begin = time.monotonic()
    failure = None
    try:
        await client.async_execute_cell(node, cell.index)
    except CellTimeoutError:
        failure = Failure("timeout", words=f"it ran longer than {timeout:g} s")
    except CellExecutionError as error:
        failure = Failure("error", error.ename, error.evalue)
    except DeadKernelError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError from None
        failure = Failure("died", words=await _last_words(client, place))
    return CellRun((), time.monotonic() - begin, failure)


async def _last_words(client: NotebookClient, place: Place) -> str:
    """How the kernel's process ended, and what it printed last outside of any cell."""
    status = await client.km.provisioner.poll() if client.km is not None and client.km.provisioner is not None else None
    words = []
    if status is not None:
        number = status - 128 if place.mounts is not None and status > 128 else -status
        try:
            words.append(f"by {signal.Signals(number).name}" if number > 0 else f"with exit status {status}")
        except ValueError:
            words.append(f"with exit status {status}")
    if text := _stderr_text(place):
        words.append(f"it said: {text}")
    return "; ".join(words)


def _stderr_text(place: Place) -> str:
    with suppress(OSError):
        return " ".join((place.private / "stderr").read_text("utf-8", "replace").split())[-LAST_WORDS:]
    return ""


@asynccontextmanager
async def _running(
    notebook: Any, kernel: str, spec: KernelSpec, place: Place, timeout: float
) -> AsyncIterator[NotebookClient]:
    """A client of a fresh kernel, which is gone afterwards with all that it started."""
    mark = token_hex(16)
    environment = kernel_environment(os.environ, {**spec.env, **_own_folders(place), "HARNESS_NB_KERNEL": mark})
    started = KernelSpec(
        argv=_command(spec.argv, place, environment),
        display_name=spec.display_name,
        language=spec.language,
        interrupt_mode="message" if place.mounts is not None else spec.interrupt_mode,
        resource_dir=spec.resource_dir,
    )
    manager = AsyncKernelManager(
        kernel_name=kernel,
        kernel_spec_manager=_OneSpec(started),
        transport="ipc",
        ip=str(place.private / "s"),
        connection_file=str(place.private / "kernel.json"),
    )
    client = NotebookClient(
        notebook,
        km=manager,
        timeout=max(1, math.ceil(timeout)),
        startup_timeout=START_SECONDS,
        iopub_timeout=IOPUB_SECONDS,
        record_timing=False,
        shutdown_kernel="immediate",
    )
    with (place.private / "stderr").open("wb") as errors:
        try:
            await _start(client, kernel, place, environment, errors)
            yield client
        finally:
            await asyncio.shield(_end(client, manager, mark))


async def _start(
    client: NotebookClient, kernel: str, place: Place, environment: Mapping[str, str], errors: IO[bytes]
) -> None:
    directory = place.directory if place.mounts is None else place.private
    try:
        await client.async_start_new_kernel(
            cwd=str(directory), env=dict(environment), stdout=subprocess.DEVNULL, stderr=errors
        )
        await client.async_start_new_kernel_client()
    except (RuntimeError, OSError, TimeoutError) as error:
        said = _stderr_text(place) or str(error)
        raise CannotRunError(f"the kernel {kernel!r} does not start: {said}") from error


async def _end(client: NotebookClient, manager: AsyncKernelManager, mark: str) -> None:
    if client.kc is not None:
        client.kc.stop_channels()
    if manager.has_kernel:
        with suppress(RuntimeError, OSError):
            await manager.shutdown_kernel(now=True)
    await asyncio.to_thread(kill_all, lambda: marked(mark))


def _command(arguments: Sequence[str], place: Place, environment: Mapping[str, str]) -> list[str]:
    """The command of a kernel spec, in the sandbox if there is one. A bare ``python`` is the one that runs this."""
    program, *rest = arguments
    bare = ("python", "python3", f"python3.{sys.version_info.minor}")
    command = [sys.executable if program in bare else program, *rest]
    return command if place.mounts is None else wrap(command, place.mounts, place.directory, environment)


def _own_folders(place: Place) -> dict[str, str]:
    """Folders of the kernel's own, so that it neither reads nor writes the person's settings and histories."""
    matplotlib = place.private / "matplotlib"
    matplotlib.mkdir(exist_ok=True)
    for cache in (os.environ.get("MPLCONFIGDIR", ""), os.environ.get("XDG_CACHE_HOME", ""), "~/.cache"):
        for folder in (Path(cache).expanduser(), Path(cache).expanduser() / "matplotlib") if cache else ():
            for fonts in folder.glob("fontlist-*.json"):  # without it the first plot searches all fonts, and says so
                with suppress(OSError):
                    shutil.copy2(fonts, matplotlib)
    folders = {"IPYTHONDIR": str(place.private / "ipython"), "MPLCONFIGDIR": str(matplotlib)}
    return {**folders, "TMPDIR": "/tmp"} if place.mounts is not None else folders


async def _look(client: NotebookClient, source: str) -> Any:
    """What a piece of our own code in the kernel prints as JSON; ``None`` if the kernel is in no state to answer."""
    make: Callable[..., Any] = nbformat.from_dict
    node = make({"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": source})
    client.nb.cells.append(node)
    try:
        looking = client.async_execute_cell(node, len(client.nb.cells) - 1, store_history=False)
        await asyncio.wait_for(looking, LOOK_SECONDS)
        printed = "".join(output.get("text", "") for output in node.outputs if output.output_type == "stream")
        return json.loads(printed.strip().splitlines()[-1])
    except (CellExecutionError, CellTimeoutError, DeadKernelError, TimeoutError, ValueError, IndexError, RuntimeError):
        return None
    finally:
        client.nb.cells.pop()


class _OneSpec(KernelSpecManager):
    """Knows one kernel spec: the one whose command was changed."""

    def __init__(self, spec: KernelSpec) -> None:
        super().__init__()
        self._spec = spec

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        """The spec, whatever its name."""
        return self._spec
