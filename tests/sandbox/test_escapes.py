"""The escape suite: what tool code must not be able to do, tried for real from inside the sandboxed kernel."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from attacked import Attacked
from attempts import ATTEMPTS, Attempt

from harness_nb.ports import ExecuteReply
from harness_nb.surroundings import read_instructions, read_skills
from harness_nb.types import Status

in_one_loop = pytest.mark.asyncio(loop_scope="module")

ESCAPED = "\nprint('ESC' + 'APED')"


def test_there_are_enough_attempts() -> None:
    assert len(ATTEMPTS) >= 40 and len({attempt.name for attempt in ATTEMPTS}) == len(ATTEMPTS)


@in_one_loop
@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda attempt: attempt.name.replace(" ", "-"))
async def test_nothing_gets_out(attacked: Attacked, attempt: Attempt) -> None:
    wanted = attempt.error if attacked.layer == "bubblewrap" else attempt.in_landlock
    assert wanted, "what is not promised is left out at the collection"
    printed, error = await attacked.run(attempt.source + ESCAPED)
    assert "ESCAPED" not in printed, f"{attempt.name}: it got out"
    assert re.search(wanted, error), f"{attempt.name}: the model is told {error!r}"


@in_one_loop
async def test_nothing_was_reached_or_changed(attacked: Attacked) -> None:
    """After all attempts: no socket was reached, the other kernel and program live, no file outside has changed."""
    machine = attacked.machine
    assert machine.reached == []
    assert attacked.victim.poll() is None
    replies = [item async for item in attacked.users_kernel.execute("assert 'owned' not in globals()")]
    assert isinstance(replies[-1], ExecuteReply) and replies[-1].status is Status.OK
    assert (machine.base / "other" / "secret.txt").read_text() == "secret"
    assert sorted(path.name for path in (machine.base / "other").iterdir()) == ["secret.txt"]
    assert (machine.home / ".bashrc").read_text() == "true"
    if attacked.layer == "bubblewrap":
        assert (machine.workspace / "tests" / "test_it.py").read_text() == "def test_it(): assert 1 == 1"
        assert [path.name for path in (machine.workspace / "tests").iterdir()] == ["test_it.py"]
        assert sorted(path.name for path in machine.home.iterdir()) == [".bashrc", ".local", ".netrc", ".ssh"]


PLANT = """
for name in ("sitecustomize.py", "usercustomize.py", "json.py", "click.py", "harness_nb.py", "evil.pth", "conftest.py"):
    Path(name).write_text("import os; open('OWNED', 'a').write(str(os.getppid()))")
Path("AGENTS.md").is_symlink() or os.symlink(f"{OTHER}/secret.txt", "AGENTS.md")
os.makedirs(".agents/skills/evil", exist_ok=True)
os.path.islink(".agents/skills/evil/SKILL.md") or os.symlink(f"{OTHER}/secret.txt", ".agents/skills/evil/SKILL.md")
"""


def planting(attacked: Attacked) -> str:
    """``PLANT`` for a kernel that may have been started afresh by now."""
    return f"from pathlib import Path; import os; OTHER = {str(attacked.machine.base / 'other')!r}{PLANT}"


def start_the_harness_in(folder: Path) -> None:
    subprocess.run(
        [Path(sys.executable).with_name("harness-nb"), "--help"], cwd=folder, check=True, capture_output=True
    )


@in_one_loop
async def test_what_is_planted_in_the_workspace_is_not_run_by_the_harness(attacked: Attacked) -> None:
    """Neither its next process, started there, nor the guardian and launcher of its next kernel import it."""
    workspace = attacked.machine.workspace
    assert (await attacked.run(planting(attacked)))[1] == ""
    start_the_harness_in(workspace)
    await attacked.kernel.restart()
    assert not (workspace / "OWNED").exists()


@in_one_loop
async def test_links_in_the_workspace_do_not_lead_the_harness_outside(attacked: Attacked) -> None:
    await attacked.run(planting(attacked))
    assert read_instructions(attacked.machine.workspace) == ""
    skills, warnings = read_skills(attacked.machine.workspace)
    assert not skills and "leads out of the workspace" in warnings[0]
