"""Records that are damaged, renamed, cut short or edited: what can be read is read, and what is lost is said."""

from __future__ import annotations

import json
import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import nbformat
import pytest
from test_record_cases import (
    Listed,
    assert_accepted,
    call,
    done,
    go_on,
    journal_of,
    lines_of,
    opened,
    reply,
    send,
    two_steps,
)

from harness_nb import events as ev
from harness_nb.approval import DenyApprover
from harness_nb.errors import StoreError, UsageError
from harness_nb.notebook import FORMAT_VERSION, events_of, readable_events
from harness_nb.past import spent_on_last_prompt
from harness_nb.record import latest_session, list_sessions, read_record, saved_state, usable_options
from harness_nb.session import Session
from harness_nb.settings import Settings
from harness_nb.store import SessionStore
from harness_nb.types import Message, Status


def notebook_of(session: Session) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(session.notebook_path.read_bytes())
    return parsed


def write(session: Session, notebook: dict[str, Any]) -> None:
    session.notebook_path.write_text(json.dumps(notebook, indent=1, sort_keys=True))


def recorded(path: Path) -> list[ev.Event]:
    return [event for event in events_of(json.loads(path.read_bytes())) if not isinstance(event, ev.CellOutput)]


def assert_one_record(session: Session) -> dict[str, Any]:
    """Journal and notebook say the same, in the same numbers; the notebook is valid."""
    events, warnings = read_record(session.workspace, session.id)
    assert warnings == []
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert recorded(session.notebook_path) == [event for event in events if not isinstance(event, ev.CellOutput)]
    nbformat.validate(nbformat.read(session.notebook_path, as_version=4))
    return notebook_of(session)


async def test_a_journal_of_which_only_the_start_is_left_goes_on_with_the_notebook(tmp_path: Path) -> None:
    session = await two_steps(tmp_path)
    journal_of(session).write_bytes(b"".join(journal_of(session).read_bytes().splitlines(keepends=True)[:6]))
    model, events = await go_on(session)
    assert_accepted(model.requests[0])
    texts = "".join(message.text for message in model.requests[0])
    assert "one\n" in texts and "two\n" in texts
    assert any(isinstance(e, ev.Warned) and "events come from the session notebook" in e.text for e in events)
    assert_one_record(session)


async def test_a_journal_in_another_encoding_goes_on_with_the_notebook(tmp_path: Path) -> None:
    session = await two_steps(tmp_path)
    count = len(lines_of(session))
    journal_of(session).write_bytes(journal_of(session).read_text().encode("utf-16"))
    events, warnings = read_record(tmp_path, session.id)
    assert len(events) == count
    assert [text.split(",")[0] for text in warnings[:1]] == ["journal.jsonl"] and len(warnings) == 2
    await go_on(session)
    assert_one_record(session)
    assert journal_of(session).with_name("journal.set-aside.txt").stat().st_size


async def test_a_crash_between_journal_and_notebook_of_a_repair_is_no_damage(tmp_path: Path) -> None:
    """The journal has new numbers, the notebook the old and higher ones."""
    session = await two_steps(tmp_path)
    lines = lines_of(session)
    del lines[3:5]
    journal_of(session).write_text("".join(json.dumps({**line, "seq": n}) + "\n" for n, line in enumerate(lines, 1)))
    events, warnings = read_record(tmp_path, session.id)
    assert len(events) == len(lines) + 2 and len(warnings) == 1
    notebook = notebook_of(session)
    for cell in notebook["cells"]:
        told = cell["metadata"]["harness_nb"]["events"]
        told[:] = [event for event in told if event["seq"] not in (4, 5)]
    write(session, notebook)
    events, warnings = read_record(tmp_path, session.id)
    assert len(events) == len(lines) and warnings == []
    await go_on(session)
    assert_one_record(session)


def edit_of_a_person(notebook: dict[str, Any]) -> None:
    """A cell added at the front, our second step deleted, our first step edited, two cells swapped."""
    cells = notebook["cells"]
    cells.insert(0, {"cell_type": "markdown", "id": "mine", "metadata": {}, "source": "my words"})
    cells.remove(next(cell for cell in cells if cell["source"] == "b"))
    next(cell for cell in cells if cell["source"] == "a")["source"] = "a  # mine"
    cells.insert(2, cells.pop(3))


