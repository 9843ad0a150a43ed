"""Prices: from the bundled table, and unknown where they are unknown."""

from __future__ import annotations

import pytest

from harness_nb.models.pricing import find_provider, price, read_figure, with_cost
from harness_nb.types import Usage

MILLION = 1_000_000


def test_cached_and_cache_writing_tokens_have_their_own_price() -> None:
    plain = price("openai", "gpt-6-luna", Usage(input_tokens=100_000, output_tokens=10_000))
    cached = price(
        "openai", "gpt-6-luna", Usage(input_tokens=100_000, output_tokens=10_000, cached_input_tokens=90_000)
    )
    written = price(
        "openai", "gpt-6-luna", Usage(input_tokens=100_000, output_tokens=10_000, cache_write_tokens=90_000)
    )
    assert plain is not None
    assert cached is not None
    assert written is not None
    assert plain == pytest.approx(0.10 * 0.1 + 0.50 * 0.01)
    assert cached < plain < written


@pytest.mark.parametrize(
    ("provider", "model", "usage"),
    [
        (None, "gpt-6-luna", Usage(input_tokens=1, output_tokens=1)),
        ("openai", "a-model-of-nobody", Usage(input_tokens=1, output_tokens=1)),
        ("nobody", "gpt-6-luna", Usage(input_tokens=1, output_tokens=1)),
        ("openai", "gpt-6-luna", Usage(output_tokens=1)),
        ("openai", "gpt-6-luna", Usage(input_tokens=1)),
        ("openai", "gpt-6-luna", Usage(input_tokens=10, output_tokens=1, cached_input_tokens=500)),
    ],
)
def test_what_is_unknown_has_no_price(provider: str | None, model: str, usage: Usage) -> None:
    assert price(provider, model, usage) is None


@pytest.mark.parametrize(
    ("base_url", "provider"),
    [
        ("https://api.openai.com/v1", "openai"),
        ("https://openrouter.ai/api/v1", "openrouter"),
        ("https://res.openai.azure.com/openai/v1/", None),
        ("http://127.0.0.1:11434/v1", None),
        ("https://gateway.example/v1", None),
    ],
)
def test_a_provider_is_known_by_its_address(base_url: str, provider: str | None) -> None:
    assert find_provider(base_url) == provider


def test_the_model_that_served_is_priced_before_the_one_asked_for() -> None:
    usage = Usage(input_tokens=MILLION, output_tokens=0)
    served = with_cost(usage, "openai", "gpt-4.1", "gpt-6-luna")
    unknown = with_cost(usage, "openai", "house-name", "gpt-4.1")
    assert served.cost_usd == unknown.cost_usd == pytest.approx(2.0)
    assert with_cost(usage, "openai", None, "house-name").cost_usd is None


def test_figures_that_are_no_numbers_are_unknown() -> None:
    assert [read_figure(value) for value in (5, 5.0, None, "5", True, [])] == [5, 5, None, None, None, None]
