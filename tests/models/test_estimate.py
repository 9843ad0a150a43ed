"""The estimate of the next request: from the provider's last count where there is one, else from the size."""

from __future__ import annotations

import pytest
from stand_ins import PICTURE, PROMPT, TOOLS

from harness_nb.context.size import IMAGE_TOKENS
from harness_nb.models.estimate import FUDGE, LEAST_OUTPUT, estimate_request
from harness_nb.models.pricing import read_rates
from harness_nb.models.remote import RemoteModel
from harness_nb.ports import ModelSettings
from harness_nb.types import Message, TextPart, ToolCall, Usage, text_content, text_message

PLAIN = ModelSettings()
PROSE = "The model reads the file and then writes a test for each of its functions, one by one. " * 40


def replied(text: str = "Fine.", **usage: int) -> Message:
    return Message(role="assistant", content=(TextPart(text=text),), usage=Usage(**usage))


def test_the_first_request_is_guessed_from_its_size() -> None:
    small = estimate_request(PROMPT, TOOLS, PLAIN)
    large = estimate_request((*PROMPT, text_message("user", PROSE)), TOOLS, PLAIN)
    words = len(PROSE.split())
    assert (small.input_tokens or 0) > 20
    assert words <= (large.input_tokens or 0) - (small.input_tokens or 0) <= 2 * words
    assert small.output_tokens == LEAST_OUTPUT
    assert small.cached_input_tokens is None
    assert small.cost_usd is None


@pytest.mark.parametrize(("text", "least"), [("x = [1, 2, 3]\n" * 100, 700), ("漢字" * 100, 150), ("🙂" * 100, 100)])
def test_other_texts_are_not_guessed_too_small(text: str, least: int) -> None:
    first = estimate_request(PROMPT, (), PLAIN).input_tokens or 0
    more = estimate_request((*PROMPT, text_message("user", text)), (), PLAIN).input_tokens or 0
    assert more - first >= least / 2


def test_the_providers_count_comes_before_the_guess() -> None:
    history = (text_message("user", PROSE), replied(input_tokens=900, output_tokens=100))
    alone = estimate_request(history, TOOLS, PLAIN)
    assert alone.input_tokens == 1000
    longer = estimate_request((*history, Message(role="tool", call_id="c", content=text_content(PROSE))), TOOLS, PLAIN)
    assert 1500 < (longer.input_tokens or 0) < 3000


def test_a_cached_prefix_is_expected_to_hit_again() -> None:
    history = (text_message("user", PROSE), replied(input_tokens=900, output_tokens=100, cached_input_tokens=800))
    assert estimate_request(history, TOOLS, PLAIN).cached_input_tokens == 900
    assert estimate_request((history[0], replied(input_tokens=900)), TOOLS, PLAIN).cached_input_tokens is None


def test_a_count_from_before_a_compaction_is_not_believed() -> None:
    history = (text_message("user", "Summary."), replied(input_tokens=180_000, output_tokens=300))
    guess = estimate_request((history[0], replied()), TOOLS, PLAIN).input_tokens or 0
    assert estimate_request(history, TOOLS, PLAIN).input_tokens == FUDGE * guess


def test_the_longest_of_the_last_replies_says_how_long_the_next_may_be() -> None:
    lengths = [9000, 700, 1200, 800, 600]
    history = [message for n in lengths for message in (PROMPT[1], replied(input_tokens=50, output_tokens=n))]
    assert estimate_request(history, TOOLS, PLAIN).output_tokens == 1200
    assert estimate_request(history, TOOLS, ModelSettings(max_output_tokens=300)).output_tokens == 300


def test_pictures_and_calls_count() -> None:
    plain = estimate_request((*PROMPT, Message(role="tool", call_id="c")), (), PLAIN).input_tokens or 0
    picture = estimate_request((*PROMPT, Message(role="tool", call_id="c", content=(PICTURE,))), (), PLAIN)
    assert (picture.input_tokens or 0) - plain == IMAGE_TOKENS
    call = ToolCall(call_id="c", name="write_file", arguments={"path": "a.py", "content": PROSE})
    called = estimate_request((*PROMPT, Message(role="assistant", tool_calls=(call,))), (), PLAIN)
    assert (called.input_tokens or 0) - plain > len(PROSE.split())


async def test_a_model_prices_its_estimate(chat: RemoteModel) -> None:
    history = (text_message("user", PROSE), replied(input_tokens=900, output_tokens=1100, cached_input_tokens=800))
    assert chat.estimate(history, TOOLS, PLAIN).cost_usd is None
    tariff = chat.tariff
    priced = type(tariff)(tariff.spec, tariff.model, None, read_rates({"*": {"input": 10, "output": 1, "cached": 1}}))
    chat.tariff = priced
    assert chat.estimate(history, TOOLS, PLAIN).cost_usd == pytest.approx((1100 * 10 + 900 + 1100) / 1e6)
