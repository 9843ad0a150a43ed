"""Which classifier judges: named, off, or the default one beside the models; scripts of judgements; what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness_nb.errors import ModelError, QuotaError, RefusalError, UsageError
from harness_nb.model_choice import Models
from harness_nb.models.judging import RemoteJudge, resolve_judge
from harness_nb.models.judging_scripted import ScriptedJudge, read_judgements
from harness_nb.policy.judging import NoVerdictError, Thresholds
from harness_nb.ports import Question
from harness_nb.settings import Settings
from harness_nb.types import ToolCall, Usage


def question(command: str = "make") -> Question:
    call = ToolCall(call_id="c", name="bash", arguments={"command": command})
    return Question(call=call, source=f"%%bash\n{command}", words=("go",), workspace="/work")


def written(folder: Path, *entries: Any, name: str = "judgements.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(list(entries)))
    return path


async def chosen(folder: Path, **given: Any) -> tuple[str | None, str]:
    """The spec of the classifier of a session with these settings, and what the record says of it."""
    models = Models(Settings.load(folder, given, {}))
    try:
        models.ready()
        return models.judge.name if models.judge else None, models.facts["Classifier"]
    finally:
        await models.aclose()


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "sk-test-0123456789")


@pytest.mark.usefixtures("key")
async def test_the_default_classifier_by_the_models(tmp_path: Path) -> None:
    luna = "openai:gpt-6-luna"
    spec, words = await chosen(tmp_path, model="openai:gpt-6-sol")
    assert spec == luna and "default beside a model of OpenAI's own" in words and "--classifier off" in words
    assert (await chosen(tmp_path, model="chat:gpt-6-sol"))[0] == luna
    spec, words = await chosen(tmp_path, model="openai:gpt-6-sol", small_model="openai:tiny")
    assert spec == "openai:tiny" and "the small model" in words
    spec, words = await chosen(tmp_path, model="openai:x", base_url="http://127.0.0.1:9/v1")
    assert spec is None and "by rules alone" in words and "--classifier SPEC" in words
    assert (await chosen(tmp_path, model="anthropic:claude-sonnet-5-5"))[0] is None
    assert (await chosen(tmp_path, model="anthropic:claude-sonnet-5-5", small_model=luna))[0] == luna


@pytest.mark.usefixtures("key")
async def test_a_named_classifier_and_off(tmp_path: Path) -> None:
    spec, words = await chosen(tmp_path, model="openai:gpt-6-sol", classifier="off")
    assert spec is None and "switched off" in words
    written(tmp_path, {"risk": 0, "authorised": 1})
    named = await chosen(tmp_path, model="openai:gpt-6-sol", classifier="scripted:judgements.json")
    assert named == ("scripted:judgements.json",) * 2


@pytest.mark.usefixtures("key")
async def test_a_script_of_replies_is_not_taken_for_judgements(tmp_path: Path) -> None:
    replies = written(tmp_path, {"text": "done"}, name="replies.json")
    assert (await chosen(tmp_path, model=f"scripted:{replies}"))[0] is None
    small = await chosen(tmp_path, model="openai:gpt-6-sol", small_model=f"scripted:{replies}")
    assert small[0] is None
    with pytest.raises(UsageError, match=r"replies.json, judgement 1 of 1.*text.*is like \["):
        await chosen(tmp_path, model=f"scripted:{replies}", classifier=f"scripted:{replies}")


@pytest.mark.usefixtures("key")
async def test_the_classifier_is_looked_for_where_the_model_is(tmp_path: Path) -> None:
    settings = Settings.load(
        tmp_path, {"model": "chat:big", "classifier": "openai:small", "base_url": "http://127.0.0.1:9/v1"}, {}
    )
    models = Models(settings)
    models.ready()
    assert isinstance(models.judge, RemoteJudge) and models.judge.model.host == "127.0.0.1:9"
    before = models.judge
    await models.use(settings.model_copy(update={"max_turns": 3}), needed=True)
    assert models.judge is before  # nothing that decides it has changed
    rules = {"thresholds": {"authorised": 0.9}}
    await models.use(settings.model_copy(update={"classifier": "off", "rules": rules}), needed=True)
    assert models.judge is None and models.thresholds == Thresholds(authorised=0.9)
    wrong = settings.model_copy(update={"rules": {"thresholds": {"authorised": 9}}})
    with pytest.raises(UsageError, match="authorised"):
        await models.use(wrong, needed=True)
    assert models.judge is None and models.thresholds == Thresholds(authorised=0.9)
    await models.aclose()


@pytest.mark.usefixtures("key")
async def test_a_cost_limit_needs_the_price_of_the_classifier(tmp_path: Path) -> None:
    given = {"model": "openai:gpt-6-luna", "max_cost": 1.0}
    assert (await chosen(tmp_path, **given))[0] == "openai:gpt-6-luna"
    with pytest.raises(UsageError, match="price of openai:nobody-knows is not known"):
        await chosen(tmp_path, **given, classifier="openai:nobody-knows")


@pytest.mark.parametrize("spec", ["nonsense", "replay:x", "openai:", "scripted:"])
def test_what_is_no_classifier(tmp_path: Path, spec: str) -> None:
    with pytest.raises(UsageError, match=r"no classifier .*openai:NAME.*scripted:FILE.json"):
        resolve_judge(spec, directory=tmp_path, environment={})


async def test_a_script_plays_what_fits_and_else_in_order(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        {"risk": 0.5, "authorised": 0.9, "usage": {"input_tokens": 5, "cost_usd": 0.25}},
        {"when": r"rm\s+-rf", "risk_probabilities": [0, 0.5, 0.5, 0], "authorised": 0.25},
        {"risk": 2, "authorised": 0},
    )
    judge = ScriptedJudge("scripted:x", read_judgements(path))
    risks = []
    for command in ("ls", "rm  -rf x", "make", "make"):
        judgement, usage = await judge.judge(question(command))
        risks.append((judgement.risk, judgement.authorised, usage.cost_usd))
    assert risks == [(0.5, 0.9, 0.25), (1.5, 0.25, 0.0), (2.0, 0.0, 0.0), (2.0, 0.0, 0.0)]
    assert judgement.method == "scripted" and judgement.model == "scripted:x"
    assert [asked.call.arguments["command"] for asked in judge.asked] == ["ls", "rm  -rf x", "make", "make"]
    await judge.aclose()


async def test_failures_of_a_script(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        {"when": "refuse", "error": {"kind": "refusal"}},
        {"when": "quota", "error": {"status": 429, "code": "insufficient_quota", "message": "empty"}},
        {"when": "nan", "risk": float("nan"), "authorised": 1, "usage": {"input_tokens": 3}},
        {"when": "seven", "risk": 7, "authorised": 1},
        {"when": "odd", "risk_probabilities": [0.5], "authorised": 1},
    )
    judge = ScriptedJudge("scripted:x", read_judgements(path))
    expected: dict[str, tuple[type[ModelError], str]] = {
        "refuse": (RefusalError, "refuses"),
        "quota": (QuotaError, "empty"),
        "nan": (NoVerdictError, "risk is nan"),
        "seven": (NoVerdictError, "risk is 7"),
        "odd": (NoVerdictError, "1 probabilities for 4"),
        "nothing": (ModelError, "no 'when' fits"),
    }
    for command, (kind, why) in expected.items():
        with pytest.raises(kind, match=why) as caught:
            await judge.judge(question(command))
        if command == "nan":
            assert isinstance(caught.value, NoVerdictError)
            assert caught.value.usage == Usage(input_tokens=3, cost_usd=0.0)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[]", "at least one judgement"),
        ("{", "is not JSON"),
        ('[{"risk": 1}]', "judgement 1 of 1: .*it needs 'risk'"),
        ('[{"risk": 1, "authorised": 1}, {"authorised": 1}]', "judgement 2 of 2"),
        ('[{"risk": 1, "authorised": 1, "error": {"kind": "refusal"}}]', "or an 'error'"),
        ('[{"when": "(", "risk": 1, "authorised": 1}]', "no regular expression"),
        ('[{"risk": "high", "authorised": 1}]', "risk: .*number"),
        ('[{"risk": 1, "authorized": 1}]', "authorized: "),
        ("[7]", "judgement 1 of 1"),
    ],
)
def test_a_wrong_script_is_named_with_what_would_do(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "judgements.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=why) as caught:
        read_judgements(path)
    assert str(path) in str(caught.value)
    with pytest.raises(UsageError, match="cannot be read"):
        read_judgements(tmp_path / "gone.json")
