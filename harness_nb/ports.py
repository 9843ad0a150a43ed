"""The protocols at the edges: ``Model``, ``Kernel``, ``Approver``.

Each has a fake that ships and one behaviour suite that every implementation passes. The loop knows these and nothing
of the libraries behind them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from harness_nb.types import Approval, Decision, JsonObject, Judgement, Message, Status, ToolCall, ToolSpec, Usage


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the reply's text, for the screen only."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """A piece of a reasoning summary, for the screen only."""

    text: str


@dataclass(frozen=True, slots=True)
class CallDelta:
    """A piece of the argument text of a tool call, as it comes in, for the screen only. ``name`` is the tool's."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """What was streamed since the request is withdrawn: the attempt failed and is made again.

    ``reason`` is a sentence for the person (``rate limit, trying again in 2 s``). Screens mark the partial text.
    """

    reason: str


Delta = TextDelta | ReasoningDelta | CallDelta | Withdrawn


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """What a request may ask for beyond messages and tools; ``None`` leaves the provider's default.

    ``web_search`` offers the model the provider's own search of the web.
    """

    max_output_tokens: int | None = None
    temperature: float | None = None
    reasoning_effort: str | None = None
    cache_key: str | None = None
    web_search: bool = False


@runtime_checkable
class Played(Protocol):
    """A model whose replies were there before: a script or a record. Work that is resumed goes on in it."""

    def skip(self, replies: int) -> None:
        """Go on behind so many replies, which have been given already."""
        ...


@runtime_checkable
class Foreseeable(Protocol):
    """A model that says before a request what it will take. Models behind HTTP and scripts do, a replay need not.

    The loop keeps limits with it and shortens a conversation in time; the session refuses what cannot be kept.
    """

    @property
    def context_window(self) -> int | None:
        """Tokens, in and out together; ``None`` where it is not known."""
        ...

    @property
    def price_known(self) -> bool:
        """Whether a reply can be priced."""
        ...

    @property
    def searches_web(self) -> bool:
        """Whether the API has a search of the web of its own, which ``ModelSettings.web_search`` offers the model."""
        ...

    def estimate(self, messages: Sequence[Message], tools: Sequence[ToolSpec], settings: ModelSettings) -> Usage:
        """Tokens in and out of the next request, and US dollars (``None`` where the price is not known)."""
        ...


@dataclass(frozen=True, slots=True)
class Offer:
    """A model that a server offers: its name there, and its context window in tokens where the server says it."""

    name: str
    context_window: int | None = None


@runtime_checkable
class Listing(Protocol):
    """A model whose server can say which models it has. ``host`` is how the server is named to people."""

    @property
    def host(self) -> str:
        """The server."""
        ...

    async def offered(self) -> Sequence[Offer]:
        """The models of the server, in its order.

        Raises:
            ModelError: if it does not say.
        """
        ...


class Model(Protocol):
    """A language model. The loop calls ``stream`` once a turn.

    ``name`` is the spec that made it (``openai:gpt-6-luna``); ``accepts_images`` says whether image parts may be sent.
    """

    name: str
    accepts_images: bool

    def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> AsyncGenerator[Delta | Message]:
        """Yield deltas and then exactly one assistant ``Message``, which ends the generator.

        Raises:
            ModelError: when no whole reply could be had, after the adapter's own retries. No half answer is yielded.
        """
        ...

    async def aclose(self) -> None:
        """Release connections. Called once by the session that made the model."""
        ...


@dataclass(frozen=True, slots=True)
class Output:
    """One output of a running cell, as the kernel sent it.

    ``kind`` is the iopub message type: ``stream`` {name, text}, ``display_data`` and ``execute_result`` {data,
    metadata}, ``update_display_data`` {data, metadata}, ``error`` {ename, evalue, traceback}, ``clear_output``
    {wait}. ``display_id`` is set on displays that can be updated.
    """

    kind: Literal["stream", "display_data", "execute_result", "update_display_data", "error", "clear_output"]
    content: JsonObject
    display_id: str | None = None


@dataclass(frozen=True, slots=True)
class ExecuteReply:
    """How an execution ended; always the last thing that ``Kernel.execute`` yields.

    ``detail`` is a clause for the model where the status alone does not say it (the signal that killed the kernel,
    what is lost). ``extra`` may hold ``timeout`` (seconds, where it was reached), ``names`` (the manifest of the
    namespace), ``names_lost``, and ``words``, what a dying kernel printed last.
    """

    status: Status
    execution_count: int | None = None
    ename: str | None = None
    evalue: str | None = None
    detail: str = ""
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HostUse:
    """What tool code has had from one host over the network, or was refused.

    ``host`` is a name or an address; ``reason`` says why it was refused, or could not be had although ``allowed``.
    ``connections`` is how many were begun, ``sent`` and ``received`` are bytes as the code sent and got them.
    """

    host: str
    port: int
    allowed: bool
    reason: str = ""
    connections: int = 0
    sent: int = 0
    received: int = 0


class Kernel(Protocol):
    """The separate kernel that tool code runs in. The session makes one and closes it; the loop executes on it.

    ``answers`` is who answers the questions of tool code; the session sets it before ``start``.
    """

    name: str
    answers: Answers | None

    @property
    def python(self) -> str:
        """The program that runs tool code, as a path or a name on the PATH."""
        ...

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment that tool code and the harness's checks run in: without keys."""
        ...

    @property
    def sandbox(self) -> str:
        """What confines tool code here, in sentences; empty where nobody can say."""
        ...

    def explain(self, text: str) -> str:
        """Why the sandbox may have refused what ``text``, a failed call's, complains of; empty if it did not."""
        ...

    def network_use(self) -> Sequence[HostUse]:
        """The hosts that tool code has reached or was refused since this was last asked; empty where nobody looks."""
        ...

    def wrap(self, command: Sequence[str]) -> list[str]:
        """The command line that runs ``command`` confined as tool code is; as it stands where tool code is not.

        It is to be started with ``environment``, and runs in the workspace where there is a sandbox; files outside that
        it names by absolute paths can be read by it.
        """
        ...

    @property
    def holds_copies(self) -> bool:
        """Whether the sandbox can put a copy into the workspace's place, as ``wrap_copy`` does."""
        ...

    def wrap_copy(self, command: Sequence[str], copy: Path, shared: Sequence[Path]) -> list[str]:
        """As ``wrap``, with the folder ``copy`` at the workspace's path, and in it ``shared``, originals, read-only."""
        ...

    async def start(self) -> None:
        """Start it, unless it runs. ``execute`` does so by itself; the session starts it ahead.

        Raises:
            KernelError: if it does not start.
        """
        ...

    def execute(
        self, source: str, timeout: float | None = None, *, beside: bool = False
    ) -> AsyncGenerator[Output | ExecuteReply]:
        """Run ``source`` as one cell: yield its outputs as they come, then one ``ExecuteReply``.

        ``timeout`` is in seconds; past it the cell is interrupted (then killed) and the reply says ``timed_out``. A
        second call waits until the first has ended, unless it says ``beside``: then it runs while another cell is
        running, and outputs do not mix. A kernel that has died is started afresh by the next call. Closing the
        generator early interrupts its cell.

        Raises:
            KernelError: when no kernel can be started.
        """
        ...

    async def interrupt(self) -> None:
        """Interrupt the running cell, if any (not one that runs beside it); its ``execute`` then ends by itself."""
        ...

    async def restart(self) -> None:
        """Kill the kernel with all its children and start a fresh one. Names are lost."""
        ...

    async def aclose(self) -> None:
        """End the kernel and all its children."""
        ...


