"""Classifiers behind HTTP: the three ways to ask, what is read and what is no verdict, and how a way is chosen."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from math import log
from typing import Any

import openai
import pytest
from canned_server import Answer, CannedServer, error_answer, json_answer
from stand_ins import Naps
from wire import anthropic_answer, chat_answer, responses_answer

from harness_nb.errors import AuthenticationError, ModelError, TransientModelError
from harness_nb.judging import judge_call
from harness_nb.models.anthropic_model import anthropic_model
from harness_nb.models.chat import chat_model
from harness_nb.models.judging import SAMPLES, RemoteJudge, write_decisions
from harness_nb.models.judging_answers import read_sample
from harness_nb.models.label_probabilities import label_probabilities
from harness_nb.models.pricing import Rates
from harness_nb.models.responses import responses_model
from harness_nb.policy import decide
from harness_nb.policy.judging import LEVELS, NoVerdictError, Thresholds
from harness_nb.policy.judging_text import SCHEMA
from harness_nb.ports import Question
from harness_nb.types import Judgement, ToolCall, Usage

CALL = ToolCall(call_id="c1", name="bash", arguments={"command": "make clean"})
QUESTION = Question(call=CALL, source="%%bash\nmake clean", words=("Build it anew.",), workspace="/work")
RATES = {"*": Rates(input=1.0, output=10.0)}
MAKERS: dict[str, Callable[..., Any]] = {"openai": responses_model, "chat": chat_model, "anthropic": anthropic_model}
MISSING = error_answer(404, "no endpoint /v1/decisions", "not_found")
USAGE = {
    "input_tokens": 1000,
    "output_tokens": 7,
    "total_tokens": 1007,
    "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
    "output_tokens_details": {"reasoning_tokens": 0},
}


def judge_of(server: CannedServer, naps: Naps, kind: str = "openai") -> RemoteJudge:
    model = MAKERS[kind](
        "gpt-6-luna", base_url=server.url, api_key="sk-test-0123456789", timeout=20, sleep=naps, rates=RATES
    )
    return RemoteJudge(model, sleep=naps, make_tag=lambda: "f00d")


async def ask(judge: RemoteJudge, times: int = 1) -> tuple[Judgement, Usage]:
    try:
        for _ in range(times):
            said = await judge.judge(QUESTION)
        return said
    finally:
        await judge.aclose()


def score(*probabilities: float, first: int = 0, **more: Any) -> dict[str, Any]:
    listed = [
        {"label": label, "probability": each, "value": first + level}
        for level, (label, each) in enumerate(zip(LEVELS, probabilities, strict=True))
    ]
    expected = sum((first + level) * each for level, each in enumerate(probabilities))
    return {"type": "score", "name": "risk", "score": expected, "confidence": 0.5, "probabilities": listed, **more}


def predicate(probability: Any) -> dict[str, Any]:
    return {"type": "predicate", "name": "authorised", "probability": probability}


def decision(*answers: dict[str, Any]) -> Answer:
    return json_answer({"model": "gpt-6-luna", "answers": list(answers), "usage": USAGE})


async def test_the_decisions_api_gives_expected_risk_and_authorised(server: CannedServer, naps: Naps) -> None:
    server.add(decision(score(0.1, 0.6, 0.2, 0.1), predicate(0.8)))
    judgement, usage = await ask(judge_of(server, naps))
    assert (judgement.risk, judgement.authorised) == (pytest.approx(1.3), 0.8)
    assert judgement.risk_probabilities == pytest.approx((0.1, 0.6, 0.2, 0.1))
    assert (judgement.method, judgement.model) == ("decisions", "openai:gpt-6-luna")
    assert usage.input_tokens == 1000 and usage.output_tokens == 7
    assert usage.cost_usd == pytest.approx(1000 / 1e6)  # output is free there


async def test_the_request_is_the_one_that_the_library_sends(server: CannedServer, naps: Naps) -> None:
    answer = decision(score(1, 0, 0, 0), predicate(1))
    server.add(answer, answer)
    await ask(judge_of(server, naps))
    ours = server.requests[0]
    async with openai.AsyncOpenAI(base_url=server.url, api_key="sk-test-0123456789", max_retries=0) as library:
        theirs = await library.decisions.create(**ours.body)
    assert server.requests[1].body == ours.body and server.requests[1].path == ours.path == "/v1/decisions"
    assert ours.headers["authorization"] == server.requests[1].headers["authorization"]
    assert theirs.answers[0].type == "score"
    risk, authorised = ours.body["questions"]
    assert [level["label"] for level in risk["levels"]] == list(LEVELS)
    assert authorised["type"] == "predicate" and "user-f00d" in authorised["instructions"]
    developer, user = ours.body["input"]
    assert "untrusted" in developer["content"] and "f00d" not in developer["content"]  # a prefix that does not change
    assert "<call-f00d>\ntool: bash" in user["content"] and ours.body == write_decisions(
        "gpt-6-luna", user["content"], "f00d"
    )


async def test_each_question_has_a_tag_of_its_own_that_nobody_can_guess(server: CannedServer, naps: Naps) -> None:
    server.add(*[decision(score(1, 0, 0, 0), predicate(1))] * 3)
    model = responses_model("m", base_url=server.url, api_key="none", sleep=naps)
    await ask(RemoteJudge(model), times=3)
    tags = {body["input"][1]["content"].split()[3].strip(".") for body in server.bodies}
    assert len(tags) == 3 and all(len(tag) == 16 for tag in tags)


async def test_levels_numbered_from_one_and_scores_without_probabilities(server: CannedServer, naps: Naps) -> None:
    server.add(decision(score(0, 0, 1, 0, first=1), predicate(0.5)))
    bare = {"type": "score", "score": 2.25}
    server.add(json_answer({"answers": [bare, {"type": "predicate", "probability": 1}]}))
    judge = judge_of(server, naps)
    assert (await judge.judge(QUESTION))[0].risk == 2.0
    judgement, usage = await ask(judge)
    assert judgement.risk == 2.25 and judgement.risk_probabilities == () and judgement.authorised == 1.0
    assert usage == Usage()  # the server counted nothing


NAN = float("nan")


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ([score(1, 0, 0, 0), {"type": "refusal", "name": "authorised"}], "declined to answer the question about auth"),
        ([{"type": "refusal", "name": "risk"}, predicate(0.9)], "declined to answer the question about risk"),
        ([{"type": "refusal", "name": None}, predicate(0.9)], "declined to answer the question about risk"),
        ([score(1, 0, 0, 0), predicate(NAN)], "authorised is nan and not a number"),
        ([score(1, 0, 0, 0), predicate(1.2)], "authorised is 1.2 and not from 0 to 1"),
        ([score(1, 0, 0, 0), predicate("high")], "authorised is 'high' and not a number"),
        ([score(1, 0, 0, 0), predicate(True)], "authorised is True and not a number"),
        ([score(1, 0, 0, 0)], "the question about authorised was not answered"),
        ([], "the question about risk was not answered"),
        ([score(0.5, 0.5, 0.5, 0.5), predicate(1)], "do not sum to 1"),
        ([score(NAN, 0, 0, 0), predicate(1)], "probability of low is nan"),
        ([score(1, 0, 0, 0, score=NAN), predicate(1)], "is not that of its probabilities"),
        ([score(1, 0, 0, 0, score=2.0), predicate(1)], "is not that of its probabilities"),
        ([{"type": "score", "name": "risk", "score": 7}, predicate(1)], "risk is 7 and not from 0 to 3"),
        ([{"type": "score", "name": "risk", "score": NAN}, predicate(1)], "risk is nan and not a number"),
        ([score(1, 0, 0, 0, probabilities=[{"label": "low", "probability": 1}]), predicate(1)], "levels of risk are"),
        ([score(1, 0, 0, 0, probabilities=["low"]), predicate(1)], "the probabilities of risk are"),
    ],
)
async def test_what_is_no_verdict(server: CannedServer, naps: Naps, answers: list[Any], why: str) -> None:
    server.add(decision(*answers))
    with pytest.raises(NoVerdictError, match=why) as caught:
        await ask(judge_of(server, naps))
    assert caught.value.usage is not None and caught.value.usage.input_tokens == 1000  # it was paid for all the same
    assert len(server.requests) == 1  # and it is not asked in another way


def token(text: str, **alternatives: float) -> dict[str, Any]:
    """A token; its alternatives by their text, ``_`` for a quote."""
    listed = [{"token": each.replace("_", '"'), "logprob": log(p)} for each, p in alternatives.items()]
    own = next((each["logprob"] for each in listed if each["token"] == text), 0.0)
    return {"token": text, "logprob": own, "top_logprobs": listed}


def labelled(level: dict[str, float], covered: dict[str, float]) -> list[dict[str, Any]]:
    most = [max(each, key=lambda name, each=each: each[name]) for each in (level, covered)]  # type: ignore[misc]
    return [
        *(token('{"'), token("risk"), token('":"'), token(most[0], **level), token('","')),
        *(token("authorised"), token('":"'), token(most[1], **covered), token('"}')),
    ]


def with_logprobs(kind: str, tokens: list[dict[str, Any]] | None) -> Answer:
    text = "".join(each["token"] for each in tokens) if tokens else '{"risk":"0","authorised":"yes"}'
    if kind == "chat":
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        logprobs = {"logprobs": {"content": tokens}} if tokens else {}
        usage = {"prompt_tokens": 500, "completion_tokens": 10}
        return json_answer({"object": "chat.completion", "choices": [{**choice, **logprobs}], "usage": usage})
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": tokens or []}
    message = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [part]}
    usage = {"input_tokens": 500, "output_tokens": 10}
    return json_answer({"object": "response", "status": "completed", "output": [message], "usage": usage})


@pytest.mark.parametrize("kind", ["openai", "chat"])
async def test_labels_are_normalised_and_the_way_is_remembered(server: CannedServer, naps: Naps, kind: str) -> None:
    first = labelled({"1": 0.6, "0": 0.2, "x": 0.1}, {"yes": 0.45, "no": 0.05, "Y": 0.4})
    server.add(MISSING, with_logprobs(kind, first), with_logprobs(kind, labelled({"3": 1.0}, {"no": 1.0})))
    judge = judge_of(server, naps, kind)
    judgement, usage = await judge.judge(QUESTION)
    assert judgement.risk == pytest.approx(0.75) and judgement.risk_probabilities == pytest.approx((0.25, 0.75, 0, 0))
    assert judgement.authorised == pytest.approx(0.85 / 0.9) and judgement.method == "labels" == judge.method
    assert usage.input_tokens == 500 and usage.cost_usd == pytest.approx((500 * 1 + 10 * 10) / 1e6)
    judgement, _ = await ask(judge)
    assert (judgement.risk, judgement.authorised) == (3.0, 0.0)
    path = "/v1/chat/completions" if kind == "chat" else "/v1/responses"
    assert [request.path for request in server.requests] == ["/v1/decisions", path, path]
    body = server.bodies[1]
    form = body["response_format"]["json_schema"] if kind == "chat" else body["text"]["format"]
    assert form["strict"] and form["schema"]["properties"]["risk"]["enum"] == ["0", "1", "2", "3"]
    assert body["top_logprobs"] == 5 and body["stream"] is False and "reasoning" not in body
    assert body["logprobs"] is True if kind == "chat" else body["include"] == ["message.output_text.logprobs"]


def test_labels_are_found_in_whatever_tokens_they_come() -> None:
    risk = ["0", "1", "2", "3"]
    joined = [token('{"risk": "'), token('2",', **{'2",': 0.5, '1",': 0.5}), token(' "authorised": "yes"}')]
    assert label_probabilities(joined, "risk", risk) == pytest.approx([0, 0.5, 0.5, 0])
    quoted = [token('{"risk":'), token('"2', **{"_2": 0.7, "_3": 0.2, " ": 0.1}), token('"}')]
    assert label_probabilities(quoted, "risk", risk) == pytest.approx([0, 0, 7 / 9, 2 / 9])
    bare = [token('{"risk": '), token("1", **{"1": 1.0}), token("}")]
    assert label_probabilities(bare, "risk", risk) == [0, 1, 0, 0]
    thought = [token('Say {"risk": "3"}? No: '), *bare]
    assert label_probabilities(thought, "risk", risk) == [0, 1, 0, 0]  # the last answer counts
    alone = [token('{"risk": "'), {"token": "1", "logprob": log(0.7), "top_logprobs": []}, token('"}')]
    assert label_probabilities(alone, "risk", risk) == pytest.approx([0.1, 0.7, 0.1, 0.1])
    parts = [token('{"authorised":"'), token("y", y=0.8, n=0.2), token('es"}')]
    assert label_probabilities(parts, "authorised", ["yes", "no"]) == pytest.approx([0.8, 0.2])
    for wrong in (
        [token("no JSON")],
        [token('{"risk": "')],
        [token('{"risk":"'), {"token": "1", "logprob": "NaN"}],
        [token('{"risk":"'), {"token": "1", "logprob": NAN}],
        [token('{"risk":"'), token("high", high=1.0)],
    ):
        with pytest.raises(ValueError):
            label_probabilities(wrong, "risk", risk)


def sampled(kind: str, *texts: str) -> list[Answer]:
    make = {"openai": responses_answer, "chat": chat_answer, "anthropic": anthropic_answer}[kind]
    return [make({"text": text, "usage": {"input_tokens": 100, "output_tokens": 10}}) for text in texts]


def said(level: int, covered: str) -> str:
    return f'```json\n{{"risk": "{level}", "authorised": "{covered}"}}\n```'


@pytest.mark.parametrize("kind", ["openai", "chat", "anthropic"])
async def test_samples_are_counted_where_there_are_no_probabilities(
    server: CannedServer, naps: Naps, kind: str
) -> None:
    five = [said(0, "yes"), said(1, "yes"), said(1, "no"), said(2, "yes"), '{"risk": 1, "authorised": true}']
    without = [] if kind == "anthropic" else [MISSING, with_logprobs(kind, None)]
    server.add(*without, *sampled(kind, *five), *sampled(kind, *[said(3, "no")] * 5))
    judge = judge_of(server, naps, kind)
    judgement, usage = await judge.judge(QUESTION)
    assert judgement.risk == pytest.approx(1.0) and judgement.risk_probabilities == pytest.approx((0.2, 0.6, 0.2, 0))
    assert judgement.authorised == pytest.approx(0.8) and judgement.method == "samples"
    assert usage.input_tokens == 500 + (500 if without else 0)  # the answer without probabilities was paid for too
    assert len(server.requests) == len(without) + SAMPLES
    judgement, usage = await ask(judge)
    assert (judgement.risk, judgement.authorised, usage.input_tokens) == (3.0, 0.0, 500)
    assert len(server.requests) == len(without) + 2 * SAMPLES


async def test_a_server_that_rejects_log_probabilities_is_sampled(server: CannedServer, naps: Naps) -> None:
    rejected = error_answer(400, "logprobs are not supported with reasoning models", "unsupported_parameter")
    server.add(MISSING, rejected, *sampled("openai", *[said(0, "yes")] * 5))
    judgement, _ = await ask(judge_of(server, naps))
    assert judgement.method == "samples" and judgement.risk == 0.0


async def test_samples_that_are_no_answers(server: CannedServer, naps: Naps) -> None:
    server.add(*sampled("anthropic", "I cannot say.", said(1, "yes"), "{}", said(1, "yes"), said(1, "no")))
    judge = judge_of(server, naps, "anthropic")
    judgement, _ = await judge.judge(QUESTION)
    assert judgement.risk == 1.0 and judgement.authorised == pytest.approx(2 / 3)
    server.add(
        *sampled("anthropic", *["I will not judge this."] * 3, said(0, "yes"), '{"risk": 9, "authorised": "yes"}')
    )
    with pytest.raises(NoVerdictError, match="4 of 5 answers are none: 'I will not judge") as caught:
        await ask(judge)
    assert caught.value.usage is not None and caught.value.usage.input_tokens == 500


async def test_a_refusal_is_no_verdict_and_not_asked_in_another_way(server: CannedServer, naps: Naps) -> None:
    part = {"type": "refusal", "refusal": "I will not."}
    message = {"type": "message", "role": "assistant", "content": [part]}
    server.add(MISSING, json_answer({"object": "response", "status": "completed", "output": [message]}))
    with pytest.raises(ModelError, match="refused: I will not"):
        await ask(judge_of(server, naps))
    assert len(server.requests) == 2


async def test_a_moment_of_overload_is_waited_for_and_a_wrong_key_is_not(server: CannedServer, naps: Naps) -> None:
    server.add(error_answer(429, "slow down", "rate_limit_exceeded", retry_after="2"))
    server.add(decision(score(1, 0, 0, 0), predicate(1)), error_answer(401, "wrong key sk-test-0123456789"))
    judge = judge_of(server, naps)
    assert (await judge.judge(QUESTION))[0].risk == 0.0
    assert len(naps.seconds) == 1 and 2.0 <= naps.seconds[0] <= 2.2
    with pytest.raises(AuthenticationError, match=r"\[key\]"):
        await ask(judge)
    assert len(naps.seconds) == 1 and len(server.requests) == 3


async def test_one_owner_of_retries(server: CannedServer, naps: Naps) -> None:
    server.add(*[error_answer(503, "overloaded")] * 20)
    with pytest.raises(TransientModelError, match="503: overloaded"):
        await ask(judge_of(server, naps))
    assert len(server.requests) == 5 and len(naps.seconds) == 4


async def test_a_server_that_answers_all_paths_with_an_error_object_has_no_decisions(
    server: CannedServer, naps: Naps
) -> None:
    server.add(json_answer({"error": "Unexpected endpoint or method. (POST /v1/decisions)"}))
    server.add(with_logprobs("chat", labelled({"0": 1.0}, {"yes": 1.0})))
    judgement, _ = await ask(judge_of(server, naps, "chat"))
    assert judgement.method == "labels"


async def test_a_classifier_that_says_nothing_in_time_gives_no_verdict(server: CannedServer, naps: Naps) -> None:
    server.add(Answer([b" "], end="hang"))
    judge = judge_of(server, naps)
    decided, usage = await judge_call(judge, QUESTION, decide((), CALL, ""), Thresholds(), timeout=0.2)
    await judge.aclose()
    assert decided.verdict == "ask" and decided.no_verdict == "no answer of openai:gpt-6-luna in 0.2 s"
    assert decided.judgement is None and usage == Usage()


async def test_what_an_answer_without_a_verdict_took_is_counted(server: CannedServer, naps: Naps) -> None:
    server.add(decision(score(1, 0, 0, 0), predicate(NAN)))
    judge = judge_of(server, naps)
    decided, usage = await judge_call(judge, QUESTION, decide((), CALL, ""), Thresholds())
    await judge.aclose()
    assert decided.verdict == "ask" and "authorised is nan" in decided.no_verdict
    assert usage.input_tokens == 1000 and usage.cost_usd == pytest.approx(1000 / 1e6)


async def test_questions_at_once_find_the_way_once(server: CannedServer, naps: Naps) -> None:
    server.add(MISSING, *[with_logprobs("chat", labelled({"0": 1.0}, {"yes": 1.0}))] * 4)
    judge = judge_of(server, naps, "chat")
    found = await asyncio.gather(*(judge.judge(QUESTION) for _ in range(4)))
    await judge.aclose()
    assert [judgement.method for judgement, _ in found] == ["labels"] * 4
    assert [request.path for request in server.requests].count("/v1/decisions") == 1


def test_the_answer_that_is_asked_for_is_the_one_that_is_read() -> None:
    properties: Any = SCHEMA["properties"]
    for level in properties["risk"]["enum"]:
        for covered in properties["authorised"]["enum"]:
            text = json.dumps({"risk": level, "authorised": covered})
            assert read_sample(f"Thinking {{}} aloud. {text}") == (int(level), covered == "yes")
    assert read_sample('{"risk": "1"}') is None and read_sample("") is None and read_sample('{"risk":"4"}') is None
