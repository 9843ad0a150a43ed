"""Forks where something is in the way: full disks, links, pipes, odd names, damaged stores, edits of a person."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path
from typing import Any

import pytest
from test_session import DONE, call, opened, script, send

from harness_nb import events as ev
from harness_nb.errors import StoreError, UsageError
from harness_nb.files import FileStore, plan_restore, restore
from harness_nb.files.blobs import Blobs
from harness_nb.forking import ForkPlan, carry_out, plan_fork
from harness_nb.record import latest_session, read_record
from harness_nb.store import SessionStore, session_ids


async def recorded(workspace: Path, *commands: str) -> str:
    """A finished session with one step a command."""
    steps = [call("bash", command=command) for command in commands]
    async with opened(workspace, model=script(workspace, *steps, DONE)) as session:
        await send(session, "work")
    return session.id


def tree(folder: Path) -> dict[str, bytes]:
    """The files of a workspace and what is in them, without the sessions."""
    files = (path for path in folder.rglob("*") if path.is_file() and "harness_sessions" not in path.parts)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_names_that_would_move_the_cursor_are_quoted(tmp_path: Path) -> None:
    (tmp_path / "a\nb\x1b[31m").write_text("x")
    changes = [ev.FileChange(path=name, before=None, after="0" * 64) for name in ("a\nb\x1b[31m", "lone\ud800")]
    plan = plan_restore(
        [ev.CallDecided.model_construct(), ev.FilesChanged(call_id="c", name="bash", changes=tuple(changes))],
        0,
        FileStore(tmp_path / "s", tmp_path),
    )
    assert r"Deleted, for they were not there then: 'a\nb\x1b[31m'." in plan.describe()
    assert r"Left as they are, for no file can have their names: 'lone\ud800'." in plan.describe()
    done = restore(plan, FileStore(tmp_path / "s", tmp_path))
    assert not list(tmp_path.glob("a*")) and "\x1b" not in done.describe()


async def test_what_a_person_made_of_a_file_is_kept_and_the_place_is_named(tmp_path: Path) -> None:
    session_id = await recorded(tmp_path, "echo one > a; echo two > b", "echo three > a")
    (tmp_path / "a").write_text("my precious words")
    (tmp_path / "b").write_text("more of them")
    _, restored = carry_out(plan_fork(tmp_path, session_id, 0))
    assert not (tmp_path / "a").exists() and not (tmp_path / "b").exists()
    assert {path: place.read_text() for path, place in restored.kept} == {"a": "my precious words", "b": "more of them"}
    for path, place in restored.kept:
        assert f"What somebody else had made of {path} is kept as {place}." in restored.describe()


def test_a_damaged_content_does_not_stand_for_one_that_is_about_to_go(tmp_path: Path) -> None:
    """A power cut leaves blobs of the right size and full of zeros; the person's file must not be lost to one."""
    store = FileStore(tmp_path / "s", tmp_path)
    (tmp_path / "a").write_text("precious")
    digest = store.keep("a")
    place = store.blobs.path(digest)
    assert place is not None
    place.write_bytes(b"\0" * 8)
    earlier = Blobs(tmp_path / "t", 10**6)
    earlier.earlier = store.blobs.folder
    assert store.keep("a") == digest and store.blob(digest) == b"precious"
    place.write_bytes(b"\0" * 8)
    assert earlier.put(digest, b"precious", always=True) and earlier.read(digest) == b"precious"