class Answers(Protocol):
    """Whoever answers when tool code calls ``input()`` or ``getpass()``. The tool kernel asks it."""

    @property
    def can_answer(self) -> bool:
        """Whether a person is there to answer. Cheap: it is looked at before each cell.

        Where it is false, the code gets a clear error as soon as it asks, and ``answer`` is not called.
        """
        ...

    async def answer(self, question: str, *, secret: bool) -> str | None:
        """The line that the person gives to ``input(question)``, or to ``getpass(question)`` if ``secret``.

        ``None`` where nobody can answer after all; the code then gets the same error. It is cancelled when the cell
        ends while the question is open.
        """
        ...


@dataclass(frozen=True, slots=True)
class Question:
    """One call that a classifier is to judge.

    ``words`` are the user's own, all prompts of the session in order: the only ones that are trusted. ``untrusted``
    says that text from files, outputs or the web stands right before the call in the conversation.
    """

    call: ToolCall
    source: str
    words: Sequence[str]
    workspace: str
    untrusted: bool = False


class Judge(Protocol):
    """A safety classifier with two questions: how risky is a call, and do the user's words cover it?"""

    name: str

    async def judge(self, question: Question) -> tuple[Judgement, Usage]:
        """The judgement, and what it took.

        Raises:
            ModelError: where there is no verdict: a refusal, a timeout, an answer that is no number.
        """
        ...

    async def aclose(self) -> None:
        """Release connections."""
        ...


class Approver(Answers, Protocol):
    """Whoever answers when a policy says "ask"; the loop asks. The same person answers the questions of tool code."""

    async def ask(self, call: ToolCall, source: str, decision: Decision) -> Approval:
        """Return the answer. Where nobody can answer it returns a denial at once; it never waits in vain."""
        ...
