"""``openai:NAME``, the Responses API, streamed.

``resolve_model`` makes it. Nothing is stored at the provider (``store`` is false), so the
whole conversation goes with each request, and a reply's own items (reasoning with its encrypted content, phase) come
back to the provider exactly as they came. Must not import IPython, a kernel or the session.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence

from harness_nb.errors import ModelError, RefusalError, TransientModelError
from harness_nb.models.calls import read_call, with_unique_ids
from harness_nb.models.endpoint import DONE, READ_TIMEOUT
from harness_nb.models.openai_client import openai_endpoint
from harness_nb.models.pricing import Rates, read_figure
from harness_nb.models.quirks import responses_quirks
from harness_nb.models.remote import Api, RemoteModel
from harness_nb.models.response_items import PROVIDER, write_request
from harness_nb.models.retry import Sleep
from harness_nb.ports import CallDelta, Delta, ReasoningDelta, TextDelta
from harness_nb.types import JsonObject, Message, TextPart, Usage

_TERMINAL = {"response.completed", "response.incomplete", "response.failed", "response.cancelled"}
_BETWEEN = "\n\n"
"""Stands between the texts of two message items, and between two parts of a reasoning summary."""


class ResponseReply:
    """Puts one reply together from the events of its stream. No I/O.

    ``where`` names the server in messages, ``failure`` makes the typed error of an error event.
    """

    def __init__(self, where: str, failure: Callable[[JsonObject], ModelError]) -> None:
        self.streamed = False
        self._where = where
        self._failure = failure
        self._items: list[tuple[int, JsonObject]] = []
        self._begun: dict[object, JsonObject] = {}
        self._response: JsonObject | None = None
        self._text_item: object = None

    @property
    def searches(self) -> int:
        """Searches that are billed: the provider's own count, else the calls of its tool that searched."""
        response = self._response or {}
        counted = ((response.get("tool_usage") or {}).get("web_search") or {}).get("num_requests")
        if (number := read_figure(counted)) is not None:
            return number
        calls = [item for item in self._whole_items(response) if item.get("type") == "web_search_call"]
        return sum((item.get("action") or {}).get("type", "search") == "search" for item in calls)

    @property
    def ended(self) -> bool:
        """Whether the terminal event has come."""
        return self._response is not None

    @property
    def whole(self) -> bool:
        """Whether nothing of the answer can still come."""
        return self.ended

    def feed(self, event: JsonObject) -> Iterator[Delta]:
        """Take one event; yield what it gives to see. Unknown events are passed over.

        Raises:
            ModelError: if the event says that the reply failed.
        """
        kind = event.get("type", "")
        if event is DONE:
            return
        if kind == "error" or (event.get("error") and not str(kind).startswith("response.")):
            raise self._failure(event)
        if kind in _TERMINAL:
            self._end(event.get("response") or {}, kind)
        elif event.get("object") == "response" or ("output" in event and not kind):
            self._end(event, f"response.{event.get('status') or 'completed'}")
        elif kind == "response.output_item.done" and isinstance(event.get("item"), dict):
            index = event.get("output_index")
            self._items.append((index if isinstance(index, int) else len(self._items), event["item"]))
        elif kind == "response.output_item.added" and (event.get("item") or {}).get("type") == "function_call":
            item = event["item"]
            self._begun[_key({**event, "item_id": item.get("id")})] = {**item, "arguments": ""}
        elif kind == "response.output_text.delta":
            yield from self._text(event)
        elif kind in ("response.function_call_arguments.delta", "response.function_call_arguments.done"):
            yield from self._arguments(event)
        elif kind in ("response.reasoning_summary_text.delta", "response.reasoning_text.delta"):
            if text := str(event.get("delta") or ""):
                yield ReasoningDelta(text)
        elif kind == "response.reasoning_summary_part.added" and event.get("summary_index"):
            yield ReasoningDelta(_BETWEEN)

    def message(self, messages: Sequence[Message]) -> Message:
        """The whole reply to ``messages``.

        Raises:
            TransientModelError: if the stream ended before it was complete.
            RefusalError: if the model or a content filter refused.
            ModelError: if it is incomplete for another reason than its length.
        """
        if self._response is None:
            raise TransientModelError(f"{self._where} ended the stream before the answer was complete.")
        reason = (self._response.get("incomplete_details") or {}).get("reason") if self._cut else None
        if reason == "content_filter":
            raise RefusalError(f"A content filter of {self._where} stopped the answer.", code="content_filter")
        if self._cut and reason not in (None, "max_output_tokens"):
            raise ModelError(f"{self._where} did not complete the answer: {reason}.", code=str(reason))
        return self._assemble(messages)

    @property
    def _cut(self) -> bool:
        return self._response is not None and self._response.get("status") == "incomplete"

    def _end(self, response: JsonObject, kind: str) -> None:
        status = kind.removeprefix("response.")
        if status == "completed" and response.get("status") in ("incomplete", "failed", "cancelled"):
            status = response["status"]  # some servers end every stream with the same event
        if status not in ("completed", "incomplete"):
            error = response.get("error") or {"message": f"The response is {status}."}
            raise self._failure({"error": error})
        self._response = {**response, "status": status}

    def _text(self, event: JsonObject) -> Iterator[Delta]:
        key = _key(event)
        if self.streamed and key != self._text_item:
            yield TextDelta(_BETWEEN)
        self._text_item = key
        if text := str(event.get("delta") or ""):
            self.streamed = True
            item = self._begun.setdefault(key, {"type": "message", "content": [{"type": "output_text", "text": ""}]})
            item["content"][0]["text"] += text
            yield TextDelta(text)

    def _arguments(self, event: JsonObject) -> Iterator[Delta]:
        item, piece = self._begun.get(_key(event)), str(event.get("delta") or "")
        if item is None:
            return
        item["arguments"] = event.get("arguments") or item["arguments"] + piece  # "done" has them whole
        if piece:
            yield CallDelta(str(item.get("name") or ""), piece)

    def _assemble(self, messages: Sequence[Message]) -> Message:
        response = self._response or {}
        own = self._whole_items(response)
        items = own or list(self._begun.values())
        text = _text_of(items, self._where)
        found = [item for item in items if item.get("type") == "function_call"]
        read = [
            read_call(
                str(item.get("call_id") or item.get("id") or ""),
                str(item.get("name") or ""),
                item.get("arguments"),
                cut=self._cut,
            )
            for item in found
        ]
        calls = with_unique_ids(read, messages)
        whole = not self._cut and bool(text or calls)
        same_ids = all(call.call_id == item.get("call_id") for call, item in zip(calls, found, strict=True))
        return Message(
            role="assistant",
            content=(TextPart(text=text),) if text else (),
            tool_calls=calls,
            usage=_read_usage(response.get("usage")),
            finish_reason="length" if self._cut else "tool_calls" if calls else "stop",
            model=response.get("model") or None,
            provider=PROVIDER,
            # Items of a cut reply would be refused (reasoning that nothing follows), and so would ids that we changed.
            provider_items=tuple(own) if whole and same_ids else (),
        )

    def _whole_items(self, response: JsonObject) -> list[JsonObject]:
        """The items in order: the ones that were announced as done, or the final list where it has more.

        None where a server tells neither; what came in pieces is all there is then.
        """
        done = [item for _, item in sorted(self._items, key=lambda pair: pair[0])]
        final = [item for item in response.get("output") or [] if isinstance(item, dict)]
        return final if len(final) > len(done) else done


