"""One reply of Anthropic's Messages API, put together from the events of its stream. No I/O.

Source of the events: Anthropic's API reference, "Streaming Messages", and the event types of the ``anthropic`` library
2.14. Blocks of thinking come with a signature, redacted ones with opaque data; both go back exactly as they came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from harness_nb.errors import ContextOverflowError, ModelError, RefusalError, TransientModelError
from harness_nb.models.anthropic_blocks import PROVIDER
from harness_nb.models.calls import read_call, with_unique_ids
from harness_nb.models.endpoint import DONE
from harness_nb.models.pricing import read_figure
from harness_nb.models.remote import PAUSED
from harness_nb.ports import CallDelta, Delta, ReasoningDelta, TextDelta
from harness_nb.types import JsonObject, Message, TextPart, ToolCall, Usage

_BETWEEN = "\n\n"
"""Stands between two texts with something else between them, and between two pieces of thinking."""

_DELTAS = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}


class AnthropicReply:
    """Feed it each event, then take the ``message``.

    ``where`` names the server in messages, ``failure`` makes the typed error of an error event.
    """

    def __init__(self, where: str, failure: Callable[[JsonObject], ModelError]) -> None:
        self._where = where
        self._failure = failure
        self._blocks: dict[int, JsonObject] = {}
        self._inputs: dict[int, str] = {}
        self._stop: JsonObject = {}
        self._usage: JsonObject = {}
        self._model: str | None = None
        self._ended = False
        self._last: dict[str, int] = {}

    @property
    def searches(self) -> int:
        """Searches that are billed."""
        return read_figure((self._usage.get("server_tool_use") or {}).get("web_search_requests")) or 0

    @property
    def ended(self) -> bool:
        """Whether the terminal event has come."""
        return self._ended

    @property
    def whole(self) -> bool:
        """Whether nothing of the answer can still come."""
        return self._ended

    def feed(self, event: JsonObject) -> Iterator[Delta]:
        """Take one event, or a whole answer; yield what it gives to see. Unknown events are passed over.

        Raises:
            ModelError: if the event says that the reply failed.
        """
        kind = event.get("type")
        if event is DONE:
            return
        if kind == "error" or event.get("error"):
            raise self._failure(event)
        if kind == "message_start":
            self._start(event.get("message") or {})
        elif kind == "content_block_start":
            yield from self._begin(_index(event, len(self._blocks)), event.get("content_block") or {})
        elif kind == "content_block_delta":
            yield from self._extend(_index(event, len(self._blocks) - 1), event.get("delta") or {})
        elif kind == "message_delta":
            self._stop.update({key: value for key, value in (event.get("delta") or {}).items() if value is not None})
            self._count(event.get("usage") or {})
        elif kind == "message_stop":
            self._ended = True
        elif kind == "message":
            self._start(event)
            self._stop = event
            for index, block in enumerate(event.get("content") or []):
                yield from self._begin(index, block)
            self._ended = True

    def message(self, messages: Sequence[Message]) -> Message:
        """The whole reply to ``messages``.

        Raises:
            TransientModelError: if the stream ended before ``message_stop``.
            RefusalError: if the model or a classifier refused.
            ContextOverflowError: if the reply did not fit into what was left of the context window.
        """
        if not self._ended:
            raise TransientModelError(f"{self._where} ended the stream before the answer was complete.")
        reason = self._stop.get("stop_reason")
        if reason == "refusal":
            raise self._refusal()
        if reason == "model_context_window_exceeded":
            text = f"{self._where}: the conversation left too little of the model's context window for the answer."
            raise ContextOverflowError(text, code=reason)
        return self._assemble(messages, reason)

    def _start(self, message: JsonObject) -> None:
        self._model = message.get("model") or None
        self._count(message.get("usage") or {})

    def _count(self, usage: JsonObject) -> None:
        """Take figures, which are totals: later ones replace earlier ones, missing ones leave them."""
        self._usage.update({key: value for key, value in usage.items() if value is not None})

    def _begin(self, index: int, block: JsonObject) -> Iterator[Delta]:
        """A block begins. Its text is empty then, but in a whole answer, and with some servers, it is not."""
        self._blocks[index] = dict(block)
        if (text := block.get("text")) and block.get("type") == "text":
            yield from self._show(index, TextDelta(text))
        if (text := block.get("thinking")) and block.get("type") == "thinking":
            yield from self._show(index, ReasoningDelta(text))

    def _extend(self, index: int, delta: JsonObject) -> Iterator[Delta]:
        block = self._blocks.setdefault(index, {"type": "text", "text": ""})
        kind = delta.get("type", "")
        piece = delta.get(_DELTAS.get(kind, "")) or ""
        if kind == "text_delta":
            block["text"] = (block.get("text") or "") + piece
            yield from self._show(index, TextDelta(piece))
        elif kind == "thinking_delta":
            block["thinking"] = (block.get("thinking") or "") + piece
            yield from self._show(index, ReasoningDelta(piece))
        elif kind == "input_json_delta":
            self._inputs[index] = self._inputs.get(index, "") + piece
            if piece and block.get("type") == "tool_use":
                yield CallDelta(str(block.get("name") or ""), piece)
        elif kind == "signature_delta":
            block["signature"] = delta.get("signature")
        elif kind == "citations_delta":
            block["citations"] = [*(block.get("citations") or []), delta.get("citation")]

    def _show(self, index: int, delta: TextDelta | ReasoningDelta) -> Iterator[Delta]:
        """The delta, set off from an earlier text of its kind that is not the block right before it."""
        if not delta.text:
            return
        kind = type(delta).__name__
        last = self._last.get(kind, index)
        self._last[kind] = index
        if last != index and (kind == "ReasoningDelta" or last < index - 1):
            yield type(delta)(_BETWEEN)
        yield delta

    def _refusal(self) -> RefusalError:
        details: Any = self._stop.get("stop_details") or {}
        said = str(details.get("explanation") or "no reason given").rstrip(". ")
        category = details.get("category")
        about = f" ({category})" if category else ""
        return RefusalError(f"The model behind {self._where} refused{about}: {said}.", code=category or "refusal")

    def _assemble(self, messages: Sequence[Message], reason: str | None) -> Message:
        cut = reason == "max_tokens"
        indices = sorted(self._blocks)
        text = _text_of([self._blocks[index] for index in indices])
        found = [index for index in indices if self._blocks[index].get("type") == "tool_use"]
        read = [self._read_call(index, cut=cut and index == indices[-1]) for index in found]
        calls = with_unique_ids(read, messages)
        for index, call in zip(found, calls, strict=True):
            self._blocks[index] |= {
                "id": call.call_id,
                "input": call.arguments if call.malformed is None else {"malformed_arguments": call.malformed},
            }
        for index in set(self._inputs) - set(found):  # calls of tools that the provider runs itself
            self._blocks[index]["input"] = read_call("", "", self._inputs[index]).arguments
        finish = "length" if cut else "tool_calls" if calls else PAUSED if reason == "pause_turn" else "stop"
        return Message(
            role="assistant",
            content=(TextPart(text=text),) if text else (),
            tool_calls=calls,
            usage=_read_usage(self._usage),
            finish_reason=finish,
            model=self._model,
            provider=PROVIDER,
            provider_items=_whole_items([self._blocks[index] for index in indices], cut=cut),
        )

    def _read_call(self, index: int, *, cut: bool) -> ToolCall:
        block = self._blocks[index]
        arguments = self._inputs.get(index) or block.get("input") or ""
        return read_call(str(block.get("id") or ""), str(block.get("name") or ""), arguments, cut=cut)


def _index(event: JsonObject, default: int) -> int:
    index = event.get("index")
    return index if isinstance(index, int) else max(0, default)


def _text_of(blocks: Sequence[JsonObject]) -> str:
    """The texts; neighbours are one text (citations part it), others stand apart. The deltas add up to it."""
    text, last = "", 0
    for index, block in enumerate(blocks):
        if block.get("type") == "text" and block.get("text"):
            text += (_BETWEEN if text and last < index - 1 else "") + str(block["text"])
            last = index
    return text


def _whole_items(blocks: Sequence[JsonObject], *, cut: bool) -> tuple[JsonObject, ...]:
    """The blocks that can go back: empty texts would be rejected, and so would thinking that was cut off."""
    items = [block for block in blocks if block.get("type") != "text" or str(block.get("text") or "").strip()]
    if cut and items and items[-1].get("type") == "thinking":
        items.pop()
    kinds = {item.get("type") for item in items}
    return tuple(items) if kinds - {"thinking", "redacted_thinking"} else ()


def _read_usage(usage: JsonObject) -> Usage:
    """The provider's figures. Theirs counts cached and cache-writing tokens beside the input, ours within it."""
    fresh, read, written = (
        read_figure(usage.get(name))
        for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    )
    details = usage.get("output_tokens_details") or {}
    return Usage(
        input_tokens=None if fresh is None else fresh + (read or 0) + (written or 0),
        output_tokens=read_figure(usage.get("output_tokens")),
        cached_input_tokens=read,
        cache_write_tokens=written,
        reasoning_tokens=read_figure(details.get("thinking_tokens")),
    )
