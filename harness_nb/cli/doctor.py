"""``harness-nb doctor``: what works here and what does not, one line each, with the way out."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from harness_nb.errors import HarnessError
from harness_nb.kernel import ToolKernel
from harness_nb.models import default_model_spec, resolve_model
from harness_nb.ports import ExecuteReply, ModelSettings
from harness_nb.settings import Settings
from harness_nb.tools import SETUP_SOURCE
from harness_nb.types import Message, Status, ToolSpec, text_message

PROBE_TIMEOUT = 60.0
"""Seconds that the model may take to answer the probe."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the diagnosis; ``way_out`` is said when it failed."""

    name: str
    passed: bool
    detail: str
    way_out: str = ""


def diagnose(settings: Settings) -> int:
    """Print the findings; 0 if all passed, else 1."""
    return asyncio.run(_diagnose(settings))


async def _diagnose(settings: Settings) -> int:
    console = Console(highlight=False)
    passed = True
    for probe in (_python, _bash, _kernel, _model):
        for finding in await probe(settings):
            passed = passed and finding.passed
            mark = "[green]pass[/]" if finding.passed else "[red]FAIL[/]"
            way_out = f"\n     way out: {escape(finding.way_out)}" if not finding.passed and finding.way_out else ""
            console.print(f"{mark} {finding.name}: {escape(finding.detail)}{way_out}")
    console.print("note sandbox: this version runs tool code without one; it has the rights of your own user")
    return 0 if passed else 1


async def _python(settings: Settings) -> list[Finding]:
    supported = (3, 11) <= sys.version_info[:2] <= (3, 13)
    libraries = ", ".join(f"{name} {version(name)}" for name in ("ipykernel", "jupyter_client", "openai"))
    return [Finding("Python", supported, f"{platform.python_version()}, {libraries}", "use Python 3.11 to 3.13")]


async def _bash(settings: Settings) -> list[Finding]:
    path = shutil.which("bash")
    return [Finding("bash", path is not None, path or "not found", "install bash; the bash tool and checks need it")]


async def _kernel(settings: Settings) -> list[Finding]:
    """Start the tool kernel and let it say something."""
    with tempfile.TemporaryDirectory() as folder:
        kernel = ToolKernel(name=settings.kernel, directory=Path(folder), setup=SETUP_SOURCE)
        try:
            await kernel.start()
            replies = [item async for item in kernel.execute("1 + 1", 30) if isinstance(item, ExecuteReply)]
        except HarnessError as error:
            return [Finding("tool kernel", False, str(error), "install it, or name another one with --kernel")]
        finally:
            await kernel.aclose()
    works = replies[-1].status is Status.OK
    return [Finding("tool kernel", works, f"{settings.kernel} starts and runs a cell", replies[-1].detail)]


async def _model(settings: Settings) -> list[Finding]:
    """Resolve the model and let it answer in one word and with one call. The key itself is never shown."""
    try:
        spec = settings.model or default_model_spec(os.environ)
        model = resolve_model(spec, directory=settings.directory, base_url=settings.base_url, environment=os.environ)
    except HarnessError as error:
        return [Finding("model", False, "none to use", str(error))]
    try:
        answers = await asyncio.wait_for(_probe(model.stream), PROBE_TIMEOUT)
    except (HarnessError, TimeoutError) as error:
        detail = str(error) or f"no answer in {PROBE_TIMEOUT:g} s"
        return [Finding(f"model {model.name}", False, detail, "check the key, the base URL and the model's name")]
    finally:
        await model.aclose()
    usage = answers.usage
    price = "unknown" if usage is None or usage.cost_usd is None else f"${usage.cost_usd:.6f} for this probe"
    called = any(call.name == "report" and call.malformed is None for call in answers.tool_calls)
    return [
        Finding(f"model {model.name}", True, "answers"),
        Finding("tool calls", called, "works" if called else "the model did not call the tool it was asked to call",
                "use a model, or a server option, that supports tool calls"),
        Finding("price", True, price),
    ]  # fmt: skip


async def _probe(stream: Callable[..., Any]) -> Message:
    report = ToolSpec(
        name="report",
        description="Report a number.",
        parameters={"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]},
    )
    messages = [text_message("system", "You test a connection."), text_message("user", "Call report with number 7.")]
    reply = Message(role="assistant")
    async for item in stream(messages, [report], ModelSettings(max_output_tokens=500)):
        if isinstance(item, Message):
            reply = item
    return reply
