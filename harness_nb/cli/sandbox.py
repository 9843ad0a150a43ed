"""What ``harness-nb doctor`` says of the sandbox: what it holds on this machine, one line for each thing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from harness_nb.cli.findings import Finding
from harness_nb.errors import HarnessError
from harness_nb.kernel.confining import confinement_for
from harness_nb.kernel.enforced import Enforced, enforced
from harness_nb.kernel.sandbox import layer_here, why_none
from harness_nb.kernel.spec import SANDBOX_NAME, name_here
from harness_nb.settings import Settings

WAY_OUT = "install bubblewrap (Linux) and allow user namespaces; without a sandbox tool code has your own user's rights"


async def probe_sandbox(settings: Settings) -> AsyncGenerator[Finding]:
    """Whether tool code runs in a sandbox, and what it holds. What is open by choice is told and is no failure."""
    name = await asyncio.to_thread(name_here, settings.kernel)
    if name != SANDBOX_NAME:
        there = await asyncio.to_thread(layer_here)
        detail = f"the kernel {name} has none" + ("" if there else f"; none works here: {why_none()}")
        way_out = f"leave --kernel out, or name {SANDBOX_NAME}" if there else WAY_OUT
        yield Finding("sandbox", False, detail, way_out, needed=False)
        return
    try:
        found: Enforced = await asyncio.to_thread(lambda: enforced(confinement_for(settings), name))
    except HarnessError as error:
        yield Finding("sandbox", False, str(error), WAY_OUT)
        return
    if not found.by:
        yield Finding("sandbox", False, found.why, WAY_OUT)
        return
    yield Finding("sandbox", True, f"tool code runs in one ({found.by})")
    for rule in found.rules:
        chosen = rule.name == "network" and settings.network == "on"
        yield Finding(f"sandbox, {rule.name}", rule.held or chosen, rule.sentence, needed=False)
