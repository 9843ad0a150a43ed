"""The files of a session."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness_nb import events as ev
from harness_nb.errors import SessionLockedError, StoreError, UsageError
from harness_nb.journal import read_journal
from harness_nb.record import list_sessions
from harness_nb.store import SessionStore, find_session, session_ids, write_atomically


def test_events_are_stamped_and_read_back(tmp_path: Path) -> None:
    store = SessionStore(tmp_path, "s1")
    prompt = "ü {x} $5 \\ \u2028 line"
    stamped = [store.append(ev.PromptAdded(prompt=prompt)), store.append(ev.Warned(text="w"))]
    store.close()
    assert [event.seq for event in stamped] == [1, 2]
    assert read_journal(tmp_path / "harness_sessions/s1/journal.jsonl") == (stamped, [])


def test_a_torn_end_and_a_broken_line_are_set_aside(tmp_path: Path) -> None:
    store = SessionStore(tmp_path, "s1")
    store.append(ev.PromptAdded(prompt="one"))
    store.close()
    journal = tmp_path / "harness_sessions/s1/journal.jsonl"
    journal.write_bytes(journal.read_bytes() + b'broken\n{"seq": 2, "type": "prom')
    store = SessionStore(tmp_path, "s1")
    store.continue_after(2)
    store.append(ev.Warned(text="later"))
    store.close()
    events, warnings = read_journal(journal)
    assert [(event.seq, event.type) for event in events] == [(1, "prompt_added"), (3, "warned")]
    assert warnings == ["journal.jsonl, lines 2 to 3 are set aside: it is not JSON"]


def journal_with(workspace: Path, *lines: bytes) -> Path:
    """The journal of a session with three events; ``lines`` stand behind them."""
    store = SessionStore(workspace, "s1")
    for number in range(3):
        store.append(ev.Warned(text=str(number)))
    store.close()
    journal = workspace / "harness_sessions/s1/journal.jsonl"
    journal.write_bytes(journal.read_bytes() + b"".join(line + b"\n" for line in lines))
    return journal


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"\0" * 4096, "it is not JSON"),
        (b"[" * 200_000, "it is not JSON"),
        (b"9" * 10_000, "it is not JSON"),
        (b"\xff\xfe", "it is not JSON"),
        (b"<<<<<<< HEAD", "it is not JSON"),
        (b"null", "it is no event that this version of harness_nb knows"),
        (b'{"type": []}', "it is no event that this version of harness_nb knows"),
        (b'{"type": "galaxy_opened"}', "it is no event that this version of harness_nb knows"),
        (b'{"type": "warned", "text": 7}', "its text does not fit the event warned"),
        (b'{"type": "warned", "text": "x", "seq": "a"}', "its seq does not fit the event warned"),
        (b'{"type": "warned", "text": "x", "seq": 2}', "an earlier line has its number"),
    ],
)
def test_a_line_that_is_no_event_is_set_aside_with_a_short_reason(tmp_path: Path, line: bytes, reason: str) -> None:
    events, warnings = read_journal(journal_with(tmp_path, line))
    assert [event.text for event in events if isinstance(event, ev.Warned)] == ["0", "1", "2"]
    assert warnings == [f"journal.jsonl, line 4 is set aside: {reason}"]


def test_a_thousand_broken_lines_are_one_warning(tmp_path: Path) -> None:
    broken = [b"x", *[b'{"type": "y"}', b"x"] * 500]
    _, warnings = read_journal(journal_with(tmp_path, *broken))
    assert len(warnings) == 6 and warnings[-1] == "journal.jsonl, 996 more lines are set aside."
    _, warnings = read_journal(journal_with(tmp_path / "b", *[b"x"] * 1000))
    assert warnings == ["journal.jsonl, lines 4 to 1003 are set aside: it is not JSON"]


def test_lines_out_of_order_are_put_in_order(tmp_path: Path) -> None:
    journal = journal_with(tmp_path)
    journal.write_bytes(b"\xef\xbb\xbf" + b"".join(reversed(journal.read_bytes().splitlines(keepends=True))))
    events, warnings = read_journal(journal)
    assert [event.seq for event in events] == [1, 2, 3]
    assert warnings == ["journal.jsonl: the lines are out of order, and their numbers tell it."]


def test_an_event_that_cannot_be_written_leaves_the_journal_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = journal_with(tmp_path)
    before = journal.read_bytes()
    store = SessionStore(tmp_path, "s1")
    store.continue_after(3)

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(StoreError, match=r"\(No space left on device\).*harness-nb resume s1` goes on"):
            store.append(ev.Warned(text="lost"))
    assert journal.read_bytes() == before
    assert store.append(ev.Warned(text="kept")).seq == 4
    store.close()
    assert [event.seq for event in read_journal(journal)[0]] == [1, 2, 3, 4]


def test_a_disk_that_fills_up_in_the_middle_of_a_line_leaves_no_half_of_it(tmp_path: Path) -> None:
    """A process of its own, for the limit on the size of files cannot be raised again."""
    journal = journal_with(tmp_path)
    before = journal.read_bytes()
    code = (
        "import pathlib, resource, signal\n"
        "from harness_nb import events as ev\n"
        "from harness_nb.store import SessionStore\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({len(before)} + 20,) * 2)\n"
        f"store = SessionStore(pathlib.Path({str(tmp_path)!r}), 's1')\n"
        "try:\n    store.append(ev.Warned(text='x' * 100))\n"
        "except Exception as error:\n    print(type(error).__name__, error)\n"
        "store.close()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("StoreError The journal of the session cannot be written (File too large)")
    assert journal.read_bytes() == before


def test_a_folder_in_place_of_the_journal_is_refused_with_the_way_out_and_nobody_keeps_the_lock(tmp_path: Path) -> None:
    journal = tmp_path / "harness_sessions/s1/journal.jsonl"
    journal.mkdir(parents=True)
    with pytest.raises(StoreError, match=r"journal\.jsonl is a folder there: move it away"):
        SessionStore(tmp_path, "s1")
    journal.rmdir()
    SessionStore(tmp_path, "s1").close()


def test_a_second_process_is_refused_and_a_crash_leaves_no_lock(tmp_path: Path) -> None:
    code = (
        "import os, pathlib, sys; from harness_nb.store import SessionStore\n"
        f"store = SessionStore(pathlib.Path({str(tmp_path)!r}), 's1')\n"
        "print('held', flush=True); sys.stdin.read(); os._exit(1)"
    )
    other = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert other.stdin is not None and other.stdout is not None
    assert other.stdout.readline() == b"held\n"
    with pytest.raises(SessionLockedError, match="s1"):
        SessionStore(tmp_path, "s1")
    other.kill()
    other.wait()
    other.stdin.close()
    other.stdout.close()
    SessionStore(tmp_path, "s1").close()


def test_a_failing_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.ipynb"
    write_atomically(path, "old")

    def fail(self: Path, target: Path) -> Path:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(StoreError, match="disk full"):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_lone_surrogates_do_not_break_a_save(tmp_path: Path) -> None:
    write_atomically(tmp_path / "a", "x\ud800y")
    assert (tmp_path / "a").read_text() == "x\\ud800y"


def test_an_output_file_comes_with_its_first_text(tmp_path: Path) -> None:
    store = SessionStore(tmp_path, "s1")
    sink = store.sink("call/1:x")
    assert sink.path == "harness_sessions/s1/outputs/call_1_x.txt"
    assert not (tmp_path / sink.path).exists()
    sink.write("a\n")
    sink.write("b\n")
    assert (tmp_path / sink.path).read_text() == "a\nb\n"
    sink.close()
    store.close()


def test_an_output_that_cannot_be_kept_stops_nothing(tmp_path: Path) -> None:
    store = SessionStore(tmp_path, "s1")
    (tmp_path / "harness_sessions/s1/outputs").write_text("in the way")
    sink = store.sink("c1")
    sink.write("a\n")
    sink.write("b\n")
    assert sink.path.startswith("not kept, harness_sessions/s1/outputs/c1.txt cannot be written")
    store.close()


def test_sessions_are_listed_with_title_and_outcome(tmp_path: Path) -> None:
    store = SessionStore(tmp_path, "s1")
    store.append(ev.PromptAdded(prompt="Sort   the\nfiles"))
    store.append(ev.SessionEnded(reason="finished", turns=3))
    store.close()
    (summary,) = list_sessions(tmp_path)
    assert (summary.id, summary.title, summary.status) == ("s1", "Sort the files", "finished")
    assert list_sessions(tmp_path / "nowhere") == []


def test_a_session_that_is_not_there_is_said_with_those_that_are(tmp_path: Path) -> None:
    journal_with(tmp_path)
    assert find_session(tmp_path, "s1").name == "s1"
    with pytest.raises(UsageError, match=r"no session 's2'.*s1"):
        find_session(tmp_path, "s2")
    for number in range(20):
        (tmp_path / f"harness_sessions/t{number:02}.ipynb").touch()
    with pytest.raises(UsageError, match=r"Sessions there: t10, .*, t19 and 11 older ones\."):
        find_session(tmp_path, "s2")


@pytest.mark.parametrize("name", ["s1/", "harness_sessions/s1", "harness_sessions/s1.ipynb", "../w/s1", " s1"])
def test_a_path_in_place_of_an_id_is_refused_with_the_id(tmp_path: Path, name: str) -> None:
    journal_with(tmp_path)
    with pytest.raises(UsageError, match=r"A session is named by its id alone: write s1 in place of"):
        find_session(tmp_path, name)
    for other in ("", ".", "..", "/", "a\0b", "s1.conflict", "x" * 5000):
        with pytest.raises(UsageError, match="There is no session"):
            find_session(tmp_path, other)


def test_a_new_session_in_which_nothing_was_recorded_leaves_nothing(tmp_path: Path) -> None:
    SessionStore(tmp_path, "s1").close()
    assert list((tmp_path / "harness_sessions").iterdir()) == []
    journal_with(tmp_path)
    SessionStore(tmp_path, "s1").close()
    (tmp_path / "harness_sessions/s2.ipynb").write_text("a notebook alone")
    SessionStore(tmp_path, "s2").close()
    assert (
        session_ids(tmp_path) == ["s1", "s2"]
        and len(read_journal(tmp_path / "harness_sessions/s1/journal.jsonl")[0]) == 3
    )


def test_what_is_no_plain_file_is_no_session(tmp_path: Path) -> None:
    folder = tmp_path / "harness_sessions"
    (folder / "a" / "journal.jsonl").mkdir(parents=True)
    (folder / "b.ipynb").mkdir()
    (folder / "c.ipynb").symlink_to("nowhere")
    os.mkfifo(folder / "d.ipynb")
    (folder / "e.ipynb").touch()
    assert session_ids(tmp_path) == ["e"]


def test_the_journal_is_json_lines_with_seq_time_type_first(tmp_path: Path) -> None:
    store = SessionStore(tmp_path, "s1")
    store.append(ev.PromptAdded(prompt="x"))
    store.close()
    line = (tmp_path / "harness_sessions/s1/journal.jsonl").read_text()
    assert list(json.loads(line))[:3] == ["seq", "time", "type"]