async def test_the_notebook_alone_goes_on_with_what_a_person_made_of_it(tmp_path: Path) -> None:
    session = await two_steps(tmp_path)
    shutil.rmtree(journal_of(session).parent)
    notebook = notebook_of(session)
    edit_of_a_person(notebook)
    order = [cell["source"] for cell in notebook["cells"]]
    write(session, notebook)
    model, _ = await go_on(session)
    assert_accepted(model.requests[0])
    after = assert_one_record(session)
    sources = ["".join(cell["source"]) for cell in after["cells"]]
    assert sources[: len(order)] == order
    assert sources.count("my words") == sources.count("a  # mine") == 1 and "b" not in sources
    assert "c" in sources[len(order) :]
    assert [path.name for path in session.notebook_path.parent.glob("*.ipynb")] == [session.notebook_path.name]


async def test_a_notebook_that_was_renamed_is_the_session_of_its_new_name(tmp_path: Path) -> None:
    session = await two_steps(tmp_path)
    shutil.rmtree(journal_of(session).parent)
    notebook = notebook_of(session)
    notebook["cells"].append({"cell_type": "markdown", "id": "mine", "metadata": {}, "source": "my words"})
    write(session, notebook)
    folder = session.notebook_path.parent
    session.notebook_path.rename(folder / "my work.ipynb")
    assert [summary.id for summary in list_sessions(tmp_path)] == ["my work"]
    model = Listed(reply(call("c4", code="c")), done("c5"))
    async with opened(tmp_path, model, session="my work") as again:
        await send(again, "And a third.")
    after = assert_one_record(again)
    assert "my words" in [cell["source"] for cell in after["cells"]]
    assert after["metadata"]["harness_nb"]["session_id"] == "my work"
    assert [path.name for path in folder.glob("*.ipynb")] == ["my work.ipynb"]


@pytest.mark.parametrize("where", ["journal", "notebook", "notebook alone"])
async def test_what_a_newer_version_wrote_is_refused_and_left_as_it_is(tmp_path: Path, where: str) -> None:
    session = await two_steps(tmp_path)
    newer = FORMAT_VERSION + 1
    old, new = f'"format_version": {FORMAT_VERSION}', f'"format_version": {newer}'
    path = journal_of(session) if where == "journal" else session.notebook_path
    path.write_text(path.read_text().replace(old, new))
    if where == "notebook alone":
        shutil.rmtree(journal_of(session).parent)
    before = path.read_bytes()
    with pytest.raises(UsageError, match=rf"format version is {newer}, .* up to {FORMAT_VERSION}. Update harness-nb"):
        await go_on(session)
    assert path.read_bytes() == before
    (summary,) = list_sessions(tmp_path)
    assert summary.status == "unreadable" and "Update harness-nb" in summary.title


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"null",
        b"[]",
        b"\xff\xfe\x00",
        b"[" * 200_000,
        b'{"cells": [,]}',
        b'{"cells": null, "metadata": {"harness_nb": {"format_version": 2}}}',
        b'{"cells": [1], "metadata": {"harness_nb": {"format_version": 2}}}',
        b'{"cells": [{"outputs": [3], "metadata": {"harness_nb": {"events": 7}}}],'
        b' "metadata": {"harness_nb": {"format_version": 2}}}',
        b'{"cells": [{"outputs": null, "metadata": {"harness_nb": {"events": [{"seq": "a"}, {"seq": 1}]}}}],'
        b' "metadata": {"harness_nb": {"format_version": 2}}}',
    ],
)
async def test_a_notebook_of_any_content_does_no_harm(tmp_path: Path, content: bytes) -> None:
    session = await two_steps(tmp_path)
    session.notebook_path.write_bytes(content)
    assert read_record(tmp_path, session.id)[1] == []
    shutil.rmtree(journal_of(session).parent)
    with pytest.raises(UsageError, match=f"Nothing of the session {session.id} can be read: "):
        read_record(tmp_path, session.id)
    assert [summary.status for summary in list_sessions(tmp_path)] == ["unreadable"]


async def test_one_damaged_cell_of_a_notebook_alone_costs_one_event(tmp_path: Path) -> None:
    session = await two_steps(tmp_path)
    shutil.rmtree(journal_of(session).parent)
    notebook = notebook_of(session)
    cell = next(cell for cell in notebook["cells"] if cell["source"] == "a")
    told = cell["metadata"]["harness_nb"]["events"]
    next(event for event in told if event["type"] == "result_added")["content"] = 5
    write(session, notebook)
    with pytest.raises(StoreError, match=f"cell '{cell['id']}' is damaged: it is no event"):
        events_of(notebook)
    assert len(readable_events(notebook)[1]) == 1
    model, events = await go_on(session)
    assert_accepted(model.requests[0])
    assert "has no result" in "".join(message.text for message in model.requests[0])
    assert any(isinstance(event, ev.Warned) and cell["id"] in event.text for event in events)
    assert_one_record(session)


