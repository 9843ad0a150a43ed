"""What holds after every kill, and what holds at the end. Raises ``AssertionError`` with what does not."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import nbformat
from kill_story import effects_in, journal_of

from harness_nb import events as ev
from harness_nb.context import Conversation
from harness_nb.events import parse_event
from harness_nb.notebook import NotebookFold, events_of
from harness_nb.types import JsonObject, Message, Status


class Watcher:
    """Looks at the files of one session between two processes, and remembers what it has seen."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace
        self.events: list[ev.Event] = []
        self._saved = 0
        self.kills = 0

    def look(self) -> None:
        """After a kill, or after the end."""
        before = self.events
        self.events = self._journal()
        assert self.events[: len(before)] == before, f"the journal held {len(before)} events and has lost some of them"
        self._notebook()
        self._effects()
        self._files()

    def _journal(self) -> list[ev.Event]:
        journal = journal_of(self._workspace)
        if journal is None:
            return []
        whole, _, torn = journal.read_bytes().rpartition(b"\n")
        lines = whole.split(b"\n") if whole else []
        events = [parse_event(json.loads(line)) for line in lines]
        assert [event.seq for event in events] == list(range(1, len(events) + 1)), "the numbers have gaps"
        assert not torn or not _parses(torn) or self.kills
        return events

    def _notebook(self) -> None:
        """Absent, old or new: the fold of a prefix of the journal, no shorter than the one before."""
        notebooks = list(self._workspace.glob("harness_sessions/*.ipynb"))
        if not notebooks:
            assert not self._saved, "the notebook is gone"
            return
        (path,) = notebooks
        text = path.read_text("utf-8")
        notebook = json.loads(text)
        nbformat.validate(nbformat.reads(text, as_version=4))
        last = max((event.seq for event in events_of(notebook)), default=0)
        assert last >= self._saved, f"the notebook has gone back from event {self._saved} to {last}"
        self._saved = last
        fold = NotebookFold(path.stem)
        for event in self.events:
            if event.seq > last and notebook == _plain(fold.notebook()):
                return
            fold.apply(event)
        assert notebook == _plain(fold.notebook()), f"the notebook, saved at event {last}, is no fold of the journal"

    def _effects(self) -> None:
        """Each happened once at most, and not before it was announced."""
        counts = Counter(self.effects)
        assert not counts or max(counts.values()) == 1, f"an effect happened twice: {counts}"
        announced = [n for event in self.events if isinstance(event, ev.CellStarted) for n in effects_in(event.source)]
        assert set(counts) <= set(announced), f"{set(counts) - set(announced)} happened before they were in the journal"

    @property
    def effects(self) -> list[int]:
        path = self._workspace.parent / "effects"
        return [int(line) for line in path.read_text().split()] if path.exists() else []

    def temporary_files(self) -> list[str]:
        return [path.name for path in self._workspace.rglob("*.tmp")]

    def _files(self) -> None:
        """Temporary files do not pile up; no sibling that nobody asked for; each stored content is whole."""
        names = self.temporary_files()
        piled = sum(".ipynb." in name for name in names) > 1 or len(names) > self.kills + 1
        assert not piled, f"temporary files pile up: {names}"
        assert not list(self._workspace.glob("harness_sessions/*conflict*")), "a conflict where nobody else wrote"
        for path in self._workspace.glob("harness_sessions/*/files/*/*"):
            if not path.name.startswith("."):
                digest = hashlib.sha256(path.read_bytes()).hexdigest()
                assert digest == path.name, f"the content of {path.name[:12]} is not whole"

    def end(self) -> Counter[str]:
        """Everything is there and nothing is open; how many steps ended with which status."""
        assert isinstance(self.events[-1], ev.SessionEnded)
        assert not self.temporary_files(), f"temporary files are left: {self.temporary_files()}"
        notebook = json.loads(next(self._workspace.glob("harness_sessions/*.ipynb")).read_text("utf-8"))
        recorded = [event for event in self.events if not isinstance(event, ev.CellOutput)]
        assert [event for event in events_of(notebook) if not isinstance(event, ev.CellOutput)] == recorded
        fold = NotebookFold(notebook["metadata"]["harness_nb"]["session_id"])
        for event in self.events:
            fold.apply(event)
        assert notebook == _plain(fold.notebook()), "the last notebook is not the fold of the whole journal"
        check_messages(Conversation(self.events).messages)
        return self._statuses()

    def _statuses(self) -> Counter[str]:
        """Each call has one result, each cell one end, and they say what has happened to its effect."""
        calls = [call for e in self.events if isinstance(e, ev.ModelReplied) for call in e.message.tool_calls]
        results = Counter(event.call_id for event in self.events if isinstance(event, ev.ResultAdded))
        assert results == Counter(call.call_id for call in calls), f"not one result a call: {results}"
        started = Counter(event.call_id for event in self.events if isinstance(event, ev.CellStarted))
        finished = Counter(event.call_id for event in self.events if isinstance(event, ev.CellFinished))
        assert started == finished and set(started.values()) == {1}, f"not one end a cell: {started} {finished}"
        sources = {event.call_id: event.source for event in self.events if isinstance(event, ev.CellStarted)}
        statuses: Counter[str] = Counter()
        for event in self.events:
            if not isinstance(event, ev.ResultAdded) or event.name == "finish":
                continue
            statuses[event.status] += 1
            happened = sum(self.effects.count(number) for number in effects_in(sources.get(event.call_id, "")))
            match event.status:
                case Status.OK:
                    assert happened == 1, f"{event.call_id} is ok, and its effect is not there"
                case Status.UNKNOWN:
                    assert event.call_id in sources, f"{event.call_id} is unknown, and never started"
                case Status.DENIED | Status.INTERRUPTED:
                    assert event.call_id not in sources, f"{event.call_id} is {event.status}, and it ran"
                case _:
                    raise AssertionError(f"{event.call_id} is {event.status}")
        return statuses


def check_messages(messages: Sequence[Message]) -> None:
    """A provider would take them: each call of a reply has its one result before anybody speaks again."""
    owed: list[str] = []
    for message in messages:
        if message.role == "tool":
            assert message.call_id in owed, f"a result that no call asked for: {message.call_id}"
            owed.remove(str(message.call_id))
        else:
            assert not owed, f"no result for {owed} before the next {message.role} message"
            owed = [call.call_id for call in message.tool_calls]
    assert not owed, f"no result for {owed}"


def _plain(notebook: JsonObject) -> JsonObject:
    plain: JsonObject = json.loads(json.dumps(notebook))
    return plain


def _parses(line: bytes) -> bool:
    try:
        parse_event(json.loads(line))
    except ValueError:
        return False
    return True
