"""One behaviour suite for the port ``Judge``: the script, and each way of asking each API."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from canned_server import CannedServer, json_answer
from stand_ins import Naps
from test_judging import (
    MISSING,
    decision,
    judge_of,
    labelled,
    predicate,
    sampled,
    score,
    with_logprobs,
)
from test_judging import said as answered

from harness_nb.errors import ModelError
from harness_nb.judging import judge_call
from harness_nb.models.judging import SAMPLES
from harness_nb.models.judging_scripted import ScriptedJudge, read_judgements
from harness_nb.policy import decide
from harness_nb.policy.judging import Thresholds, combine
from harness_nb.ports import Judge, Question
from harness_nb.types import ToolCall, Usage

KINDS = (
    *("scripted", "decisions", "labels in responses", "labels in chat"),
    *("samples of responses", "samples of chat", "samples of anthropic"),
)
CALL = ToolCall(call_id="c1", name="python", arguments={"code": "1 + 1"})
QUESTION = Question(call=CALL, source="1 + 1", words=("Add one and one.",), workspace="/work")
REFUSED = {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}


@pytest.fixture
def stage(server: CannedServer, naps: Naps, tmp_path: Path) -> Callable[..., Judge]:
    """``stage(kind, level, covered)``: a classifier that will say so of the next call; ``None`` for a refusal."""

    def scripted(level: int | None, covered: bool) -> Judge:
        fitting = {"risk_probabilities": [float(number == level) for number in range(4)], "authorised": float(covered)}
        path = tmp_path / "judgements.json"
        path.write_text(json.dumps([{"error": {"kind": "refusal"}} if level is None else fitting]))
        return ScriptedJudge("scripted:judgements.json", read_judgements(path))

    def make(kind: str, level: int | None, covered: bool = True) -> Judge:
        word = "yes" if covered else "no"
        if kind == "scripted":
            return scripted(level, covered)
        api = {"responses": "openai", "decisions": "openai"}.get(kind.split()[-1], kind.split()[-1])
        if kind == "decisions":
            risk: dict[str, Any] = {"type": "refusal", "name": "risk"}
            risk = risk if level is None else score(*(float(number == level) for number in range(4)))
            server.add(decision(risk, predicate(float(covered))))
        elif kind.startswith("labels"):
            whole = with_logprobs(api, labelled({str(level): 1.0}, {word: 1.0}))
            if level is None and api == "openai":
                whole = json_answer({"object": "response", "status": "completed", "output": [REFUSED]})
            elif level is None:
                choice = {"index": 0, "message": {"role": "assistant", "refusal": "No."}, "finish_reason": "stop"}
                whole = json_answer({"object": "chat.completion", "choices": [choice]})
            server.add(MISSING, whole)
        else:
            before = [] if api == "anthropic" else [MISSING, with_logprobs(api, None)]
            text = "I will not judge that." if level is None else answered(level, word)
            server.add(*before, *sampled(api, *[text] * SAMPLES))
        return judge_of(server, naps, api)

    return make


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("level", "covered", "verdict"), [(0, True, "allow"), (0, False, "ask"), (3, True, "deny")])
async def test_what_it_says_is_what_counts(
    stage: Callable[..., Judge], kind: str, level: int, covered: bool, verdict: str
) -> None:
    judge = stage(kind, level, covered)
    judgement, usage = await judge.judge(QUESTION)
    assert judgement.risk == pytest.approx(level, abs=1e-6) and judgement.authorised == pytest.approx(float(covered))
    assert len(judgement.risk_probabilities) == 4 and sum(judgement.risk_probabilities) == pytest.approx(1)
    assert judgement.model == judge.name and judgement.method == kind.split()[0]
    assert usage.cost_usd is not None and usage.cost_usd >= 0
    assert combine(decide((), CALL, ""), judgement, Thresholds()).verdict == verdict
    await judge.aclose()


@pytest.mark.parametrize("kind", KINDS)
async def test_a_refusal_is_an_error_and_then_no_verdict(stage: Callable[..., Judge], kind: str) -> None:
    judge = stage(kind, None)
    with pytest.raises(ModelError):
        await judge.judge(QUESTION)
    await judge.aclose()
    judge = stage(kind, None)
    decided, usage = await judge_call(judge, QUESTION, decide((), CALL, ""), Thresholds())
    assert decided.verdict == "ask" and decided.no_verdict and decided.judgement is None
    assert isinstance(usage, Usage)
    await judge.aclose()
