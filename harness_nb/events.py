"""The events of a session: one discriminated union, in the past tense.

The loop yields them; the session appends each to the journal before the loop goes on; the notebook, the screen, the
cost line and the traces are folds over them. A new kind of event is added to ``Event`` and to each
``match`` over it, which ends in ``assert_never``.

``seq`` (from 1) and ``time`` (UTC, ISO 8601) are stamped by the session when an event is journalled; the loop leaves
them empty, for it has no clock and makes up no numbers.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from harness_nb.types import Approval, Decision, Frozen, JsonObject, Message, Part, Status, ToolCall, Usage


class EventBase(Frozen):
    """What all events carry."""

    seq: int = 0
    time: str = ""


class SessionStarted(EventBase):
    """The first event: what the session is and what it works with.

    ``options`` are the settings that were not default. ``origin`` says where a fork or a replay comes from:
    ``{"kind": "fork" | "replay", "session": ID, "step": N}``; it is empty for a session of its own. ``data_tag`` is the
    tag of this session around what results bring from files, commands and the web.
    """

    type: Literal["session_started"] = "session_started"
    session_id: str
    format_version: int
    harness_version: str
    model: str
    workspace: str
    kernel: str
    options: JsonObject = Field(default_factory=dict)
    environment: JsonObject = Field(default_factory=dict)
    origin: JsonObject = Field(default_factory=dict)
    data_tag: str = ""


class PromptAdded(EventBase):
    """The user's words, byte for byte.

    ``options`` are the settings in force that were not default. ``fingerprint`` is a hash of the words, the options,
    the shared inputs and the prompts before it in the session: work with the same fingerprint may be played again
    instead of done again.
    """

    type: Literal["prompt_added"] = "prompt_added"
    prompt: str
    options: JsonObject = Field(default_factory=dict)
    fingerprint: str = ""


class ModelSwitched(EventBase):
    """From here on another model works than ``before``, or the same one elsewhere.

    Both are specs; ``base_url`` is where it is served, ``None`` for the provider's own address. What only the provider
    of an earlier reply understands (``Message.provider_items``) is not sent from here on.
    """

    type: Literal["model_switched"] = "model_switched"
    model: str
    before: str
    base_url: str | None = None


class ModelRequested(EventBase):
    """A request is about to be sent. ``turn`` counts from 1 within the prompt."""

    type: Literal["model_requested"] = "model_requested"
    turn: int
    model: str
    messages: int


class ModelReplied(EventBase):
    """A whole reply has arrived. ``elapsed`` is in seconds."""

    type: Literal["model_replied"] = "model_replied"
    turn: int
    message: Message
    elapsed: float = 0.0


class CallDecided(EventBase):
    """The policy has judged a call. ``source`` is the cell that the call renders to, empty when it renders to none.

    ``usage`` is what the classifier took, where it was asked.
    """

    type: Literal["call_decided"] = "call_decided"
    call_id: str
    name: str
    call: ToolCall
    source: str
    decision: Decision
    usage: Usage = Usage()


class ApprovalAsked(EventBase):
    """Somebody is being asked."""

    type: Literal["approval_asked"] = "approval_asked"
    call_id: str
    name: str
    decision: Decision


class ApprovalAnswered(EventBase):
    """Somebody, or the rule for "nobody is there", has answered."""

    type: Literal["approval_answered"] = "approval_answered"
    call_id: str
    name: str
    approval: Approval


class CellStarted(EventBase):
    """The source is about to run in the tool kernel."""

    type: Literal["cell_started"] = "cell_started"
    call_id: str
    name: str
    source: str


class CellOutput(EventBase):
    """A change of a cell's outputs, which are a list in nbformat's form.

    ``append`` adds ``output`` at the end, except that stream text of the same name as the last output is joined to
    it; ``set`` replaces ``outputs[index]``, or adds it at the end; ``clear`` empties the list. A ``transient`` event
    is an in-between state of something that is still changing: it is shown and not stored, and a lasting one always
    follows.
    """

    type: Literal["cell_output"] = "cell_output"
    call_id: str
    name: str
    op: Literal["append", "set", "clear"] = "append"
    output: JsonObject | None = None
    index: int | None = None
    transient: bool = False


class CellFinished(EventBase):
    """The cell has ended. ``elapsed`` is in seconds.

    ``names`` is the manifest of the kernel's namespace after it, latest first: rows of ``name``, ``type``, ``size`` (a
    text such as ``1000 x 5 float64``) and ``cell`` (the execution count that made it). ``None`` where it
    is not known, or has not changed.
    """

    type: Literal["cell_finished"] = "cell_finished"
    call_id: str
    name: str
    status: Status
    execution_count: int | None = None
    elapsed: float = 0.0
    names: tuple[JsonObject, ...] | None = None


UNKNOWN_CONTENT = "unknown"
"""Stands for the hash of a file that was there and was never read, because it is too large."""


class FileChange(Frozen):
    """How one file of the workspace changed. ``path`` is relative, with ``/``.

    ``before`` and ``after`` are SHA-256 in hexadecimal, ``None`` where there was no file, ``UNKNOWN_CONTENT`` where
    there was one that was not read; ``size`` is in bytes, of the file as it is now. ``kept`` says whether the content
    after the change is in the session's file store; of a big file only hash and size are known.
    """

    path: str
    before: str | None = None
    after: str | None = None
    size: int = 0
    kept: bool = True


class FilesChanged(EventBase):
    """What a call changed in the workspace, as seen after it; comes before the call's ``result_added``.

    ``name`` is ``outside`` and ``call_id`` is ``outside`` for changes that somebody else made between two prompts.
    """

    type: Literal["files_changed"] = "files_changed"
    call_id: str
    name: str
    changes: tuple[FileChange, ...]


class NetworkUsed(EventBase):
    """What a call has had from one host over the network, or was refused; comes before the call's ``result_added``.

    ``call_id`` and ``name`` are ``outside`` for what was reached between calls and by the checks of a finish.
    ``host`` is a name or an address, ``reason`` says why it was refused, or could not be had although it is
    ``allowed``. ``connections`` counts those that the call has begun, ``sent`` and ``received`` are bytes. Where tool
    code shares the machine's network, nobody looks, and there are no such events.
    """

    type: Literal["network_used"] = "network_used"
    call_id: str
    name: str
    host: str
    port: int
    allowed: bool
    reason: str = ""
    connections: int = 0
    sent: int = 0
    received: int = 0


class ResultAdded(EventBase):
    """The result of a call joins the conversation. ``content`` is what the model gets."""

    type: Literal["result_added"] = "result_added"
    call_id: str
    name: str
    status: Status
    content: tuple[Part, ...]


class ContextOffloaded(EventBase):
    """A whole output went to a file; the conversation keeps head, tail and the path. Sizes are of the whole text."""

    type: Literal["context_offloaded"] = "context_offloaded"
    call_id: str
    name: str
    path: str
    bytes: int
    lines: int


class ContextCompacted(EventBase):
    """Old messages were summarised: the first ``dropped`` messages are replaced by ``summary``, a user message.

    ``reason`` says why, for people. ``model`` is the spec of the model that was asked to summarise, empty where none
    was; ``usage`` and ``elapsed`` (seconds) are of its reply.
    """

    type: Literal["context_compacted"] = "context_compacted"
    summary: str
    dropped: int
    reason: str = ""
    model: str = ""
    usage: Usage = Usage()
    elapsed: float = 0.0


class Nudged(EventBase):
    """The harness said a word to the model; it reads as a user message."""

    type: Literal["nudged"] = "nudged"
    reason: str
    text: str


class PlanUpdated(EventBase):
    """The model's checklist."""

    type: Literal["plan_updated"] = "plan_updated"
    steps: tuple[JsonObject, ...]


