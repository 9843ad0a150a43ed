"""Where requests go: the stream of JSON events that a request to one server gives.

Used by ``remote`` for all providers. The HTTP client of a provider comes in from outside (``openai_client``,
``anthropic_client``); this module knows HTTP, failures and quirks, and nothing of messages. It makes single attempts.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from typing import Protocol
from urllib.parse import urlsplit

import httpx2

from harness_nb.errors import ModelError, TransientModelError
from harness_nb.models.calls import mend
from harness_nb.models.failures import (
    connection_error,
    model_error,
    read_complaint,
    read_error_body,
    read_retry_after,
)
from harness_nb.models.quirks import Quirks, learn
from harness_nb.models.sse import EventDecoder, ServerEvent
from harness_nb.types import JsonObject

READ_TIMEOUT = 600.0
"""Seconds without a single byte after which an answer counts as lost. Local servers load a model before the first."""

CONNECT_TIMEOUT = 10.0
"""Seconds."""

DONE: JsonObject = {"done": True}
"""Stands for ``data: [DONE]`` among the events of a stream; compare with ``is``."""

_LEARNABLE = frozenset({400, 404, 415, 422, 500, 501})


class Client(Protocol):
    """The HTTP client of one provider's library, with its own retries off. ``Endpoint`` owns and closes it."""

    async def post(self, path: str, body: JsonObject) -> httpx2.Response:
        """The open response to one request, of whatever status; that of a failure has been read.

        Raises:
            TimeoutError: if nothing came in time.
            ConnectionError: if there is no connection; the text says why.
            ModelError: if the library cannot make such a request.
        """
        ...

    async def get(self, path: str) -> httpx2.Response:
        """The open response to a request without a body; raises as ``post``."""
        ...

    async def aclose(self) -> None:
        """Close the connections."""
        ...


