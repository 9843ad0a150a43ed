"""What ``harness-nb doctor`` asks of a model: its server, key, streaming, tools, pictures, context window and price.

Three short requests are sent, through the adapter that sessions use. A key is named and never shown. Scripts and
recorded replies are only read.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from difflib import get_close_matches

from harness_nb.cli.findings import Finding
from harness_nb.errors import AuthenticationError, HarnessError, ModelError, QuotaError
from harness_nb.judging import TIMEOUT as JUDGING_TIMEOUT
from harness_nb.model_choice import Models, classifier_words, model_for, small_model_for
from harness_nb.models import key_of
from harness_nb.models.pricing import HOW_TO_GO_ON
from harness_nb.models.remote import RemoteModel
from harness_nb.ports import Model, ModelSettings, Offer, Question, TextDelta, Withdrawn
from harness_nb.settings import Settings
from harness_nb.types import ImagePart, Message, TextPart, ToolCall, ToolSpec, Usage, text_message

LIST_TIMEOUT = 20.0
"""Seconds that a server may take to list its models."""

PROBE_TIMEOUT = 120.0
"""Seconds that the model may take to answer. Local servers load it before the first answer."""

WITHOUT_CLASSIFIER = (
    "name another one with --classifier SPEC, or off; until then every call that it judges is asked about"
)

MOST_OUTPUT = 2000
"""Output tokens of a probe: room for a model that thinks first."""

RED = (
    "iVBORw0KGgoAAAANSUhEUgAAAEAAAABACAIAAAAlC+aJAAAAT0lEQVR42u3PQQkAAAgEsAtx/ZMZxgi+hcEKLNO+FgEBAQEBAQEBAQEBAQEBAQEBAQEB"
    "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQGBywKqxUDxqh7TUQAAAABJRU5ErkJggg=="
)
"""A red square of 64 pixels a side, PNG."""

SYSTEM = text_message("system", "You test a connection. Do exactly what you are asked, and nothing more.")
COUNT = text_message("user", "Write the numbers from one to twenty as words, with commas between them.")
CALL = text_message("user", "Call the tool report with the number 7.")
LOOK = Message(
    role="user",
    content=(
        TextPart(text="Which colour fills this picture? Answer with one word."),
        ImagePart(media_type="image/png", data=RED),
    ),
)
REPORT = ToolSpec(
    name="report",
    description="Report a number.",
    parameters={"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]},
)
BLIND = "plots then reach the model as words; name a model that sees, if it has to look at them"


@dataclass
class Answer:
    """A reply to a probe: in how many ``pieces`` its text came, and after how many seconds the ``first``."""

    message: Message = field(default_factory=lambda: Message(role="assistant"))
    pieces: int = 0
    first: float = 0.0


async def probe_models(settings: Settings) -> AsyncGenerator[Finding]:
    """What can be said of the model that the settings name, of the small one and of the classifier."""
    try:
        model = model_for(settings)
    except HarnessError as error:
        yield Finding("model", False, "none to use", str(error))
        return
    works = True
    try:
        if isinstance(model, RemoteModel):
            async with aclosing(_probe_remote(model, settings)) as findings:
                async for finding in findings:
                    works &= finding.passed or not finding.needed
                    yield finding
        else:
            yield Finding(f"model {model.name}", True, "its replies are there; no server and no key are needed")
    finally:
        await model.aclose()
    if settings.small_model:
        yield await _probe_small(settings)
    if works:
        yield await _probe_classifier(settings)


async def _probe_remote(model: RemoteModel, settings: Settings) -> AsyncGenerator[Finding]:
    name, is_set = key_of(model.name, settings.base_url, os.environ)
    key = f"{name} is set (it is not shown)" if is_set else f"none is set ({name})"
    offers: Sequence[Offer] = ()
    try:
        offers = await asyncio.wait_for(model.offered(), LIST_TIMEOUT)
        yield Finding("endpoint", True, f"{model.host} answers, and {_listed(model, offers)}")
    except AuthenticationError as error:
        yield Finding("endpoint", True, f"{model.host} answers")
        yield Finding("key", False, f"{key}, and was refused", str(error))
        return
    except (ModelError, TimeoutError) as error:
        there = isinstance(error, ModelError) and error.status is not None
        yield Finding(
            "endpoint",
            there,
            f"{model.host} answers, and does not list its models" if there else str(error) or "no answer",
            "start the server, or correct the address: --base-url, OPENAI_BASE_URL (it often ends in /v1)",
        )
        if not there:
            return
    try:
        said = await _ask(model, COUNT)
    except AuthenticationError as error:
        yield Finding("key", False, f"{key}, and was refused", str(error))
        return
    except (ModelError, TimeoutError) as error:
        names = [offer.name for offer in offers]
        near = get_close_matches(model.name.partition(":")[2], names, cutoff=0.5) or names[:5]
        advice = (
            f"the server has {', '.join(near)}" if near else "check the model's name; %agent model lists what is there"
        )
        detail = str(error) or f"no answer in {PROBE_TIMEOUT:g} s"
        yield Finding(f"model {model.name}", False, detail, "" if isinstance(error, QuotaError) else advice)
        return
    yield Finding("key", True, f"{key}{', and accepted' if is_set else ', and none is asked for'}")
    yield Finding(f"model {model.name}", True, "answers")
    yield _streaming(said)
    yield await _tools(model)
    yield await _images(model)
    yield _window(model, settings, offers)
    for finding in _money(model, said.message.usage or Usage()):
        yield finding


def _listed(model: RemoteModel, offers: Sequence[Offer]) -> str:
    name = model.name.partition(":")[2]
    among = f", {name} among them" if name in [offer.name for offer in offers] else f"; {name} is not among them"
    return f"lists {len(offers)} model{'' if len(offers) == 1 else 's'}{among}"


def _streaming(said: Answer) -> Finding:
    if said.pieces > 1:
        return Finding("streaming", True, f"the text came in {said.pieces} pieces, the first after {said.first:.1f} s")
    what = "the text came in one piece" if said.pieces else "no text came"
    return Finding(
        "streaming", False, what, "everything works, but replies appear only when they are whole", needed=False
    )


async def _tools(model: Model) -> Finding:
    way_out = "name a model that can call tools, or start the server with them (vLLM: --enable-auto-tool-choice)"
    try:
        calls = (await _ask(model, CALL, (REPORT,))).message.tool_calls
    except (ModelError, TimeoutError) as error:
        return Finding("tool calls", False, str(error) or "no answer", way_out)
    if not any(call.name == REPORT.name and call.malformed is None for call in calls):
        return Finding("tool calls", False, "the model did not call the tool that it was asked to call", way_out)
    right = [call.arguments.get("number") for call in calls] == [7]
    return Finding("tool calls", True, "works" if right else "works, but with other arguments than it was asked for")


async def _images(model: Model) -> Finding:
    try:
        said = (await _ask(model, LOOK)).message.text
    except (ModelError, TimeoutError) as error:
        return Finding("images", False, str(error) or "no answer", BLIND, needed=False)
    if not model.accepts_images:
        return Finding("images", False, "the server takes none", BLIND, needed=False)
    seen = "red" in said.lower()
    detail = "the model sees them" if seen else f"asked for the colour of a red square, it said {said.strip()[:40]!r}"
    return Finding("images", seen, detail, BLIND, needed=False)


def _window(model: RemoteModel, settings: Settings, offers: Sequence[Offer]) -> Finding:
    name = model.name.partition(":")[2]
    served = next((offer.context_window for offer in offers if offer.name == name), None)
    if settings.context_window:
        return Finding("context window", True, f"{settings.context_window:,} tokens, as the settings say")
    if known := model.context_window:
        return Finding("context window", True, f"{known:,} tokens, by the table of models")
    if served:
        tell = f"--context-window {served} has conversations shortened in time"
        return Finding("context window", True, f"{served:,} tokens, as the server says; {tell}")
    return Finding(
        "context window",
        False,
        "unknown",
        "give it with --context-window N. Without it a conversation is shortened when the server complains; some "
        "servers (Ollama) cut it silently instead",
        needed=False,
    )


def _money(model: RemoteModel, usage: Usage) -> list[Finding]:
    counted = usage.input_tokens is not None and usage.output_tokens is not None
    counts = Finding(
        "token counts",
        counted,
        f"the server counts: {usage.input_tokens} in, {usage.output_tokens} out"
        if counted
        else "the server gives none",
        "limits are then kept by estimates",
        needed=False,
    )
    rates = [
        model.tariff.cost(Usage(input_tokens=tokens[0], output_tokens=tokens[1])) for tokens in ((10**6, 0), (0, 10**6))
    ]
    if model.price_known and None not in rates:
        detail = f"${rates[0]:g} in and ${rates[1]:g} out, for a million tokens"
        return [counts, Finding("price", True, detail)]
    if model.price_known:
        return [counts, Finding("price", True, "the server tells it with each reply")]
    way_out = f"{HOW_TO_GO_ON.format(name=model.name)}\nWithout a price, --max-cost is refused."
    return [counts, Finding("price", False, "unknown", way_out, needed=False)]


async def _probe_small(settings: Settings) -> Finding:
    """The small model answers, or not."""
    model = None
    try:
        model = small_model_for(settings)
        assert model is not None
        if isinstance(model, RemoteModel):
            await _ask(model, COUNT)
    except (HarnessError, TimeoutError) as error:
        without = "leave --small-model out; the model itself then summarises"
        return Finding(f"small model {settings.small_model}", False, str(error) or "no answer", without)
    finally:
        if model is not None:
            await model.aclose()
    return Finding(f"small model {settings.small_model}", True, "answers")


async def _probe_classifier(settings: Settings) -> Finding:
    """Which classifier judges calls, in which way, and what it says of `ls`."""
    models = Models(settings)
    try:
        models.ready()
        judge = models.judge
        words = classifier_words(settings, judge)
        if judge is None:
            return Finding("classifier", True, words, needed=False)
        call = ToolCall(call_id="probe", name="bash", arguments={"command": "ls"})
        question = Question(call=call, source="%%bash\nls", words=["Which files are here?"], workspace="/work")
        async with asyncio.timeout(JUDGING_TIMEOUT):
            judgement, _ = await judge.judge(question)
    except (HarnessError, TimeoutError) as error:
        detail = f"{settings.classifier or 'the default one'}: {error or f'no answer in {JUDGING_TIMEOUT:g} s'}"
        return Finding("classifier", False, detail, WITHOUT_CLASSIFIER, needed=False)
    finally:
        await models.aclose()
    figures = f"risk {judgement.risk:.2f} of 3, authorised {judgement.authorised:.2f} of 1"
    return Finding("classifier", True, f"{words}; asked by {judgement.method}, it says of ls: {figures}")


async def _ask(model: Model, question: Message, tools: Sequence[ToolSpec] = ()) -> Answer:
    """One request.

    Raises:
        ModelError: if the model cannot answer.
        TimeoutError: if it takes too long.
    """
    answer, started = Answer(), time.monotonic()
    async with asyncio.timeout(PROBE_TIMEOUT):
        settings = ModelSettings(max_output_tokens=MOST_OUTPUT)
        async with aclosing(model.stream([SYSTEM, question], tools, settings)) as items:
            async for item in items:
                if isinstance(item, Message):
                    answer.message = item
                elif isinstance(item, Withdrawn):
                    answer.pieces = 0
                elif isinstance(item, TextDelta):
                    answer.first = answer.first if answer.pieces else time.monotonic() - started
                    answer.pieces += 1
    return answer
