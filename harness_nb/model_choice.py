"""The models that a session's settings name. The session asks here when it opens and when its settings change.

What the settings ask of a model and it cannot keep is refused here, before anything is started.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from urllib.parse import urlsplit

from harness_nb.models import OPENAI_URL, default_model_spec, resolve_model
from harness_nb.models.judging import RemoteJudge, resolve_judge
from harness_nb.models.pricing import refuse_unknown_price
from harness_nb.models.remote import RemoteModel
from harness_nb.policy.judging import Thresholds, read_thresholds
from harness_nb.ports import Foreseeable, Judge, Listing, Model, Offer
from harness_nb.settings import Settings
from harness_nb.types import JsonObject

NO_CLASSIFIER = "off"
"""The ``classifier`` of settings that want none."""

DECISIONS_MODEL = "openai:gpt-6-luna"
"""The only model of OpenAI's Decisions API, and a cheap one."""

OPENAI_KINDS = ("openai", "chat")
"""Kinds of models that ``--base-url`` may be meant for together."""


class Models:
    """The models of one session, which it owns; they are made when they are first needed.

    ``main`` does the work, ``small`` is the cheaper one, where the settings name one; ``judge`` is the classifier,
    where there is one, and ``thresholds`` say where its figures become a verdict.
    """

    def __init__(self, settings: Settings, main: Model | None = None) -> None:
        self.main = main
        self.small: Model | None = None
        self.judge: Judge | None = None
        self.thresholds = Thresholds()
        self._settings = settings

    def ready(self) -> Model:
        """The model that does the work, and the small one beside it, made now if they are not there.

        Raises:
            UsageError: as ``model_for``, and if a model cannot do what the settings ask for.
        """
        self.thresholds = read_thresholds(self._settings.rules)
        self.main, self.small = self._made(self._settings, self.main, self.small)
        self.judge = self.judge or judge_for(self._settings, self.main, self.small)
        return self.main

    @property
    def facts(self) -> JsonObject:
        """What the record says at the start: which classifier judges calls. Empty while no model has been needed."""
        return {"Classifier": classifier_words(self._settings, self.judge)} if self.main is not None else {}

    async def use(self, settings: Settings, *, needed: bool) -> None:
        """Go on with those of other settings; a model that stays the same is kept. ``needed``: make them now.

        Raises:
            UsageError: as ``model_for``; nothing has changed then.
        """
        before = self._settings
        main = self.main if _names(settings) == _names(before) else None
        same_small = (settings.small_model, *_names(settings)) == (before.small_model, *_names(before))
        small = self.small if same_small else None
        same_judge = main is not None and same_small and settings.classifier == before.classifier
        judge = self.judge if same_judge else None
        pairs: tuple[tuple[Model | Judge | None, Model | Judge | None], ...] = (
            (self.main, main),
            (self.small, small),
            (self.judge, judge),
        )
        old = [each for each, kept in pairs if each is not None and kept is None]
        thresholds = read_thresholds(settings.rules)
        if needed:
            main, small = self._made(settings, main, small)
            judge = judge or judge_for(settings, main, small)
        self.main, self.small, self.judge, self._settings = main, small, judge, settings
        self.thresholds = thresholds
        for each in old:
            await each.aclose()

    async def aclose(self) -> None:
        """Close them."""
        for model in filter(None, (self.main, self.small)):
            await model.aclose()
        if self.judge is not None:
            await self.judge.aclose()

    @staticmethod
    def _made(settings: Settings, main: Model | None, small: Model | None) -> tuple[Model, Model | None]:
        main = main or model_for(settings)
        check_model(main, settings)
        return main, small or small_model_for(settings)


def _names(settings: Settings) -> tuple[object, ...]:
    """What decides which model it is."""
    return settings.model, settings.base_url, settings.prices


def model_for(settings: Settings) -> Model:
    """The model that the settings name, or the default one.

    Raises:
        UsageError: if there is no such model, or its key is missing.
    """
    return _resolve(spec_of(settings), settings, settings.base_url)


