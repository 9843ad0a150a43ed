"""What is read from the workspace and the machine for the system prompt."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from harness_nb.settings import Settings
from harness_nb.surroundings import gather, machine_facts, read_skills


def skill(folder: Path, name: str, description: str) -> None:
    (folder / name).mkdir(parents=True)
    (folder / name / "SKILL.md").write_text(f"---\nname: {name}\ndescription: {description}\n---\nDo it well.\n")


def test_skills_are_found_in_their_folders_and_the_first_of_a_name_wins(tmp_path: Path) -> None:
    skill(tmp_path / ".agents/skills", "plots", "How we plot.")
    skill(tmp_path / ".agents/skills", "eda", "How we look at data.")
    skill(tmp_path / ".claude/skills", "plots", "Another way.")
    (tmp_path / ".agents/skills/broken").mkdir()
    (tmp_path / ".agents/skills/broken/SKILL.md").write_text("no front matter")
    skills, warnings = read_skills(tmp_path)
    assert [(each.name, each.description, each.location) for each in skills] == [
        ("eda", "How we look at data.", ".agents/skills/eda/SKILL.md"),
        ("plots", "How we plot.", ".agents/skills/plots/SKILL.md"),
    ]
    assert len(warnings) == 2
    assert read_skills(tmp_path / "nowhere") == ([], [])


async def test_the_facts_are_those_of_the_kernels_own_python() -> None:
    facts, warnings = await machine_facts(sys.executable, os.environ)
    assert warnings == []
    assert facts["Python"].startswith(f"{sys.version_info.major}.{sys.version_info.minor}.")
    assert "matplotlib" in facts["Installed packages"]
    assert int(facts["Processor cores"]) >= 1
    assert (await machine_facts(sys.executable, os.environ))[0] == facts


async def test_a_python_that_cannot_say_is_a_warning(tmp_path: Path) -> None:
    facts, warnings = await machine_facts(str(tmp_path / "nowhere"), os.environ)
    assert facts == {}
    assert "nowhere" in warnings[0]


async def test_gathered_values_reach_the_prompt(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Use tabs.\n")
    settings = Settings.load(tmp_path, {"check": ("true",), "max_turns": 7}, {})
    surroundings, warnings = await gather(settings, sys.executable, os.environ, ["tests/**"])
    assert warnings == []
    assert surroundings.instructions == "Use tabs.\n"
    assert (surroundings.checks, tuple(surroundings.read_only)) == (("true",), ("tests/**",))
    assert surroundings.environment["Workspace"] == str(tmp_path)
    assert surroundings.limits.max_turns == 7
