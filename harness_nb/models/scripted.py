"""``scripted:FILE.json``: a model whose replies are written down. For demos, tests and work without a network.

A script is a JSON list of replies, played in order; the last one repeats::

    [{"text": "…", "calls": [{"name": "bash", "arguments": {"command": "ls"}}],
      "usage": {"input_tokens": 1, "output_tokens": 1}},
     {"error": {"status": 429, "code": "rate_limit_exceeded", "message": "…", "retry_after": 1}}, …]

All fields are optional, but a reply needs a text, a call or an error. Beyond that a reply may have

* ``reasoning``: a text that is streamed before the reply, as a summary of its reasoning;
* ``delay``: seconds between the pieces of the streamed text (default 0);
* ``finish_reason``: ``"length"`` for a reply that is cut off at its output limit;
* ``text`` beside ``error``: what is streamed before the failure, and then withdrawn.

A call may have an ``id``; ``arguments`` may be a text, which is then read as a model's argument text is (so that
malformed ones can be scripted). Errors are the typed ones that a provider's would be, by status and code or by
``"kind"`` (``authentication``, ``quota``, ``overflow``, ``refusal``, ``transient``, ``lasting``; ``cut``, ``timeout``
and ``connection`` for a stream that ends early, silence and a lost connection), and go through the same retries. A
scripted reply costs nothing: ``cost_usd`` is 0 unless the script's ``usage`` says otherwise.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from harness_nb.errors import (
    AuthenticationError,
    ContextOverflowError,
    ModelError,
    QuotaError,
    RefusalError,
    TransientModelError,
    UsageError,
)
from harness_nb.models.calls import read_call, with_unique_ids
from harness_nb.models.estimate import estimate_request
from harness_nb.models.failures import Complaint, model_error
from harness_nb.models.playback import play_reply
from harness_nb.models.retry import Sleep, stream_with_retries
from harness_nb.ports import Delta, ModelSettings
from harness_nb.types import JsonObject, Message, TextPart, ToolSpec, Usage


class ScriptPart(BaseModel):
    """A part of a script: frozen, and strict about names and types."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class ScriptedCall(ScriptPart):
    """One tool call of a reply."""

    name: str = Field(min_length=1)
    arguments: JsonObject | str = Field(default_factory=dict)
    id: str | None = None


ERRORS: dict[str, tuple[type[ModelError], str]] = {
    "authentication": (AuthenticationError, "The script refuses the key."),
    "quota": (QuotaError, "The script has no credit left."),
    "overflow": (ContextOverflowError, "The request is longer than the script's context window."),
    "refusal": (RefusalError, "The script refuses to answer."),
    "transient": (TransientModelError, "The script fails for a moment."),
    "lasting": (ModelError, "The script cannot answer this."),
    "cut": (TransientModelError, "The script ended the stream before the answer was complete."),
    "timeout": (TransientModelError, "The script sent nothing for 600 s."),
    "connection": (TransientModelError, "The connection to the script failed: it was closed."),
}
"""The kinds of errors that a script may raise, with what each says by default."""

ErrorKind = Literal[
    "authentication", "quota", "overflow", "refusal", "transient", "lasting", "cut", "timeout", "connection"
]


class ScriptedError(ScriptPart):
    """A failure in place of a reply, by ``kind`` or as status and code tell it. ``retry_after`` is in seconds."""

    kind: ErrorKind | None = None
    status: int | None = Field(default=None, ge=400, le=599)
    code: str | None = None
    message: str | None = None
    retry_after: float | None = Field(default=None, ge=0)


class ScriptedReply(ScriptPart):
    """One reply. ``delay`` is in seconds."""

    text: str = ""
    calls: list[ScriptedCall] = Field(default_factory=list)
    usage: Usage | None = None
    error: ScriptedError | None = None
    reasoning: str = ""
    finish_reason: Literal["stop", "length", "tool_calls"] | None = None
    delay: float = Field(default=0.0, ge=0, le=10)

    @model_validator(mode="after")
    def _says_something(self) -> ScriptedReply:
        if not (self.text or self.calls or self.error):
            raise ValueError('a reply needs "text", "calls" or "error"')
        if self.error and (self.calls or self.usage or self.finish_reason):
            raise ValueError('a reply with "error" can only have "text" and "reasoning" beside it')
        return self


