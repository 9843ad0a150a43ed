"""``--repair``: a missing definition from a later cell, the record, or well-known imports; the run that shows it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat
import pytest
from written_notebooks import code, notebook, printed, prose, read, value, write

from harness_nb import events as ev
from harness_nb.types import Status
from harness_nb.verify import standing_verdict
from harness_nb.verify.document import Document, parse_document
from harness_nb.verify.past import PastCell, past_cells
from harness_nb.verify.repair import apply_proposal, propose


def parse(*cells: dict[str, Any], **options: Any) -> Document:
    return parse_document(Path("n.ipynb"), json.dumps(notebook(*cells, **options)))


def past(source: str, status: Status = Status.OK, call_id: str = "c") -> PastCell:
    return PastCell(source, call_id, status, "the record of session s")


def write_journal(workspace: Path, session: str, *cells: tuple[str, Status]) -> None:
    folder = workspace / "harness_sessions" / session
    folder.mkdir(parents=True)
    events: list[Any] = []
    for number, (source, status) in enumerate(cells):
        events.append(ev.CellStarted(call_id=f"k{number}", name="python", source=source))
        events.append(ev.CellFinished(call_id=f"k{number}", name="python", status=status))
    lines = [json.dumps(event.model_dump(mode="json")) for event in events]
    (folder / "journal.jsonl").write_text("\n".join(lines) + "\n")


def test_the_definition_that_was_run_last_before_the_cell_is_proposed() -> None:
    document = parse(
        code("print(scale)", count=4),
        code("scale = 1", count=1),
        code("scale = 2\nprint('side effect')", count=3),
        code("scale = 3", count=9),
        number=False,
    )
    proposal = propose("scale", document.cells[0], document, [past("scale = 7")])
    assert proposal is not None
    assert (proposal.source, proposal.origin, proposal.number) == ("scale = 2", "copied from cell 3, below", 1)
    assert str(proposal) == "before cell 1, define `scale` (copied from cell 3, below): scale = 2"


def test_without_counts_the_nearest_below_is_proposed() -> None:
    document = parse(code("print(scale)", count=None), code("scale = 1", count=None), code("scale = 2", count=None))
    proposal = propose("scale", document.cells[0], document, [])
    assert proposal is not None
    assert proposal.source == "scale = 1"


def test_the_record_is_asked_next_and_what_ended_well_is_preferred() -> None:
    document = parse(code("print(scale)", harness_nb={"call_id": "now"}))
    record = [
        past("scale = 1"),
        past("scale = 2\nraise ValueError", Status.ERROR),
        past("print(scale)", call_id="now"),
        past("scale = 3"),
    ]
    proposal = propose("scale", document.cells[0], document, record)
    assert proposal is not None
    assert (proposal.source, proposal.origin) == ("scale = 1", "a cell that ended well, from the record of session s")
    failed = propose("scale", document.cells[0], document, record[1:3])
    assert failed is not None
    assert failed.origin == "a cell that ended as: error, from the record of session s"


def test_well_known_names_come_last_and_unknown_ones_not_at_all() -> None:
    document = parse(code("np.pi"))
    proposal = propose("np", document.cells[0], document, [])
    assert proposal is not None
    assert proposal.source == "import numpy as np"
    own = propose("np", document.cells[0], document, [past("import numpy.polynomial as np")])
    assert own is not None
    assert own.source == "import numpy.polynomial as np"
    assert propose("gloss", document.cells[0], document, []) is None


@pytest.mark.parametrize("minor", [4, 5])
def test_a_proposal_is_a_new_cell_and_changes_no_other(minor: int) -> None:
    document = parse(prose("x"), code("a = 1"), code("print(b)"), minor=minor)
    proposal = propose("b", document.cells[1], document, [past("b = 2")])
    assert proposal is not None
    repaired = apply_proposal(document, proposal)
    assert [cell.source.splitlines()[-1] for cell in repaired.cells] == ["a = 1", "b = 2", "print(b)"]
    assert repaired.cells[1].source.startswith("# added by harness-nb verify --repair: a cell that ended well")
    assert [cell for cell in repaired.data["cells"] if "repair" not in cell["metadata"].get("harness_nb", {})] == (
        document.data["cells"]
    )
    assert ("id" in repaired.data["cells"][2]) is (minor == 5)
    nbformat.validate(repaired.data)


def test_records_are_found_beside_the_notebook(tmp_path: Path) -> None:
    write_journal(tmp_path, "s1", ("a = 1", Status.OK), ("b = 2", Status.ERROR))
    document = parse_document(tmp_path / "n.ipynb", json.dumps(notebook(code("a"))))
    assert [(cell.source, cell.status) for cell in past_cells(document)] == [
        ("a = 1", Status.OK),
        ("b = 2", Status.ERROR),
    ]
    write_journal(tmp_path, "s2", ("a = 3", Status.OK))
    data = notebook(code("a"))
    data["metadata"]["harness_nb"] = {"session_id": "s2"}
    named = parse_document(tmp_path / "n.ipynb", json.dumps(data))
    assert [cell.source for cell in past_cells(named)] == ["a = 3"], "of the session that the file names"
    assert past_cells(parse(code("a"))) == []


async def test_order_dependence_is_caught_and_repaired(tmp_path: Path, check: Any) -> None:
    path = write(
        tmp_path / "n.ipynb",
        code("print(4 * scale)", printed("8\n"), count=2),
        code("scale = 2", count=1),
        number=False,
    )
    before = path.read_bytes()
    verdict = await check(path, repair=True)
    assert verdict.headline == "failed: cell 1 needs `scale`; it is defined only in cell 2, below"
    assert verdict.notes[0].startswith("recorded out of order: cell 2 was run as [1]")
    assert verdict.exit_code == 1
    assert path.read_bytes() == before, "the original is untouched"
    assert verdict.repaired is not None
    assert verdict.repaired.path == tmp_path / "n.repaired.ipynb"
    assert verdict.repaired.verdict.reproduced
    standing = standing_verdict(read(verdict.repaired.path))
    assert standing is not None
    assert standing.reproduced
    report = "\n".join(verdict.lines())
    assert "proposed: before cell 1, define `scale` (copied from cell 2, below): scale = 2" in report
    assert "✅ n.repaired.ipynb: reproduced" in report
    again = await check(path, repair=True)
    assert again.repaired.path == verdict.repaired.path, "an earlier repair is replaced"


async def test_a_deleted_cell_is_found_in_the_record_round_by_round(tmp_path: Path, check: Any) -> None:
    write_journal(
        tmp_path,
        "s1",
        ("base = 10", Status.OK),
        ("def scale(x):\n    return x * base", Status.OK),
        ("print(broken", Status.ERROR),
    )
    path = write(tmp_path / "n.ipynb", code("print(scale(2), np.pi > 3)", printed("20 True\n")))
    verdict = await check(path, repair=True)
    assert verdict.headline == "failed: cell 1 needs `scale`; no cell of this notebook defines it"
    assert verdict.repaired is not None
    assert {proposal.name for proposal in verdict.repaired.proposals} == {"scale", "base", "np"}
    assert verdict.repaired.verdict.reproduced
    nbformat.validate(nbformat.read(verdict.repaired.path, as_version=4))


async def test_a_repair_that_gives_other_results_is_not_called_reproduced(tmp_path: Path, check: Any) -> None:
    path = write(tmp_path / "n.ipynb", code("print(scale)", printed("5\n")), code("scale = 6"))
    verdict = await check(path, repair=True)
    assert verdict.repaired.verdict.headline == "differs: cell 2: 5 recorded, 6 now; a tolerance of 0.2 would pass"
    assert verdict.exit_code == 1


async def test_what_cannot_be_repaired_is_said_and_the_verdict_is_written(tmp_path: Path, check: Any) -> None:
    path = write(tmp_path / "n.ipynb", code("print(lost)", printed("5\n")))
    verdict = await check(path, repair=True)
    assert verdict.repaired is None
    assert "--repair has no proposal: no definition of `lost` was found" in verdict.notes
    assert standing_verdict(read(path)).state == "failed"  # type: ignore[union-attr]
    other = write(tmp_path / "o.ipynb", code("1 / 0", value("1")))
    notes = (await check(other, repair=True)).notes
    assert "--repair has no proposal: the failure is not a missing name" in notes


async def test_a_verdict_that_no_longer_holds_is_replaced_even_when_repairing(tmp_path: Path, check: Any) -> None:
    path = write(tmp_path / "n.ipynb", code("from part import scale\nprint(scale)", printed("3\n")))
    (tmp_path / "part.py").write_text("scale = 3\n")
    assert (await check(path)).reproduced
    (tmp_path / "part.py").write_text("scale = k\n")
    write_journal(tmp_path, "s1", ("k = 3", Status.OK))
    verdict = await check(path, repair=True)
    assert verdict.repaired is not None
    assert standing_verdict(read(path)).state == "failed"  # type: ignore[union-attr]


async def test_somebody_elses_file_is_not_overwritten(tmp_path: Path, check: Any) -> None:
    (tmp_path / "n.repaired.ipynb").write_text("mine")
    path = write(tmp_path / "n.ipynb", code("print(scale)", printed("5\n")), code("scale = 5"))
    verdict = await check(path, repair=True)
    assert verdict.repaired.path.name == "n.repaired-2.ipynb"
    assert (tmp_path / "n.repaired.ipynb").read_text() == "mine"