def small_model_for(settings: Settings) -> Model | None:
    """The cheaper model that the settings name; ``None`` where they name none.

    It is looked for at ``base_url`` only if the model is of the same kind.

    Raises:
        UsageError: as ``model_for``, and if a cost limit is set and its price is not known.
    """
    if settings.small_model is None:
        return None
    same = same_server(settings.small_model, spec_of(settings))
    model = _resolve(settings.small_model, settings, settings.base_url if same else None)
    _check_price(model, settings)
    return model


def judge_for(settings: Settings, main: Model, small: Model | None) -> Judge | None:
    """The classifier that the settings name, or the default one beside these models; ``None`` where there is none.

    It is looked for at ``base_url`` as the small model is.

    Raises:
        UsageError: as ``model_for``, and if a cost limit is set and its price is not known.
    """
    spec = settings.classifier or _default_judge(settings, main, small)
    if spec is None or spec == NO_CLASSIFIER:
        return None
    beside = settings.model or main.name
    same = same_server(spec, beside) or spec == settings.small_model
    judge = resolve_judge(
        spec,
        directory=settings.directory,
        base_url=settings.base_url if same else None,
        environment=os.environ,
        prices=settings.prices,
    )
    if isinstance(judge, RemoteJudge):
        _check_price(judge.model, settings)
    return judge


def _default_judge(settings: Settings, main: Model, small: Model | None) -> str | None:
    """The spec of the classifier where the settings name none: the small model, or, at OpenAI's own address, the cheap
    model of the Decisions API. What is played from a file judges nothing.
    """
    if small is not None:
        return settings.small_model if isinstance(small, RemoteModel) else None
    return DECISIONS_MODEL if isinstance(main, RemoteModel) and main.host == urlsplit(OPENAI_URL).netloc else None


def classifier_words(settings: Settings, judge: Judge | None) -> str:
    """Which classifier judges calls, and why this one, as a clause for people."""
    if judge is None:
        why = "it is switched off" if settings.classifier == NO_CLASSIFIER else "name one with --classifier SPEC"
        return f"none, so calls are decided by rules alone ({why})"
    if settings.classifier:
        return judge.name
    why = "the small model" if settings.small_model else "the default beside a model of OpenAI's own"
    return f"{judge.name} ({why}; --classifier off switches it off)"


def spec_of(settings: Settings) -> str:
    """The spec of the model that the settings name, or of the default one.

    Raises:
        MissingKeyError: if there is no default one.
    """
    return settings.model or default_model_spec(os.environ)


def same_server(spec: str, other: str) -> bool:
    """Whether two models may be served at the same base URL: by their kinds."""
    kinds = {each.partition(":")[0] for each in (spec, other)}
    return len(kinds) == 1 or kinds == set(OPENAI_KINDS)


async def offered_by(settings: Settings) -> tuple[str, Sequence[Offer]] | None:
    """The server of the model that the settings name, and the models that it has; ``None`` where there is no server.

    Raises:
        UsageError: as ``model_for``.
        ModelError: if the server does not say.
    """
    model = model_for(settings)
    try:
        return (model.host, await model.offered()) if isinstance(model, Listing) else None
    finally:
        await model.aclose()


async def place_of(settings: Settings) -> str:
    """Where the models that the settings name work: a server, or nothing; they are made, and closed again.

    Raises:
        UsageError: as ``model_for``, and if a model cannot do what the settings ask for.
    """
    models = Models(settings)
    try:
        model = models.ready()
        return model.host if isinstance(model, Listing) else ""
    finally:
        await models.aclose()


def check_model(model: Model, settings: Settings) -> None:
    """Refuse what the settings ask for and the model cannot keep: a cost limit.

    Raises:
        UsageError: with what can be done instead.
    """
    _check_price(model, settings)


def _check_price(model: Model, settings: Settings) -> None:
    known = model.price_known if isinstance(model, Foreseeable) else True  # what is played again costs nothing
    refuse_unknown_price(model.name, known, settings.max_cost)


def _resolve(spec: str, settings: Settings, base_url: str | None) -> Model:
    return resolve_model(
        spec, directory=settings.directory, base_url=base_url, environment=os.environ, prices=settings.prices
    )
