"""``harness-nb doctor``: what works here and what does not, one line each, with the way out."""

from __future__ import annotations

import asyncio
import platform
import shutil
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from harness_nb.cli.findings import Finding
from harness_nb.cli.probes import probe_models
from harness_nb.cli.sandbox import probe_sandbox
from harness_nb.errors import HarnessError
from harness_nb.kernel import ToolKernel
from harness_nb.kernel.confinement import Confinement
from harness_nb.kernel.spec import name_here
from harness_nb.ports import ExecuteReply
from harness_nb.settings import Settings
from harness_nb.tools import SETUP_SOURCE
from harness_nb.types import Status
from harness_nb.ui.here_words import installed_extension
from harness_nb.verify.sandbox import find_sandbox

Probe = Callable[[Settings], AsyncGenerator[Finding]]


def diagnose(settings: Settings) -> int:
    """Print the findings; 0 if all that is needed passed, else 1."""
    return asyncio.run(_diagnose(settings))


async def _diagnose(settings: Settings) -> int:
    console = Console(highlight=False)
    failed, lacking = 0, 0
    probes: tuple[Probe, ...] = (_python, _bash, _kernel, probe_sandbox, _sandbox, _page, probe_models)
    for probe in probes:
        async with aclosing(probe(settings)) as findings:
            async for finding in findings:
                failed += finding.needed and not finding.passed
                lacking += not finding.needed and not finding.passed
                console.print(_line(finding), soft_wrap=True)
    if lacking and not failed:
        console.print("note: what is needed works; the lines that say fail can be done without")
    return 1 if failed else 0


def _line(finding: Finding) -> str:
    mark = "[green]pass[/]" if finding.passed else "[red]FAIL[/]" if finding.needed else "[yellow]fail[/]"
    way_out = f"\n     way out: {escape(finding.way_out)}" if not finding.passed and finding.way_out else ""
    return f"{mark} {finding.name}: {escape(finding.detail)}{way_out}"


async def _python(settings: Settings) -> AsyncGenerator[Finding]:
    supported = (3, 11) <= sys.version_info[:2] <= (3, 13)
    libraries = ", ".join(f"{name} {version(name)}" for name in ("ipykernel", "jupyter_client", "openai"))
    yield Finding("Python", supported, f"{platform.python_version()}, {libraries}", "use Python 3.11 to 3.13")


async def _bash(settings: Settings) -> AsyncGenerator[Finding]:
    path = shutil.which("bash")
    yield Finding("bash", path is not None, path or "not found", "install bash; the bash tool and checks need it")


async def _kernel(settings: Settings) -> AsyncGenerator[Finding]:
    """Start the tool kernel and let it say something."""
    name = name_here(settings.kernel)
    with tempfile.TemporaryDirectory() as folder:
        inside = Path(folder, "inside")
        confinement = Confinement(Path(folder).resolve())
        kernel = ToolKernel(name=name, directory=inside, setup=SETUP_SOURCE, confinement=confinement)
        try:
            await kernel.start()
            replies = [item async for item in kernel.execute("1 + 1", 30) if isinstance(item, ExecuteReply)]
        except HarnessError as error:
            yield Finding("tool kernel", False, str(error), "install it, or name another one with --kernel")
            return
        finally:
            await kernel.aclose()
    works = replies[-1].status is Status.OK
    yield Finding("tool kernel", works, f"{name} starts and runs a cell", replies[-1].detail)


async def _sandbox(settings: Settings) -> AsyncGenerator[Finding]:
    """Whether ``verify`` can run notebooks in a sandbox."""
    sandbox = await asyncio.to_thread(find_sandbox)
    way_out = "install bubblewrap (Linux); without it notebooks run in a copy, with the rights of your own user"
    yield Finding("verify", sandbox.works, f"notebooks run {sandbox.words}", way_out, needed=False)


async def _page(settings: Settings) -> AsyncGenerator[Finding]:
    """Whether notebook pages can take cells, which ``export --here`` needs."""
    installed, sentence = installed_extension()
    detail, _, way_out = sentence.partition("; ")
    yield Finding("export --here", installed, sentence if installed else detail, way_out, needed=False)
