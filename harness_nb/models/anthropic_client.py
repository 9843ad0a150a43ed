"""The ``anthropic`` library as an HTTP client. The only module that imports it; ``anthropic_model`` uses it.

What it sends is ours, and what comes back is read by ``endpoint``: of the library it uses the address, the headers,
the connections and the certificates of the system.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import anthropic
import httpx2

from harness_nb.errors import ModelError
from harness_nb.models.endpoint import CONNECT_TIMEOUT, Endpoint, plain_error
from harness_nb.models.quirks import Quirks
from harness_nb.types import JsonObject

KEY_NAME = "ANTHROPIC_API_KEY"


def anthropic_endpoint(base_url: str, api_key: str, quirks: Quirks, *, timeout: float) -> Endpoint:
    """The server at ``base_url``. ``timeout`` is in seconds without a single byte."""
    client = AnthropicClient(base_url, api_key, timeout=timeout, connect=min(timeout, CONNECT_TIMEOUT))
    return Endpoint(client, base_url, quirks, api_key=api_key, key_name=KEY_NAME, timeout=timeout)


class AnthropicClient:
    """See ``endpoint.Client``. Times are in seconds: ``timeout`` without a single byte, ``connect`` to connect."""

    def __init__(self, base_url: str, api_key: str, *, timeout: float, connect: float) -> None:
        self.library = anthropic.AsyncAnthropic(
            api_key=api_key,
            base_url=base_url,
            max_retries=0,
            timeout=anthropic.Timeout(timeout, connect=connect),
            # The library says "Bearer"; servers that copied the API know the key under its older header.
            default_headers={} if is_original(base_url) else {"x-api-key": api_key},
        )

    async def post(self, path: str, body: JsonObject) -> httpx2.Response:
        """See ``endpoint.Client``."""
        return await self._send(partial(self.library.post, body=body), path)

    async def get(self, path: str) -> httpx2.Response:
        """See ``endpoint.Client``."""
        return await self._send(self.library.get, path)

    async def _send(self, method: Callable[..., Awaitable[Any]], path: str) -> httpx2.Response:
        try:
            stream = await method(path, cast_to=object, stream=True, stream_cls=anthropic.AsyncStream[Any])
        except anthropic.APIStatusError as error:
            return error.response
        except anthropic.APIConnectionError as error:
            raise plain_error(error) from error
        except anthropic.AnthropicError as error:
            raise ModelError(f"The request could not be made: {error}") from error
        response: httpx2.Response = stream.response
        return response

    async def aclose(self) -> None:
        """Close the connections."""
        await self.library.close()


def is_original(base_url: str) -> bool:
    """Whether this is Anthropic's own server and not one that copied its API."""
    return (urlsplit(base_url).hostname or "").endswith("anthropic.com")
