"""The real client against ``llmock``, a mock of OpenAI's HTTP that others wrote, with its faults switched on."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from stand_ins import PROMPT, TOOLS, Naps

from harness_nb.errors import ContextOverflowError, ModelError, TransientModelError
from harness_nb.models.remote import RemoteModel
from harness_nb.models.responses import responses_model
from harness_nb.ports import ModelSettings, TextDelta, Withdrawn
from harness_nb.types import Message, text_content

Ask = Callable[..., Any]


async def test_text(mocked: RemoteModel, llmock: Any, ask: Ask) -> None:
    llmock.reply("A reply in several words.")
    deltas, message = await ask(mocked)
    assert message.text == "A reply in several words."
    assert len(deltas) > 2
    assert message.usage.input_tokens > 0
    assert message.usage.output_tokens > 0
    assert llmock.last_request.status == 200


async def test_a_tool_loop(mocked: RemoteModel, llmock: Any, ask: Ask) -> None:
    llmock.call_tool("bash", {"command": "ls -l 'ü'"}).reply("Two files.")
    _, first = await ask(mocked)
    assert [(call.name, call.arguments) for call in first.tool_calls] == [("bash", {"command": "ls -l 'ü'"})]
    result = Message(role="tool", call_id=first.tool_calls[0].call_id, content=text_content("a.py b.py"))
    _, second = await ask(mocked, (*PROMPT, first, result))
    assert second.text == "Two files."
    assert "a.py b.py" in json.dumps(llmock.last_request.body)


async def test_malformed_arguments(mocked: RemoteModel, llmock: Any, ask: Ask) -> None:
    llmock.call_tool("bash", {"command": "ls"}).break_tool_call("malformed_arguments")
    _, message = await ask(mocked)
    assert message.tool_calls[0].arguments == {}
    assert message.tool_calls[0].malformed


@pytest.mark.parametrize("fault", ["truncate", "disconnect", "corrupt", "stall"])
@pytest.mark.parametrize("after", [0, 1, 4])
async def test_stream_faults(mocked: RemoteModel, llmock: Any, ask: Ask, fault: str, after: int) -> None:
    getattr(llmock, fault)(after_chunks=after)
    llmock.reply("The same whole answer for once.", times=2)
    deltas, message = await ask(mocked)
    assert message.text == "The same whole answer for once."
    last = max(k for k, delta in enumerate(deltas) if isinstance(delta, Withdrawn))
    assert "".join(delta.text for delta in deltas[last + 1 :]) == message.text
    assert len(llmock.requests) == 2
    llmock.assert_resilient()


async def test_rate_limits_are_kept_for_real(llmock: Any, ask: Ask) -> None:
    """With the real clock: the mock judges whether the client waited as long as it was asked to."""
    model = responses_model("gpt-4o", base_url=llmock.url + "/v1", api_key="x")
    llmock.rate_limit(times=2, retry_after=0.3)
    await ask(model)
    await model.aclose()
    assert [record.status for record in llmock.requests] == [429, 429, 200]
    llmock.assert_resilient(strict=True)


async def test_overflow_is_not_tried_again(mocked: RemoteModel, llmock: Any, ask: Ask) -> None:
    llmock.context_overflow()
    with pytest.raises(ContextOverflowError, match=r"(maximum context length|Bad request)"):
        await ask(mocked)
    assert len(llmock.requests) == 1
    llmock.assert_resilient()


async def test_an_outage_ends(mocked: RemoteModel, llmock: Any, ask: Ask, naps: Naps) -> None:
    llmock.outage()
    with pytest.raises(TransientModelError, match="503"):
        await ask(mocked)
    records = llmock.requests
    assert len(records) == 5
    assert all(nap >= (record.retry_after or 1) for nap, record in zip(naps.seconds, records, strict=False))


async def test_many_turns_under_faults(
    mocked: RemoteModel, llmock: Any, naps: Naps, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At high rates of all faults: each turn ends in a whole reply or a typed error, and never in half an answer."""
    from llmock.chaos import StreamChaos

    monkeypatch.setattr(random, "random", random.Random(7).random)
    monkeypatch.setattr(random, "randint", random.Random(8).randint)
    state = llmock._server.state
    state.stream_chaos = replace(
        StreamChaos(), fault_rates=(("disconnect", 0.15), ("truncate", 0.15), ("malformed", 0.15))
    )
    state.chaos.error_rates = {429: 0.1, 500: 0.1, 503: 0.1}
    text = "Every word of this reply has to arrive, or none of it."
    llmock.reply(text, times=None)
    whole, failed = 0, 0
    for _ in range(30):
        shown = ""
        try:
            async for item in mocked.stream(PROMPT, TOOLS, ModelSettings()):
                if isinstance(item, Message):
                    assert item.text == shown == text
                    whole += 1
                shown = (
                    "" if isinstance(item, Withdrawn) else shown + (item.text if isinstance(item, TextDelta) else "")
                )
        except ModelError:
            assert shown == ""
            failed += 1
    assert whole + failed == 30
    assert whole > failed
    assert naps.seconds
