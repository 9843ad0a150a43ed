"""A session notebook that somebody else changed: what is theirs stays, what is ours comes in, nothing is lost."""

from __future__ import annotations

import json
import random
from typing import Any

import nbformat
import pytest
from edited import Notebook, cell_of, folded, ids, markdown, notebook_of, saved_by_lab, without_ids
from story import tell

from harness_nb import events as ev
from harness_nb.notebook import events_of
from harness_nb.notebook.merge import Overlay, Versions, arranged, foreign, overlay_of, parse
from harness_nb.notebook.parts import digests_of, parts_of
from harness_nb.notebook.serial import Snapshot

STORY = tell()
EARLY, LATE = 17, len(STORY)
RUNNING = next(event.seq for event in STORY if event.type == "cell_output")


class Desk:
    """The session at work on its file, as ``NotebookFile`` does it, with somebody else at the same file."""

    def __init__(self) -> None:
        self.versions = Versions()
        self.overlay: Overlay | None = None
        self.ours: Snapshot = folded(()).snapshot()
        self.conflicts: tuple[str, ...] = ()

    def work(self, until: int) -> Notebook:
        """Up to the event ``until``; the file."""
        self.ours = folded(STORY[:until]).snapshot()
        self.versions.record(self.ours)
        return self.write()

    def save(self, theirs: Notebook) -> Notebook:
        """Somebody has saved ``theirs``; what the file is after the next save of ours."""
        parsed = parse(json.dumps(theirs).encode())
        assert parsed is not None
        assert foreign(parsed, self.ours) == ""
        self.overlay = overlay_of(parsed, self.ours, self.versions)
        return self.write()

    def write(self) -> Notebook:
        merged, self.conflicts = arranged(self.ours, self.overlay, self.versions)
        notebook = notebook_of(merged)
        nbformat.validate(notebook)
        assert len(set(ids(notebook))) == len(notebook["cells"])
        return notebook


@pytest.mark.parametrize("until", [EARLY, RUNNING, LATE])
def test_merely_saving_is_no_edit(until: int) -> None:
    desk = Desk()
    theirs = saved_by_lab(desk.work(until))
    assert desk.save(theirs) == notebook_of(desk.ours)
    assert desk.overlay is None


def test_the_state_of_the_program_is_kept_and_is_no_edit_of_cells() -> None:
    desk = Desk()
    theirs = saved_by_lab(desk.work(EARLY))
    theirs["metadata"]["language_info"] = {"name": "python", "version": "3.12.1"}
    theirs["metadata"]["widgets"] = {"application/vnd.jupyter.widget-state+json": {"state": {}}}
    theirs["metadata"]["harness_nb"]["format_version"] = 99
    for cell in theirs["cells"]:
        cell["metadata"]["execution"] = {"iopub.status.busy": "2026-11-30T10:00:00Z"}
    desk.save(theirs)
    after = desk.work(LATE)
    assert after["metadata"]["language_info"]["version"] == "3.12.1"
    assert "widgets" in after["metadata"]
    assert after["metadata"]["harness_nb"] == desk.ours.around["metadata"]["harness_nb"]
    assert after["cells"] == notebook_of(desk.ours)["cells"]


def test_an_added_cell_stays_behind_its_neighbour_over_later_saves() -> None:
    desk = Desk()
    theirs = desk.work(EARLY)
    theirs["cells"].insert(3, markdown("between"))
    theirs["cells"].append(markdown("last"))
    theirs["cells"].insert(0, markdown("first"))
    seen = [*ids(theirs)]
    for until in (EARLY, EARLY + 5, RUNNING + 10, LATE):
        after = ids(desk.save(theirs) if until == EARLY else desk.work(until))
        assert after[: len(seen)] == seen
    assert [name for name in after if name not in ("first", "between", "last")] == ids(notebook_of(desk.ours))


