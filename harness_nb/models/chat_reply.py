"""One reply of Chat Completions, put together from its chunks. No I/O; ``chat`` calls it.

It takes what servers really send: chunks without ``index``, ``id`` or ``type``, every call under index 0, arguments as
objects, null content, content as a list of parts, usage anywhere or nowhere, and whole answers in place of a stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from harness_nb.errors import ContextOverflowError, ModelError, RefusalError, TransientModelError
from harness_nb.models.calls import read_call, with_unique_ids
from harness_nb.models.chat_messages import CALL_EXTRAS, PROVIDER
from harness_nb.models.endpoint import DONE
from harness_nb.models.pricing import read_figure
from harness_nb.ports import CallDelta, Delta, ReasoningDelta, TextDelta
from harness_nb.types import JsonObject, Message, TextPart, Usage

_LENGTH = {"length", "max_tokens", "model_length"}
_BROKEN = {"error", "abort", "cancelled", "network_error", "insufficient_system_resource"}
"""Reasons that say that the server gave up in the middle: vLLM, SGLang, z.ai, DeepSeek."""

_FILTERED = {"content_filter", "sensitive"}
_FULL = "model_context_window_exceeded"
_REASONING = ("reasoning_content", "reasoning")
"""Where servers put reasoning text: DeepSeek, vLLM and llama.cpp the first, OpenRouter and Ollama the second."""

_DETAILS = "reasoning_details"
"""Where OpenRouter puts the reasoning items of the providers behind it, with their signatures."""

_GROWING = frozenset({"text", "summary", "data"})


@dataclass(slots=True)
class _Call:
    """A call that is coming in."""

    index: int | None
    call_id: str = ""
    name: str = ""
    arguments: str = ""
    whole: JsonObject | None = None
    extra: JsonObject | None = None


class ChatReply:
    """Feed it each chunk, then take the ``message``.

    ``where`` names the server in messages, ``failure`` makes the typed error of an error chunk.
    """

    def __init__(self, where: str, failure: Callable[[JsonObject], ModelError]) -> None:
        self._where = where
        self._failure = failure
        self._texts: list[str] = []
        self._refusals: list[str] = []
        self._reasoning: dict[str, list[str]] = {}
        self._details: list[JsonObject] = []
        self._calls: list[_Call] = []
        self._finish: str | None = None
        self._done = False
        self._usage: JsonObject = {}
        self._model: str | None = None

    def feed(self, chunk: JsonObject) -> Iterator[Delta]:
        """Take one chunk, ``DONE`` or a whole answer; yield what it gives to see.

        Raises:
            ModelError: if the chunk says that the reply failed.
        """
        if chunk is DONE:
            self._done = True
            return
        if chunk.get("error"):
            raise self._failure(chunk)
        self._model = chunk.get("model") or self._model
        self._usage = chunk.get("usage") or self._usage
        for choice in (chunk.get("choices") or [])[:1]:
            self._usage = choice.get("usage") or self._usage
            yield from self._take(choice.get("delta") or choice.get("message") or {})
            self._finish = choice.get("finish_reason") or self._finish
            if "message" in choice:
                self._done = True

    def message(self, messages: Sequence[Message]) -> Message:
        """The whole reply to ``messages``.

        Raises:
            TransientModelError: if the stream ended before it was complete, or the server failed in the middle of it.
            RefusalError: if the model or a content filter refused.
            ContextOverflowError: if the reply did not fit into what was left of the context window.
        """
        if self._finish is None and not self._done:
            raise TransientModelError(f"{self._where} ended the stream before the answer was complete.")
        if self._finish in _BROKEN:
            raise TransientModelError(f"{self._where} broke the answer off with an error of its own ({self._finish}).")
        if self._finish == _FULL:
            text = f"{self._where}: the conversation left too little of the model's context window for the answer."
            raise ContextOverflowError(text, code=_FULL)
        if self._finish in _FILTERED:
            raise RefusalError(f"A content filter of {self._where} stopped the answer.", code="content_filter")
        if refusal := "".join(self._refusals):
            raise RefusalError(f"The model behind {self._where} refused: {refusal}")
        cut = self._finish in _LENGTH
        text = "".join(self._texts)
        last = len(self._calls) - 1
        read = [
            read_call(call.call_id, call.name, call.whole or call.arguments, cut=cut and position == last)
            for position, call in enumerate(self._calls)
        ]
        calls = with_unique_ids(read, messages)
        items: JsonObject = {name: "".join(pieces) for name, pieces in self._reasoning.items()}
        if self._details:
            items[_DETAILS] = self._details
        if extras := {call.call_id: made.extra for call, made in zip(calls, self._calls, strict=True) if made.extra}:
            items[CALL_EXTRAS] = extras
        return Message(
            role="assistant",
            content=(TextPart(text=text),) if text else (),
            tool_calls=calls,
            usage=_read_usage(self._usage),
            finish_reason="length" if cut else "tool_calls" if calls else "stop",
            model=self._model,
            provider=PROVIDER,
            provider_items=(items,) if items else (),
        )

    @property
    def searches(self) -> int:
        """This API has no search of its own; a provider that adds one tells its price."""
        return 0

    @property
    def ended(self) -> bool:
        """Whether the server has said that the stream is over."""
        return self._done

    @property
    def whole(self) -> bool:
        """Whether nothing of the answer can still come; its figures can."""
        return self._done or (self._finish is not None and self._finish not in _BROKEN)

    def _take(self, delta: JsonObject) -> Iterator[Delta]:
        for name in _REASONING:
            if isinstance(text := delta.get(name), str) and text:
                self._reasoning.setdefault(name, []).append(text)
                yield ReasoningDelta(text)
                break
        for detail in delta.get(_DETAILS) or []:
            self._take_detail(detail)
        content = delta.get("content")
        for part in content if isinstance(content, list) else [{"type": "text", "text": content}]:
            if part.get("type") == "text" and (text := part.get("text")):
                self._texts.append(text)
                yield TextDelta(text)
        self._refusals.append(delta.get("refusal") or "")
        for piece in delta.get("tool_calls") or []:
            yield from self._take_call(piece)

    def _take_detail(self, detail: JsonObject) -> None:
        """Add a piece of a reasoning item to the one with its index and type, or begin a new one."""
        last = self._details[-1] if self._details else {}
        if last and all(last.get(key) == detail.get(key) for key in ("index", "type")):
            for key, value in detail.items():
                grows = key in _GROWING and isinstance(value, str) and isinstance(last.get(key), str)
                if value is not None:
                    last[key] = last[key] + value if grows else value
        else:
            self._details.append(dict(detail))

    def _take_call(self, piece: JsonObject) -> Iterator[Delta]:
        """Add a piece to the call that it belongs to, or begin a new one."""
        function = piece.get("function") or {}
        call_id, name, arguments = piece.get("id") or "", function.get("name") or "", function.get("arguments")
        index = piece.get("index")
        call = self._find(index if isinstance(index, int) else None, call_id, name)
        call.call_id = call.call_id or call_id
        call.extra = piece.get(CALL_EXTRAS) or call.extra
        if name != call.name:  # some servers repeat the name in each piece
            call.name += name
        if isinstance(arguments, dict):
            call.whole = arguments
        elif arguments:
            call.arguments += arguments
            yield CallDelta(call.name, arguments)

    def _find(self, index: int | None, call_id: str, name: str) -> _Call:
        """The call under ``index``, else the last one; a new one where an id or a name says that another begins."""
        same = [call for call in self._calls if index is None or call.index == index]
        call = same[-1] if same else None
        if call is not None and call_id and call.call_id:
            call = next((known for known in self._calls if known.call_id == call_id), None)
        elif call is not None and index is None and name and not call_id and (name != call.name or _is_whole(call)):
            call = None
        if call is None:
            call = _Call(index=index)
            self._calls.append(call)
        return call


def _is_whole(call: _Call) -> bool:
    """Whether the arguments so far are a JSON object, so that a further name begins another call."""
    return call.whole is not None or read_call("", call.name, call.arguments, cut=True).malformed is None


def _read_usage(usage: JsonObject) -> Usage:
    """The provider's figures; what it does not give stays unknown."""
    inputs = usage.get("prompt_tokens_details") or {}
    outputs = usage.get("completion_tokens_details") or {}
    return Usage(
        input_tokens=read_figure(usage.get("prompt_tokens")),
        output_tokens=read_figure(usage.get("completion_tokens")),
        cached_input_tokens=read_figure(inputs.get("cached_tokens")),
        cache_write_tokens=read_figure(inputs.get("cache_write_tokens")),
        reasoning_tokens=read_figure(outputs.get("reasoning_tokens")),
        cost_usd=float(cost) if isinstance(cost := usage.get("cost"), int | float) else None,
    )
