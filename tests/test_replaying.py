"""Playing a recording: its answers, what counts as different, the ground that a replay stands on."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from harness_nb import events as ev
from harness_nb.approval import DenyApprover, FixedApprover
from harness_nb.files import FileStore
from harness_nb.journal import journal_line
from harness_nb.notebook import NotebookFold
from harness_nb.recordings import Part, RecordedCall, Recording
from harness_nb.replay_ground import ReplayGround
from harness_nb.replaying import Playing, RecordedApprover, compare, summary_line
from harness_nb.types import Approval, Decision, Message, Status, TextPart, ToolCall

ASK = Decision(verdict="ask", reason="it deletes", policy="p")
OK = RecordedCall("c1", "bash", "%%bash\nls", Status.OK, "d1", 3)
REPLY = Message(role="assistant", content=(TextPart(text="Hi."),))


def recording(**changes: Any) -> Recording:
    made: dict[str, Any] = {"prompt": "p", "fingerprint": "f", "reason": "finished", "replies": (REPLY,), **changes}
    return Recording("s1", **made)


def changed(call: RecordedCall, **changes: Any) -> RecordedCall:
    fields = {name: getattr(call, name) for name in RecordedCall.__dataclass_fields__}
    return RecordedCall(**{**fields, **changes})


async def test_a_recorded_answer_holds_once_and_for_its_source() -> None:
    yes = changed(OK, approval=Approval(approved=True, by="person"))
    no = changed(OK, source="%%bash\nrm -r x", approval=Approval(approved=False, reason="keep it"))
    person = FixedApprover()
    approver = RecordedApprover(recording(calls=(yes, no)), person)
    call = ToolCall(call_id="c9", name="bash")
    first = await approver.ask(call, "%%bash\nls", ASK)
    assert (first.approved, first.by) == (True, "person, in the recording")
    assert (await approver.ask(call, "%%bash\nrm -r x", ASK)).reason == "keep it"
    assert person.asked == []
    assert not (await approver.ask(call, "%%bash\nls", ASK)).approved
    assert not (await approver.ask(call, "%%bash\nls -a", ASK)).approved
    assert len(person.asked) == 2
    assert approver.can_answer is False


@pytest.mark.parametrize(
    ("now", "told", "status"),
    [
        ((changed(OK, status=Status.ERROR),), "[3] bash ok → error", True),
        ((changed(OK, digest="d2"),), "[3] bash says something else", False),
        ((), "[3] bash was not reached", True),
        ((OK, changed(OK, name="python", execution_count=None)), "[2] python is new: ok", True),
    ],
)
def test_a_difference_is_named(now: tuple[RecordedCall, ...], told: str, status: bool) -> None:
    (found,) = compare((OK,), now)
    assert (found.text, found.status) == (told, status)


def test_what_was_never_known_is_not_compared() -> None:
    assert compare((changed(OK, status=Status.UNKNOWN),), (OK,)) == []
    assert compare((OK,), (changed(OK, call_id="other", execution_count=9),)) == []


def test_the_line_names_a_few_differences_and_counts_the_rest() -> None:
    calls = tuple(changed(OK, execution_count=number) for number in range(1, 9))
    worse = tuple(changed(call, status=Status.ERROR) for call in calls)
    line = summary_line(recording(calls=calls), compare(calls, worse))
    assert line.startswith("played from the recording of s1: 8 calls, 8 came out differently: [1] bash ok → error; ")
    assert line.endswith("[5] bash ok → error; and 3 more; no model was called; --fresh works anew")
    one = recording(calls=(OK, changed(OK, name="finish")))
    assert summary_line(one, []) == "played from the recording of s1: 1 call, all as recorded; no model was called"


async def used_up(playing: Playing) -> ev.SessionEnded:
    """The end after all replies have been played and one more was asked for."""
    async for _ in playing.model.stream((), (), None):  # type: ignore[arg-type]
        pass
    ended = playing.follow(ev.SessionEnded(reason="model_error", text="used up", turns=2))
    assert isinstance(ended, ev.SessionEnded)
    return ended


async def test_a_recording_that_is_used_up_ends_as_it_was_recorded_or_says_why_not() -> None:
    refused = await used_up(Playing(recording(), DenyApprover()))
    assert (refused.reason, refused.turns, refused.usage.cost_usd) == ("rejected", 1, 0.0)
    assert "its finish did not count this time" in refused.text
    assert "the work: finished → rejected" in refused.text
    stopped = await used_up(Playing(recording(reason="interrupted", text="stopped by the user"), DenyApprover()))
    assert (stopped.reason, "came out differently" in stopped.text) == ("interrupted", False)


def test_a_limit_is_told_as_it_was_recorded() -> None:
    limit = ev.LimitReached(limit="cost", text="$0.5 of $0.5 are spent")
    playing = Playing(recording(reason="limit", text=limit.text, limit=limit), DenyApprover())
    assert playing.limits.max_turns == 1
    assert playing.follow(ev.LimitReached(limit="turns", text="the limit of 1 turn is reached")) == limit
    ended = playing.follow(ev.SessionEnded(reason="limit", text="the limit of 1 turn is reached"))
    assert isinstance(ended, ev.SessionEnded)
    assert ended.text.startswith("$0.5 of $0.5 are spent; played from the recording of s1")


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def session(workspace: Path, name: str, *events: ev.Event, origin: str = "", model: str = "openai:m") -> Path:
    """A session on disk that has these events in its record."""
    start = ev.SessionStarted(
        session_id=name,
        format_version=2,
        harness_version="0",
        model=model,
        workspace="/w",
        kernel="k",
        origin={"kind": "replay", "session": origin} if origin else {},
    )
    all_events = [start, ev.PromptAdded(prompt="p"), ev.ModelRequested(turn=1, model=model, messages=1), *events]
    folder = workspace / "harness_sessions" / name
    folder.mkdir(parents=True)
    stamped = [event.model_copy(update={"seq": number}) for number, event in enumerate(all_events, start=1)]
    (folder / "journal.jsonl").write_text("".join(map(journal_line, stamped)))
    fold = NotebookFold(name)
    for event in stamped:
        fold.apply(event)
    folder.with_suffix(".ipynb").write_text(json.dumps(fold.notebook()))
    return folder


def replay(workspace: Path, name: str, *events: ev.Event) -> Path:
    return session(workspace, name, *events, origin="s1", model="replay:s1")


def test_the_next_replay_takes_the_place_of_the_last(tmp_path: Path) -> None:
    session(tmp_path, "s1")
    folder = replay(tmp_path, "s1-replay")
    ground = ReplayGround.make(tmp_path, recording())
    assert (ground.session, ground.base) == ("s1-replay", "s1")
    assert not folder.exists() and not folder.with_suffix(".ipynb").exists()
    assert (tmp_path / "harness_sessions/s1").is_dir()


def test_what_is_more_than_a_replay_or_in_use_or_edited_stays(tmp_path: Path) -> None:
    live = replay(tmp_path, "s1-replay", ev.ModelRequested(turn=1, model="openai:m", messages=1))
    held = replay(tmp_path, "s1-replay-2")
    edited = replay(tmp_path, "s1-replay-3")
    notebook = json.loads(edited.with_suffix(".ipynb").read_text())
    notebook["cells"].append({"id": "mine", "cell_type": "code", "source": "my = 1", "metadata": {}, "outputs": []})
    edited.with_suffix(".ipynb").write_text(json.dumps(notebook))
    with FileLock(held / ".lock"):
        assert ReplayGround.make(tmp_path, recording()).session == "s1-replay-4"
    assert live.is_dir() and held.is_dir() and edited.is_dir()


def test_the_record_that_is_played_is_not_removed(tmp_path: Path) -> None:
    folder = replay(tmp_path, "s1-replay")
    made = recording(replayed=True, origin="s1")
    played = Recording(
        "s1-replay", **{name: getattr(made, name) for name in made.__dataclass_fields__ if name != "session"}
    )
    assert ReplayGround.make(tmp_path, played).session == "s1-replay-2"
    assert folder.is_dir()


def change(path: str, before: str | None, after: str | None) -> ev.FileChange:
    return ev.FileChange(path=path, before=before and sha(before), after=after and sha(after))


@pytest.fixture
def ground(tmp_path: Path) -> ReplayGround:
    """A recording changed ``a`` from one to two, a later prompt to three; an earlier replay left it at 3.1."""
    changes = (change("a", "one", "two"), change("a", "two", "three"), change("new", None, "made"))
    folder = session(tmp_path, "s1", ev.FilesChanged(call_id="c1", name="bash", changes=changes))
    (tmp_path / "a").write_text("one")
    FileStore(folder, tmp_path).keep("a")
    return ReplayGround(tmp_path, "s1", "s1-replay", [change("a", "one", "3.1")])


PLAYED = recording(changes=(change("a", "one", "two"), change("new", None, "made")))


@pytest.mark.parametrize("present", ["two", "three", "3.1"])
def test_files_are_put_back_from_any_state_that_the_record_knows(
    tmp_path: Path, ground: ReplayGround, present: str
) -> None:
    (tmp_path / "a").write_text(present)
    (tmp_path / "new").write_text("made")
    told = ground.put_files_back(PLAYED)
    assert (tmp_path / "a").read_text() == "one"
    assert not (tmp_path / "new").exists()
    assert told == ["For the replay, put back to how they were at the start of the recorded work: a, new."]
    kept = [path.read_text() for path in tmp_path.glob("harness_sessions/*/files/*/*")]
    assert present in kept and "made" in kept


def test_files_that_are_as_they_were_are_not_spoken_of(tmp_path: Path, ground: ReplayGround) -> None:
    assert ground.put_files_back(PLAYED) == []
    assert (tmp_path / "a").read_text() == "one"


def test_a_persons_change_is_left_alone_and_named(tmp_path: Path, ground: ReplayGround) -> None:
    (tmp_path / "a").write_text("my own")
    (tmp_path / "new").write_text("my own, too")
    told = ground.put_files_back(PLAYED)
    assert told == ["Left alone, for they have been changed since the recording: a, new."]
    assert (tmp_path / "a").read_text() == "my own"
    assert (tmp_path / "new").read_text() == "my own, too"


def test_what_this_replay_has_made_is_as_it_should_be(tmp_path: Path, ground: ReplayGround) -> None:
    (tmp_path / "a").write_text("two, today")
    today = change("a", "one", "two, today")
    ground.apply(ev.FilesChanged(call_id="c1", name="bash", changes=(today,)))
    assert ground.put_files_back(recording(changes=(change("a", "two", "three"),))) == []
    assert (tmp_path / "a").read_text() == "two, today"


def test_a_content_that_is_not_kept_is_said(tmp_path: Path, ground: ReplayGround) -> None:
    (tmp_path / "a").write_text("three")
    told = ground.put_files_back(recording(changes=(change("a", "two", "three"),)))
    assert told == ["Left as they are, for their content at the start of the recorded work is not kept: a."]


def test_a_record_that_names_files_outside_changes_none(tmp_path: Path, ground: ReplayGround) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.write_text("made")
    path = f"../{outside.name}"
    evil = change(path, None, "made")
    folder = tmp_path / "harness_sessions/s1/journal.jsonl"
    line = journal_line(ev.FilesChanged(call_id="c1", name="bash", changes=(evil,)))
    folder.write_text(folder.read_text() + line)
    told = ground.put_files_back(recording(changes=(evil,)))
    assert outside.read_text() == "made"
    assert told == [f"Not put back: {path} (they are outside the workspace)."]


async def test_work_whose_record_has_gaps_ends_as_it_ended_and_says_so() -> None:
    playing = Playing(recording(broken=True, calls=(OK,)), DenyApprover(""))
    ended = playing.follow(ev.SessionEnded(reason="finished", turns=1))
    assert isinstance(ended, ev.SessionEnded) and ended.reason == "finished"
    assert "lines of that record are lost" in ended.text
    assert [difference.text for difference in playing.differences] == ["[3] bash was not reached"]


@pytest.mark.parametrize("ended", ["killed", "interrupted"])
def test_what_was_cut_off_at_the_end_of_a_record_is_not_run_again(ended: str) -> None:
    """It may never end. A call behind it in the same reply, which was never judged, counts too; ``finish`` does not."""
    calls = [ToolCall(call_id=f"c{number}", name="python", arguments={"code": "x"}) for number in range(3)]
    finish = ToolCall(call_id="c3", name="finish", arguments={"summary": "Done."})
    allow = Decision(verdict="allow", reason="", policy="p")
    part = Part("s1", {}, ev.PromptAdded(prompt="p"))
    part.apply(ev.ModelReplied(turn=1, message=Message(role="assistant", tool_calls=(*calls, finish))))
    for call in calls[:2]:
        about: Any = {"call_id": call.call_id, "name": "python"}
        part.apply(ev.CallDecided(**about, call=call, source="x", decision=allow))
        part.apply(ev.CellStarted(**about, source="x"))
        if call is calls[0]:
            part.apply(ev.CellFinished(**about, status=Status.OK))
            part.apply(ev.ResultAdded(**about, status=Status.OK, content=()))
    if ended == "interrupted":
        part.apply(ev.CellFinished(call_id="c1", name="python", status=Status.INTERRUPTED))
        for call in (*calls[1:], finish):
            about = {"call_id": call.call_id, "name": call.name}
            part.apply(ev.ResultAdded(**about, status=Status.INTERRUPTED, content=()))
        part.apply(ev.SessionEnded(reason="interrupted"))
    found = part.recording()
    assert (found.reason, [call.call_id for call in found.calls if call.cut]) == ("interrupted", ["c1", "c2"])
    playing = Playing(found, DenyApprover(""))
    playing.follow(ev.ModelReplied(turn=1, message=found.replies[0]))
    assert [playing.pass_over(call, "x") is not None for call in (*calls, finish)] == [False, True, True, False]