def _key(event: JsonObject) -> object:
    """What tells the item of an event from others; servers leave out the one or the other."""
    return event.get("item_id") or event.get("output_index")


def _text_of(items: Sequence[JsonObject], where: str) -> str:
    """The texts of the message items.

    Raises:
        RefusalError: if a part of them is a refusal.
    """
    texts = []
    for item in items:
        parts = item.get("content") if item.get("type") == "message" else None
        for part in parts or []:
            if part.get("type") == "refusal":
                raise RefusalError(f"The model behind {where} refused: {part.get('refusal') or 'no reason given'}")
        if text := "".join(part.get("text") or "" for part in parts or [] if part.get("type") == "output_text"):
            texts.append(text)
    return _BETWEEN.join(texts)


def _read_usage(usage: JsonObject | None) -> Usage:
    """The provider's figures; what it does not give stays unknown."""
    usage = usage or {}
    inputs, outputs = usage.get("input_tokens_details") or {}, usage.get("output_tokens_details") or {}
    return Usage(
        input_tokens=read_figure(usage.get("input_tokens")),
        output_tokens=read_figure(usage.get("output_tokens")),
        cached_input_tokens=read_figure(inputs.get("cached_tokens")),
        cache_write_tokens=read_figure(inputs.get("cache_write_tokens")),
        reasoning_tokens=read_figure(outputs.get("reasoning_tokens")),
    )


API = Api("/responses", write_request, ResponseReply, searches_web=True)


def responses_model(
    model: str,
    *,
    base_url: str,
    api_key: str,
    key_name: str = "OPENAI_API_KEY",
    rates: Mapping[str, Rates] | None = None,
    timeout: float = READ_TIMEOUT,
    sleep: Sleep = asyncio.sleep,
) -> RemoteModel:
    """The model that the server at ``base_url`` knows as ``model``.

    ``key_name`` is the environment variable that holds the key, for messages; ``rates`` are the user's own prices;
    ``timeout`` is in seconds without a byte.
    """
    endpoint = openai_endpoint(
        base_url, api_key, responses_quirks(base_url), model=model, key_name=key_name, timeout=timeout
    )
    return RemoteModel(f"openai:{model}", model, API, endpoint, rates=rates, sleep=sleep)