async def test_a_pipe_or_a_folder_in_place_of_the_notebook_is_not_waited_for(tmp_path: Path) -> None:
    session = await two_steps(tmp_path)
    session.notebook_path.unlink()
    os.mkfifo(session.notebook_path)
    assert saved_state(session.notebook_path) == (None, None)
    async with opened(tmp_path, Listed(), session=session.id) as again:
        pass
    assert_one_record(again)


async def test_a_notebook_that_is_moved_aside_by_the_last_save_is_told(tmp_path: Path) -> None:
    session = await two_steps(tmp_path)
    session.notebook_path.write_text("<<<<<<< HEAD")
    again = await Session.open(Settings.load(tmp_path, {"session": session.id}, {}), DenyApprover(), model=Listed())
    (told,) = await again.aclose()
    assert "is not a notebook that can be read. It is kept as" in told
    assert_one_record(session)
    async with opened(tmp_path, Listed(done("c9")), session=session.id) as again:
        session.notebook_path.write_text("=======")
        events = await send(again, "Once more.")
    assert any(isinstance(event, ev.Warned) and ".aside-2.ipynb" in event.text for event in events)
    assert_one_record(session)


async def test_a_record_without_its_beginning_is_gone_on_with(tmp_path: Path) -> None:
    session = await two_steps(tmp_path)
    session.notebook_path.unlink()
    lines = [line for line in lines_of(session) if line["type"] not in ("session_started", "prompt_added")]
    journal_of(session).write_text("".join(json.dumps(line) + "\n" for line in lines))
    await go_on(session)
    assert_one_record(session)


def test_the_latest_session_is_one_in_which_something_was_recorded(tmp_path: Path) -> None:
    for name in ("a", "b"):
        store = SessionStore(tmp_path, name)
        store.append(ev.Warned(text=name))
        store.close()
    store = SessionStore(tmp_path, "c")
    (tmp_path / "harness_sessions/d-replay").mkdir()
    (tmp_path / "harness_sessions/d-replay/journal.jsonl").write_bytes(b"")
    assert latest_session(tmp_path) == "b"
    store.close()
    (tmp_path / "harness_sessions/b/journal.jsonl").write_bytes(b'{"seq": 1, "tor')
    assert latest_session(tmp_path) == "a"
    assert [summary.id for summary in list_sessions(tmp_path)] == ["a"]
    (tmp_path / "harness_sessions/a/journal.jsonl").write_bytes(b"\0" * 100 + b"\n")
    with pytest.raises(UsageError, match="There is no session in"):
        latest_session(tmp_path)


TURN = ev.ModelReplied(turn=1, message=Message(role="assistant"))
UNKNOWN = ev.CellFinished(call_id="c", name="bash", status=Status.UNKNOWN)
GOING_ON = ev.Nudged(reason="work resumed", text="go on")


@pytest.mark.parametrize(
    ("timed", "seconds"),
    [
        ([(0, TURN), (7, TURN)], 7),
        ([(0, TURN), (3, TURN), (90_000, GOING_ON), (90_004, TURN)], 7),
        ([(0, TURN), (3, TURN), (90_000, UNKNOWN), (90_000.1, GOING_ON), (90_004, TURN)], 7),
        ([(0, TURN), (3, TURN), (90_000, UNKNOWN), (90_001, GOING_ON), (180_000, GOING_ON), (180_003, TURN)], 6),
        ([(0, TURN), (5, TURN), (2, TURN)], 5),
    ],
)
def test_the_time_between_a_crash_and_its_resumption_does_not_count(
    timed: list[tuple[float, ev.Event]], seconds: float
) -> None:
    def at(moment: float) -> str:
        return (datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=moment)).isoformat()

    events = [ev.PromptAdded(prompt="x", time=at(0)), *(e.model_copy(update={"time": at(t)}) for t, e in timed)]
    assert spent_on_last_prompt(events).seconds == pytest.approx(seconds, abs=1.2)


@pytest.mark.parametrize("time", ["", "yesterday", "2026-13-01"])
def test_a_time_that_cannot_be_read_is_no_time(time: str) -> None:
    assert spent_on_last_prompt([ev.PromptAdded(prompt="x"), TURN.model_copy(update={"time": time})]).seconds == 0


def test_options_that_this_version_does_not_know_are_named_and_left_out() -> None:
    recorded: dict[str, Any] = {"model": "scripted:a.json", "galaxy": 1, "policy": "strict", "max_turns": 3}
    assert usable_options([ev.PromptAdded(prompt="x", options=recorded)]) == (
        {"model": "scripted:a.json", "max_turns": 3},
        ["galaxy", "policy"],
    )
