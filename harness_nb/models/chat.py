"""``chat:NAME``, Chat Completions, streamed, at any base URL.

``resolve_model`` makes it; the loop calls ``stream``. It serves OpenAI, Azure, OpenRouter, Ollama, vLLM, llama.cpp, LM
Studio and whatever else speaks the protocol; how they differ is data in ``quirks``. Must not import IPython, a kernel
or the session.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import partial

from harness_nb.models.chat_messages import write_request
from harness_nb.models.chat_reply import ChatReply
from harness_nb.models.endpoint import READ_TIMEOUT, Endpoint
from harness_nb.models.pricing import find_provider, with_cost
from harness_nb.models.quirks import chat_quirks
from harness_nb.models.retry import Sleep, stream_with_retries
from harness_nb.ports import Delta, ModelSettings
from harness_nb.types import Message, ToolSpec, Usage


class ChatModel:
    """A model behind ``POST /chat/completions``. ``name`` is the spec, ``model`` the name that the server knows."""

    def __init__(
        self, model: str, *, base_url: str, api_key: str, timeout: float = READ_TIMEOUT, sleep: Sleep = asyncio.sleep
    ) -> None:
        self.name = f"chat:{model}"
        self._model = model
        self._endpoint = Endpoint(base_url, api_key, chat_quirks(base_url), timeout=timeout)
        self._provider = find_provider(base_url)
        self._sleep = sleep
        self.accepts_images = True

    def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> AsyncGenerator[Delta | Message]:
        """See ``ports.Model``."""
        return stream_with_retries(partial(self._attempt, messages, tools, settings), self._sleep)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._endpoint.aclose()

    async def _attempt(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> AsyncGenerator[Delta | Message]:
        """One request."""
        reply = ChatReply(self._endpoint.host, self._endpoint.failure)
        build = partial(write_request, self._model, messages, tools, settings)
        async with aclosing(self._endpoint.events("/chat/completions", build)) as chunks:
            async for chunk in chunks:
                for delta in reply.feed(chunk):
                    yield delta
                if reply.ended:  # not every server closes the connection then
                    break
        message = reply.message(messages)
        self.accepts_images = self._endpoint.quirks.images  # false once the server has rejected a picture
        usage = with_cost(message.usage or Usage(), self._provider, message.model, self._model)
        yield message.model_copy(update={"usage": usage, "model": message.model or self._model})
