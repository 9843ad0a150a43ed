"""Classifiers behind HTTP: what makes a ``ports.Judge`` of a model's spec, and the three ways to ask it.

``model_choice`` and the command line call ``resolve_judge``. The ways, the best first:

* ``decisions``: the Decisions API (``POST /decisions``; ``client.decisions.create`` of the ``openai`` library sends the
  same body): a score over the four levels and a predicate, both with probabilities;
* ``labels``: one answer with a JSON schema whose labels are single tokens, and their log probabilities;
* ``samples``: several answers in text, counted. Any model can do that.

Which way a server has is found out with the first question and remembered. Must not import IPython, a kernel or the
session.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from harness_nb.budget import add_usage
from harness_nb.errors import (
    AuthenticationError,
    ContextOverflowError,
    ModelError,
    QuotaError,
    RefusalError,
    TransientModelError,
    UsageError,
)
from harness_nb.models import REMOTE, resolve_model
from harness_nb.models.endpoint import DONE
from harness_nb.models.judging_answers import read_decisions, read_labels, read_samples, read_usage
from harness_nb.models.quirks import Quirks
from harness_nb.models.remote import RemoteModel
from harness_nb.models.retry import Sleep, call_with_retries
from harness_nb.policy.judging import LEVELS, NoVerdictError
from harness_nb.policy.judging_text import (
    AUTHORISED,
    INSTRUCTIONS,
    LEVEL_WORDS,
    RISK,
    SCHEMA,
    questions_in_words,
    write_input,
)
from harness_nb.ports import Judge, ModelSettings, Question
from harness_nb.types import JsonObject, Judgement, Message, Usage, text_message

SAMPLES = 5
"""Answers that are counted where a server gives no probabilities."""

MOST_OUTPUT = 2000
"""Output tokens of one answer: room for a model that thinks first."""

TOP_LOGPROBS = 5
"""Alternatives that are asked for at each token: the four levels and one more. Some servers give no more than these."""

NOT_HERE = frozenset({400, 404, 405, 415, 422, 501})
"""Statuses that say that a server does not have this way."""

LASTING = (AuthenticationError, QuotaError, RefusalError, ContextOverflowError, TransientModelError, NoVerdictError)
"""Failures that another way would meet too, or that say nothing of the way."""

FORMS = "openai:NAME, chat:NAME, anthropic:NAME, scripted:FILE.json (a list of judgements), or off"

Way = Callable[[str, str], Awaitable[tuple[Judgement, Usage]]]
"""Asks about an input (the envelope) with a tag."""


class _NotHereError(ModelError):
    """The server answered, and not in this way."""

    def __init__(self, message: str, usage: Usage | None = None) -> None:
        super().__init__(message)
        self.usage = usage or Usage()


def resolve_judge(
    spec: str,
    *,
    directory: Path,
    base_url: str | None = None,
    environment: Mapping[str, str],
    prices: Mapping[str, Any] | None = None,
) -> Judge:
    """The classifier that ``spec`` names. Nothing is sent yet; the caller closes it. Arguments as ``resolve_model``.

    Raises:
        UsageError: as ``resolve_model``; of what can be played again only a script of judgements will do.
    """
    kind, _, name = spec.strip().partition(":")
    if kind == "scripted" and name:
        from harness_nb.models.judging_scripted import ScriptedJudge, read_judgements

        path = directory / name
        return ScriptedJudge(spec, read_judgements(path if path.exists() else Path(name)))
    if kind not in REMOTE or not name:
        raise UsageError(f"There is no classifier {spec!r}. A classifier is one of {FORMS}.")
    model = resolve_model(spec, directory=directory, base_url=base_url, environment=environment, prices=prices)
    assert isinstance(model, RemoteModel)
    return RemoteJudge(model)


def _make_tag() -> str:
    """A word that nobody can guess."""
    return secrets.token_hex(8)


class RemoteJudge:
    """See ``ports.Judge``. It owns ``model``; ``samples`` answers are counted where there are no probabilities."""

    def __init__(
        self,
        model: RemoteModel,
        *,
        samples: int = SAMPLES,
        sleep: Sleep = asyncio.sleep,
        make_tag: Callable[[], str] = _make_tag,
    ) -> None:
        self.name = model.name
        self.model = model
        self._samples = samples
        self._sleep = sleep
        self._make_tag = make_tag
        self._ways: list[tuple[str, Way]] = [("samples", self._ask_samples)]
        if model.speaks[0].path in _ASK_FOR_LABELS:
            self._ways = [("decisions", self._ask_decisions), ("labels", self._ask_labels), *self._ways]
        self._settled = False
        self._choosing = asyncio.Lock()

    @property
    def method(self) -> str:
        """The way that is in use, or that is tried next."""
        return self._ways[0][0]

    async def judge(self, question: Question) -> tuple[Judgement, Usage]:
        """See ``ports.Judge``."""
        tag = self._make_tag()
        text = write_input(question, tag)
        async with self._choosing:
            if not self._settled:
                return await self._choose(text, tag)
        return await self._ways[0][1](text, tag)

    async def aclose(self) -> None:
        """Close the connections."""
        await self.model.aclose()

    async def _choose(self, text: str, tag: str) -> tuple[Judgement, Usage]:
        """Ask in the first way that the server has; that one stays."""
        spent, last = Usage(), len(self._ways) - 1
        for place, (_, way) in enumerate(self._ways):
            try:
                judgement, usage = await way(text, tag)
            except LASTING:
                raise
            except ModelError as error:
                missing = isinstance(error, _NotHereError) or error.status is None or error.status in NOT_HERE
                if not missing or place == last:
                    raise
                spent = add_usage(spent, error.usage) if isinstance(error, _NotHereError) else spent
            else:
                self._ways, self._settled = self._ways[place:], True
                return judgement, add_usage(spent, usage)
        raise ModelError(f"{self.name} cannot be asked.")

    async def _ask_decisions(self, text: str, tag: str) -> tuple[Judgement, Usage]:
        body = write_decisions(self.model.speaks[2], text, tag)
        answer = await call_with_retries(partial(self._send, "/decisions", lambda quirks: body), self._sleep)
        usage = self._priced(read_usage(answer), free_output=True)
        if not isinstance(answer.get("answers"), list):
            raise _NotHereError(f"{self.model.host} has no Decisions API.", usage)
        return self._judged(partial(read_decisions, answer), "decisions", usage)

    async def _ask_labels(self, text: str, tag: str) -> tuple[Judgement, Usage]:
        api, endpoint, model = self.model.speaks
        messages, settings = _messages(text, tag), ModelSettings(max_output_tokens=MOST_OUTPUT)

        def build(quirks: Quirks) -> JsonObject:
            body = api.write(model, messages, (), settings, replace(quirks, stream=False))
            return _ASK_FOR_LABELS[api.path](body)

        answer = await call_with_retries(partial(self._send, api.path, build), self._sleep)
        reply = api.read(endpoint.host, endpoint.failure)
        for _ in reply.feed(answer):
            pass
        message = reply.message(messages)
        usage = self._priced(message.usage or Usage())
        try:
            risk, authorised = read_labels(answer)
        except LookupError as error:
            raise _NotHereError(f"{self.model.host} gives no log probabilities.", usage) from error
        except ValueError as error:
            raise NoVerdictError(f"{self.name}: {error}", usage) from error
        return self._judged(lambda: (risk, authorised), "labels", usage)

    async def _ask_samples(self, text: str, tag: str) -> tuple[Judgement, Usage]:
        """Several answers in text; the share of each label is its probability."""
        messages = _messages(text, tag)
        found = await asyncio.gather(*(self._sample(messages) for _ in range(self._samples)), return_exceptions=True)
        for each in found:
            if isinstance(each, BaseException) and not isinstance(each, ModelError):
                raise each
        said = [each for each in found if isinstance(each, Message)]
        failures = [each for each in found if isinstance(each, ModelError)]
        usage = Usage()
        for message in said:
            usage = add_usage(usage, message.usage or Usage())
        if len(said) * 2 <= self._samples:
            raise failures[0]
        return self._judged(partial(read_samples, [message.text for message in said]), "samples", usage)

    async def _sample(self, messages: tuple[Message, ...]) -> Message:
        settings = ModelSettings(max_output_tokens=MOST_OUTPUT)
        async with aclosing(self.model.stream(messages, (), settings)) as items:
            async for item in items:
                if isinstance(item, Message):
                    return item
        raise ModelError(f"{self.name} gave no reply.")

    async def _send(self, path: str, build: Callable[[Quirks], JsonObject]) -> JsonObject:
        """One request, answered whole."""
        endpoint = self.model.speaks[1]
        async with aclosing(endpoint.events(path, build)) as events:
            async for event in events:
                if event is not DONE:
                    return event
        raise TransientModelError(f"{endpoint.host} sent an empty answer.")

    def _judged(
        self, read: Callable[[], tuple[tuple[float, tuple[float, ...]], float]], method: str, usage: Usage
    ) -> tuple[Judgement, Usage]:
        try:
            (risk, probabilities), authorised = read()
        except ValueError as error:
            raise NoVerdictError(f"{self.name}: {error}", usage) from error
        judgement = Judgement(
            risk=risk, authorised=authorised, risk_probabilities=probabilities, method=method, model=self.name
        )
        return judgement, usage

    def _priced(self, usage: Usage, *, free_output: bool = False) -> Usage:
        """``usage`` with its cost. The Decisions API bills no output."""
        billed = usage.model_copy(update={"output_tokens": 0}) if free_output and usage.input_tokens else usage
        return usage.model_copy(update={"cost_usd": self.model.tariff.cost(billed)})


def write_decisions(model: str, text: str, tag: str) -> JsonObject:
    """The body of a request to the Decisions API. Source: ``openai.types.DecisionCreateParams``."""
    levels = [{"label": label, "description": words} for label, words in zip(LEVELS, LEVEL_WORDS, strict=True)]
    return {
        "model": model,
        "input": [
            {"role": "developer", "content": INSTRUCTIONS},
            {"role": "user", "content": text},
        ],
        "questions": [
            {"type": "score", "name": "risk", "instructions": RISK.replace("-TAG", f"-{tag}"), "levels": levels},
            {"type": "predicate", "name": "authorised", "instructions": AUTHORISED.replace("-TAG", f"-{tag}")},
        ],
    }


def _messages(text: str, tag: str) -> tuple[Message, ...]:
    return (
        text_message("system", INSTRUCTIONS),
        text_message("user", f"{text}\n\n{questions_in_words(tag)}"),
    )


def _labels_in_responses(body: JsonObject) -> JsonObject:
    """Ask for the schema and for log probabilities; a reasoning that is shown to nobody is not summarised."""
    form = {"type": "json_schema", "name": "judgement", "strict": True, "schema": SCHEMA}
    kept = {key: value for key, value in body.items() if key not in ("reasoning", "include")}
    return {
        **kept,
        "text": {"format": form},
        "include": ["message.output_text.logprobs"],
        "top_logprobs": TOP_LOGPROBS,
    }


def _labels_in_chat(body: JsonObject) -> JsonObject:
    form = {"type": "json_schema", "json_schema": {"name": "judgement", "strict": True, "schema": SCHEMA}}
    return {**body, "response_format": form, "logprobs": True, "top_logprobs": TOP_LOGPROBS}


_ASK_FOR_LABELS: dict[str, Callable[[JsonObject], JsonObject]] = {
    "/responses": _labels_in_responses,
    "/chat/completions": _labels_in_chat,
}
"""By the path of the API."""
