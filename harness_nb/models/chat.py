"""``chat:NAME``, Chat Completions, streamed, at any base URL.

``resolve_model`` makes it. It serves OpenAI, Azure, OpenRouter, Ollama, vLLM, llama.cpp, LM Studio and whatever else
speaks the protocol; how they differ is data in ``quirks``. Must not import IPython, a kernel or the session.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from harness_nb.models.chat_messages import write_request
from harness_nb.models.chat_reply import ChatReply
from harness_nb.models.endpoint import READ_TIMEOUT
from harness_nb.models.openai_client import openai_endpoint
from harness_nb.models.pricing import Rates
from harness_nb.models.quirks import chat_quirks
from harness_nb.models.remote import Api, RemoteModel
from harness_nb.models.retry import Sleep

API = Api("/chat/completions", write_request, ChatReply)


def chat_model(
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
        base_url, api_key, chat_quirks(base_url, model), model=model, key_name=key_name, timeout=timeout
    )
    return RemoteModel(f"chat:{model}", model, API, endpoint, rates=rates, sleep=sleep)
