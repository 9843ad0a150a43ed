"""Limits: what is spent, what the next request will take, and what nobody says."""

from __future__ import annotations

import pytest

from harness_nb import events as ev
from harness_nb.budget import Budget, add_usage
from harness_nb.types import Limits, Message, Usage


def replied(usage: Usage | None) -> ev.ModelReplied:
    return ev.ModelReplied(turn=1, message=Message(role="assistant", usage=usage))


def budget(**limits: float) -> Budget:
    return Budget(Limits.model_validate({"max_turns": None, **limits}), started=0.0)


def test_the_estimate_of_the_next_request_counts() -> None:
    spending = budget(max_cost=1.0, max_tokens=1000)
    spending.apply(replied(Usage(input_tokens=500, output_tokens=100, cost_usd=0.6)))
    assert spending.reached(0.0) is None
    spending.expect(Usage(input_tokens=200, output_tokens=200, cost_usd=0.4))
    assert spending.reached(0.0) is None
    spending.expect(Usage(input_tokens=201, output_tokens=200, cost_usd=0.1))
    limit = spending.reached(0.0)
    assert limit is not None and limit.limit == "tokens"
    assert (
        limit.text
        == "600 of 1,000 tokens are used, and the next request would take about 401; raise it with --max-tokens"
    )
    spending.expect(Usage(input_tokens=1, output_tokens=1, cost_usd=0.41))
    limit = spending.reached(0.0)
    assert limit is not None and limit.limit == "cost"
    assert (
        limit.text
        == "$0.6000 of $1.0000 are spent, and the next request would cost about $0.4100; raise it with --max-cost"
    )


def test_a_first_request_that_is_too_dear_is_not_sent() -> None:
    spending = budget(max_cost=0.01)
    spending.expect(Usage(input_tokens=9000, output_tokens=500, cost_usd=0.02))
    assert spending.reached(0.0) is not None


def test_what_the_provider_does_not_say_counts_as_it_was_estimated() -> None:
    spending = budget(max_cost=1.0, max_tokens=1000)
    spending.expect(Usage(input_tokens=300, output_tokens=100, cost_usd=0.4))
    for _ in range(2):
        spending.apply(replied(None))
    assert spending.usage == Usage()
    limit = spending.reached(0.0)
    assert limit is not None and "800 of 1,000 tokens" in limit.text
    spending.expect(Usage(cost_usd=0.3))
    limit = spending.reached(0.0)
    assert limit is not None and "$0.8000 of $1.0000" in limit.text
    spending = budget(max_tokens=1000)
    spending.expect(Usage(input_tokens=300, output_tokens=100))
    spending.apply(replied(Usage(input_tokens=5, output_tokens=5)))
    spending.expect(None)
    assert spending.reached(0.0) is None, "a figure that is there takes the place of the estimate"


def test_summaries_count_like_replies() -> None:
    spending = budget(max_tokens=100)
    usage = Usage(input_tokens=90, output_tokens=20)
    spending.apply(ev.ContextCompacted(summary="s", dropped=2, model="m", usage=usage))
    spending.apply(ev.ContextCompacted(summary="s", dropped=2))
    assert spending.usage == usage and spending.reached(0.0) is not None
    assert not budget(max_tokens=100).allows(usage)
    assert budget(max_tokens=110).allows(usage)


@pytest.mark.parametrize("limits", [{"max_cost": 1.0}, {"max_tokens": 1000}])
def test_the_model_is_told_once_when_money_or_tokens_run_out(limits: dict[str, float]) -> None:
    spending = budget(**limits)
    spending.expect(Usage(input_tokens=100, output_tokens=100, cost_usd=0.2))
    told = []
    for turn in range(1, 6):
        spending.turns = turn
        told.append(spending.warning())
        spending.apply(replied(Usage(input_tokens=100, output_tokens=100, cost_usd=0.2)))
    words = [warning is not None for warning in told]
    assert words == [False, False, False, True, False]
    assert told[3] is not None and "about two more replies fit" in told[3].text


def test_without_limits_nothing_is_reached() -> None:
    spending = budget()
    spending.expect(Usage(input_tokens=10**9, output_tokens=10**9, cost_usd=1e9))
    assert spending.reached(1e9) is None and spending.warning() is None


def test_sums_do_not_hide_what_is_known() -> None:
    first, second = Usage(input_tokens=1, searches=2), Usage(output_tokens=3, searches=1)
    assert add_usage(first, second) == Usage(input_tokens=1, output_tokens=3, searches=3)
