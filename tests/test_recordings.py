"""Fingerprints, and the recorded work that is found by them: in journals, in notebooks, among many."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from harness_nb import events as ev
from harness_nb.notebook import FORMAT_VERSION, NotebookFold
from harness_nb.outputs.outcome import outcome_digest
from harness_nb.recordings import (
    Chain,
    find_recording,
    fingerprint,
    recorded_changes,
    recordings_of,
    why_not_played,
)
from harness_nb.types import Approval, Decision, Message, Status, TextPart, ToolCall, text_content

FOLDER = "harness_sessions"
ALLOW = Decision(verdict="allow", reason="", policy="allow_all")


def reply(text: str, *calls: ToolCall) -> ev.ModelReplied:
    return ev.ModelReplied(turn=1, message=Message(role="assistant", content=(TextPart(text=text),), tool_calls=calls))


def work(
    prompt: str,
    mark: str,
    *,
    reason: str = "finished",
    model: str = "openai:m",
    call_id: str = "c1",
    printed: str = "42\n",
    changes: tuple[ev.FileChange, ...] = (),
) -> list[Any]:
    """The events of a prompt with one call."""
    call = ToolCall(call_id=call_id, name="python", arguments={"code": "print(42)"})
    about: dict[str, Any] = {"call_id": call_id, "name": "python"}
    output = {"output_type": "stream", "name": "stdout", "text": printed}
    ending = [] if reason == "open" else [ev.SessionEnded.model_validate({"reason": reason})]
    return [
        ev.PromptAdded(prompt=prompt, fingerprint=mark),
        ev.ModelRequested(turn=1, model=model, messages=2),
        reply(f"About {prompt}.", call),
        ev.CallDecided(call=call, source="print(42)", decision=ALLOW, **about),
        ev.ApprovalAnswered(approval=Approval(approved=True), **about),
        ev.CellStarted(source="print(42)", **about),
        ev.CellOutput(output=output, **about),
        ev.CellFinished(status=Status.OK, execution_count=2, **about),
        *([ev.FilesChanged(changes=changes, **about)] if changes else []),
        ev.ResultAdded(status=Status.OK, content=text_content("42"), **about),
        *ending,
    ]


def write(
    workspace: Path,
    session: str,
    *parts: list[Any],
    origin: str = "",
    minute: int = 0,
    journal: bool = True,
    notebook: bool = False,
) -> Path:
    """A session on disk, begun at that minute of an hour."""
    start = ev.SessionStarted(
        session_id=session,
        format_version=FORMAT_VERSION,
        harness_version="0",
        model="openai:m",
        workspace="/w",
        kernel="k",
        origin={"kind": "replay", "session": origin} if origin else {},
    )
    events = [start, *(event for part in parts for event in part)]
    stamp = f"2026-01-01T10:{minute:02d}:00.000+00:00"
    stamped = [event.model_copy(update={"seq": k, "time": stamp}) for k, event in enumerate(events, start=1)]
    path = workspace / FOLDER / session / "journal.jsonl"
    if journal:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(event.model_dump(mode="json")) + "\n" for event in stamped))
    if notebook:
        fold = NotebookFold(session)
        for event in stamped:
            fold.apply(event)
        path.parent.parent.mkdir(parents=True, exist_ok=True)
        (workspace / FOLDER / f"{session}.ipynb").write_text(json.dumps(fold.notebook()))
    return path


def test_a_fingerprint_is_of_words_options_inputs_and_what_came_before() -> None:
    first = fingerprint("Do it.", {"max_turns": 3, "check": ("a", "b")}, {}, "")
    assert first == fingerprint("Do it.", {"check": ["a", "b"], "max_turns": 3}, {}, "")
    assert len(first) == 64 and int(first, 16)
    others = [
        fingerprint("Do it. ", {"max_turns": 3, "check": ("a", "b")}, {}, ""),
        fingerprint("Do it.", {"max_turns": 4, "check": ("a", "b")}, {}, ""),
        fingerprint("Do it.", {"max_turns": 3, "check": ("a", "b")}, {"x": "hash"}, ""),
        fingerprint("Do it.", {"max_turns": 3, "check": ("a", "b")}, {}, first),
    ]
    assert len({first, *others}) == 5


def test_where_and_how_do_not_count() -> None:
    given = {"new": True, "session": "s", "dir": "w", "fresh": True, "replay": True, "base_url": "http://localhost"}
    assert fingerprint("a", given, {}, "") == fingerprint("a", {}, {}, "")
    assert fingerprint("a\ud800", {}, {}, "") != fingerprint("a\ud801", {}, {}, "")


def test_the_chain_builds_on_work_that_counts() -> None:
    one, two = fingerprint("a", {}, {}, ""), fingerprint("b", {}, {}, fingerprint("a", {}, {}, ""))
    assert Chain(work("a", one)).next("b", {}) == two
    failed = [ev.PromptAdded(prompt="a", fingerprint=one), ev.SessionEnded(reason="model_error")]
    assert Chain(failed).last == ""
    assert Chain(work("a", one, reason="interrupted")).last == one
    assert Chain(work("a", one, reason="interrupted", model="replay:s")).last == ""
    assert Chain(work("a", one, model="replay:s")).last == one
    assert Chain(work("a", "")).last == one


def test_a_recording_has_what_is_needed_to_play_and_to_compare(tmp_path: Path) -> None:
    change = ev.FileChange(path="a.txt", before=None, after="1" * 64, size=3)
    write(tmp_path, "s1", work("a", "f1"), work("b", "f2", call_id="c2", changes=(change,)))
    found = find_recording(tmp_path, "f2")
    assert found is not None
    assert (found.session, found.prompt, found.reason, found.replayed) == ("s1", "b", "finished", False)
    assert [message.text for message in found.replies] == ["About b."]
    (call,) = found.calls
    assert (call.call_id, call.status, call.execution_count, call.source) == ("c2", Status.OK, 2, "print(42)")
    assert call.approval is not None and call.approval.approved
    assert call.digest == outcome_digest([{"output_type": "stream", "name": "stdout", "text": "42\n"}])
    assert found.changes == (change,)
    assert recorded_changes(tmp_path, "s1") == [change]
    assert [each.prompt for each in recordings_of(tmp_path, "s1")] == ["a", "b"]
    assert recordings_of(tmp_path, "s2") == []


@pytest.mark.parametrize(
    ("reason", "counts"),
    [("finished", True), ("limit", True), ("rejected", True), ("interrupted", False), ("model_error", False)],
)
def test_only_work_that_came_to_its_end_counts(tmp_path: Path, reason: str, counts: bool) -> None:
    write(tmp_path, "s1", work("a", "f1", reason=reason))
    assert (find_recording(tmp_path, "f1") is not None) is counts


def test_work_that_is_open_or_has_no_reply_does_not_count(tmp_path: Path) -> None:
    write(tmp_path, "s1", work("a", "f1", reason="open"))
    write(tmp_path, "s2", [ev.PromptAdded(prompt="b", fingerprint="f2"), ev.SessionEnded(reason="limit")])
    assert find_recording(tmp_path, "f1") is None
    assert find_recording(tmp_path, "f2") is None
    assert find_recording(tmp_path / "nowhere", "f1") is None


def test_the_newest_goes_first_and_the_original_before_its_replay(tmp_path: Path) -> None:
    write(tmp_path, "s1", work("a", "f1"), minute=5)
    write(tmp_path, "s0", work("a", "f1"), minute=1)
    write(tmp_path, "s1-replay", work("a", "f1", model="replay:s1"), work("b", "f2"), origin="s1", minute=9)
    first, second = find_recording(tmp_path, "f1"), find_recording(tmp_path, "f2")
    assert first is not None and first.session == "s1"
    assert second is not None and (second.session, second.origin, second.replayed) == ("s1-replay", "s1", False)
    assert find_recording(tmp_path, "f2", within="s1") == second
    assert find_recording(tmp_path, "f2", within="s0") is None


def test_the_last_try_of_a_prompt_in_one_session_is_taken(tmp_path: Path) -> None:
    write(tmp_path, "s1", work("a", "f1", reason="model_error"), work("a", "f1", printed="43\n"))
    found = find_recording(tmp_path, "f1")
    assert found is not None and found.reason == "finished"


def test_the_notebook_alone_is_enough(tmp_path: Path) -> None:
    change = ev.FileChange(path="a.txt", after="1" * 64)
    write(tmp_path, "s1", work("a", "f1", changes=(change,)), journal=False, notebook=True)
    found = find_recording(tmp_path, "f1")
    assert found is not None and found.calls[0].source == "print(42)"
    write(tmp_path, "s2", work("a", "f1", changes=(change,)), minute=1)
    journal = find_recording(tmp_path, "f1")
    assert journal is not None and journal.session == "s2"
    assert journal.calls == found.calls
    assert recorded_changes(tmp_path, "s1") == [change]


def test_a_journal_with_a_broken_line_is_mended_from_the_notebook_or_does_not_count(tmp_path: Path) -> None:
    path = write(tmp_path, "s1", work("a", "f1"), work("b", "f2"), notebook=True)
    lines = path.read_text().splitlines(keepends=True)
    lines[3] = lines[3][:40] + "\n"
    path.write_text("".join(lines))
    mended = find_recording(tmp_path, "f1")
    assert mended is not None and [message.text for message in mended.replies] == ["About a."]
    (tmp_path / FOLDER / "s1.ipynb").unlink()
    assert find_recording(tmp_path, "f1") is None
    assert find_recording(tmp_path, "f2") is not None


@pytest.mark.parametrize("spoilt", ["twice", "order", "cut"])
def test_a_journal_whose_lines_are_repeated_moved_or_missing_gives_each_reply_once(tmp_path: Path, spoilt: str) -> None:
    path = write(tmp_path, "s1", work("a", "f1"), work("b", "f2"), notebook=True)
    lines = path.read_text().splitlines(keepends=True)
    match spoilt:
        case "twice":
            lines[3:3] = lines[3:8]
        case "order":
            lines[2], lines[3] = lines[3], lines[2]
        case _:
            del lines[3:]
    path.write_text("".join(lines))
    for found in (find_recording(tmp_path, "f1"), recordings_of(tmp_path, "s1")[0]):
        assert found is not None and found.whole
        assert [message.text for message in found.replies] == ["About a."]
        assert [call.status for call in found.calls] == [Status.OK]
    assert [each.prompt for each in recordings_of(tmp_path, "s1")] == ["a", "b"]


def test_a_record_of_which_something_is_lost_keeps_its_end_and_says_why_it_is_not_played(tmp_path: Path) -> None:
    path = write(tmp_path, "s1", work("a", "f1"), work("b", "f2", reason="interrupted"))
    lines = path.read_text().splitlines(keepends=True)
    lines[9] = "broken\n"
    path.write_text("".join(lines))
    first, second = recordings_of(tmp_path, "s1")
    assert (first.reason, first.broken, first.whole) == ("finished", True, False)
    assert (second.reason, second.broken, second.whole) == ("interrupted", False, False)
    assert find_recording(tmp_path, "f1") is None
    assert "Lines of its record in s1 are lost; `harness-nb replay s1`" in why_not_played(tmp_path, "f1")
    assert "not to an end (interrupted): `harness-nb resume s1`" in why_not_played(tmp_path, "f2")
    assert why_not_played(tmp_path, "f3") == ""


def test_what_cannot_be_read_or_is_newer_is_passed_over(tmp_path: Path) -> None:
    path = write(tmp_path, "s1", work("a", "f1"))
    folder = tmp_path / FOLDER
    for name in ("s2", "s3"):
        write(tmp_path, name, work("a", "f1"), notebook=True, minute=9)
        journal = folder / name / "journal.jsonl"
        text = journal.read_text()
        journal.write_text(text.replace(f'"format_version": {FORMAT_VERSION}', '"format_version": 99'))
    write(tmp_path, "s4", work("a", "f1"), minute=9).unlink()
    (folder / "s4" / "journal.jsonl").mkdir()
    (folder / "f1.ipynb").write_text("[" * 100_000 + "f1")
    os.mkfifo(folder / "pipe.ipynb")
    (folder / "s5").mkdir()
    (folder / "s5" / "journal.jsonl").write_text('{"type": "prompt_added", "prompt": "f1"}\n' + "[" * 100_000)
    found = find_recording(tmp_path, "f1")
    assert found is not None and found.session == "s1" and path.exists()
    assert recorded_changes(tmp_path, "s5") == []


def test_a_folder_full_of_sessions_is_looked_through_quickly(tmp_path: Path) -> None:
    big = work("other", "f0", printed="line of output 1234\n" * 20_000)
    for number in range(200):
        write(tmp_path, f"s{number:03d}", work(str(number), f"mark-{number:03d}"), *([big] if number % 4 else [[]]))
    started = time.monotonic()
    found = find_recording(tmp_path, "mark-100")
    elapsed = time.monotonic() - started
    assert found is not None and found.prompt == "100"
    assert find_recording(tmp_path, "mark-200") is None
    assert elapsed < 10


def stream(text: str, name: str = "stdout") -> dict[str, Any]:
    return {"output_type": "stream", "name": name, "text": text}


PICTURE = {"output_type": "display_data", "data": {"image/png": "AAAA", "text/plain": "<Figure>"}, "metadata": {}}
ERROR = {"output_type": "error", "ename": "ValueError", "evalue": "no", "traceback": ["line 1"]}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([stream("loss 0.5123, 3.2 s\n")], [stream("loss 0.49, 12 s\n")]),
        ([stream("a\nb\n")], [stream("a\n"), stream("b\n")]),
        ([stream("<x at 0x7f00aa>")], [stream("<x at 0x7f11bbcc>")]),
        ([PICTURE], [{**PICTURE, "data": {"image/png": "BBBB", "text/plain": "<Other>"}}]),
        ([ERROR], [{**ERROR, "traceback": ["line 2"]}]),
        ([], [stream("\n")]),
    ],
)
def test_what_wobbles_does_not_count(one: list[Any], other: list[Any]) -> None:
    assert outcome_digest(one) == outcome_digest(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([stream("a")], [stream("b")]),
        ([stream("a")], [stream("a", "stderr")]),
        ([stream("a")], []),
        ([PICTURE], [PICTURE, PICTURE]),
        ([PICTURE], [ERROR]),
        ([ERROR], [{**ERROR, "evalue": "yes"}]),
    ],
)
def test_what_says_something_else_counts(one: list[Any], other: list[Any]) -> None:
    assert outcome_digest(one) != outcome_digest(other)
