"""The values that everything else speaks of: messages, tool calls, results, usage, decisions.

Every layer reads this module; it imports nothing of ours. Values are frozen and carry no behaviour beyond
small derived properties. Terms follow the OpenTelemetry GenAI conventions where there is one.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

JsonObject = dict[str, Any]
"""A JSON object as ``json.loads`` gives it."""


class Frozen(BaseModel):
    """A value: frozen, and strict about unknown fields so that a misspelt name is found at once."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Status(StrEnum):
    """How the execution of one tool call ended. There are more outcomes than two, and none is guessed."""

    OK = "ok"
    ERROR = "error"
    DENIED = "denied"
    INTERRUPTED = "interrupted"
    TIMED_OUT = "timed_out"
    RUNNING = "running"
    KERNEL_DIED = "kernel_died"
    UNKNOWN = "unknown"


class TextPart(Frozen):
    """A piece of plain text in a message."""

    type: Literal["text"] = "text"
    text: str


class ImagePart(Frozen):
    """A picture in a message. ``data`` is base64 without line breaks, ``media_type`` like ``image/png``."""

    type: Literal["image"] = "image"
    media_type: str
    data: str


Part = Annotated[TextPart | ImagePart, Field(discriminator="type")]


class ToolCall(Frozen):
    """One call that a model asks for.

    ``arguments`` is the parsed JSON object. When the model's argument text was not a JSON object,
    ``arguments`` is empty and ``malformed`` keeps the text as it came; such a call is never run.
    """

    call_id: str
    name: str
    arguments: JsonObject = Field(default_factory=dict)
    malformed: str | None = None


class ToolResult(Frozen):
    """What came of one call: ``content`` is for the model, ``outputs`` (nbformat) for the cell and the screen.

    ``elapsed`` is in seconds. ``execution_count`` is the kernel's own, ``None`` when nothing was executed.
    """

    status: Status
    content: tuple[Part, ...]
    outputs: tuple[JsonObject, ...] = ()
    execution_count: int | None = None
    elapsed: float = 0.0


class ToolSpec(Frozen):
    """A tool as a model sees it; ``parameters`` is a JSON Schema object."""

    name: str
    description: str
    parameters: JsonObject


class Usage(Frozen):
    """Tokens and US dollars of one reply, from the provider's own figures.

    ``input_tokens`` includes the cached ones and ``output_tokens`` includes the reasoning ones; ``searches`` are those
    of the web that the provider bills. A figure that the provider did not give is ``None``, which is shown as "unknown"
    and never counted as zero.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_input_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    searches: int | None = None
    cost_usd: float | None = None

    @property
    def total_tokens(self) -> int:
        """Input plus output tokens, unknown figures left out."""
        return (self.input_tokens or 0) + (self.output_tokens or 0)


class Message(Frozen):
    """One entry of a conversation.

    ``provider_items`` are a provider's own items of an assistant reply (reasoning, phase, encrypted content). They are
    opaque here and go back untouched to the provider named in ``provider``.
    ``status`` is set on tool messages. ``finish_reason`` and ``usage`` are set on assistant messages.
    """

    role: Literal["system", "user", "assistant", "tool"]
    content: tuple[Part, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    call_id: str | None = None
    status: Status | None = None
    usage: Usage | None = None
    finish_reason: str | None = None
    model: str | None = None
    provider: str | None = None
    provider_items: tuple[JsonObject, ...] = ()

    @property
    def text(self) -> str:
        """The text parts, joined."""
        return "".join(part.text for part in self.content if isinstance(part, TextPart))


class Judgement(Frozen):
    """What a classifier says of one call: how risky it is, and whether the user's words cover it.

    ``risk`` is the expected level, 0 (low) to 3 (critical), of ``risk_probabilities`` (those of the levels 0, 1, 2, 3,
    which sum to 1). ``authorised`` is a probability. ``method`` says how they were had: ``decisions``, ``labels`` (the
    probabilities of one-token labels), ``samples`` or ``scripted``; ``model`` is the spec of the model that was asked.
    """

    risk: float = Field(ge=0, le=3, allow_inf_nan=False)
    authorised: float = Field(ge=0, le=1, allow_inf_nan=False)
    risk_probabilities: tuple[float, ...] = ()
    method: str = ""
    model: str = ""


class Decision(Frozen):
    """What a policy says of one call.

    ``policy`` names the rule, ``reason`` is a sentence that model and person read. ``judgement`` is the classifier's,
    where it was asked and gave one; ``no_verdict`` says why it gave none, where it was asked and did not.
    """

    verdict: Literal["allow", "ask", "deny"]
    reason: str
    policy: str
    judgement: Judgement | None = None
    no_verdict: str = ""


class Approval(Frozen):
    """The answer to an "ask". ``by`` says who or what answered, ``reason`` is passed on to the model.

    ``scope`` says for what it holds: this call, or all of its kind in the session. ``edited`` is the call that runs
    instead, where the person changed it.
    """

    approved: bool
    reason: str = ""
    by: str = "person"
    scope: Literal["once", "kind"] = "once"
    edited: ToolCall | None = None


class Limits(Frozen):
    """Bounds of one prompt's work; ``None`` means no bound.

    Minutes of wall-clock time, US dollars, tokens in and out together.
    """

    max_turns: int | None = 50
    max_cost: float | None = None
    max_minutes: float | None = None
    max_tokens: int | None = None


def text_message(role: Literal["system", "user"], text: str) -> Message:
    """A message of one text part."""
    return Message(role=role, content=(TextPart(text=text),))


def text_content(text: str) -> tuple[Part, ...]:
    """The content of a tool result that is only text."""
    return (TextPart(text=text),)
