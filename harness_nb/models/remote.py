"""A model behind HTTP: what all provider adapters share. Their modules make one each and say how their API is spoken.

``stream`` of ``RemoteModel`` is what the loop calls. One attempt sends one request, feeds the events of the answer to
a ``Reply`` and takes the whole message from it; ``retry`` decides about further attempts. Must not import a provider's
library, IPython, a kernel or the session.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from harness_nb.budget import add_usage
from harness_nb.errors import ModelError, TransientModelError
from harness_nb.models.calls import with_unique_ids
from harness_nb.models.chat_messages import PROVIDER as CHAT_PROVIDER
from harness_nb.models.endpoint import Endpoint
from harness_nb.models.estimate import estimate_request
from harness_nb.models.offered import read_offers
from harness_nb.models.pictures import keep_last_pictures
from harness_nb.models.pricing import Rates, Tariff, find_provider
from harness_nb.models.quirks import Quirks
from harness_nb.models.retry import Sleep, stream_with_retries
from harness_nb.models.text_forms import TextForms
from harness_nb.ports import Delta, ModelSettings, Offer, TextDelta, Withdrawn
from harness_nb.types import JsonObject, Message, TextPart, ToolSpec, Usage

PAUSED = "paused"
"""``finish_reason`` of a message that the provider wants back as it is, to go on with it."""

MAX_PAUSES = 8


class Reply(Protocol):
    """Puts one reply together from the events of its stream. No I/O."""

    @property
    def ended(self) -> bool:
        """Whether the terminal event has come."""
        ...

    @property
    def whole(self) -> bool:
        """Whether nothing of the answer can still come, though its figures may be lost."""
        ...

    @property
    def searches(self) -> int:
        """Searches of the provider's own tool that it bills."""
        ...

    def feed(self, event: JsonObject) -> Iterator[Delta]:
        """Take one event; yield what it gives to see. Raises ``ModelError`` if it says that the reply failed."""
        ...

    def message(self, messages: Sequence[Message]) -> Message:
        """The whole reply to ``messages``. Raises ``ModelError`` if it is not whole, or refused."""
        ...


Failure = Callable[[JsonObject], ModelError]
WriteRequest = Callable[[str, Sequence[Message], Sequence[ToolSpec], ModelSettings, Quirks], JsonObject]


@dataclass(frozen=True, slots=True)
class Api:
    """How one API is spoken: its ``path``, how a request is written, and what reads a reply.

    ``read`` takes the server's name for messages and what makes the typed error of an error event. ``searches_web``
    says whether ``write`` can offer the provider's own search of the web; ``models_path`` has the list of models.
    """

    path: str
    write: WriteRequest
    read: Callable[[str, Failure], Reply]
    searches_web: bool = False
    models_path: str = "/models"