def test_edits_of_our_cells_stay_over_later_saves() -> None:
    desk = Desk()
    theirs = desk.work(40)
    cell_of(theirs, "-bash")["outputs"] = []
    cell_of(theirs, "-bash")["execution_count"] = None
    edited = cell_of(theirs, "-python")
    edited["source"] = ["import pandas as pd\n", "# mine"]
    edited["outputs"] = [{"output_type": "stream", "name": "stdout", "text": ["re-run\n"]}]
    edited["metadata"]["tags"] = ["keep"]
    cell_of(theirs, "-task")["source"] += "\n\nA remark."
    for after in (desk.save(saved_by_lab(theirs)), desk.work(50), desk.work(LATE)):
        assert cell_of(after, "-bash")["outputs"] == []
        assert cell_of(after, "-python")["source"] == "import pandas as pd\n# mine"
        assert cell_of(after, "-python")["outputs"][0]["text"] == "re-run\n"
        assert cell_of(after, "-python")["metadata"]["tags"] == ["keep"]
        assert cell_of(after, "-task")["source"].endswith("A remark.")
    assert desk.conflicts == ()
    assert [event.seq for event in events_of(after) if event.seq] == [
        event.seq for event in STORY if event.type != "cell_output"
    ]


def test_an_edit_that_is_taken_back_is_gone() -> None:
    desk = Desk()
    original = desk.work(EARLY)
    theirs = desk.work(EARLY)
    cell_of(theirs, "-task")["source"] = "mine"
    assert cell_of(desk.save(theirs), "-task")["source"] == "mine"
    desk.work(LATE)
    assert cell_of(desk.save(original), "-task")["source"] == cell_of(original, "-task")["source"]
    assert desk.overlay is None


def test_an_old_copy_gets_what_is_new_and_loses_nothing_of_theirs() -> None:
    """They opened the file while a cell ran, edit, and overwrite the file when the session is far ahead."""
    desk = Desk()
    theirs = desk.work(RUNNING - 1)
    cell_of(theirs, "-text")["source"] = "mine"
    desk.work(LATE)
    after = desk.save(saved_by_lab(theirs))
    pure = notebook_of(desk.ours)
    assert cell_of(after, "-text")["source"] == "mine"
    assert ids(after) == ids(pure)
    changed = [cell["id"] for cell, own in zip(after["cells"], pure["cells"], strict=True) if cell != own]
    assert changed == [cell_of(pure, "-text")["id"]]
    theirs["cells"].append(markdown("second-save"))
    after = desk.save(saved_by_lab(theirs))
    assert cell_of(after, "-text")["source"] == "mine"
    assert len(after["cells"]) == len(pure["cells"]) + 1


def test_the_same_part_changed_on_both_sides_is_a_conflict_and_theirs_stays() -> None:
    desk = Desk()
    theirs = desk.work(RUNNING)
    running = cell_of(theirs, "-bash")
    running["outputs"][0]["text"] = "theirs\n"
    running["source"] += "\n# mine"
    desk.work(RUNNING)
    assert cell_of(desk.save(theirs), "-bash")["outputs"][0]["text"] == "theirs\n"
    assert desk.conflicts == ()
    after = desk.work(LATE)
    assert cell_of(after, "-bash")["outputs"][0]["text"] == "theirs\n"
    assert desk.conflicts == (running["id"],)


def test_an_edit_of_the_source_of_a_running_cell_is_no_conflict() -> None:
    desk = Desk()
    theirs = desk.work(RUNNING - 1)
    cell_of(theirs, "-bash")["source"] += "\n# mine"
    desk.work(RUNNING)
    desk.save(theirs)
    after = desk.work(LATE)
    assert cell_of(after, "-bash")["source"].endswith("# mine")
    assert cell_of(after, "-bash")["outputs"] == cell_of(notebook_of(desk.ours), "-bash")["outputs"]
    assert desk.conflicts == ()


