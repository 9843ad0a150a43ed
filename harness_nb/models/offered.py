"""The models that a server offers, out of its list. Pure; ``remote`` reads the list of its server with it.

The list is OpenAI's (``{"data": [{"id": …}]}``), which all compatible servers and Anthropic have. Some servers say more
of a model: its context window stands in ``max_model_len`` (vLLM), ``context_length`` (OpenRouter), ``context_window``
(Groq), ``max_context_length`` (LM Studio), ``max_input_tokens`` (Anthropic) or ``meta.n_ctx`` (llama.cpp).
"""

from __future__ import annotations

from harness_nb.ports import Offer
from harness_nb.types import JsonObject

WINDOWS = (
    *("max_model_len", "context_length", "context_window", "max_context_length", "max_input_tokens"),
    *("n_ctx", "n_ctx_train"),
)


def read_offers(listing: JsonObject) -> tuple[Offer, ...]:
    """The models in a list, in its order; entries without a name are passed over."""
    entries = listing.get("data") or listing.get("models") or []
    offers = []
    for entry in entries if isinstance(entries, list) else []:
        name = entry.get("id") or entry.get("name") if isinstance(entry, dict) else entry
        if name and isinstance(name, str):
            offers.append(Offer(name.removeprefix("models/"), _window(entry) if isinstance(entry, dict) else None))
    return tuple(offers)


def _window(entry: JsonObject) -> int | None:
    meta = entry.get("meta")
    for place in (entry, meta if isinstance(meta, dict) else {}):
        for name in WINDOWS:
            if isinstance(place.get(name), int) and place[name] > 0:
                return int(place[name])
    return None