async def test_a_session_whose_store_is_gone_says_which_files_stay(tmp_path: Path) -> None:
    session_id = await recorded(tmp_path, "echo one > a", "echo two > a")
    files = tmp_path / "harness_sessions" / session_id / "files"
    for path in sorted(files.rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    files.rmdir()
    for into in (None, tmp_path / "copy"):
        plan = plan_fork(tmp_path, session_id, 1, into)
        assert "Left as they are, for their content then was not kept (too large, or no room): a (now 4 B)." in (
            plan.describe()
        )
        carry_out(plan)
    assert (tmp_path / "a").read_text() == (tmp_path / "copy/a").read_text() == "two\n"


async def test_warnings_about_the_record_are_in_the_plan(tmp_path: Path) -> None:
    session_id = await recorded(tmp_path, "true")
    with (tmp_path / "harness_sessions" / session_id / "journal.jsonl").open("ab") as file:
        file.write(b"\0" * 10 + b"\n")
    plan = plan_fork(tmp_path, session_id)
    assert plan.describe().startswith("journal.jsonl, line ") and plan.finished
    assert not plan_fork(tmp_path, session_id, 1).finished


async def test_a_disk_that_is_full_leaves_no_fork_and_changes_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session_id = await recorded(tmp_path, "echo one > a", "echo two > a")
    before = tree(tmp_path)

    def full(self: SessionStore, events: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(SessionStore, "rewrite", full)
        with pytest.raises(StoreError, match="The fork cannot be written, and nothing was changed: No space left"):
            carry_out(plan_fork(tmp_path, session_id, 1))
    assert tree(tmp_path) == before
    assert session_ids(tmp_path) == [session_id] and latest_session(tmp_path) == session_id
    carry_out(plan_fork(tmp_path, session_id, 1))
    assert (tmp_path / "a").read_text() == "one\n"


async def test_a_copy_of_the_workspace_leaves_pipes_and_sockets_out_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    session_id = await recorded(here, "echo one > a", "echo two > a")
    (here / "dangling").symlink_to("nowhere")
    os.mkfifo(here / "pipe")
    monkeypatch.chdir(here)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("sock")
        fork, restored = carry_out(plan_fork(here, session_id, 1, there))
    assert (there / "dangling").is_symlink() and (there / "a").read_text() == "one\n"
    assert restored.warnings == ("Not copied, for they cannot be read or are no plain files: pipe, sock.",)
    assert read_record(there, fork)[1] == []


async def test_a_copy_that_fails_is_removed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    session_id = await recorded(here, "echo one > a")

    def full(source: Any, target: Any, **more: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("shutil.copystat", full)
    with pytest.raises(StoreError, match=r"cannot be copied to .*there: .*No space left on device"):
        carry_out(plan_fork(here, session_id, 1, there))
    assert not there.exists()


@pytest.mark.parametrize("into", ["d/new/deep", "link/new/deep", "../outside/d/new"])
async def test_a_copy_into_a_folder_of_the_workspace_does_not_copy_itself(tmp_path: Path, into: str) -> None:
    here = tmp_path / "here"
    (here / "d").mkdir(parents=True)
    (here / "d/k").write_text("k")
    (here / "link").symlink_to("d")
    (tmp_path / "outside").symlink_to("here")
    session_id = await recorded(here, "echo one > a")
    carry_out(plan_fork(here, session_id, 1, here / into))
    copy = (here / into).resolve()
    assert (copy / "a").read_text() == "one\n" and (copy / "d/k").read_text() == "k"
    assert not (copy / copy.relative_to(here)).exists()


@pytest.mark.parametrize(
    ("into", "problem"),
    [
        (".", "is there already and not an empty folder"),
        ("a", "is there already and not an empty folder"),
        ("a/b", "cannot be made, for .*a is not a folder"),
        ("loop/x", "cannot be made"),
        ("n" * 300, "cannot be made"),
        ("harness_sessions/x", "is where the sessions are"),
    ],
)
async def test_a_folder_that_cannot_be_the_copy_is_refused_before_anything_happens(
    tmp_path: Path, into: str, problem: str
) -> None:
    session_id = await recorded(tmp_path, "echo one > a")
    (tmp_path / "loop").symlink_to("loop")
    before = tree(tmp_path)
    with pytest.raises(UsageError, match=f"{problem}.*; name another one"):
        plan_fork(tmp_path, session_id, 1, tmp_path / into)
    assert tree(tmp_path) == before


async def test_a_fork_of_a_fork_of_a_fork_goes_back_each_time(tmp_path: Path) -> None:
    session_id = await recorded(tmp_path, "echo 1 > a", "echo 2 > a", "echo 3 > a; echo 3 > b")
    for step in (2, 1, 0):
        plan: ForkPlan = plan_fork(tmp_path, session_id, step)
        session_id, restored = carry_out(plan)
        assert not restored.failed
        assert (tmp_path / "a").exists() == (step > 0) and not (tmp_path / "b").exists()
        assert not step or (tmp_path / "a").read_text() == f"{step}\n"
    assert [event.type for event in read_record(tmp_path, session_id)[0]][-1] == "prompt_added"
