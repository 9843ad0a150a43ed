"""``scripted:``: the format of scripts, and what is said of a wrong one."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from stand_ins import PROMPT, TOOLS, Naps

from harness_nb.errors import ModelError, TransientModelError, UsageError
from harness_nb.models.scripted import ERRORS, ScriptedModel, read_script
from harness_nb.ports import ModelSettings, ReasoningDelta, TextDelta

Ask = Callable[..., Any]


def script(tmp_path: Path, replies: Any, naps: Naps | None = None) -> ScriptedModel:
    path = tmp_path / "demo.json"
    path.write_text(replies if isinstance(replies, str) else json.dumps(replies), encoding="utf-8")
    return ScriptedModel("scripted:demo.json", read_script(path), sleep=naps or Naps())


async def test_replies_come_in_order_and_the_last_one_repeats(tmp_path: Path, ask: Ask) -> None:
    model = script(tmp_path, [{"text": "one"}, {"text": "two"}])
    assert model.unplayed == 2
    texts = [(await ask(model))[1].text for _ in range(4)]
    assert texts == ["one", "two", "two", "two"]
    assert model.unplayed == 0


async def test_the_error_that_comes_last_repeats_too(tmp_path: Path, naps: Naps, ask: Ask) -> None:
    model = script(tmp_path, [{"text": "one"}, {"error": {"status": 500}}], naps)
    await ask(model)
    with pytest.raises(TransientModelError, match="500"):
        await ask(model)
    assert len(naps.seconds) == 4


async def test_the_same_script_gives_the_same_ids(tmp_path: Path, ask: Ask) -> None:
    replies = [{"calls": [{"name": "bash"}, {"name": "bash"}]}]
    ids = [[call.call_id for call in (await ask(script(tmp_path, replies)))[1].tool_calls] for _ in range(2)]
    assert ids[0] == ids[1] == ["call_2_0", "call_2_1"]


async def test_a_repeated_reply_has_other_ids(tmp_path: Path, ask: Ask) -> None:
    model = script(tmp_path, [{"calls": [{"name": "bash", "id": "fixed"}]}])
    _, first = await ask(model)
    _, second = await ask(model, (*PROMPT, first))
    assert first.tool_calls[0].call_id == "fixed"
    assert second.tool_calls[0].call_id != "fixed"


async def test_a_reply_costs_nothing_unless_the_script_says_so(tmp_path: Path, ask: Ask) -> None:
    model = script(tmp_path, [{"text": "a"}, {"text": "b", "usage": {"input_tokens": 5, "cost_usd": 0.25}}])
    assert [(await ask(model))[1].usage.cost_usd for _ in range(2)] == [0.0, 0.25]


async def test_reasoning_is_streamed_before_the_text(tmp_path: Path, ask: Ask) -> None:
    deltas, message = await ask(script(tmp_path, [{"reasoning": "Let me see.", "text": "So it is."}]))
    kinds = [type(delta) for delta in deltas]
    assert kinds == [ReasoningDelta] * 3 + [TextDelta] * 3
    assert message.text == "So it is."


async def test_a_delay_spreads_the_pieces(tmp_path: Path) -> None:
    model = script(tmp_path, [{"text": "a b c d e", "delay": 0.05}])
    started = time.monotonic()
    pieces = [item async for item in model.stream(PROMPT, TOOLS, ModelSettings()) if isinstance(item, TextDelta)]
    assert len(pieces) == 5
    assert time.monotonic() - started >= 0.25


@pytest.mark.parametrize("kind", ERRORS)
async def test_each_typed_error_can_be_raised(kind: str, tmp_path: Path, naps: Naps, ask: Ask) -> None:
    expected, words = ERRORS[kind]
    model = script(tmp_path, [{"error": {"kind": kind}}], naps)
    with pytest.raises(ModelError, match=words.split(":")[0]) as caught:
        await ask(model)
    assert type(caught.value) is expected
    assert len(naps.seconds) == (4 if expected is TransientModelError else 0)
    words = script(tmp_path, [{"error": {"kind": kind, "message": "In my words.", "code": "c", "status": 418}}], naps)
    with pytest.raises(expected, match="In my words") as caught:
        await ask(words)
    assert (caught.value.code, caught.value.status) == ("c", 418)


async def test_a_script_knows_whether_it_was_used_up(tmp_path: Path, ask: Ask) -> None:
    model = script(tmp_path, [{"text": "one"}, {"text": "two"}])
    await ask(model)
    with pytest.raises(AssertionError, match=r'1 of 2 replies were not played.*"two"'):
        model.assert_used_up()
    await ask(model)
    model.assert_used_up()
    await ask(model)
    assert model.repeats == 1
    with pytest.raises(AssertionError, match="1 times more"):
        model.assert_used_up()
    model.assert_used_up(repeats=1)


async def test_the_next_reply_is_estimated_by_what_the_script_says(tmp_path: Path, ask: Ask) -> None:
    usage = {"input_tokens": 70, "output_tokens": 5, "cost_usd": 0.25}
    model = script(tmp_path, [{"text": "free"}, {"text": "dear", "usage": usage}])
    free = model.estimate(PROMPT, TOOLS, ModelSettings())
    assert (free.cost_usd, model.price_known) == (0.0, True)
    assert (free.input_tokens or 0) > 0
    await ask(model)
    dear = model.estimate(PROMPT, TOOLS, ModelSettings())
    assert (dear.input_tokens, dear.output_tokens, dear.cost_usd) == (70, 5, 0.25)


WRONG: dict[str, tuple[Any, str]] = {
    "not JSON": ('[{"text": "a"},]', r"demo\.json is not JSON: .*line 1"),
    "not a list": ({"text": "a"}, r"demo\.json must be a JSON list"),
    "empty": ([], r"at least one reply"),
    "misspelt": ([{"text": "a"}, {"txt": "b"}], r"reply 2 of 2.*'txt'.*text, calls"),
    "misspelt in a call": (
        [{"calls": [{"name": "bash", "args": {}}]}],
        r"reply 1.*'calls\[0\]\.args'.*name, arguments",
    ),
    "misspelt in usage": ([{"text": "a", "usage": {"tokens": 1}}], r"'usage\.tokens'.*input_tokens"),
    "a call without a name": ([{"calls": [{"arguments": {}}]}], r"'calls\[0\]\.name' is missing"),
    "a wrong type": ([{"text": 5}], r"reply 1 of 1: 'text'.*string"),
    "says nothing": ([{"usage": {"input_tokens": 1}}], r'reply 1.*needs "text", "calls" or "error"'),
    "error and calls": ([{"error": {"status": 500}, "calls": [{"name": "a"}]}], r'reply with "error" can only'),
    "no status": ([{"error": {"status": 200}}], r"'error\.status'.*400"),
    "no kind": ([{"error": {"kind": "odd"}}], r"'error\.kind'.*'cut'"),
    "not an object": (["hello"], r"reply 1 of 1.*object"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_script_is_told_with_reply_and_field(name: str, tmp_path: Path) -> None:
    replies, said = WRONG[name]
    with pytest.raises(UsageError, match=said) as caught:
        script(tmp_path, replies)
    assert str(tmp_path / "demo.json") in str(caught.value)


def test_a_missing_script_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere\.json cannot be read: No such file"):
        read_script(tmp_path / "nowhere.json")
