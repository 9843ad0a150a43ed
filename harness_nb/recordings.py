"""What sessions have recorded, found by fingerprint: work on a prompt that may be played again instead of done again.

The magics and the command line look here before they need a model; ``replaying`` plays what is found. A recording is
the part of a session's journal that is about one prompt; where there is no journal, the session notebook serves.
Nothing is written here, and nothing of a kernel or a model is imported.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness_nb import events as ev
from harness_nb.context import words
from harness_nb.errors import StoreError, UsageError
from harness_nb.journal import JOURNAL
from harness_nb.notebook import FORMAT_VERSION
from harness_nb.outputs import apply_output
from harness_nb.outputs.outcome import outcome_digest
from harness_nb.record import read_record
from harness_nb.record_parts import UNREADABLE, parsed, read_notebook, read_parts, with_gaps
from harness_nb.store import FOLDER, session_ids
from harness_nb.types import Approval, JsonObject, Message, Status

ENDED_WELL = ("finished", "limit", "rejected", "denied")
"""Reasons of ``SessionEnded`` after which the work on a prompt is a whole that can be played."""

REPLAY = "replay:"
"""How the model of a played turn is named: ``replay:SESSION``."""

WHERE_AND_HOW = frozenset({"session", "new", "dir", "fresh", "replay", "base_url"})
"""Options that say where the work is kept and how it is come by, not what is to be done."""

_VERSION = "harness_nb prompt 1"


def fingerprint(prompt: str, options: Mapping[str, Any], shared: Mapping[str, str], previous: str) -> str:
    """SHA-256, in hexadecimal, of all that decides whether recorded work is the answer to this prompt. Pure.

    ``options`` are those given in the call, by field name; those that say only where and how are left out. ``shared``
    are the inputs that were shared, a hash by name. ``previous`` is the fingerprint of the prompt before it in the
    session, empty for the first.
    """
    told = {name: value for name, value in options.items() if name not in WHERE_AND_HOW}
    value = [_VERSION, prompt, told, dict(shared), previous]
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


class Chain:
    """The fingerprints of a session's prompts, one built on the other. Takes every event of the session.

    ``last`` is what the next prompt builds on. A prompt counts when its work ended well, or when it ran code with a
    model: what failed before anything ran, and what was only played and did not come to its end, leaves no trace.
    """

    def __init__(self, events: Iterable[ev.Event] = ()) -> None:
        self.last = ""
        self._open = ""
        self._played = False
        for event in events:
            self.apply(event)

    def next(self, prompt: str, options: Mapping[str, Any]) -> str:
        """The fingerprint of a prompt that comes now."""
        return fingerprint(prompt, options, {}, self.last)

    def apply(self, event: ev.Event) -> None:
        """Fold one event in."""
        match event:
            case ev.PromptAdded():
                self._open = event.fingerprint or self.next(event.prompt, event.options)
            case ev.ModelRequested():
                self._played = event.model.startswith(REPLAY)
            case ev.CellStarted() if self._open and not self._played:
                self.last = self._open
            case ev.SessionEnded() if self._open and event.reason in ENDED_WELL:
                self.last = self._open
            case _:
                pass


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """What one call came to. ``digest`` is ``outcome_digest`` of its outputs, ``approval`` what a person answered.

    ``cut``: the work was stopped in this call or before it.
    """

    call_id: str
    name: str
    source: str = ""
    status: Status | None = None
    digest: str = ""
    execution_count: int | None = None
    approval: Approval | None = None
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Recording:
    """The recorded work on one prompt.

    ``changes`` are the changes of files by this work, in their order; ``replayed`` says whether this work was itself
    played from a recording; ``origin`` is the session that the session was a replay of, where it is one. ``limit`` is
    the limit that ended it, ``time`` when it ended. ``copied`` says whether the session began with a copy of
    another. ``stops`` says after how many replies the work was stopped, by a person, a limit or a crash, before it was
    resumed; ``broken`` whether lines of the record are lost.
    ``previous`` is the fingerprint that it builds on; ``find_recording`` does not look for it.
    """

    session: str
    prompt: str
    fingerprint: str
    reason: str
    previous: str = ""
    text: str = ""
    time: str = ""
    options: JsonObject = field(default_factory=dict)
    replies: tuple[Message, ...] = ()
    calls: tuple[RecordedCall, ...] = ()
    changes: tuple[ev.FileChange, ...] = ()
    limit: ev.LimitReached | None = None
    replayed: bool = False
    origin: str = ""
    copied: bool = False
    stops: tuple[int, ...] = ()
    broken: bool = False

    @property
    def whole(self) -> bool:
        """Whether the work came to an end that can be played, and nothing of it is lost."""
        return bool(self.replies) and self.reason in ENDED_WELL and not self.broken


def find_recording(workspace: Path, fingerprint: str, within: str | None = None) -> Recording | None:
    """The newest recorded work with this fingerprint in the sessions of ``workspace``, or ``None``.

    Work that a model did goes before work that was played. ``within`` narrows it to a session and the replays of it:
    what follows a played prompt must come from the same line. Only the parts that hold the fingerprint are parsed.
    """
    found = [
        recording
        for recording in _all_with(workspace, fingerprint)
        if recording.whole and (within is None or within in (recording.session, recording.origin))
    ]
    return max(found, key=lambda found: (not found.replayed, found.time, not found.copied), default=None)


def why_not_played(workspace: Path, fingerprint: str) -> str:
    """Why none of the recorded work with this fingerprint can be played, with the way out; empty if there is none."""
    found = [each for each in _all_with(workspace, fingerprint) if each.replies and not each.whole]
    if not found:
        return ""
    latest = max(found, key=lambda each: (not each.replayed, each.time))
    if latest.broken:
        return f"Lines of its record in {latest.session} are lost; `harness-nb replay {latest.session}` plays the rest."
    went = f"It was worked on in {latest.session}, but not to an end ({latest.reason})"
    return f"{went}: `harness-nb resume {latest.session}` goes on with it."


def _all_with(workspace: Path, fingerprint: str) -> Iterator[Recording]:
    for session, path in _records(workspace):
        yield from _with_fingerprint(workspace, session, path, fingerprint)


def find_in_session(workspace: Path, session: str, prompt: str, options: Mapping[str, Any]) -> Recording | None:
    """The latest work of a session on this prompt with these options, wherever in the session it stands."""
    for recording in reversed(recordings_of(workspace, session)):
        if recording.whole and fingerprint(prompt, options, {}, recording.previous) == recording.fingerprint:
            return recording
    return None


def recordings_of(workspace: Path, session: str) -> list[Recording]:
    """The recorded work of a session, prompt by prompt, however it ended; empty where there is no such session.

    Raises:
        UsageError: if nothing of it can be read.
    """
    if session not in dict(_records(workspace)):
        return []
    return list(_recordings(session, with_gaps(read_record(workspace, session)[0])))


def recorded_changes(workspace: Path, session: str) -> list[ev.FileChange]:
    """Every change of a file that a session has recorded, in its order."""
    folder = workspace / FOLDER
    path = folder / session / JOURNAL
    if path.is_file():
        lines = path.read_bytes().split(b"\n")
        events: Iterable[ev.Event] = parsed(line for line in lines if b'"files_changed"' in line)
    else:
        events = read_notebook(folder / f"{session}.ipynb")
    return [change for event in events if isinstance(event, ev.FilesChanged) for change in event.changes]


def _records(workspace: Path) -> Iterator[tuple[str, Path]]:
    """Each session's record: its journal, or its notebook where there is no journal."""
    folder = workspace / FOLDER
    for session in session_ids(workspace):
        journal = folder / session / JOURNAL
        yield session, journal if journal.is_file() else folder / f"{session}.ipynb"


