"""The file store: what is seen of a workspace, what is kept, and the way back to any step."""

from __future__ import annotations

import hashlib
import json
import os
import random
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from harness_nb.events import UNKNOWN_CONTENT, CallDecided, Event, FileChange, FilesChanged
from harness_nb.files import FileStore, RestorePlan, files_at, files_now, plan_restore, restore
from harness_nb.types import Decision, ToolCall

UNIX = pytest.mark.skipif(sys.platform == "win32", reason="Unix only")


def sha(text: str | bytes) -> str:
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


class Place:
    """A workspace with its store, and the record of what calls and others did in it."""

    def __init__(self, workspace: Path, session: str = "s1", **bounds: Any) -> None:
        self.workspace = workspace
        self.store = FileStore(workspace / "harness_sessions" / session, workspace, **bounds)
        self.events: list[Event] = []

    def write(self, path: str, content: str | bytes) -> None:
        place = self.workspace / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode() if isinstance(content, str) else content)

    def decide(self) -> None:
        call = ToolCall(call_id=f"c{len(self.events)}", name="bash")
        allow = Decision(verdict="allow", reason="", policy="p")
        self.events.append(CallDecided(call_id=call.call_id, name="bash", call=call, source="", decision=allow))

    def record(self, name: str = "bash") -> tuple[FileChange, ...]:
        changes = self.store.look()
        if changes:
            self.events.append(FilesChanged(call_id="c", name=name, changes=changes))
        return changes

    def step(self, **files: str | None) -> tuple[FileChange, ...]:
        """One call that writes or deletes text files, named without their suffix; ``__`` is a slash."""
        self.decide()
        for name, content in files.items():
            path = name.replace("__", "/") + ".txt"
            if content is None:
                (self.workspace / path).unlink()
            else:
                self.write(path, content)
        return self.record()

    def tree(self) -> dict[str, bytes]:
        return tree(self.workspace)


def tree(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and "harness_sessions" not in path.parts
    }


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


# what is seen


def test_the_first_look_is_the_baseline_and_later_ones_say_what_changed(place: Place) -> None:
    place.write("a.txt", "one")
    place.write("deep/er/b.txt", "two")
    assert place.store.begin() == ()
    assert place.store.look() == ()
    place.write("a.txt", "three")
    (place.workspace / "deep/er/b.txt").unlink()
    place.write("new.txt", "")
    assert place.store.look() == (
        FileChange(path="a.txt", before=sha("one"), after=sha("three"), size=5),
        FileChange(path="deep/er/b.txt", before=sha("two"), after=None, size=0),
        FileChange(path="new.txt", before=None, after=sha(""), size=0),
    )
    assert place.store.look() == ()
    assert [place.store.blob(sha(text)) for text in ("one", "two", "three", "")] == [b"one", b"two", b"three", b""]


def test_begin_says_what_others_did_between_two_prompts(place: Place) -> None:
    place.write("a.txt", "one")
    place.store.begin()
    place.write("a.txt", "two")
    assert [change.path for change in place.store.begin()] == ["a.txt"]
    assert place.store.begin() == ()


def test_a_touch_is_no_change_and_a_same_sized_edit_with_the_old_time_is_one(place: Place) -> None:
    place.write("a.txt", "one")
    place.store.begin()
    os.utime(place.workspace / "a.txt", ns=(1, 1))
    assert place.store.look() == ()
    place.write("a.txt", "two")
    os.utime(place.workspace / "a.txt", ns=(1, 1))
    assert [change.after for change in place.store.look()] == [sha("two")]


