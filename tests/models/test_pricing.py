"""Prices: from the bundled table and from the user, and unknown where they are unknown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from canned_server import Answer, CannedServer, sse
from wire import anthropic_events, message_item, response_events

from harness_nb.errors import UsageError
from harness_nb.models import resolve_model
from harness_nb.models.anthropic_model import anthropic_model
from harness_nb.models.pricing import (
    Tariff,
    find_provider,
    price,
    read_figure,
    read_rates,
    refuse_unknown_price,
)
from harness_nb.models.responses import responses_model
from harness_nb.types import Usage

Ask = Callable[..., Any]
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
        ("https://api.anthropic.com", "anthropic"),
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
    asked = Tariff("openai:gpt-6-luna", "gpt-6-luna", "openai")
    assert asked.cost(usage, served="gpt-4.1") == pytest.approx(2.0)
    assert Tariff("openai:gpt-4.1", "gpt-4.1", "openai").cost(usage, served="house-name") == pytest.approx(2.0)
    assert Tariff("openai:house-name", "house-name", "openai").cost(usage) is None


def test_figures_that_are_no_numbers_are_unknown() -> None:
    assert [read_figure(value) for value in (5, 5.0, None, "5", True, [])] == [5, 5, None, None, None, None]


def test_searches_are_billed_and_unknown_where_the_table_has_no_price() -> None:
    usage = Usage(input_tokens=0, output_tokens=0)
    assert price("openai", "gpt-6-luna", usage, searches=3) == pytest.approx(0.03)
    assert price("deepseek", "deepseek-chat", usage) == 0
    assert price("deepseek", "deepseek-chat", usage, searches=3) is None


# ---- the user's own rates -------------------------------------------------------------------------------------------

USAGE = Usage(input_tokens=1000, output_tokens=200, cached_input_tokens=600, cache_write_tokens=100)


@pytest.mark.parametrize(
    ("rates", "cost"),
    [
        ({"input": 1, "output": 10}, 1000 + 2000),
        ({"input": 1, "output": 10, "cached": 0.1}, 400 + 60 + 2000),
        ({"input": 1, "output": 10, "cached": 0, "cache_write": 2}, 300 + 200 + 2000),
        ({"input": 0, "output": 0}, 0),
    ],
)
def test_rates_are_dollars_a_million_tokens(rates: dict[str, float], cost: float) -> None:
    tariff = Tariff("chat:m", "m", None, read_rates({"m": rates}))
    assert tariff.known
    assert tariff.cost(USAGE) == pytest.approx(cost / 1e6)


def test_a_free_model_is_not_an_unknown_one() -> None:
    free = Tariff("chat:m", "m", None, read_rates({"chat:*": {"input": 0, "output": 0}}))
    assert (free.cost(USAGE), free.known) == (0.0, True)
    assert (Tariff("chat:m", "m").cost(USAGE), Tariff("chat:m", "m").known) == (None, False)
    assert free.cost(Usage(input_tokens=5)) is None


def test_a_whole_name_comes_before_a_pattern_and_both_before_the_table() -> None:
    rates = read_rates({"*": {"input": 9, "output": 9}, "openai:gpt-4.1": {"input": 1, "output": 1}})
    usage = Usage(input_tokens=MILLION, output_tokens=0)
    assert Tariff("openai:gpt-4.1", "gpt-4.1", "openai", rates).cost(usage, served="gpt-4.1") == pytest.approx(1.0)
    assert Tariff("openai:gpt-4o", "gpt-4o", "openai", rates).cost(usage) == pytest.approx(9.0)


def test_a_search_without_a_rate_makes_the_price_unknown() -> None:
    without = Tariff("chat:m", "m", None, read_rates({"m": {"input": 0, "output": 0}}))
    having = Tariff("chat:m", "m", None, read_rates({"m": {"input": 0, "output": 0, "search": 0.01}}))
    assert without.cost(USAGE, searches=2) is None
    assert having.cost(USAGE, searches=2) == pytest.approx(0.02)


@pytest.mark.parametrize(
    ("prices", "said"),
    [
        ({"m": {"input": 1}}, r"'m' are wrong: output"),
        ({"m": {"input": -1, "output": 1}}, r"input: .*greater"),
        ({"m": {"in": 1, "input": 1, "output": 1}}, r"in: Extra"),
        ({"m": 5}, r"'m' are wrong"),
        ({"m": {"input": float("nan"), "output": 1}}, r"input: .*finite"),
    ],
)
def test_wrong_rates_are_told_with_model_and_field(prices: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=said):
        resolve_model("chat:m", directory=tmp_path, base_url="http://localhost:1", environment={}, prices=prices)


async def test_rates_reach_the_model(tmp_path: Path) -> None:
    for kind in ("chat", "openai", "anthropic"):
        model: Any = resolve_model(
            f"{kind}:m",
            directory=tmp_path,
            base_url="http://localhost:1",
            environment={},
            prices={f"{kind}:m": {"input": 1, "output": 1}},
        )
        assert model.price_known
        await model.aclose()
    unknown: Any = resolve_model("chat:m", directory=tmp_path, base_url="http://localhost:1", environment={})
    assert not unknown.price_known
    await unknown.aclose()


def test_an_unknown_price_with_a_cost_limit_says_how_to_go_on() -> None:
    with pytest.raises(UsageError, match=r"(?s)--max-cost 2 cannot be kept.*tool\.harness-nb\.prices.*--max-tokens"):
        refuse_unknown_price("chat:m", False, 2.0)
    refuse_unknown_price("chat:m", False, None)
    refuse_unknown_price("chat:m", True, 2.0)
    assert find_provider("http://localhost") is None


@pytest.mark.parametrize(
    ("spec", "provider", "window"),
    [("gpt-6-luna", "openai", 1_050_000), ("nobody", "openai", None), ("gpt-6-luna", None, None)],
)
def test_the_table_knows_context_windows(spec: str, provider: str | None, window: int | None) -> None:
    assert Tariff(f"openai:{spec}", spec, provider).context_window() == window


# ---- searches over the wire -----------------------------------------------------------------------------------------

SEARCHED = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "x"}}
OPENED = {"type": "web_search_call", "id": "ws_2", "status": "completed", "action": {"type": "open_page", "url": "x"}}
FIGURES = {"input_tokens": 0, "output_tokens": 0}


@pytest.mark.parametrize(
    ("more", "billed"), [({}, 1), ({"tool_usage": {"web_search": {"num_requests": 4}}}, 4)], ids=["items", "counted"]
)
async def test_searches_of_responses_are_in_the_cost(
    more: dict[str, Any], billed: int, server: CannedServer, ask: Ask
) -> None:
    server.add(Answer(sse(*response_events([SEARCHED, OPENED, message_item("Found.")], FIGURES, **more))))
    rates = read_rates({"m": {"input": 0, "output": 0, "search": 0.01}})
    model = responses_model("m", base_url=server.url, api_key="none", rates=rates)
    _, message = await ask(model)
    await model.aclose()
    assert message.usage.cost_usd == pytest.approx(0.01 * billed)


async def test_searches_of_anthropic_are_in_the_cost(server: CannedServer, ask: Ask) -> None:
    events = anthropic_events([{"type": "text", "text": "Found."}], FIGURES)
    events[-2]["usage"] = {"output_tokens": 0, "server_tool_use": {"web_search_requests": 2}}
    server.add(Answer(sse(*events)))
    rates = read_rates({"m": {"input": 0, "output": 0, "search": 0.01}})
    model = anthropic_model("m", base_url=server.url, api_key="none", rates=rates)
    _, message = await ask(model)
    await model.aclose()
    assert message.usage.cost_usd == pytest.approx(0.02)