def _with_fingerprint(workspace: Path, session: str, path: Path, fingerprint: str) -> list[Recording]:
    """The recordings of one session that have the fingerprint. A file without it is read and not parsed.

    Where a journal lacks something of that part, the notebook of the session may have it.
    """
    try:
        data = path.read_bytes()
        if fingerprint.encode("ascii") not in data:
            return []
        events = read_parts(data, fingerprint) if path.suffix == ".jsonl" else read_notebook(path)
        found = list(_recordings(session, events))
        if path.suffix == ".jsonl" and not all(each.whole for each in found if each.fingerprint == fingerprint):
            found = recordings_of(workspace, session)
    except (OSError, UsageError, StoreError):
        return []
    return [recording for recording in found if recording.fingerprint == fingerprint]


def _recordings(session: str, events: Iterable[ev.Event]) -> Iterator[Recording]:
    """The events of a session as one recording a prompt."""
    origin: JsonObject = {}
    part, chain = None, Chain()
    for event in events:
        if isinstance(event, ev.SessionStarted):
            origin = event.origin
            if event.format_version > FORMAT_VERSION:
                return
        if isinstance(event, ev.PromptAdded):
            if part is not None:
                yield part.recording()
            mark = event.fingerprint or chain.next(event.prompt, event.options)
            part = Part(session, origin, event, mark, chain.last)
        elif part is not None:
            part.apply(event)
        chain.apply(event)
    if part is not None:
        yield part.recording()


