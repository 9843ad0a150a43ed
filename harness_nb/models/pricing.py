"""What a reply costs, in US dollars, from the table that ``genai-prices`` bundles. Nothing is fetched.

The adapters call it with the provider's own figures. An unknown provider, model or figure gives ``None``, which is
shown as "unknown" and never counted as zero. A deployment name on Azure says nothing about the model behind it, so
Azure is unknown, and so is every server that the table does not name (a local one, a gateway).
"""

from __future__ import annotations

from harness_nb.types import Usage


def read_figure(value: object) -> int | None:
    """A token count of a provider; ``None`` where it gives none, or something that is no number."""
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def find_provider(base_url: str) -> str | None:
    """The name that the price table has for the provider at ``base_url``; ``None`` if it has none."""
    from genai_prices.data_snapshot import get_snapshot

    try:
        provider = get_snapshot().find_provider(None, None, base_url).id
    except LookupError:
        return None
    return None if provider == "azure" else provider


def price(provider: str | None, model: str, usage: Usage) -> float | None:
    """US dollars for ``usage`` of ``model``; ``None`` where provider, model or the token counts are not known.

    ``usage.input_tokens`` includes the cached and the cache-writing ones, as OpenAI counts. Where the provider does not
    say how many were cached, all count as uncached, so that the price is an upper bound.
    """
    if provider is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    import genai_prices

    figures = genai_prices.Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cached_input_tokens or 0,
        cache_write_tokens=usage.cache_write_tokens or 0,
    )
    try:
        return float(genai_prices.calc_price(figures, model, provider_id=provider).total_price)
    except (LookupError, ValueError):
        return None


def with_cost(usage: Usage, provider: str | None, *models: str | None) -> Usage:
    """``usage`` with its cost by the first of ``models`` that has a price (the one served, the one asked for)."""
    for model in models:
        cost = price(provider, model, usage) if model else None
        if cost is not None:
            return usage.model_copy(update={"cost_usd": cost})
    return usage
