"""How probable each label was where a model wrote one of them, out of the log probabilities of its tokens. Pure.

``judging`` calls it. Sources of the shapes: the OpenAI API reference, ``message.output_text.logprobs`` of Responses and
``choices[].logprobs.content`` of Chat Completions; both are lists of ``{token, logprob, top_logprobs}``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import exp
from typing import Any

from harness_nb.types import JsonObject


def tokens_of(answer: JsonObject) -> list[JsonObject]:
    """The tokens of a whole answer of either API with their log probabilities; empty where it has none."""
    found: list[Any] = []
    for item in _objects(answer.get("output")):
        for part in _objects(item.get("content")):
            found += _objects(part.get("logprobs"))
    for choice in _objects(answer.get("choices"))[:1]:
        logprobs = choice.get("logprobs")
        found += _objects(logprobs.get("content")) if isinstance(logprobs, dict) else []
    return [token for token in found if isinstance(token.get("token"), str)]


def label_probabilities(tokens: Sequence[JsonObject], key: str, labels: Sequence[str]) -> list[float]:
    """The probabilities of ``labels`` as the value of ``key`` in a JSON object, scaled to a sum of 1.

    Alternatives that are no label do not count. Where the server names no alternatives, what the chosen label lacks to
    1 is shared by the others.

    Raises:
        ValueError: if the value, or a probability of it, is not there.
    """
    text = "".join(token["token"] for token in tokens)
    places = list(re.finditer(rf'"{re.escape(key)}"\s*:\s*"?', text))
    if not places:
        raise ValueError(f"the answer has no {key}: {text[:120]!r}")
    place, start = places[-1].end(), 0
    for token in tokens:
        if start <= place < start + len(token["token"]):
            return _read(token, place - start, key, labels)
        start += len(token["token"])
    raise ValueError(f"the answer ends before the value of {key}")


def _read(token: JsonObject, skipped: int, key: str, labels: Sequence[str]) -> list[float]:
    """``skipped`` is how many characters of the token stand before the value."""
    before, chosen = token["token"][:skipped], token["token"][skipped:]
    listed = [each for each in _objects(token.get("top_logprobs")) if str(each.get("token", "")).startswith(before)]
    pairs = {str(each["token"])[skipped:]: _probability(each) for each in listed}
    pairs.setdefault(chosen, _probability(token))
    sums = [0.0] * len(labels)
    for text, probability in pairs.items():
        if (fitting := _label(text, labels)) is not None:
            sums[fitting] += probability
    if len(pairs) == 1 and sum(sums) < 1:
        others = [number for number, each in enumerate(sums) if not each]
        for number in others:
            sums[number] = (1 - sum(pairs.values())) / len(others)
    if not sum(sums) > 0:
        raise ValueError(f"no label of {key} has a probability: {chosen!r}")
    return [each / sum(sums) for each in sums]


def _label(text: str, labels: Sequence[str]) -> int | None:
    """The number of the label that a token begins or is; ``None`` if it could be none or several."""
    said = text.strip(' ",\n}').lower()
    fitting = [number for number, label in enumerate(labels) if said and (label.startswith(said) or said == label)]
    return fitting[0] if len(fitting) == 1 else None


def _probability(token: JsonObject) -> float:
    value = token.get("logprob")
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        raise ValueError(f"the log probability of {token.get('token')!r} is {value!r}")
    return min(1.0, exp(min(0.0, value)))


def _objects(value: object) -> list[JsonObject]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
