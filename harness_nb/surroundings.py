"""Gathers what the system prompt says of a workspace: the machine, AGENTS.md, the skills. Disk and process I/O is here.

The session calls ``gather`` once, when it starts.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from harness_nb.context import Skill, Surroundings, parse_skill
from harness_nb.settings import Settings
from harness_nb.types import JsonObject

FACTS = Path(__file__).parent / "tools" / "facts.py"
FACTS_TIMEOUT = 30.0
SKILL_FOLDERS = (".agents/skills", ".harness-nb/skills", ".claude/skills")


async def gather(
    settings: Settings,
    python: str,
    environment: Mapping[str, str],
    read_only: Sequence[str],
    wrap: Callable[[Sequence[str]], list[str]] = list,
) -> tuple[Surroundings, list[str]]:
    """What the prompt says, and warnings for the person.

    ``python`` is the tool kernel's interpreter, run in ``environment`` (the scrubbed one) and confined by ``wrap``;
    ``read_only`` are patterns.
    """
    facts, warnings = await machine_facts(python, environment, wrap)
    skills, more = read_skills(settings.directory)
    repository = "yes" if (settings.directory / ".git").exists() else "no"
    facts = {"Workspace": str(settings.directory), "Git repository": repository, **facts, "Interpreter": python}
    surroundings = Surroundings(
        environment=facts,
        instructions=read_instructions(settings.directory),
        skills=skills,
        read_only=read_only,
        checks=settings.check,
        limits=settings.limits,
    )
    return surroundings, warnings + more


async def machine_facts(
    python: str, environment: Mapping[str, str], wrap: Callable[[Sequence[str]], list[str]] = list
) -> tuple[JsonObject, list[str]]:
    """The facts as the tool kernel's own Python sees them; none, and a warning, where it cannot say."""
    try:
        process = await asyncio.create_subprocess_exec(
            *wrap([python, str(FACTS)]),
            env=dict(environment),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        output = (await asyncio.wait_for(process.communicate(), FACTS_TIMEOUT))[0]
        return json.loads(output), []
    except (OSError, ValueError, TimeoutError) as error:
        return {}, [f"The kernel's Python ({python}) could not say what is installed: {error}"]


def read_instructions(workspace: Path) -> str:
    """AGENTS.md of the workspace; empty where there is none, or it is a link to a file outside."""
    path = workspace / "AGENTS.md"
    return path.read_text("utf-8", errors="replace") if path.is_file() and _is_inside(path, workspace) else ""


def _is_inside(path: Path, workspace: Path) -> bool:
    """Whether a file is in the workspace with its links followed: tool code may have put a link there."""
    return path.resolve().is_relative_to(workspace.resolve())


def read_skills(workspace: Path) -> tuple[list[Skill], list[str]]:
    """The skills of the workspace, by name; the first folder that has a name wins."""
    skills: dict[str, Skill] = {}
    warnings = []
    for folder in SKILL_FOLDERS:
        for path in sorted((workspace / folder).glob("*/SKILL.md")):
            location = path.relative_to(workspace).as_posix()
            if not _is_inside(path, workspace):
                warnings.append(f"{location}: leads out of the workspace by a link; it is left out")
                continue
            skill, warning = parse_skill(path.read_text("utf-8", errors="replace"), path.parent.name, location)
            if warning:
                warnings.append(warning)
            if skill is not None and skill.name in skills:
                warnings.append(f"{location}: a skill named {skill.name!r} is there already; this one is left out")
            elif skill is not None:
                skills[skill.name] = skill
    return [skills[name] for name in sorted(skills)], warnings
