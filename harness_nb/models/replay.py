"""``replay:SESSION``: plays the replies that a session has recorded, in order. No model is called, nothing is spent.

The record is a session's journal, or its notebook, which is enough by itself. ``resolve_model`` makes the model. Token
counts are kept as they were recorded, the cost of a replayed reply is 0.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from harness_nb.errors import ModelError, StoreError, UsageError
from harness_nb.events import Event, ModelReplied, parse_event
from harness_nb.models.calls import with_unique_ids
from harness_nb.models.playback import play_reply
from harness_nb.ports import Delta, ModelSettings
from harness_nb.types import Message, ToolSpec, Usage

SESSIONS = "harness_sessions"
JOURNAL = "journal.jsonl"


class ReplayModel:
    """Plays ``replies``, the assistant messages of a record. ``name`` is the spec."""

    accepts_images = True

    def __init__(self, name: str, replies: Sequence[Message]) -> None:
        self.name = name
        self._replies = tuple(replies)
        self._played = 0

    @property
    def unplayed(self) -> int:
        """Replies that have not had their turn."""
        return len(self._replies) - self._played

    def assert_used_up(self) -> None:
        """For tests and evaluations: the whole record was played.

        Raises:
            AssertionError: if replies are left, with the first of them.
        """
        if self.unplayed:
            first = self._replies[self._played].model_dump_json(include={"content", "tool_calls"})
            raise AssertionError(
                f"{self.name}: {self.unplayed} of {len(self._replies)} replies were not played; next would be "
                f"{first[:300]}"
            )

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> AsyncGenerator[Delta | Message]:
        """See ``ports.Model``. What is asked plays no part; the next recorded reply comes.

        Raises:
            ModelError: when the record is used up.
        """
        if not self.unplayed:
            raise ModelError(
                f"{self.name}: the record is used up; all of its {len(self._replies)} replies have been played. "
                "Go on with a model (--model), or work anew (--fresh)."
            )
        reply = self._replies[self._played]
        self._played += 1
        calls = [(call.name, call.arguments if call.malformed is None else call.malformed) for call in reply.tool_calls]
        async with aclosing(play_reply(reply.text, calls)) as deltas:
            async for delta in deltas:
                yield delta
        yield _as_replayed(reply, messages)

    async def aclose(self) -> None:
        """Nothing is held open."""


def _as_replayed(reply: Message, messages: Sequence[Message]) -> Message:
    """The recorded reply, at no cost, and with ids of its own where the conversation already has them."""
    changes: dict[str, Any] = {"usage": (reply.usage or Usage()).model_copy(update={"cost_usd": 0.0})}
    calls = with_unique_ids(reply.tool_calls, messages)
    if calls != reply.tool_calls:
        changes |= {"tool_calls": calls, "provider_items": ()}
    return reply.model_copy(update=changes)


def find_record(session: str, directory: Path) -> Path:
    """The file that holds the record of ``session``: an id, or the path of a journal, a notebook or a session folder.

    Raises:
        UsageError: if there is none.
    """
    named = directory / session
    sessions = directory / SESSIONS
    candidates = [
        *([named] if named.suffix in (".jsonl", ".ipynb") else []),
        named / JOURNAL,
        Path(f"{named}.ipynb"),
        sessions / session / JOURNAL,
        sessions / f"{session}.ipynb",
    ]
    for path in candidates:
        if path.is_file():
            return path
    raise UsageError(
        f"There is no record of a session {session!r}: neither a session under {sessions} nor a journal, a notebook or "
        "a session folder of that path. `harness-nb sessions` lists the sessions."
    )


def read_replies(path: Path) -> tuple[Message, ...]:
    """The assistant messages that a journal (``.jsonl``) or a session notebook (``.ipynb``) holds, in order.

    Raises:
        UsageError: if the file cannot be read, is broken before its last line, or holds no reply.
    """
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UsageError(f"The record {path} cannot be read: {error.strerror or error}.") from error
    events = _notebook_events(path, text) if path.suffix == ".ipynb" else _journal_events(path, text)
    replies = tuple(event.message for event in events if isinstance(event, ModelReplied))
    if not replies:
        raise UsageError(f"The record {path} holds no reply of a model, so there is nothing to play.")
    return replies


def _journal_events(path: Path, text: str) -> Iterable[Event]:
    """The replies of a journal. A torn last line, as a killed process leaves it, is passed over."""
    lines = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    events: list[Event] = []
    for number, line in lines:
        try:
            value = json.loads(line)
            if value["type"] == "model_replied":
                events.append(parse_event(value))
        except (ValueError, TypeError, KeyError, ValidationError) as error:
            if number == lines[-1][0]:
                break
            raise UsageError(
                f"The record {path} is broken at line {number}, so a reply may be missing. The session's notebook "
                "(.ipynb) holds the same replies; replay that."
            ) from error
    return events


def _notebook_events(path: Path, text: str) -> Iterable[Event]:
    from harness_nb.notebook import events_of

    try:
        return events_of(json.loads(text))
    except (StoreError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise UsageError(f"{path} is not a session notebook that can be read: {error}") from error