class CheckFinished(EventBase):
    """The harness has run one check in a fresh process. ``output`` is bounded; ``elapsed`` is in seconds."""

    type: Literal["check_finished"] = "check_finished"
    command: str
    passed: bool
    exit_code: int | None
    output: str
    elapsed: float


class FinishAccepted(EventBase):
    """The work counts as finished. ``checks`` is the number of checks that passed."""

    type: Literal["finish_accepted"] = "finish_accepted"
    summary: str
    checks: int


class FinishRejected(EventBase):
    """A finish did not count; ``reason`` goes back to the model. ``final`` when the cap on refusals is reached."""

    type: Literal["finish_rejected"] = "finish_rejected"
    reason: str
    final: bool = False


class LimitReached(EventBase):
    """A bound stopped the work. ``limit`` is ``turns``, ``cost``, ``minutes``, or ``tokens``."""

    type: Literal["limit_reached"] = "limit_reached"
    limit: str
    text: str


class Warned(EventBase):
    """Something that the person should know and that stops nothing."""

    type: Literal["warned"] = "warned"
    text: str


class SessionEnded(EventBase):
    """The work on one prompt has ended. A later prompt continues the session.

    ``reason`` is ``finished``, ``limit``, ``rejected``, ``denied`` (too many calls in a row), ``model_error``,
    ``kernel_error`` or ``interrupted``; ``usage`` and ``turns`` are of this prompt, ``elapsed`` is in seconds.
    """

    type: Literal["session_ended"] = "session_ended"
    reason: Literal["finished", "limit", "rejected", "denied", "model_error", "kernel_error", "interrupted"]
    text: str = ""
    turns: int = 0
    usage: Usage = Usage()
    elapsed: float = 0.0


Event = Annotated[
    SessionStarted
    | PromptAdded
    | ModelSwitched
    | ModelRequested
    | ModelReplied
    | CallDecided
    | ApprovalAsked
    | ApprovalAnswered
    | CellStarted
    | CellOutput
    | CellFinished
    | FilesChanged
    | NetworkUsed
    | ResultAdded
    | ContextOffloaded
    | ContextCompacted
    | Nudged
    | PlanUpdated
    | CheckFinished
    | FinishAccepted
    | FinishRejected
    | LimitReached
    | Warned
    | SessionEnded,
    Field(discriminator="type"),
]

CallEvent = CallDecided | ApprovalAsked | ApprovalAnswered | CellStarted | CellOutput | CellFinished | ResultAdded
"""The events about one call, in the order in which they come."""

EVENT_ADAPTER: TypeAdapter[Event] = TypeAdapter(Event)


def usage_of(event: EventBase) -> Usage | None:
    """What an event says that a model has taken: a reply, a summary, a judgement; ``None`` for all other events."""
    match event:
        case ModelReplied():
            return event.message.usage or Usage()
        case ContextCompacted() if event.model:
            return event.usage
        case CallDecided() if event.decision.judgement or event.decision.no_verdict:
            return event.usage
        case _:
            return None


def parse_event(value: dict[str, Any]) -> Event:
    """The event that a journal line holds.

    Raises:
        pydantic.ValidationError: if the object is not an event of a known type.
    """
    return EVENT_ADAPTER.validate_python(value)
