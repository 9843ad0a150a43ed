"""What a reply costs, in US dollars: by the user's own rates, else by the table that ``genai-prices`` bundles.

``remote`` calls it with the provider's figures; nothing is fetched. An unknown provider, model or figure gives
``None``, which is shown as "unknown" and never counted as zero. A deployment name on Azure says nothing about the model
behind it, so Azure is unknown, and so is every server that the table does not name (a local one, a gateway), until the
user gives rates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from pydantic import Field, ValidationError

from harness_nb.errors import UsageError
from harness_nb.types import Frozen, Usage

HOW_TO_GO_ON = (
    "Give its rates in US dollars per million tokens, for example in pyproject.toml:\n"
    '  [tool.harness-nb.prices]\n  "{name}" = {{ input = 0.5, output = 2.0, cached = 0.05 }}\n'
    "(0 for a server of your own), or bound the work by tokens or turns instead (--max-tokens, --max-turns)."
)


class Rates(Frozen):
    """The user's own prices of a model: US dollars per million tokens, ``search`` per search.

    Without ``cached`` or ``cache_write`` such tokens cost as much as other input. Without ``search`` the price of a
    reply that searched is unknown.
    """

    input: float = Field(ge=0, allow_inf_nan=False)
    output: float = Field(ge=0, allow_inf_nan=False)
    cached: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    cache_write: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    search: float | None = Field(default=None, ge=0, allow_inf_nan=False)


def read_rates(prices: Mapping[str, Any]) -> dict[str, Rates]:
    """The rates in a mapping from a model's name or spec to its prices; ``*`` in a name stands for anything.

    Raises:
        UsageError: if one of them is wrong; the text names model and field.
    """
    rates: dict[str, Rates] = {}
    for name, value in prices.items():
        try:
            rates[name] = Rates.model_validate(value)
        except ValidationError as error:
            details = "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors())
            raise UsageError(f"The prices of {name!r} are wrong: {details}") from error
    return rates


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


@dataclass(frozen=True, slots=True)
class Tariff:
    """What one model costs. ``spec`` and ``model`` are its names, ``provider`` is the price table's (or ``None``)."""

    spec: str
    model: str
    provider: str | None = None
    rates: Mapping[str, Rates] = field(default_factory=dict)

    @property
    def known(self) -> bool:
        """Whether a reply of the model can be priced."""
        return self.cost(Usage(input_tokens=1, output_tokens=1)) is not None

    def cost(self, usage: Usage, *, served: str | None = None, searches: int = 0) -> float | None:
        """US dollars for ``usage`` and ``searches``; ``None`` where rates or token counts are not known.

        ``served`` is the model that the provider says it was, which is priced before the one that was asked for. The
        user's own rates come before both.
        """
        if usage.input_tokens is None or usage.output_tokens is None:
            return None
        if own := self._own_rates():
            return by_rates(own, usage, searches)
        for model in (served, self.model):
            cost = price(self.provider, model, usage, searches) if model else None
            if cost is not None:
                return cost
        return None

    def context_window(self) -> int | None:
        """Tokens that fit into the model's context window, by the price table; ``None`` where it does not know."""
        from genai_prices.data_snapshot import get_snapshot

        try:
            found = get_snapshot().find_provider_model(self.model, None, self.provider, None) if self.provider else None
        except LookupError:
            return None
        return found[1].context_window if found else None

    def _own_rates(self) -> Rates | None:
        """The user's rates for the model: by its whole name, else by the first pattern that fits."""
        for name in (self.spec, self.model):
            if name in self.rates:
                return self.rates[name]
        fitting = (rates for pattern, rates in self.rates.items() if self._fits(pattern))
        return next(fitting, None)

    def _fits(self, pattern: str) -> bool:
        return fnmatchcase(self.spec, pattern) or fnmatchcase(self.model, pattern)


def by_rates(rates: Rates, usage: Usage, searches: int = 0) -> float | None:
    """US dollars for ``usage``, whose token counts are known, by the user's rates."""
    if searches and rates.search is None:
        return None
    cached, written = usage.cached_input_tokens or 0, usage.cache_write_tokens or 0
    fresh = max(0, (usage.input_tokens or 0) - cached - written)
    tokens = (
        fresh * rates.input
        + cached * (rates.input if rates.cached is None else rates.cached)
        + written * (rates.input if rates.cache_write is None else rates.cache_write)
        + (usage.output_tokens or 0) * rates.output
    )
    return tokens / 1e6 + searches * (rates.search or 0.0)


def price(provider: str | None, model: str, usage: Usage, searches: int = 0) -> float | None:
    """US dollars for ``usage`` of ``model`` by the table; ``None`` where anything that is needed is not known.

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
        web_searches=searches or None,
    )
    try:
        found = genai_prices.calc_price(figures, model, provider_id=provider)
    except (LookupError, ValueError):
        return None
    if searches and getattr(found.model_price, "web_searches_kcount", None) is None:
        return None
    return float(found.total_price)


def refuse_unknown_price(name: str, known: bool, max_cost: float | None) -> None:
    """Refuse to start with the model ``name`` where a cost limit cannot be kept; ``known`` is its ``price_known``.

    Raises:
        UsageError: if ``max_cost`` (US dollars) is set and the price is not known; the text says how to go on.
    """
    if max_cost is not None and not known:
        advice = HOW_TO_GO_ON.format(name=name)
        raise UsageError(f"The price of {name} is not known, so --max-cost {max_cost:g} cannot be kept. {advice}")
