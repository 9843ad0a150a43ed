"""The conversation as a fold over events. Pure; the loop keeps one, resume builds one from a journal."""

from __future__ import annotations

from collections.abc import Iterable

from harness_nb.events import Event, ModelReplied, Nudged, PromptAdded, ResultAdded
from harness_nb.types import Message, Status, ToolCall, text_content, text_message

INTERRUPTED_RESULT = (
    "The call has no result: it was interrupted, and whether it took effect is unknown. Look before you repeat it."
)


class Conversation:
    """The messages behind the system prompt, in order.

    ``apply`` takes every event and uses those that say something.
    """

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self._messages: list[Message] = []
        self._open: dict[str, ToolCall] = {}
        for event in events:
            self.apply(event)

    def apply(self, event: Event) -> None:
        """Fold one event in."""
        match event:
            case PromptAdded():
                self._close_open_calls()
                self._messages.append(text_message("user", event.prompt))
            case Nudged():
                self._messages.append(text_message("user", event.text))
            case ModelReplied():
                self._close_open_calls()
                self._messages.append(event.message)
                self._open = {call.call_id: call for call in event.message.tool_calls}
            case ResultAdded() if event.call_id in self._open:
                del self._open[event.call_id]
                self._messages.append(
                    Message(role="tool", call_id=event.call_id, content=event.content, status=event.status)
                )
            case _:
                pass

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages so far."""
        return tuple(self._messages)

    @property
    def open_calls(self) -> tuple[ToolCall, ...]:
        """Calls of the last reply that have no result yet."""
        return tuple(self._open.values())

    def _close_open_calls(self) -> None:
        """Providers refuse a history in which a call has no result, so a lost one gets a result that says so."""
        for call_id in self._open:
            self._messages.append(
                Message(role="tool", call_id=call_id, content=text_content(INTERRUPTED_RESULT), status=Status.UNKNOWN)
            )
        self._open = {}
