"""``anthropic:NAME``, Anthropic's Messages API, streamed. Needs the extra ``harness-nb[anthropic]``.

``resolve_model`` makes it. Servers that copied the API (LM Studio, Ollama, gateways) are reached by a base URL. Must
not import IPython, a kernel or the session.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from harness_nb.models.anthropic_blocks import write_request
from harness_nb.models.anthropic_client import anthropic_endpoint
from harness_nb.models.anthropic_reply import AnthropicReply
from harness_nb.models.endpoint import READ_TIMEOUT
from harness_nb.models.pricing import Rates
from harness_nb.models.quirks import anthropic_quirks
from harness_nb.models.remote import Api, RemoteModel
from harness_nb.models.retry import Sleep

API = Api("/v1/messages", write_request, AnthropicReply, searches_web=True, models_path="/v1/models?limit=1000")


def anthropic_model(
    model: str,
    *,
    base_url: str,
    api_key: str,
    rates: Mapping[str, Rates] | None = None,
    timeout: float = READ_TIMEOUT,
    sleep: Sleep = asyncio.sleep,
) -> RemoteModel:
    """The model that the server at ``base_url`` knows as ``model``.

    ``rates`` are the user's own prices, ``timeout`` is in seconds without a byte.

    ``base_url`` is without ``/v1``, as the library has it; where it stands there, it is taken off.
    """
    url = base_url.rstrip("/").removesuffix("/v1")
    endpoint = anthropic_endpoint(url, api_key, anthropic_quirks(url), timeout=timeout)
    return RemoteModel(f"anthropic:{model}", model, API, endpoint, rates=rates, sleep=sleep)