class Part:
    """The events about one prompt on their way to a recording; ``mark`` is its fingerprint, built on ``previous``."""

    def __init__(
        self, session: str, origin: JsonObject, prompt: ev.PromptAdded, mark: str = "", previous: str = ""
    ) -> None:
        self._session, self._origin, self._prompt = session, origin, prompt
        self._mark, self._previous = mark, previous
        self._replies: list[Message] = []
        self._calls: dict[str, JsonObject] = {}
        self._outputs: dict[str, list[JsonObject]] = {}
        self._changes: list[ev.FileChange] = []
        self._limit: ev.LimitReached | None = None
        self._ended: ev.SessionEnded | None = None
        self._replayed = False
        self._broken = False
        self._cut_off: list[str] = []
        self._stops: list[int] = []

    def apply(self, event: ev.Event) -> None:
        """Fold one event in."""
        match event:
            case ev.ModelRequested():
                self._replayed |= event.model.startswith(REPLAY)
                self._cut_off = []
            case ev.Nudged() if event.reason == words.GOING_ON:
                self._stops.append(len(self._replies))
                for call_id in self._cut_off:
                    self._calls[call_id]["cut"] = True
            case ev.ModelReplied():
                self._replies.append(event.message)
            case ev.FilesChanged() if event.call_id != "outside":
                self._changes += event.changes
            case ev.LimitReached():
                self._limit = event
            case ev.SessionEnded():
                self._ended = event
            case ev.Warned():
                self._broken |= event.text == UNREADABLE
            case _:
                self._apply_call(event)

    def _apply_call(self, event: ev.Event) -> None:
        match event:
            case ev.CallDecided() if (
                "approval" in self._calls.get(event.call_id, {}) and "status" not in self._calls[event.call_id]
            ):
                pass  # as a person has changed it; what was asked about stays
            case ev.CallDecided():
                self._calls[event.call_id] = {"name": event.name, "source": event.source}
                self._cut_off = []
            case ev.ApprovalAnswered() if "status" not in self._calls.get(event.call_id, {}):
                self._learn(event, approval=event.approval)
            case ev.CellOutput():
                apply_output(self._outputs.setdefault(event.call_id, []), event)
            case ev.CellFinished():
                self._learn(event, status=event.status, execution_count=event.execution_count)
            case ev.ResultAdded():
                self._learn(event, status=self._calls.get(event.call_id, {}).get("status", event.status))
                self._cut_off += [event.call_id] if event.status in (Status.INTERRUPTED, Status.UNKNOWN) else []
            case _:
                pass

    def _learn(self, event: ev.ApprovalAnswered | ev.CellFinished | ev.ResultAdded, **facts: Any) -> None:
        self._calls.setdefault(event.call_id, {"name": event.name}).update(facts)

    def _cut_at_the_end(self) -> None:
        """Mark what the end of the work cut off: calls that were stopped, and those that have no end."""
        calls = self._replies[-1].tool_calls if self._replies else ()
        for call in (call for call in calls if call.name != "finish"):
            self._calls.setdefault(call.call_id, {"name": call.name})
            if call.call_id in self._cut_off or self._calls[call.call_id].get("status") is None:
                self._calls[call.call_id]["cut"] = True

    def recording(self) -> Recording:
        """What there is of it."""
        ended = self._ended or ev.SessionEnded(reason="interrupted", text="the record ends in the middle of the work")
        if ended.reason not in ENDED_WELL:
            self._cut_at_the_end()
        return Recording(
            session=self._session,
            prompt=self._prompt.prompt,
            fingerprint=self._mark,
            previous=self._previous,
            reason=ended.reason,
            text=ended.text,
            time=ended.time,
            options=self._prompt.options,
            replies=tuple(self._replies),
            calls=tuple(
                RecordedCall(call_id=call_id, digest=outcome_digest(self._outputs.get(call_id, ())), **facts)
                for call_id, facts in self._calls.items()
            ),
            changes=tuple(self._changes),
            limit=self._limit,
            replayed=self._replayed,
            origin=str(self._origin.get("session", "")) if self._origin.get("kind") == "replay" else "",
            copied="events" in self._origin,
            stops=tuple(self._stops),
            broken=self._broken,
        )