class RemoteModel:
    """See ``ports.Model``. ``name`` is the spec, ``model`` the name that the server knows; it owns ``endpoint``."""

    def __init__(
        self,
        name: str,
        model: str,
        api: Api,
        endpoint: Endpoint,
        *,
        rates: Mapping[str, Rates] | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.name = name
        self.accepts_images = endpoint.quirks.images
        self._model = model
        self._api = api
        self._endpoint = endpoint
        self.tariff = Tariff(name, model, find_provider(endpoint.base_url), rates or {})
        self._sleep = sleep

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> AsyncGenerator[Delta | Message]:
        """See ``ports.Model``. A paused reply is gone on with; its parts come out as one message.

        Each part has its own attempts, so that a part that has arrived is never paid for again.
        """
        parts: list[Message] = []
        while True:
            attempt = partial(self._attempt, (*messages, *parts), tools, settings)
            withdrawn = False
            shown = "".join(part.text for part in parts)
            try:
                async with aclosing(stream_with_retries(attempt, self._sleep)) as items:
                    async for item in items:
                        if withdrawn and shown and not isinstance(item, Withdrawn):
                            yield TextDelta(shown)  # these parts stay; the screen withdrew them with the lost one
                        withdrawn = isinstance(item, Withdrawn)
                        if isinstance(item, Message):
                            parts.append(item)
                        else:
                            yield item
            except ModelError as error:
                if shown and not withdrawn:
                    yield Withdrawn(f"{error} The partial reply is dropped.")
                raise
            if parts[-1].finish_reason != PAUSED or len(parts) > MAX_PAUSES:
                yield join_parts(parts)
                return

    @property
    def price_known(self) -> bool:
        """Whether a cost limit can be kept with this model."""
        return self._endpoint.quirks.cost_in_usage or self.tariff.known

    @property
    def context_window(self) -> int | None:
        """Tokens that fit into the model's context window; ``None`` where the price table does not know."""
        return self.tariff.context_window()

    @property
    def searches_web(self) -> bool:
        """Whether the API has a search of the web of its own."""
        return self._api.searches_web

    def estimate(self, messages: Sequence[Message], tools: Sequence[ToolSpec], settings: ModelSettings) -> Usage:
        """What the next request will take: tokens in and out, and US dollars (``None`` if the price is unknown)."""
        usage = estimate_request(messages, tools, settings)
        return usage.model_copy(update={"cost_usd": self.tariff.cost(usage)})

    @property
    def speaks(self) -> tuple[Api, Endpoint, str]:
        """How and where requests are sent, and under which name of the model. The classifier sends its own."""
        return self._api, self._endpoint, self._model

    @property
    def host(self) -> str:
        """The server as it is named in messages."""
        return self._endpoint.host

    async def offered(self) -> Sequence[Offer]:
        """The models that the server has. Raises ``ModelError`` if it does not say."""
        return read_offers(await self._endpoint.read(self._api.models_path))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._endpoint.aclose()

    async def _attempt(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> AsyncGenerator[Delta | Message]:
        """One request."""
        reply = self._api.read(self._endpoint.host, self._endpoint.failure)
        build = partial(self._build, messages, tools, settings)
        forms = TextForms(tools) if self._endpoint.quirks.text_forms else None
        streamed = False
        try:
            async with aclosing(self._endpoint.events(self._api.path, build)) as events:
                async for event in events:
                    for delta in reply.feed(event):
                        streamed |= isinstance(delta, TextDelta)
                        for shown in forms.feed(delta.text) if forms and isinstance(delta, TextDelta) else (delta,):
                            yield shown
                    if reply.ended:  # not every server closes the connection then
                        break
        except TransientModelError:
            if not reply.whole:  # an answer that is there is not paid for again
                raise
        message = cut_at_limit(reply.message(messages), settings)
        if message.text and not streamed:
            for delta in forms.feed(message.text) if forms else (TextDelta(message.text),):
                yield delta
        if forms:
            for delta in forms.close(calls=not message.tool_calls, cut=message.finish_reason == "length"):
                yield delta
            message = with_text_forms(message, forms, messages)
        self.accepts_images = self._endpoint.quirks.images  # false once the server has rejected a picture
        usage = self._priced(message, reply.searches)
        yield message.model_copy(update={"usage": usage, "model": message.model or self._model})

    def _priced(self, message: Message, searches: int) -> Usage:
        """The usage of a reply with its searches, and with its cost, unless the provider has told that."""
        usage = message.usage or Usage()
        if usage.cost_usd is None or not self._endpoint.quirks.cost_in_usage:
            cost = self.tariff.cost(usage, served=message.model, searches=searches)
            usage = usage.model_copy(update={"cost_usd": cost})
        return usage.model_copy(update={"searches": searches}) if searches else usage

    def _build(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], settings: ModelSettings, quirks: Quirks
    ) -> JsonObject:
        kept = keep_last_pictures(messages, quirks.image_limit)
        return self._api.write(self._model, kept, tools, settings, quirks)


def cut_at_limit(message: Message, settings: ModelSettings) -> Message:
    """``message``, as cut off where it has all the tokens that it might have: llama.cpp does not say so itself."""
    written, limit = message.usage.output_tokens if message.usage else None, settings.max_output_tokens
    if message.finish_reason != "stop" or written is None or limit is None or written < limit:
        return message
    return message.model_copy(update={"finish_reason": "length"})


def with_text_forms(message: Message, forms: TextForms, messages: Sequence[Message]) -> Message:
    """``message``, a reply to ``messages``, without the thinking and the calls that stood in its text."""
    if forms.text == message.text and not forms.calls:
        return message
    content = (TextPart(text=forms.text),) if forms.text.strip() else ()
    if not forms.calls:
        return message.model_copy(update={"content": content})
    finish = message.finish_reason if message.finish_reason == "length" else "tool_calls"
    calls = with_unique_ids(forms.calls, messages)
    kept = message.provider_items if message.provider == CHAT_PROVIDER else ()  # elsewhere they hold the text as it was
    return message.model_copy(
        update={"content": content, "tool_calls": calls, "finish_reason": finish, "provider_items": kept}
    )


def join_parts(parts: Sequence[Message]) -> Message:
    """One message of the parts of a reply that was paused; one that stays paused counts as cut off."""
    last = parts[-1]
    if last.finish_reason == PAUSED:
        last = last.model_copy(update={"finish_reason": "length"})
    if len(parts) == 1:
        return last
    usage = Usage()
    for part in parts:
        usage = add_usage(usage, part.usage or Usage())
    text = "".join(part.text for part in parts)
    return last.model_copy(
        update={
            "content": (TextPart(text=text),) if text else (),
            "tool_calls": tuple(call for part in parts for call in part.tool_calls),
            "provider_items": tuple(item for part in parts for item in part.provider_items),
            "usage": usage,
        }
    )
