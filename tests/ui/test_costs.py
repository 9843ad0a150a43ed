"""The table of ``%agent cost``."""

from __future__ import annotations

from harness_nb import events as ev
from harness_nb.types import Message, Usage
from harness_nb.ui.costs import cost_table
from harness_nb.ui.last_line import usage_words


def replied(turn: int, **figures: float) -> ev.ModelReplied:
    usage = Usage.model_validate(figures) if figures else None
    return ev.ModelReplied(turn=turn, message=Message(role="assistant", usage=usage))


def shown(*events: ev.Event) -> list[list[str]]:
    text = str(cost_table(events).data["text/plain"])
    return [[word.strip() for word in line.strip().split("  ") if word.strip()] for line in text.splitlines()]


def test_tasks_turns_and_the_sum_are_shown_with_every_figure() -> None:
    rows = shown(
        ev.PromptAdded(prompt="First\ntask"),
        replied(1, input_tokens=1000, output_tokens=10, cached_input_tokens=800, cost_usd=0.25),
        replied(2, input_tokens=2000, output_tokens=20, cache_write_tokens=50, searches=2, cost_usd=0.5),
        ev.PromptAdded(prompt="Second " + "x" * 90),
        ev.ContextCompacted(
            summary="s", dropped=3, model="m", usage=Usage(input_tokens=7, output_tokens=1, cost_usd=0.125)
        ),
        replied(1, input_tokens=3000, output_tokens=30, reasoning_tokens=4, cost_usd=1.0),
    )
    assert rows[0] == ["in", "cached", "to cache", "out", "reasoning", "searches", "cost"]
    assert rows[1][:2] == ["task 1, 2 turns: First task", "3,000"] and rows[1][-1] == "$0.7500"
    assert rows[2][0].startswith("task 2, 1 turn: Second xxx") and rows[2][0].endswith("…")
    assert [row[0] for row in rows[3:]] == ["summary", "turn 1", "session, 3 turns"]
    assert rows[3][1:] == ["7", "unknown", "unknown", "1", "unknown", "unknown", "$0.1250"]
    assert rows[5][1:] == ["6,007", "800", "50", "61", "4", "2", "$1.8750"]


def test_columns_without_figures_are_left_out_and_unknown_costs_are_said() -> None:
    rows = shown(
        ev.PromptAdded(prompt="go"), replied(1, input_tokens=5, output_tokens=1, cost_usd=0.5), replied(2), replied(3)
    )
    assert rows[0] == ["in", "out", "cost"]
    assert rows[3] == ["turn 2", "unknown", "unknown", "cost unknown"]
    assert rows[-1] == ["session, 3 turns", "5", "1", "$0.5000 and 2 of unknown cost"]


def test_the_end_line_has_all_figures() -> None:
    usage = Usage(
        input_tokens=9000, output_tokens=900, cached_input_tokens=8000, cache_write_tokens=70, reasoning_tokens=600,
        searches=1, cost_usd=0.0321,
    )  # fmt: skip
    assert usage_words(usage) == [
        "9,000 tokens in (8,000 cached, 70 written to the cache), 900 out (600 reasoning)", "1 search", "$0.0321"
    ]  # fmt: skip