class ScriptedModel:
    """Plays ``replies``. ``name`` is the spec; ``unplayed`` is how many replies have not had their turn."""

    accepts_images = True
    context_window = None
    searches_web = False

    def __init__(self, name: str, replies: Sequence[ScriptedReply], *, sleep: Sleep = asyncio.sleep) -> None:
        if not replies:
            raise UsageError(f"{name}: a script needs at least one reply.")
        self.name = name
        self._replies = tuple(replies)
        self._played = 0
        self._sleep = sleep

    @property
    def unplayed(self) -> int:
        """Replies that have not had their turn, errors counted."""
        return max(0, len(self._replies) - self._played)

    @property
    def repeats(self) -> int:
        """How often the last reply was given again because the script was over."""
        return max(0, self._played - len(self._replies))

    def assert_used_up(self, *, repeats: int = 0) -> None:
        """For tests and evaluations: the whole script was played, and its last reply not more often than ``repeats``.

        Raises:
            AssertionError: if replies are left, with the first of them, or the work asked for more.
        """
        if self.unplayed:
            first = self._replies[self._played]
            raise AssertionError(
                f"{self.name}: {self.unplayed} of {len(self._replies)} replies were not played; next would be "
                f"{first.model_dump_json(exclude_defaults=True)[:300]}"
            )
        if self.repeats > repeats:
            raise AssertionError(
                f"{self.name}: the script was over, and its last reply was asked for {self.repeats} times more"
            )

    @property
    def price_known(self) -> bool:
        """A script's price is what it says, else 0."""
        return True

    def estimate(self, messages: Sequence[Message], tools: Sequence[ToolSpec], settings: ModelSettings) -> Usage:
        """What the next request will take: the usage of the next reply, as far as the script has one."""
        guess = estimate_request(messages, tools, settings).model_copy(update={"cost_usd": 0.0})
        known = self._next.usage.model_dump(exclude_none=True) if self._next.usage else {}
        return guess.model_copy(update=known)

    def skip(self, replies: int) -> None:
        """Go on behind so many replies; errors that stood before them are passed over with them."""
        given = [number for number, reply in enumerate(self._replies, start=1) if not reply.error]
        if replies:
            self._played = given[min(replies, len(given)) - 1] if given else self._played

    def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> AsyncGenerator[Delta | Message]:
        """See ``ports.Model``. What is asked plays no part; the next reply comes."""
        return stream_with_retries(partial(self._attempt, messages), self._sleep)

    async def aclose(self) -> None:
        """Nothing is held open."""

    async def _attempt(self, messages: Sequence[Message]) -> AsyncGenerator[Delta | Message]:
        reply = self._next
        self._played += 1
        calls = [(call.name, call.arguments) for call in reply.calls]
        async with aclosing(play_reply(reply.text, calls, reasoning=reply.reasoning, delay=reply.delay)) as deltas:
            async for delta in deltas:
                yield delta
        if reply.error:
            raise make_error(reply.error)
        yield self._message(reply, messages)

    @property
    def _next(self) -> ScriptedReply:
        return self._replies[min(self._played, len(self._replies) - 1)]

    def _message(self, reply: ScriptedReply, messages: Sequence[Message]) -> Message:
        cut = reply.finish_reason == "length"
        read = [read_call(call.id or "", call.name, call.arguments, cut=cut) for call in reply.calls]
        usage = reply.usage or Usage()
        if usage.cost_usd is None:
            usage = usage.model_copy(update={"cost_usd": 0.0})
        return Message(
            role="assistant",
            content=(TextPart(text=reply.text),) if reply.text else (),
            tool_calls=with_unique_ids(read, messages),
            usage=usage,
            finish_reason=reply.finish_reason or ("tool_calls" if read else "stop"),
            model=self.name,
            provider="scripted",
        )


def make_error(error: ScriptedError) -> ModelError:
    """The typed error that a script asks for."""
    if error.kind is None:
        complaint = Complaint(error.message or "scripted error", code=error.code)
        return model_error("The script", complaint, status=error.status, retry_after=error.retry_after)
    made, text = ERRORS[error.kind]
    return made(error.message or text, code=error.code, status=error.status, retry_after=error.retry_after)


def read_script(path: Path) -> tuple[ScriptedReply, ...]:
    """The replies of a script file.

    Raises:
        UsageError: if the file is not there or is no script; the text names file, reply and field, and what would do.
    """
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"The script {path} cannot be read: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"The script {path} is not JSON: {error}.") from error
    if not isinstance(values, list) or not values:
        raise UsageError(
            f"The script {path} must be a JSON list of at least one reply, like "
            '[{"text": "…", "calls": [{"name": "bash", "arguments": {"command": "ls"}}]}].'
        )
    return tuple(_read_reply(path, number, len(values), value) for number, value in enumerate(values, start=1))


def _read_reply(path: Path, number: int, total: int, value: object) -> ScriptedReply:
    try:
        return ScriptedReply.model_validate_json(json.dumps(value))
    except ValidationError as error:
        problems = "; ".join(_describe(item) for item in error.errors())
        raise UsageError(f"The script {path}, reply {number} of {total}: {problems}.") from error


def _describe(item: Any) -> str:
    """One validation error as a sentence that names the field and says what would do."""
    place = ""
    for part in item["loc"]:
        place += f"[{part}]" if isinstance(part, int) else f".{part}" if place else str(part)
    if item["type"] == "value_error":
        return str(item["ctx"]["error"])
    if item["type"] == "extra_forbidden":
        known: dict[str, type[BaseModel]] = {"calls": ScriptedCall, "error": ScriptedError, "usage": Usage}
        fields = known.get(str(item["loc"][0]), ScriptedReply) if len(item["loc"]) > 1 else ScriptedReply
        return f"there is no field {place!r}; the fields there are {', '.join(fields.model_fields)}"
    if item["type"] == "missing":
        return f"{place!r} is missing"
    return f"{place!r}: {item['msg']}" if place else f"{item['msg']}"
