"""The files of a session."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from harness_nb import events as ev
from harness_nb.errors import SessionLockedError, StoreError, UsageError
from harness_nb.record import list_sessions
from harness_nb.store import SessionStore, find_session, read_journal, write_atomically


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
    assert len(warnings) == 2
    assert "line 2" in warnings[0]


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
    SessionStore(tmp_path, "s1").close()
    assert find_session(tmp_path, "s1").name == "s1"
    with pytest.raises(UsageError, match=r"no session 's2'.*s1"):
        find_session(tmp_path, "s2")


def test_the_journal_is_json_lines_with_seq_time_type_first(tmp_path: Path) -> None:
    store = SessionStore(tmp_path, "s1")
    store.append(ev.PromptAdded(prompt="x"))
    store.close()
    line = (tmp_path / "harness_sessions/s1/journal.jsonl").read_text()
    assert list(json.loads(line))[:3] == ["seq", "time", "type"]
