"""Reads what classifiers answer, in the three ways of ``judging``. Pure.

Each reader gives the expected level of risk, the probabilities of the levels (empty where there are none) and the
probability that a call is authorised. What is no number, out of range or missing is a ``ValueError`` whose text says
what it is: then there is no verdict.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from math import isfinite
from typing import Any

from harness_nb.models.label_probabilities import label_probabilities, tokens_of
from harness_nb.models.pricing import read_figure as read_count
from harness_nb.policy.judging import LEVELS, expected_level, read_figure
from harness_nb.policy.judging_text import NO, SCHEMA, YES
from harness_nb.types import JsonObject, Usage

Figures = tuple[tuple[float, tuple[float, ...]], float]
"""The expected level of risk with the probabilities of the levels, and the probability of being authorised."""

APART = 0.1
"""How far a score may be from the expected value of its own probabilities."""


def read_decisions(answer: JsonObject) -> Figures:
    """The answers of the Decisions API: a score named ``risk`` and a predicate named ``authorised``.

    Raises:
        ValueError: see above; also if one of them is a refusal.
    """
    answers = [each for each in answer["answers"] if isinstance(each, dict)]
    risk, authorised = (_answer(answers, place, name) for place, name in enumerate(("risk", "authorised")))
    return _read_score(risk), read_figure(authorised.get("probability"), "the probability of authorised", 1)


def _answer(answers: Sequence[JsonObject], place: int, name: str) -> JsonObject:
    """The answer to one question, by its name, else by its place."""
    named = [each for each in answers if each.get("name") == name]
    found = named[0] if named else answers[place] if place < len(answers) and not answers[place].get("name") else None
    if found is None:
        raise ValueError(f"the question about {name} was not answered")
    if found.get("type") == "refusal":
        raise ValueError(f"the model declined to answer the question about {name}")
    return found


def _read_score(answer: JsonObject) -> tuple[float, tuple[float, ...]]:
    """The expected level: by the probabilities where they are given, else the score itself.

    The levels of an API may be numbered from 0 or from 1; their labels tell them.
    """
    listed = answer.get("probabilities")
    if not listed:
        return read_figure(answer.get("score"), "risk", len(LEVELS) - 1), ()
    if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
        raise ValueError(f"the probabilities of risk are {listed!r}")
    by_label = {str(each.get("label")): each for each in listed}
    if set(by_label) != set(LEVELS):
        raise ValueError(f"the levels of risk are {', '.join(map(str, by_label))} and not {', '.join(LEVELS)}")
    risk, scaled = expected_level(
        [read_figure(by_label[label].get("probability"), f"the probability of {label}", 1.02) for label in LEVELS]
    )
    score = answer.get("score")
    if score is not None:
        first = by_label[LEVELS[0]].get("value")
        said = score - first if _is_number(score) and _is_number(first) else score
        if not _is_number(said) or abs(said - risk) > APART:
            raise ValueError(f"the score {score!r} of risk is not that of its probabilities, {risk:.2f}")
    return risk, scaled


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def read_labels(answer: JsonObject) -> Figures:
    """The labels of a whole answer of Responses or Chat Completions, by their log probabilities.

    Raises:
        LookupError: if the answer has no log probabilities.
        ValueError: see above.
    """
    tokens = tokens_of(answer)
    if not tokens:
        raise LookupError("no log probabilities")
    properties: dict[str, Any] = SCHEMA["properties"]  # type: ignore[assignment]
    levels = label_probabilities(tokens, "risk", properties["risk"]["enum"])
    return expected_level(levels), label_probabilities(tokens, "authorised", [YES, NO])[0]


def read_samples(texts: Sequence[str]) -> Figures:
    """Several answers in text; the share of each label is its probability.

    Raises:
        ValueError: if less than half of them, and one, have an answer in them.
    """
    answers = [found for found in map(read_sample, texts) if found is not None]
    if len(answers) * 2 <= len(texts):
        raise ValueError(f"{len(texts) - len(answers)} of {len(texts)} answers are none: {texts[0].strip()[:120]!r}")
    shares = [sum(level == number for level, _ in answers) / len(answers) for number in range(len(LEVELS))]
    return expected_level(shares), sum(covered for _, covered in answers) / len(answers)


def read_sample(text: str) -> tuple[int, bool] | None:
    """Level and whether it is authorised, of the last JSON object in an answer; ``None`` if it has none that fits."""
    for piece in reversed(re.findall(r"\{[^{}]*\}", text)):
        try:
            value = json.loads(piece)
            level, covered = str(value["risk"]).strip(), str(value["authorised"]).strip().lower()
        except (ValueError, KeyError, TypeError):
            continue
        if level in tuple("0123") and covered in (YES, NO, "true", "false"):
            return int(level), covered in (YES, "true")
    return None


def read_usage(answer: JsonObject) -> Usage:
    """The figures of the Decisions API, which are those of Responses."""
    usage = answer.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    details = usage.get("input_tokens_details")
    details = details if isinstance(details, dict) else {}
    return Usage(
        input_tokens=read_count(usage.get("input_tokens")),
        output_tokens=read_count(usage.get("output_tokens")),
        cached_input_tokens=read_count(details.get("cached_tokens")),
        cache_write_tokens=read_count(details.get("cache_write_tokens")),
    )