def test_a_deleted_cell_stays_deleted_unless_the_session_goes_on_in_it() -> None:
    desk = Desk()
    theirs = desk.work(RUNNING)
    gone, running = cell_of(theirs, "-text")["id"], cell_of(theirs, "-bash")["id"]
    theirs["cells"] = [cell for cell in theirs["cells"] if cell["id"] not in (gone, running)]
    after = desk.save(theirs)
    assert gone not in ids(after)
    assert running not in ids(after)
    after = desk.work(LATE)
    assert gone not in ids(after)
    assert running in ids(after)
    assert ids(after) == [name for name in ids(notebook_of(desk.ours)) if name != gone]


def test_their_order_stays() -> None:
    desk = Desk()
    theirs = desk.work(LATE - 10)
    theirs["cells"].insert(0, theirs["cells"].pop(5))
    desk.save(theirs)
    after = ids(desk.work(LATE))
    assert after[: len(theirs["cells"])] == ids(theirs)
    assert sorted(after) == sorted(ids(notebook_of(desk.ours)))


def test_their_cell_with_an_id_that_we_use_later_is_renamed() -> None:
    later = ids(notebook_of(folded(STORY).snapshot()))
    desk = Desk()
    theirs = desk.work(EARLY)
    wanted = later[len(theirs["cells"]) + 1]
    theirs["cells"].append(markdown(wanted, "pasted from elsewhere"))
    desk.save(theirs)
    after = desk.work(LATE)
    assert set(later) < set(ids(after))
    assert [cell["source"] for cell in after["cells"]].count("pasted from elsewhere") == 1
    assert desk.save(after) == after


def test_a_cell_made_markdown_stays_markdown() -> None:
    desk = Desk()
    theirs = desk.work(40)
    cell = cell_of(theirs, "-bash")
    cell["cell_type"] = "markdown"
    del cell["outputs"], cell["execution_count"]
    desk.save(theirs)
    after = cell_of(desk.work(LATE), "-bash")
    assert after["cell_type"] == "markdown"
    assert "outputs" not in after


def test_a_notebook_without_ids_gets_ours_back() -> None:
    desk = Desk()
    theirs = desk.work(LATE)
    theirs["cells"].insert(4, markdown("x", "mine"))
    cell_of(theirs, "-task")["source"] = "edited"
    after = desk.save(without_ids(theirs))
    added = [cell for cell in after["cells"] if cell["source"] == "mine"]
    assert len(added) == 1
    assert [cell["id"] for cell in after["cells"] if cell not in added] == ids(notebook_of(desk.ours))
    assert cell_of(after, "-task")["source"] == "edited"
    assert desk.save(without_ids(theirs)) == after


def test_an_old_state_after_a_crash_is_not_taken_for_somebody_elses() -> None:
    """A new process knows what the file was from the events before; ``last_seq`` tells which of them."""
    for until in range(4, LATE, 3):
        file = notebook_of(folded(STORY[:until]).snapshot())
        ours = folded(STORY).snapshot()
        versions = Versions(STORY)
        versions.record(ours)
        assert overlay_of(file, ours, versions) is None
        cell_of(file, "-task")["source"] = "mine"
        overlay = overlay_of(file, ours, versions)
        assert overlay is not None
        assert [name.split("-")[-1] for name in overlay.edits] == ["task"]


def test_an_old_state_of_an_earlier_format_is_not_taken_for_somebody_elses() -> None:
    for until in range(4, LATE, 3):
        file = notebook_of(folded(STORY[:until]).snapshot())
        del file["metadata"]["harness_nb"]["last_seq"]
        versions = Versions(STORY)
        assert overlay_of(file, folded(STORY).snapshot(), versions) is None


