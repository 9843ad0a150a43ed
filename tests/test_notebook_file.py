"""The file of the session notebook: whole at every moment, written at a pace, and shared with other programs."""

from __future__ import annotations

import asyncio
import errno
import itertools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from work_at_file import Work

from harness_nb import draft as draft_module
from harness_nb import events as ev
from harness_nb import notebook_file as notebook_file_module
from harness_nb.draft import Draft
from harness_nb.notebook_file import NotebookFile


def edit(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Somebody changes the file in place, as Jupyter's server does."""
    notebook = json.loads(path.read_bytes())
    change(notebook)
    path.write_text(json.dumps(notebook, indent=1))


def add_cell(name: str) -> Callable[[dict[str, Any]], object]:
    cell = {"cell_type": "markdown", "id": name, "metadata": {}, "source": name}
    return lambda notebook: notebook["cells"].append(cell)


def ids(path: Path) -> list[str]:
    notebook = json.loads(path.read_bytes())
    nbformat.validate(notebook)
    return [cell["id"] for cell in notebook["cells"]]


def others(path: Path) -> list[str]:
    return sorted(other.name for other in path.parent.iterdir() if other != path)


@pytest.fixture
def work(tmp_path: Path) -> Work:
    made = Work(tmp_path / "s1.ipynb")
    made.begin()
    made.step(1)
    return made


# ---- whole, and at a pace


def test_the_file_is_what_the_fold_says(work: Work) -> None:
    assert work.path.read_bytes() == work.pure()
    assert work.pure().decode() == json.dumps(work.fold.notebook(), indent=1, ensure_ascii=False) + "\n"
    work.step(2)
    assert work.path.read_bytes() == work.pure()
    assert others(work.path) == []
    assert work.file.warnings() == []


async def test_writing_takes_a_small_share_of_the_time_and_the_latest_state_comes(tmp_path: Path) -> None:
    now = [0.0]
    writes: list[float] = []

    def clock() -> float:
        return now[0]

    class Slow(NotebookFile):
        def _replace(self, *arguments: Any) -> None:
            writes.append(now[0])
            now[0] += 1.0  # a write takes a second
            super()._replace(*arguments)

    work = Work(tmp_path / "s1.ipynb")
    work.begin()
    work.file = Slow(work.path, clock=clock)
    for number in range(100):
        now[0] += 1.0
        work.step(number, final=False)
        await asyncio.to_thread(work.file._flight.result if work.file._flight else int)
    assert 3 <= len(writes) <= 6
    assert len(writes) <= 0.06 * now[0]
    assert all(later - earlier >= 19 for earlier, later in itertools.pairwise(writes))
    work.step(100)
    assert work.path.read_bytes() == work.pure()


async def test_what_came_too_soon_is_written_later_without_another_event(tmp_path: Path) -> None:
    work = Work(tmp_path / "s1.ipynb", share=0.2)
    work.begin()
    work.step(1, final=False)
    work.step(2, final=False)
    for _ in range(500):
        await asyncio.sleep(0.02)
        if work.path.exists() and work.path.read_bytes() == work.pure():
            break
    assert work.path.read_bytes() == work.pure()
    work.file.close()


async def test_the_event_loop_does_not_wait_for_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, begun = threading.Event(), threading.Event()
    sync = os.fsync

    def slow(descriptor: int) -> None:
        begun.set()
        assert gate.wait(30)
        sync(descriptor)

    monkeypatch.setattr(draft_module.os, "fsync", slow)
    work = Work(tmp_path / "s1.ipynb")
    work.begin()
    work.step(1, final=False)
    assert await asyncio.to_thread(begun.wait, 30)
    work.step(2, final=False)
    work.step(3, final=False)
    assert not work.path.exists()
    gate.set()
    work.step(4)
    assert work.path.read_bytes() == work.pure()


# ---- saves that fail


@pytest.mark.parametrize("failing", ["fsync", "replace", "open"])
def test_a_failing_save_leaves_the_old_file_is_told_once_and_made_good(
    work: Work, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    old = work.path.read_bytes()

    def full(*arguments: Any, **options: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as broken:
        if failing == "replace":
            broken.setattr(Path, "replace", full)
        else:
            broken.setattr(draft_module.os, failing, full)
        for number in (2, 3, 4):
            work.step(number)
            assert work.path.read_bytes() == old
    told = work.file.warnings()
    assert len(told) == 1
    assert "s1.ipynb" in told[0]
    assert "No space left on device" in told[0]
    assert others(work.path) == []
    work.step(5)
    assert work.path.read_bytes() == work.pure()
    assert work.file.warnings() == []


def test_a_disk_that_fills_up_in_the_middle_of_a_write_leaves_the_old_file(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = work.path.read_bytes()
    fdopen = os.fdopen

    def small(descriptor: int, mode: str) -> Any:
        file = fdopen(descriptor, mode)

        class Disk:
            def __enter__(self) -> Disk:
                return self

            def __exit__(self, *exception: object) -> None:
                file.close()

            def writelines(self, chunks: Any) -> None:
                file.write(b"".join(chunks)[:100])
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        return Disk()

    with monkeypatch.context() as broken:
        broken.setattr(draft_module.os, "fdopen", lambda d, m: small(d, m) if m == "wb" else fdopen(d, m))
        work.step(2)
    assert work.path.read_bytes() == old
    assert others(work.path) == []
    assert "No space left" in work.file.warnings()[0]


def test_a_folder_that_is_gone_is_told_and_the_work_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "there"
    folder.mkdir()
    work = Work(folder / "s1.ipynb")
    work.begin()
    folder.rmdir()
    work.step(1)
    work.step(2)
    assert len(work.file.warnings()) == 1
    folder.mkdir()
    work.step(3)
    assert work.path.read_bytes() == work.pure()


def test_a_crash_between_writing_and_renaming_leaves_the_old_file_and_no_litter(work: Work) -> None:
    old = work.path.read_bytes()
    code = (
        "import os, pathlib\nfrom harness_nb.draft import Draft\n"
        f"Draft(pathlib.Path({str(work.path)!r}), [b'new'])\nos._exit(9)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, timeout=60)
    assert done.returncode == 9
    assert work.path.read_bytes() == old
    assert len(others(work.path)) == 1
    bystander = work.path.with_name(".s2.ipynb.1-00.tmp")
    bystander.write_text("another session's")
    NotebookFile(work.path).close()
    assert others(work.path) == [bystander.name]


def test_the_rights_of_the_file_stay(work: Work) -> None:
    work.path.chmod(0o640)
    work.step(2)
    assert work.path.stat().st_mode & 0o777 == 0o640


# ---- somebody else's changes


def test_what_somebody_adds_stays_over_later_saves(work: Work) -> None:
    edit(work.path, add_cell("mine"))
    for number in (2, 3):
        work.step(number)
        assert ids(work.path)[3:] == ["mine", *[cell["id"] for cell in work.fold.notebook()["cells"][3:]]]
    edit(work.path, add_cell("more"))
    work.step(4)
    assert ids(work.path)[3] == "mine"
    assert ids(work.path)[-2] == "more"
    assert others(work.path) == []
    assert work.file.warnings() == []


def test_a_conflict_goes_to_a_sibling_that_is_named_once(work: Work) -> None:
    def write_title(notebook: dict[str, Any]) -> None:
        notebook["cells"][0]["source"] = "# My title"

    work.apply(ev.PlanUpdated(steps=({"step": "one", "status": "done"},)))
    work.step(2)
    edit(work.path, lambda notebook: notebook["cells"][3].update(source="my plan"))
    edit(work.path, write_title)
    work.step(3)
    assert work.file.warnings() == []
    work.apply(ev.PlanUpdated(steps=({"step": "two", "status": "done"},)))
    work.step(4)
    told = work.file.warnings()
    assert len(told) == 1
    assert "s1.conflict.ipynb" in told[0]
    assert "step-0003-plan" in told[0]
    cells = json.loads(work.path.read_bytes())["cells"]
    assert [cells[0]["source"], cells[3]["source"]] == ["# My title", "my plan"]
    work.step(5)
    assert work.file.warnings() == []
    assert work.path.with_name("s1.conflict.ipynb").read_bytes() == work.pure()
    assert others(work.path) == ["s1.conflict.ipynb"]


def test_a_sibling_that_somebody_uses_is_not_overwritten(work: Work) -> None:
    sibling = work.path.with_name("s1.conflict.ipynb")
    sibling.write_text("a person's")
    work.apply(ev.PlanUpdated(steps=({"step": "one"},)))
    work.step(2)
    edit(work.path, lambda notebook: notebook["cells"][3].update(source="my plan"))
    work.apply(ev.PlanUpdated(steps=({"step": "two"},)))
    work.step(3)
    assert "s1.conflict-2.ipynb" in work.file.warnings()[0]
    assert sibling.read_text() == "a person's"


@pytest.mark.parametrize("found", ["not json", '{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": []}'])
def test_a_file_that_is_not_ours_is_moved_aside(work: Work, monkeypatch: pytest.MonkeyPatch, found: str) -> None:
    monkeypatch.setattr(notebook_file_module, "_WAITS", (0.01,))
    work.path.write_text(found)
    work.step(2)
    assert work.path.read_bytes() == work.pure()
    assert work.path.with_name("s1.aside.ipynb").read_text() == found
    assert "s1.aside.ipynb" in work.file.warnings()[0]
    work.path.write_text(found)
    work.step(3)
    assert others(work.path) == ["s1.aside-2.ipynb", "s1.aside.ipynb"]


def test_a_link_in_place_of_the_file_is_moved_aside_and_not_followed(work: Work, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere.txt"
    target.write_text("precious")
    work.path.unlink()
    work.path.symlink_to(target)
    work.step(2)
    assert target.read_text() == "precious"
    assert not work.path.is_symlink()
    assert work.path.with_name("s1.aside.ipynb").is_symlink()


def test_a_copy_with_the_same_content_is_no_change_and_an_empty_or_missing_file_is_filled(work: Work) -> None:
    copy = work.path.with_name("copy")
    copy.write_bytes(work.path.read_bytes())
    copy.replace(work.path)
    work.step(2)
    work.path.write_bytes(b"")
    work.step(3)
    assert work.path.read_bytes() == work.pure()
    work.path.unlink()
    work.step(4)
    assert work.path.read_bytes() == work.pure()
    assert others(work.path) == []
    assert work.file.warnings() == []


def test_a_file_that_is_being_written_is_waited_for(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = json.loads(work.path.read_bytes())
    add_cell("mine")(notebook)
    whole = json.dumps(notebook)
    work.path.write_text(whole[:200])
    monkeypatch.setattr(notebook_file_module.time, "sleep", lambda seconds: work.path.write_text(whole))
    work.step(2)
    assert "mine" in ids(work.path)
    assert others(work.path) == []


def between(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], object], *, after: bool) -> None:
    """Something happens once, when the new file is on disk and before, or after, it takes the place of the old."""
    put, done = Draft.put_in_place, [False]

    def around(draft: Draft) -> Any:
        if not done[0]:
            done[0] = True
            if not after:
                happens()
            stamp = put(draft)
            if after:
                happens()
            return stamp
        return put(draft)

    monkeypatch.setattr(Draft, "put_in_place", around)


def test_a_save_between_our_look_and_our_replacement_is_merged(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    make, done = Draft.__init__, [False]

    def around(draft: Draft, *arguments: Any) -> None:
        make(draft, *arguments)
        if not done[0]:
            done[0] = True
            edit(work.path, add_cell("mine"))

    monkeypatch.setattr(Draft, "__init__", around)
    work.step(2)
    assert "mine" in ids(work.path)
    assert others(work.path) == []


def test_a_save_into_the_file_right_before_it_is_replaced_is_merged(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    between(monkeypatch, lambda: edit(work.path, add_cell("mine")), after=False)
    work.step(2)
    assert "mine" in ids(work.path)


@pytest.mark.parametrize("closed", [False, True])
def test_a_save_into_the_file_that_was_replaced_is_merged(
    work: Work, monkeypatch: pytest.MonkeyPatch, closed: bool
) -> None:
    """A program opened the file for writing before it was replaced, and writes afterwards."""
    opened = work.path.open("r+")
    work.step(2)
    notebook = json.loads(opened.read())
    add_cell("mine")(notebook)
    opened.seek(0)
    opened.write(json.dumps(notebook))
    opened.truncate()
    opened.close()
    if closed:
        work.file.close()
    else:
        work.step(3)
    assert "mine" in ids(work.path)
    assert {cell["id"] for cell in work.fold.notebook()["cells"]} < set(ids(work.path))


def test_a_program_that_never_stops_changing_the_file_is_not_overwritten(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, count = Draft.__init__, [0]

    def around(draft: Draft, *arguments: Any) -> None:
        make(draft, *arguments)
        count[0] += 1
        edit(work.path, add_cell(f"mine-{count[0]}"))

    with monkeypatch.context() as busy:
        busy.setattr(Draft, "__init__", around)
        work.step(2)
    assert "keeps changing" in work.file.warnings()[0]
    work.step(3)
    assert {f"mine-{number}" for number in range(1, count[0] + 1)} <= set(ids(work.path))


def test_a_new_process_keeps_what_somebody_added_and_knows_its_own_old_states(work: Work) -> None:
    """The file is one step behind the journal, as a crash leaves it, and somebody has worked on it since."""
    edit(work.path, add_cell("mine"))
    edit(work.path, lambda notebook: notebook["cells"][1].update(source="my task"))
    work.file.save = lambda *arguments, **options: None  # type: ignore[method-assign]
    work.step(2)
    again = Work(work.path, past=work.events)
    again.step(3)
    cells = json.loads(work.path.read_bytes())["cells"]
    assert ids(work.path)[3] == "mine"
    assert cells[1]["source"] == "my task"
    own = [cell for cell in cells if cell["id"] not in ("mine", cells[1]["id"])]
    assert own == [cell for at, cell in enumerate(json.loads(again.pure())["cells"]) if at != 1]
    assert again.file.warnings() == []


def test_a_notebook_that_an_old_tool_saved_gets_its_ids_back(work: Work) -> None:
    def downgrade(notebook: dict[str, Any]) -> None:
        for cell in notebook["cells"]:
            del cell["id"]
        notebook["nbformat_minor"] = 4
        notebook["cells"].append({"cell_type": "markdown", "metadata": {}, "source": "mine"})

    edit(work.path, downgrade)
    work.step(2)
    cells = json.loads(work.path.read_bytes())["cells"]
    added = [cell for cell in cells if cell["source"] == "mine"]
    assert len(added) == 1
    assert [cell for cell in cells if cell not in added] == json.loads(work.pure())["cells"]
    assert ids(work.path)[3] == added[0]["id"]
