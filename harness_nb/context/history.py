"""The conversation as a fold over events. Pure; the loop keeps one, resume builds one from a journal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness_nb.events import (
    ContextCompacted,
    Event,
    ModelReplied,
    ModelRequested,
    ModelSwitched,
    Nudged,
    PlanUpdated,
    PromptAdded,
    ResultAdded,
    SessionStarted,
)
from harness_nb.types import JsonObject, Message, Status, ToolCall, text_content, text_message

INTERRUPTED_RESULT = (
    "The call has no result: it was interrupted, and whether it took effect is unknown. Look before you repeat it."
)


class Conversation:
    """The messages behind the system prompt, in order.

    ``apply`` takes every event and uses those that say something. What a compaction has dropped is not sent any more,
    and stays in ``history``; ``start`` is the place there of the first message that is still sent, ``summary`` stands
    for those before it. ``prompts`` are the places of the person's words, ``plan`` is the model's checklist. ``model``
    is the spec of the model that was asked last, and ``base_url`` where.
    """

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.history: list[Message] = []
        self.prompts: list[int] = []
        self.summary: Message | None = None
        self.start = 0
        self.plan: Sequence[JsonObject] = ()
        self.model = ""
        self.base_url: str | None = None
        self._open: dict[str, ToolCall] = {}
        for event in events:
            self.apply(event)

    def apply(self, event: Event) -> None:
        """Fold one event in."""
        match event:
            case PromptAdded():
                self._close_open_calls()
                self.plan, self.base_url = (), event.options.get("base_url", self.base_url)
                self.prompts.append(len(self.history))
                self.history.append(text_message("user", event.prompt))
            case Nudged():
                self.history.append(text_message("user", event.text))
            case ModelReplied():
                self._close_open_calls()
                self.history.append(event.message)
                self._open = {call.call_id: call for call in event.message.tool_calls}
            case ResultAdded() if event.call_id in self._open:
                del self._open[event.call_id]
                self.history.append(
                    Message(role="tool", call_id=event.call_id, content=event.content, status=event.status)
                )
            case ContextCompacted():
                self._compact(event)
            case PlanUpdated():
                self.plan = event.steps
            case SessionStarted():
                self.base_url = event.options.get("base_url")
            case ModelRequested():
                self.model = event.model
            case ModelSwitched():
                self.model, self.base_url = event.model, event.base_url
                self._drop_provider_items()
            case _:
                pass

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages that are sent."""
        summary = () if self.summary is None else (self.summary,)
        return (*summary, *self.history[self.start :])

    @property
    def open_calls(self) -> tuple[ToolCall, ...]:
        """Calls of the last reply that have no result yet."""
        return tuple(self._open.values())

    def _compact(self, event: ContextCompacted) -> None:
        """Put the summary in the place of the first messages. A result never stands without its call.

        The figures of the replies behind it are dropped with them: they count a conversation that is no longer sent.
        """
        self.start = min(self.start + event.dropped - (self.summary is not None), len(self.history))
        while self.start < len(self.history) and self.history[self.start].role == "tool":
            self.start += 1
        self.summary = text_message("user", event.summary)
        self.history[self.start :] = [
            message.model_copy(update={"usage": None}) if message.usage else message
            for message in self.history[self.start :]
        ]

    def _drop_provider_items(self) -> None:
        """Take out what only the provider of a reply understands, and only of its own model: text and calls stay."""
        for place, message in enumerate(self.history):
            if message.provider_items:
                self.history[place] = message.model_copy(update={"provider_items": (), "provider": None})

    def _close_open_calls(self) -> None:
        """Providers refuse a history in which a call has no result, so a lost one gets a result that says so."""
        for call_id in self._open:
            self.history.append(
                Message(role="tool", call_id=call_id, content=text_content(INTERRUPTED_RESULT), status=Status.UNKNOWN)
            )
        self._open = {}