def test_without_past_what_equals_ours_is_ours_and_the_rest_theirs() -> None:
    file = notebook_of(folded(STORY).snapshot())
    cell_of(file, "-bash")["source"] = "mine"
    overlay = overlay_of(file, folded(STORY).snapshot(), Versions())
    assert overlay is not None
    assert list(overlay.edits) == [cell_of(file, "-bash")["id"]]
    merged, conflicts = arranged(folded(STORY).snapshot(), overlay, Versions())
    assert cell_of(notebook_of(merged), "-bash")["source"] == "mine"
    assert conflicts == ()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"\xff",
        b'{"nbformat": 3, "worksheets": []}',
        b'{"nbformat": 4, "metadata": {}, "cells": [1]}',
        b'{"nbformat": 4, "metadata": {}, "cells": [{"cell_type": "raw", "metadata": {}, "source": 1}]}',
        b"[" * 100_000,
    ],
)
def test_what_is_no_notebook_is_said_to_be_none(data: bytes) -> None:
    assert parse(data) is None


def test_other_notebooks_are_foreign() -> None:
    ours = folded(STORY).snapshot()
    assert "'other'" in foreign(notebook_of(folded(STORY, "other").snapshot()), ours)
    plain: dict[str, Any] = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [markdown("a")]}
    assert foreign(plain, ours)
    stripped = notebook_of(ours)
    stripped["metadata"] = {}
    assert foreign(stripped, ours) == ""


@pytest.mark.parametrize("seed", range(30))
def test_random_edits_of_random_old_copies(seed: int) -> None:
    """Whatever somebody does to any state of the file at any time: all of it is in the file, and all of the session."""
    rng = random.Random(seed)
    desk = Desk()
    until = rng.randrange(5, 20)
    copy_of_theirs = desk.work(until)
    added: dict[str, str] = {}
    sources: dict[str, str] = {}
    deleted: set[str] = set()
    for step in range(12):
        for _ in range(rng.randrange(3)):
            edit(rng, copy_of_theirs, f"add-{step}-{_}", added, sources, deleted)
        after = desk.save(saved_by_lab(copy_of_theirs) if rng.random() < 0.5 else copy_of_theirs)
        until = min(LATE, until + rng.randrange(8))
        after = desk.work(until)
        if rng.random() < 0.4:
            copy_of_theirs = desk.work(until)
            deleted &= set(ids(notebook_of(desk.ours))) - set(ids(copy_of_theirs))
        check_all_is_there(after, desk, added, sources, deleted)


def edit(
    rng: random.Random, theirs: Notebook, name: str, added: dict[str, str], sources: dict[str, str], deleted: set[str]
) -> None:
    place = rng.randrange(len(theirs["cells"]))
    kind = rng.choice(["add", "source", "delete", "move"])
    cell = theirs["cells"][place]
    if kind == "add":
        theirs["cells"].insert(place, markdown(name, name))
        added[name] = name
    elif kind == "source":
        cell["source"] = f"# {name}"
        (added if cell["id"] in added else sources)[cell["id"]] = cell["source"]
    elif kind == "delete" and len(theirs["cells"]) > 3:
        del theirs["cells"][place]
        if added.pop(cell["id"], None) is None:
            deleted.add(cell["id"])
            sources.pop(cell["id"], None)
    else:
        theirs["cells"].insert(rng.randrange(len(theirs["cells"])), theirs["cells"].pop(place))


def check_all_is_there(
    after: Notebook, desk: Desk, added: dict[str, str], sources: dict[str, str], deleted: set[str]
) -> None:
    found = {cell["id"]: cell for cell in after["cells"]}
    own = {cell["id"]: cell for cell in notebook_of(desk.ours)["cells"]}
    assert set(own) - deleted <= set(found)
    assert set(found) - set(own) == set(added)
    assert {name: "".join(found[name]["source"]) for name in added} == added
    for name, cell in own.items():
        if name in found:
            mine, theirs = (digests_of(parts_of(each)) for each in (cell, found[name]))
            if name in sources:
                assert found[name]["source"] == sources[name]
                del mine["source"], theirs["source"]
            assert mine == theirs
            assert found[name]["metadata"]["harness_nb"] == cell["metadata"]["harness_nb"] if cell["metadata"] else True
    assert isinstance(events_of(after)[0], ev.EventBase)
