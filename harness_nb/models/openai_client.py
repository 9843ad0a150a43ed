"""The ``openai`` library as an HTTP client. The only module that imports it; ``chat`` and ``responses`` use it.

What it sends is ours, and what comes back is read by ``endpoint``: of the library it uses the address, the headers,
the connections and the certificates of the system.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import httpx2
import openai

from harness_nb.errors import ModelError
from harness_nb.models.address import Address, read_address
from harness_nb.models.endpoint import CONNECT_TIMEOUT, Endpoint, plain_error
from harness_nb.models.quirks import Quirks
from harness_nb.types import JsonObject


def openai_endpoint(
    base_url: str, api_key: str, quirks: Quirks, *, model: str, key_name: str, timeout: float
) -> Endpoint:
    """The server of ``model`` at ``base_url``. ``timeout`` is in seconds without a single byte."""
    address = read_address(base_url, api_key, model)
    client = OpenAIClient(address, api_key, timeout=timeout, connect=min(timeout, CONNECT_TIMEOUT))
    return Endpoint(client, address.base_url, quirks, api_key=api_key, key_name=key_name, timeout=timeout)


class OpenAIClient:
    """See ``endpoint.Client``. Times are in seconds: ``timeout`` without a single byte, ``connect`` to connect."""

    def __init__(self, address: Address, api_key: str, *, timeout: float, connect: float) -> None:
        self._headers: dict[str, Any] = {**address.headers}
        if not address.bearer:
            self._headers["Authorization"] = openai.Omit()
        self.library = openai.AsyncOpenAI(
            api_key=api_key,
            base_url=address.base_url,
            default_query=address.query,
            max_retries=0,
            timeout=openai.Timeout(timeout, connect=connect),
        )

    async def post(self, path: str, body: JsonObject) -> httpx2.Response:
        """See ``endpoint.Client``."""
        return await self._send(partial(self.library.post, body=body), path)

    async def get(self, path: str) -> httpx2.Response:
        """See ``endpoint.Client``."""
        return await self._send(self.library.get, path)

    async def _send(self, method: Callable[..., Awaitable[Any]], path: str) -> httpx2.Response:
        try:
            stream = await method(
                path,
                cast_to=object,
                options={"headers": self._headers},
                stream=True,
                stream_cls=openai.AsyncStream[Any],
            )
        except openai.APIStatusError as error:
            return error.response
        except openai.APIConnectionError as error:
            raise plain_error(error) from error
        except openai.OpenAIError as error:
            raise ModelError(f"The request could not be made: {error}") from error
        response: httpx2.Response = stream.response
        return response

    async def aclose(self) -> None:
        """Close the connections."""
        await self.library.close()