def test_an_edit_within_one_tick_of_the_clock_is_seen(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system with slow clocks: the second writing leaves the very same stamp."""
    from harness_nb.files import walk

    real = walk.stamp_of
    slow = 1_700_000_000_000_000_000
    monkeypatch.setattr(walk, "stamp_of", lambda about: real(about)._replace(ctime_ns=slow))
    place.write("a.txt", "one")
    mtime = (place.workspace / "a.txt").stat().st_mtime_ns
    place.store.begin()
    (place.workspace / "a.txt").write_text("two")
    os.utime(place.workspace / "a.txt", ns=(mtime, mtime))
    assert [change.after for change in place.store.look()] == [sha("two")]


def test_an_unchanged_file_is_not_read_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.write("a.txt", "one")
    os.utime(place.workspace / "a.txt", ns=(1, 1))
    place.store.begin()
    monkeypatch.setattr("harness_nb.files.store._open", lambda path: pytest.fail(f"{path} was opened"))
    assert place.store.look() == ()


def test_folders_of_tools_and_our_own_are_passed_over(place: Place) -> None:
    place.store.begin()
    for folder in ("harness_sessions", ".git", "x/node_modules", "__pycache__", ".ipynb_checkpoints"):
        place.write(f"{folder}/a.txt", "x")
    place.write("env/pyvenv.cfg", "home = /usr")
    place.write("env/lib/a.py", "x")
    place.write("a.pyc", "x")
    place.write("seen.py", "x")
    assert [change.path for change in place.store.look()] == ["seen.py"]


def test_what_is_to_be_skipped_is_neither_new_nor_gone(place: Place) -> None:
    place.write("mine.ipynb", "{}")
    place.store.begin()
    place.store.skip = frozenset({"mine.ipynb"})
    place.write("mine.ipynb", "{ }")
    assert place.store.look() == ()
    (place.workspace / "mine.ipynb").unlink()
    assert place.store.look() == ()


@UNIX
def test_links_pipes_and_sockets_are_not_followed_nor_waited_for(
    place: Place, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place.write("a.txt", "one")
    place.store.begin()
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret").write_text("x")
    (place.workspace / "link").symlink_to(outside)
    (place.workspace / "a link.txt").symlink_to(outside / "secret")
    os.mkfifo(place.workspace / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(place.workspace / "socket"))  # the name of a socket may have 107 bytes
        assert place.store.look() == ()
    (place.workspace / "a.txt").unlink()
    (place.workspace / "a.txt").symlink_to(outside / "secret")
    assert place.store.look() == (FileChange(path="a.txt", before=sha("one")),)


@UNIX
def test_names_that_are_not_text_are_said_once_and_do_no_harm(place: Place) -> None:
    place.store.begin()
    try:
        (place.workspace / os.fsdecode(b"na\xffme")).write_text("x")
    except OSError:
        pytest.skip("this file system has no such names")
    place.write("größe 1.txt", "x")
    assert [change.path for change in place.store.look()] == ["größe 1.txt"]
    assert place.store.look() == ()
    assert len(place.store.warnings()) == 1
    assert place.store.warnings() == []


def test_a_file_that_goes_while_it_is_read_was_not_there(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    from harness_nb.files import store

    real = store._open
    place.write("old.txt", "x")
    place.store.begin()
    place.write("old.txt", "longer")
    place.write("new.txt", "x")

    def open_late(path: Path) -> Any:
        path.unlink()
        return real(path)

    monkeypatch.setattr(store, "_open", open_late)
    assert place.store.look() == (FileChange(path="old.txt", before=sha("x")),)


@UNIX
def test_a_file_that_becomes_a_link_before_it_is_read_is_not_followed(
    place: Place, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    from harness_nb.files import store

    secret = tmp_path_factory.mktemp("outside") / "secret"
    secret.write_text("precious")
    real = store._open
    place.store.begin()
    place.write("a.txt", "x")

    def swap_then_open(path: Path) -> Any:
        path.unlink()
        path.symlink_to(secret)
        return real(path)

    monkeypatch.setattr(store, "_open", swap_then_open)
    assert place.store.look() == ()
    assert place.store.blob(sha("precious")) is None


def test_a_folder_that_becomes_a_virtual_environment_is_not_taken_for_deleted(place: Place) -> None:
    place.write("env/a.py", "x")
    place.store.begin()
    place.write("env/pyvenv.cfg", "home = /usr")
    assert place.store.look() == ()


def test_a_file_that_grows_while_it_is_read_is_seen_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Size, hash and kept content are of the same bytes, and the rest comes with the next look."""
    from harness_nb.files import store

    real = store._open
    place.store.begin()
    place.write("log.txt", "one\n")

    def open_then_grow(path: Path) -> Any:
        file = real(path)
        about = os.fstat(file.fileno())
        monkeypatch.setattr(store.os, "fstat", lambda number: about)
        with path.open("a") as more:
            more.write("two\n")
        return file

    monkeypatch.setattr(store, "_open", open_then_grow)
    (first,) = place.store.look()
    monkeypatch.undo()
    assert (first.size, first.after, place.store.blob(first.after or "")) == (4, sha("one\n"), b"one\n")
    (second,) = place.store.look()
    assert (second.before, second.after) == (sha("one\n"), sha("one\ntwo\n"))


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads everything")
def test_what_cannot_be_read_is_neither_lost_nor_guessed(place: Place) -> None:
    place.write("a.txt", "one")
    place.write("closed/b.txt", "two")
    place.store.begin()
    (place.workspace / "a.txt").chmod(0)
    (place.workspace / "closed").chmod(0)
    try:
        assert place.store.look() == (
            FileChange(path="a.txt", before=sha("one"), after=UNKNOWN_CONTENT, size=3, kept=False),
        )
    finally:
        (place.workspace / "closed").chmod(0o700)
    assert place.store.look() == ()


def test_a_folder_that_cannot_be_listed_is_left_out(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.write("closed/b.txt", "two")
    place.store.begin()
    real = os.scandir

    def refuse(path: Any) -> Any:
        if Path(path).name == "closed":
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", refuse)
    place.write("closed/b.txt", "three")
    assert place.store.look() == ()
    monkeypatch.undo()
    assert [change.before for change in place.store.look()] == [sha("two")]


def test_a_crowded_folder_is_left_out_with_one_warning(tmp_path: Path) -> None:
    place = Place(tmp_path, max_in_folder=5)
    place.write("data/first.txt", "x")
    place.store.begin()
    for number in range(6):
        place.write(f"data/{number}.txt", "x")
    place.write("data/sub/a.txt", "x")
    assert [change.path for change in place.store.look()] == ["data/sub/a.txt"]
    assert place.store.look() == ()
    (warning,) = place.store.warnings()
    assert "data has more than 5 files" in warning
    for number in range(6):
        (tmp_path / f"data/{number}.txt").unlink()
    assert place.store.look() == (), "what was there all the time is not new, and what was never seen is not gone"


def test_what_was_hidden_is_not_new_when_it_is_seen_at_last(tmp_path: Path) -> None:
    place = Place(tmp_path, max_in_folder=2)
    for number in range(3):
        place.write(f"{number}.txt", "x")
    place.store.begin()
    (tmp_path / "0.txt").unlink()
    assert place.store.look() == ()
    place.write("1.txt", "y")
    assert place.store.look() == (FileChange(path="1.txt", before=sha("x"), after=sha("y"), size=1),)


def test_too_many_files_leave_out_the_deepest(tmp_path: Path) -> None:
    place = Place(tmp_path, max_files=3)
    place.store.begin()
    for path in ("a.txt", "b.txt", "x/c.txt", "x/y/d.txt"):
        place.write(path, "x")
    assert [change.path for change in place.store.look()] == ["a.txt", "b.txt", "x/c.txt"]
    assert "more than 3 files" in place.store.warnings()[0]


# what is kept


def test_big_files_are_not_read_at_first_and_known_by_hash_once_a_call_wrote_them(tmp_path: Path) -> None:
    place = Place(tmp_path, kept_bytes=10)
    place.write("data.bin", b"x" * 11)
    place.store.begin()
    place.write("data.bin", b"y" * 12)
    assert place.store.look() == (
        FileChange(path="data.bin", before=UNKNOWN_CONTENT, after=sha(b"y" * 12), size=12, kept=False),
    )
    assert place.store.blob(sha(b"y" * 12)) is None
    place.write("data.bin", "small")
    assert place.store.look() == (FileChange(path="data.bin", before=sha(b"y" * 12), after=sha("small"), size=5),)


def test_the_baseline_does_not_open_big_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(tmp_path, kept_bytes=10, baseline_bytes=15)
    for name in ("a", "b", "big"):
        place.write(f"{name}.txt", name[0] * (10 if name != "big" else 11))
    from harness_nb.files import store

    opened: list[str] = []
    real = store._open
    monkeypatch.setattr(store, "_open", lambda path: opened.append(path.name) or real(path))
    place.store.begin()
    assert opened == ["a.txt"], "within 15 bytes in all there is room for one of the two small ones"
    assert place.store.look() == ()


def test_a_look_reads_no_more_than_its_bound(tmp_path: Path) -> None:
    place = Place(tmp_path, read_bytes=10)
    place.store.begin()
    place.write("big.bin", b"x" * 11)
    place.write("small.txt", "x")
    big, small = place.store.look()
    assert (big.after, big.size, big.kept) == (UNKNOWN_CONTENT, 11, False)
    assert (small.after, small.kept) == (sha("x"), True)
    (tmp_path / "big.bin").chmod(0o600)
    assert place.store.look() == ()


def test_a_full_store_says_so_once_and_the_work_goes_on(tmp_path: Path) -> None:
    place = Place(tmp_path, total_bytes=5)
    place.store.begin()
    place.write("a.txt", "four")
    place.write("b.txt", "fives")
    place.write("c.txt", "sixsix")
    assert [change.kept for change in place.store.look()] == [True, False, False]
    assert len(place.store.warnings()) == 1


def test_a_store_that_cannot_be_written_does_not_stop_the_work(place: Place) -> None:
    place.write("harness_sessions/s1", "a file where the folder should be")
    place.write("a.txt", "one")
    assert place.store.begin() == ()
    place.write("a.txt", "two")
    assert place.store.look() == (FileChange(path="a.txt", before=sha("one"), after=sha("two"), size=3, kept=False),)
    (warning,) = place.store.warnings()
    assert "cannot be kept" in warning


def test_blobs_are_whole_files_that_are_written_once_and_checked_when_read(place: Place) -> None:
    place.write("a.txt", "one")
    place.store.begin()
    digest = sha("one")
    blob = place.workspace / "harness_sessions/s1/files" / digest[:2] / digest
    assert blob.read_text() == "one"
    before = blob.stat().st_mtime_ns, blob.stat().st_ino
    place.write("copy.txt", "one")
    place.store.look()
    assert (blob.stat().st_mtime_ns, blob.stat().st_ino) == before
    assert not list(blob.parent.glob(".*"))
    blob.write_text("two")
    assert place.store.blob(digest) is None
    assert place.store.blob("../../a.txt") is None


def test_a_torn_blob_is_written_again(place: Place) -> None:
    place.write("a.txt", "one")
    place.store.begin()
    blob = place.workspace / "harness_sessions/s1/files" / sha("one")[:2] / sha("one")
    blob.write_text("")
    place.write("copy.txt", "one")
    place.store.look()
    assert place.store.blob(sha("one")) == b"one"


def test_contents_that_an_earlier_session_kept_are_linked(place: Place) -> None:
    place.write("a.txt", "one")
    place.store.begin()
    later = Place(place.workspace, session="s2")
    later.store.begin()
    paths = [store.blobs.path(sha("one")) for store in (place.store, later.store)]
    assert paths[0] is not None and paths[1] is not None
    assert paths[0] != paths[1] and paths[0].samefile(paths[1])


def test_a_fork_adopts_contents_and_says_which_are_missing(tmp_path: Path) -> None:
    one, other = Place(tmp_path / "one"), Place(tmp_path / "other")
    one.write("a.txt", "one")
    one.store.begin()
    missing = other.store.adopt(one.store, [sha("one"), None, UNKNOWN_CONTENT, sha("never"), sha("one")])
    assert missing == (sha("never"),)
    assert other.store.blob(sha("one")) == b"one"


def test_adopting_copies_where_links_do_not_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = Place(tmp_path / "one"), Place(tmp_path / "other")
    one.write("a.txt", "one")
    one.store.begin()

    def refuse(self: Path, target: Path) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    assert other.store.adopt(one.store, [sha("one")]) == ()
    assert other.store.blob(sha("one")) == b"one"


# taking a session up again


def test_a_session_taken_up_again_sees_what_happened_meanwhile(place: Place) -> None:
    place.write("a.txt", "one")
    place.write("b.txt", "one")
    place.store.begin()
    place.step(a="two")
    place.write("b.txt", "by hand")
    place.write("c.txt", "by hand")
    again = Place(place.workspace)
    changes = again.store.begin(files_now(place.events))
    assert [(change.path, change.before) for change in changes] == [("b.txt", sha("one")), ("c.txt", None)]


def test_a_call_that_was_killed_before_its_changes_were_recorded_is_found_out(place: Place) -> None:
    place.write("a.txt", "one")
    place.store.begin()
    place.step(a="two")
    place.decide()
    place.write("a.txt", "three")
    place.write("half.txt", "x")
    place.store.look()  # and killed here: the events never reached the journal
    again = Place(place.workspace)
    changes = again.store.begin(files_now(place.events))
    assert [(change.path, change.before) for change in changes] == [("a.txt", sha("two")), ("half.txt", None)]


def test_a_look_is_remembered_when_the_next_one_begins(place: Place) -> None:
    place.store.begin()
    index = place.workspace / "harness_sessions/s1/files/index.json"
    remembered = []
    for number in range(3):
        place.step(a=str(number))
        remembered.append(json.loads(index.read_text())["files"].get("a.txt", [None] * 5)[4])
    assert remembered == [None, sha("0"), sha("1")]


@pytest.mark.parametrize("index", ["", "{}", '{"version": 1, "files": {"a": [1]}}', '{"version": 99}', "[]"])
def test_a_broken_index_counts_as_none(place: Place, index: str) -> None:
    place.write("a.txt", "one")
    place.write("harness_sessions/s1/files/index.json", index)
    assert place.store.begin() == ()
    assert json.loads((place.workspace / "harness_sessions/s1/files/index.json").read_text())["files"]["a.txt"]


# the way back


def test_the_files_at_each_step(place: Place) -> None:
    place.write("a.txt", "0")
    place.store.begin()
    place.step(a="1", b="1")
    place.step(b=None)
    place.write("a.txt", "by hand")
    place.record("outside")
    place.step(a="3")
    assert files_at(place.events, 0) == {"a.txt": sha("0"), "b.txt": None}
    assert files_at(place.events, 1) == {"a.txt": sha("1"), "b.txt": sha("1")}
    assert files_at(place.events, 2) == {"a.txt": sha("by hand")}
    assert files_at(place.events, 3) == {}
    assert files_now(place.events) == {"a.txt": sha("3"), "b.txt": None}


def go_back(place: Place, step: int) -> RestorePlan:
    plan = plan_restore(place.events, step, place.store)
    outcome = restore(plan, place.store)
    assert outcome.failed == ()
    return plan


def test_going_back_writes_and_deletes_and_the_next_look_is_quiet(place: Place) -> None:
    place.write("a.txt", "0")
    place.write("same.txt", "0")
    place.store.begin()
    before = place.tree()
    place.step(a="1", new__deep__b="1")
    place.step(same="1")
    place.step(same="0")
    plan = plan_restore(place.events, 0, place.store)
    assert [(file.path, file.action) for file in plan.files] == [
        ("a.txt", "write"),
        ("new/deep/b.txt", "delete"),
        ("same.txt", "unchanged"),
    ]
    assert place.tree() != before
    outcome = restore(plan, place.store)
    assert place.tree() == before
    assert not (place.workspace / "new").exists()
    assert outcome.changes == (
        FileChange(path="a.txt", before=sha("1"), after=sha("0"), size=1),
        FileChange(path="new/deep/b.txt", before=sha("1")),
    )
    assert place.store.look() == ()
    assert outcome.describe() == "Written: a.txt.\nDeleted: new/deep/b.txt."


def test_the_plan_reads_as_sentences(tmp_path: Path) -> None:
    place = Place(tmp_path, kept_bytes=10)
    place.write("data.bin", b"x" * 11)
    place.write("a.txt", "0")
    place.write("theirs.txt", "0")
    place.store.begin()
    place.decide()
    place.write("data.bin", b"y" * 1200)
    place.write("a.txt", "1")
    place.write("model.pt", b"z" * 20)
    place.record()
    place.decide()
    place.write("theirs.txt", "by hand")
    place.record("outside")
    place.write("a.txt", "by hand")
    plan = plan_restore(place.events, 0, place.store)
    assert plan.describe().split("\n") == [
        "To go back to the files of step 0:",
        "Written as they were then: a.txt.",
        "Deleted, for they were not there then: model.pt.",
        "Of these, somebody else has changed since: a.txt. Those changes would go too.",
        "What is overwritten or deleted is kept in the session's file store first.",
        "Left as they are, for their content then was not kept (too large, or no room): data.bin (now 1.2 KB).",
        "Left as they are, for only somebody else has changed them: theirs.txt.",
    ]
    assert plan_restore(place.events, 2, place.store).describe() == "No file has to change to go back to step 2."


def test_nothing_that_is_overwritten_is_lost_however_large(tmp_path: Path) -> None:
    place = Place(tmp_path, kept_bytes=10, total_bytes=4)
    place.write("a.txt", "0")
    place.store.begin()
    place.decide()
    place.write("a.txt", "1" * 9)
    place.write("model.pt", b"z" * 2000)
    place.record()
    place.write("a.txt", "by hand")
    go_back(place, 0)
    assert place.tree() == {"a.txt": b"0"}
    assert place.store.blob(sha("by hand")) == b"by hand"
    assert place.store.blob(sha(b"z" * 2000)) == b"z" * 2000


def test_a_file_that_only_others_changed_is_restored_on_request(place: Place) -> None:
    place.write("a.txt", "0")
    place.store.begin()
    place.decide()
    place.write("a.txt", "by hand")
    place.record("outside")
    plan = plan_restore(place.events, 0, place.store, others=True)
    assert [(file.action, file.by_others) for file in plan.files] == [("write", True)]


def test_a_file_that_changes_after_the_plan_is_left_alone(place: Place) -> None:
    place.write("a.txt", "0")
    place.store.begin()
    place.step(a="1", b="1")
    plan = plan_restore(place.events, 0, place.store)
    place.write("a.txt", "later")
    (place.workspace / "b.txt").unlink()
    outcome = restore(plan, place.store)
    assert place.tree() == {"a.txt": b"later"}
    assert [path for path, _ in outcome.failed] == ["b.txt", "a.txt"]
    assert "a.txt: it has changed since the plan was made" in outcome.describe()


@pytest.mark.parametrize("path", ["../evil.txt", "/etc/evil", "a/../../evil", ".git/hooks/evil", "", "x/.git/config"])
def test_a_forged_record_does_not_lead_out_of_the_workspace(place: Place, path: str) -> None:
    place.store.begin()
    place.step(a="0")
    forged = FileChange(path=path, before=sha("0"), after=None)
    place.events.append(FilesChanged(call_id="c", name="bash", changes=(forged,)))
    plan = plan_restore(place.events, 0, place.store)
    assert [file.action for file in plan.files if file.path == path] == ["left"]
    restore(plan, place.store)
    assert place.tree() == {}
    assert not (place.workspace.parent / "evil.txt").exists()


@UNIX
def test_nothing_is_written_through_a_link(place: Place, tmp_path_factory: pytest.TempPathFactory) -> None:
    place.write("sub/a.txt", "0")
    place.write("b.txt", "0")
    place.store.begin()
    place.step(sub__a="1", b="1")
    outside = tmp_path_factory.mktemp("outside")
    (outside / "a.txt").write_text("precious")
    (place.workspace / "sub").rename(place.workspace / "moved")
    (place.workspace / "sub").symlink_to(outside)
    (place.workspace / "b.txt").unlink()
    (place.workspace / "b.txt").symlink_to(outside / "a.txt")
    plan = plan_restore(place.events, 0, place.store)
    assert {file.path: file.action for file in plan.files} == {"sub/a.txt": "left", "b.txt": "left"}
    restore(plan, place.store)
    assert tree(outside) == {"a.txt": b"precious"}


def test_a_damaged_content_is_not_written(place: Place) -> None:
    place.write("a.txt", "0")
    place.store.begin()
    place.step(a="1")
    blob = place.store.blobs.path(sha("0"))
    assert blob is not None
    blob.write_text("x")
    outcome = restore(plan_restore(place.events, 0, place.store), place.store)
    assert outcome.failed == (("a.txt", "its content in the file store is damaged"),)
    assert place.tree() == {"a.txt": b"1"}


@UNIX
def test_the_executable_bit_and_the_rights_of_a_file_survive(place: Place) -> None:
    place.write("run.txt", "#!/bin/sh\n")
    (place.workspace / "run.txt").chmod(0o750)
    place.write("private.txt", "0")
    (place.workspace / "private.txt").chmod(0o600)
    place.store.begin()
    place.step(run=None, private="1")
    go_back(place, 0)
    assert (place.workspace / "run.txt").stat().st_mode & 0o100
    assert (place.workspace / "private.txt").stat().st_mode & 0o777 == 0o600


def test_a_file_that_became_a_folder_and_back(place: Place) -> None:
    place.write("x", "file")
    place.write("y/z", "folder")
    place.store.begin()
    before = place.tree()
    place.decide()
    (place.workspace / "x").unlink()
    place.write("x/z", "folder")
    (place.workspace / "y/z").unlink()
    (place.workspace / "y").rmdir()
    place.write("y", "file")
    place.record()
    assert place.tree().keys() == {"x/z", "y"}
    go_back(place, 0)
    assert place.tree() == before
    assert place.store.look() == ()


# any edits, any step


def edit_at_random(place: Place, dice: random.Random) -> None:
    """A few edits as calls make them: writing, appending, deleting, moving, folders that become files."""
    root = place.workspace
    for _ in range(dice.randrange(4)):
        path = root / dice.choice(("a", "b", "c/d", "c/e", "c/f/g", "h", "h/i"))
        there = [each for each in root.rglob("*") if each.is_file() and "harness_sessions" not in each.parts]
        match dice.randrange(4):
            case 0 if there:
                dice.choice(there).unlink()
            case 1 if there:
                with dice.choice(there).open("ab") as file:
                    file.write(dice.randbytes(dice.randrange(30)))
            case _:
                for parent in reversed(path.relative_to(root).parents[:-1]):
                    if (root / parent).is_file():
                        (root / parent).unlink()
                if path.is_dir():
                    continue
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(dice.randbytes(dice.randrange(30)))


@pytest.mark.parametrize("seed", range(12))
def test_every_step_can_be_gone_back_to(tmp_path: Path, seed: int) -> None:
    """Random edits; then from the end to each step in random order, against a shadow copy of the tree."""
    dice = random.Random(seed)
    place = Place(tmp_path, kept_bytes=25)
    edit_at_random(place, dice)
    place.store.begin()
    shadows = [place.tree()]
    for _ in range(10):
        place.decide()
        edit_at_random(place, dice)
        place.record()
        shadows.append(place.tree())
        assert (
            files_now(place.events).items()
            <= {
                **dict.fromkeys(files_now(place.events), None),
                **{path: sha(data) for path, data in shadows[-1].items()},
            }.items()
        )
    unknown = 0
    for step in reversed(range(len(shadows))):
        plan = plan_restore(place.events, step, place.store)
        lost = {file.path for file in plan.files if file.action == "lost"}
        unknown += len(lost)
        outcome = restore(plan, place.store)
        assert {path for path, _ in outcome.failed} <= blocked_by(lost, place)
        spared = lost | {path for path, _ in outcome.failed}
        now = place.tree()
        assert {path: data for path, data in now.items() if path not in spared} == {
            path: data for path, data in shadows[step].items() if path not in spared
        }
        assert place.store.look() == ()
    assert unknown < len(shadows) * 3


def blocked_by(lost: set[str], place: Place) -> set[str]:
    """Paths that cannot be restored since a file that had to stay is in their way."""
    return {path for path in files_now(place.events) for other in lost if f"{other}/" in path or f"{path}/" in other}