class Endpoint:
    """A server that answers in JSON. ``quirks`` says how; they change when the server rejects something.

    ``api_key`` is kept out of what is passed on of the server's words, ``key_name`` is the environment variable that
    holds it, and ``timeout`` is the client's, in seconds, for what is said of it.
    """

    def __init__(
        self, client: Client, base_url: str, quirks: Quirks, *, api_key: str, key_name: str, timeout: float
    ) -> None:
        self.base_url = base_url
        self.quirks = quirks
        self._client = client
        self._api_key = api_key
        self._key_name = key_name
        self._timeout = timeout

    @property
    def host(self) -> str:
        """The server as it is named in messages."""
        return urlsplit(self.base_url).netloc or self.base_url

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def events(self, path: str, build: Callable[[Quirks], JsonObject]) -> AsyncGenerator[JsonObject]:
        """Send ``build(quirks)`` to ``path`` and yield the JSON objects of the answer, then ``DONE`` if it says so.

        A server that ignores ``stream`` gives one object, the whole answer.

        Raises:
            ModelError: of the fitting type, for everything that can go wrong on the way. That the stream is complete is
                for the caller to judge.
        """
        with self._typed_errors():
            response = await self._open(path, build)
            try:
                async for event in self._read(response):
                    yield event
            finally:
                await response.aclose()

    async def read(self, path: str) -> JsonObject:
        """The JSON object that stands at ``path``.

        Raises:
            ModelError: of the fitting type, as ``events``.
        """
        with self._typed_errors():
            response = await self._client.get(path)
            try:
                text = (await response.aread()).decode("utf-8", "replace")
            finally:
                await response.aclose()
        if not response.is_success:
            raise self._status_error(response)
        return self._parse_whole(text)

    async def _open(self, path: str, build: Callable[[Quirks], JsonObject]) -> httpx2.Response:
        """The open response to an accepted request. What the server rejects and we can do without is left out."""
        used: set[int] = set()
        body = build(self.quirks)
        while True:
            response = await self._post(path, body)
            if response.is_success:
                return response
            changed = self._adapt(response, body, build, used)
            if changed is None:
                raise self._status_error(response)
            body = changed

    def _adapt(
        self, response: httpx2.Response, body: JsonObject, build: Callable[[Quirks], JsonObject], used: set[int]
    ) -> JsonObject | None:
        """Another body in place of the rejected one, and the quirks for it; ``None`` if nothing can be left out."""
        layout = response.status_code == 500
        while response.status_code in _LEARNABLE and (learnt := learn(self.quirks, response.text, used, layout=layout)):
            quirks, number = learnt
            used.add(number)
            changed = build(quirks)
            if changed != body:
                self.quirks = quirks
                return changed
        return None

    async def _post(self, path: str, body: JsonObject) -> httpx2.Response:
        try:
            return await self._client.post(path, body)
        except UnicodeEncodeError:  # a lone surrogate in somebody's text
            return await self._client.post(path, mend(body))

    async def _read(self, response: httpx2.Response) -> AsyncGenerator[JsonObject]:
        """The events of a body; its first byte says whether it is a stream, one JSON object or a web page."""
        decoder = EventDecoder()
        head, whole = b"", False
        async for chunk in response.aiter_bytes():
            if whole or not head.strip():
                head += chunk
                first = head.lstrip()[:1]
                whole = whole or first in (b"{", b"[", b"<")
                if whole or not first:
                    continue
                chunk = head
            for event in decoder.feed(chunk):
                yield self._parse(event)
        if whole:
            yield self._parse_whole(head.decode("utf-8", "replace"))
        for event in decoder.close():
            yield self._parse(event)

    def _parse(self, event: ServerEvent) -> JsonObject:
        if event.data.strip() == "[DONE]":
            return DONE
        try:
            value = json.loads(event.data)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise TransientModelError(
                f"{self.host} sent a piece of its answer that is not a JSON object: {event.data[:80]!r}."
            )
        if event.name and not value.get("type"):
            value["type"] = event.name
        return _mended(value, event.data)

    def _parse_whole(self, text: str) -> JsonObject:
        if text.lstrip().startswith("<"):
            raise ModelError(
                f"{self.host} answered with {read_error_body(text).message} and not as a model does. "
                f"Check the base URL {self.base_url} (it often ends in /v1)."
            )
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            raise TransientModelError(f"{self.host} sent an answer that is not whole JSON.") from None
        value = value[0] if isinstance(value, list) and value else value
        if not isinstance(value, dict):
            raise ModelError(f"{self.host} sent JSON that is not an answer of a model: {text[:80]!r}.")
        return _mended(value, text)

    @contextmanager
    def _typed_errors(self) -> Iterator[None]:
        """Everything that the client and its HTTP library raise, as typed errors."""
        try:
            yield
        except (TimeoutError, httpx2.TimeoutException) as error:
            raise TransientModelError(f"{self.host} sent nothing for {self._timeout:.0f} s.") from error
        except (ConnectionError, httpx2.HTTPError) as error:
            raise connection_error(self.host, str(error).strip() or type(error).__name__) from error
        except httpx2.InvalidURL as error:
            raise ModelError(f"The request to {self.host} could not be made: {error}") from error

    def _status_error(self, response: httpx2.Response) -> ModelError:
        said = response.headers.get("x-should-retry")
        return model_error(
            self.host,
            read_error_body(self._without_key(response.text)),
            status=response.status_code,
            retry_after=read_retry_after(response.headers),
            should_retry=said == "true" if said in ("true", "false") else None,
            key_name=self._key_name,
        )

    def failure(self, event: JsonObject) -> ModelError:
        """The typed error for a failure that is told in the middle of a stream."""
        complaint = read_complaint(json.loads(self._without_key(json.dumps(event))))
        return model_error(self.host, complaint, key_name=self._key_name)

    def _without_key(self, text: str) -> str:
        """``text`` without the API key, which some servers repeat in their complaints."""
        return text.replace(self._api_key, "[key]") if len(self._api_key) >= 8 else text


def plain_error(error: Exception) -> OSError:
    """What ``Client`` raises where a library says that there was no connection, or that it took too long."""
    cause = error.__cause__ or error
    if isinstance(cause, httpx2.ConnectTimeout | httpx2.PoolTimeout):
        return ConnectionError(f"no connection within {CONNECT_TIMEOUT:.0f} s")
    if isinstance(cause, httpx2.TimeoutException):
        return TimeoutError(str(error))
    return ConnectionError(str(cause).strip() or type(cause).__name__)


def _mended(value: JsonObject, text: str) -> JsonObject:
    """``value``, which was read from ``text``, without lone surrogates."""
    return dict(mend(value)) if "\\ud" in text or "\\uD" in text else value
