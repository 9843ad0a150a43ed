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
malformed ones can be scripted). Errors are the typed ones that a provider's would be, and go through the same
retries. A scripted reply costs nothing: ``cost_usd`` is 0 unless the script's ``usage`` says otherwise.
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

from harness_nb.errors import UsageError
from harness_nb.models.calls import read_call, with_unique_ids
from harness_nb.models.failures import Complaint, model_error
from harness_nb.models.playback import play_text
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


class ScriptedError(ScriptPart):
    """A failure in place of a reply. ``retry_after`` is in seconds."""

    status: int | None = Field(default=None, ge=400, le=599)
    code: str | None = None
    message: str = "scripted error"
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
        reply = self._replies[min(self._played, len(self._replies) - 1)]
        self._played += 1
        async with aclosing(play_text(reply.text, reasoning=reply.reasoning, delay=reply.delay)) as deltas:
            async for delta in deltas:
                yield delta
        if reply.error:
            complaint = Complaint(reply.error.message, code=reply.error.code)
            raise model_error("The script", complaint, status=reply.error.status, retry_after=reply.error.retry_after)
        yield self._message(reply, messages)

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
