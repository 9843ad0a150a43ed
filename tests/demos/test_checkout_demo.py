"""The demo checkout, played through real sessions: refusals, the repair, the turn limit, and the notebook run again."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from nbformat import NotebookNode

from harness_nb import events as ev
from harness_nb.demos import DEMOS
from harness_nb.demos.checkout_demo import PROJECT, SECRETS
from harness_nb.types import Status

CHECKOUT = DEMOS["checkout"]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    folder.mkdir()
    CHECKOUT.prepare(folder, {})
    return folder


def run_tests(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-B", "-m", "unittest", "-q"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_three_tests_fail_because_of_one_bug(workspace: Path) -> None:
    done = run_tests(workspace)
    assert done.returncode == 1
    assert "Ran 11 tests" in done.stderr and "failures=3" in done.stderr
    pricing = workspace / "checkout" / "pricing.py"
    pricing.write_text(pricing.read_text().replace("    price -= discount.off(price)\n", ""))
    assert run_tests(workspace).returncode == 0


def test_a_secret_of_the_user_is_not_written_over(tmp_path: Path) -> None:
    folder = tmp_path / "checkout"
    folder.mkdir()
    (tmp_path / "secrets.txt").write_text("mine")
    notes = CHECKOUT.prepare(folder, {})
    assert (tmp_path / "secrets.txt").read_text() == "mine"
    assert any("left alone" in note for note in notes)


async def test_the_repair(workspace: Path, play, run_again: Callable[[Path], NotebookNode]) -> None:
    act = CHECKOUT.acts(workspace)[0]
    played = await play(act, workspace)

    assert played.events[-1].reason == act.expected == "finished"
    (rejected,) = played.of(ev.FinishRejected)
    assert "test_a_code_is_taken_off_once" in rejected.reason and "5350 != 5400" in rejected.reason
    assert [event.passed for event in played.of(ev.CheckFinished)] == [True, False, True, True]

    denied = played.results(Status.DENIED)
    assert [name for name, _ in denied] == ["write_file", "read_file"]
    assert "tests/test_pricing.py is read-only" in denied[0][1]
    assert "../secrets.txt is outside the workspace" in denied[1][1]
    errors = [text for name, text in played.results(Status.ERROR) if name == "search_replace"]
    assert len(errors) == 1 and "Lines 47 to 49 differ only in indentation" in errors[0]

    assert run_tests(workspace).returncode == 0
    for path in (PROJECT / "tests").glob("*.py"):
        assert (workspace / "tests" / path.name).read_bytes() == path.read_bytes()
    record = played.path.read_text() + (played.path.with_suffix("") / "journal.jsonl").read_text()
    assert SECRETS.split("=")[1].strip() not in record

    raw = played.cells("raw", "")
    assert ["tests/test_pricing.py" in raw[0].source, "secrets.txt" in raw[1].source] == [True, True]
    assert played.cells("markdown", "5350 != 5400")
    tables = [cell for cell in played.notebook.cells if "text/markdown" in str(cell.get("outputs"))]
    assert ["53.50" in str(tables[0].outputs), "54.00" in str(tables[1].outputs)] == [True, True]

    CHECKOUT.prepare(workspace, {})
    again = run_again(played.path)
    assert run_tests(workspace).returncode == 0
    assert "**54.00**" in str(again.cells)


async def test_the_same_action_for_ever(workspace: Path, play, run_again: Callable[[Path], NotebookNode]) -> None:
    pricing = workspace / "checkout" / "pricing.py"  # act 1 has repaired it
    pricing.write_text(pricing.read_text().replace("    price -= discount.off(price)\n", ""))
    act = CHECKOUT.acts(workspace)[1]
    played = await play(act, workspace)

    assert played.events[-1].reason == act.expected == "limit"
    assert len(played.of(ev.ModelReplied)) == act.max_turns == 6
    assert played.of(ev.LimitReached)[0].limit == "turns"
    assert len(played.of(ev.CellFinished)) == 6 + 1  # and the setup cell
    assert played.of(ev.FinishAccepted) == []
    again = run_again(played.path)
    assert [cell.source for cell in again.cells if "unittest" in cell.source] == ["%%bash\npython3 -m unittest -q"] * 6
