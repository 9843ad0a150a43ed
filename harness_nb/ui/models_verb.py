"""``%agent model``: the models that the server of the current one has, and the switch to another.

A switch holds for the tasks to come; a task that is being worked on keeps its model. The session records it with the
next task. Called by the magic; it asks a server, and must not start anything else.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Sequence
from typing import Any, Protocol

import click

from harness_nb.errors import MissingKeyError, ModelError, UsageError
from harness_nb.model_choice import offered_by, place_of, same_server, spec_of
from harness_nb.models import SPEC_FORMS
from harness_nb.ports import Offer
from harness_nb.settings import Settings
from harness_nb.ui import html
from harness_nb.ui.current import CurrentSession, notebook_folder
from harness_nb.ui.engine import in_engine
from harness_nb.ui.publish import Bundle

VERB = "model"
FORM = "[SPEC] [--base-url URL]"
WORDS = "the models that the server has, or, with SPEC, go on with another one"

LISTED = 60
"""So many models are listed; the others are counted."""

TIMEOUT = 20.0
"""Seconds that a server may take to list its models."""


class Desk(Protocol):
    """What the verb works with."""

    current: CurrentSession

    @property
    def running(self) -> bool:
        """Whether a task is being worked on."""
        ...


def read_words(line: str) -> dict[str, Any]:
    """The arguments of the verb, by name.

    Raises:
        UsageError: if they do not fit; the text says how it is written.
    """
    parameters = [click.Argument(["spec"], required=False), click.Option(["--base-url"])]
    try:
        context = click.Command(VERB, params=parameters, add_help_option=False).make_context(VERB, shlex.split(line))
    except (click.UsageError, ValueError) as error:
        told = error.format_message() if isinstance(error, click.UsageError) else f"{error}."
        raise UsageError(f"%agent {VERB}: {told} It is written: %agent {VERB} {FORM}") from error
    return dict(context.params)


def model(desk: Desk, spec: str | None, base_url: str | None) -> Bundle:
    """List, or switch.

    Raises:
        UsageError: if there is no such model.
    """
    if spec is None and base_url is None:
        return show_offers(desk)
    return switch(desk, spec, base_url)


def show_offers(desk: Desk) -> Bundle:
    """The models that the server of the current one has, the current one marked."""
    settings = _settings(desk, {})
    try:
        current = spec_of(settings)
        found: tuple[str, Sequence[Offer]] | None = in_engine(asyncio.wait_for(offered_by(settings), TIMEOUT))
    except MissingKeyError as error:
        return html.note_block("○", str(error), html.AMBER)
    except (ModelError, TimeoutError) as error:
        told = str(error) or f"The server did not answer within {TIMEOUT:g} s."
        return html.note_block("⚠", f"The model is {current}. Its server does not list its models: {told}", html.AMBER)
    if found is None:
        words = f"The model is {current}, which stands alone. %agent model SPEC goes on with another:"
        return html.note_block("○", words, html.GREY, SPEC_FORMS, "the forms of SPEC")
    host, offers = found
    kind, _, name = current.partition(":")
    marked = [offer for offer in offers if offer.name == name]
    shown = [*marked, *(offer for offer in offers if offer.name != name)][:LISTED]
    rows = [("▶" if offer.name == name else "", f"{kind}:{offer.name}", _window(offer)) for offer in shown]
    table = html.table(["", "model", "context window"], rows)
    more = f" {len(offers) - LISTED} more are not shown." if len(offers) > LISTED else ""
    there = "" if marked else f" {current} is not among them: the server may know it by another name."
    words = f"{len(offers)} models at {host}.{more}{there} %agent model SPEC goes on with another one."
    return _stacked(html.note_block("⇄", words, html.GREY), table)


def switch(desk: Desk, spec: str | None, base_url: str | None) -> Bundle:
    """Have the tasks to come go to another model, or to the same one elsewhere.

    A missing key does not keep a notebook from being run again, so it is said and no more.
    """
    before = _settings(desk, {})
    changes: dict[str, Any] = {"model": spec or before.model, "base_url": base_url}
    if base_url is None and same_server(spec or "", before.model or ""):
        changes["base_url"] = before.base_url
    settings = _settings(desk, changes)
    host = trouble = ""
    try:
        host = in_engine(place_of(settings))
    except MissingKeyError as error:
        trouble = f" But: {error}"
    desk.current.switch_model(changes)
    when = "The task that is being worked on keeps its model; the next one" if desk.running else "The next task"
    session = desk.current.session
    left = " What only its provider understands of the conversation so far is left out." if session else ""
    words = f"{when} works with {changes['model'] or spec_of(settings)}{f' at {host}' if host else ''}.{left}{trouble}"
    return html.note_block("⇄", words, html.AMBER if trouble else html.BLUE)


def _settings(desk: Desk, changes: dict[str, Any]) -> Settings:
    """The settings that the next task would have, under ``changes``."""
    return Settings.load(notebook_folder(), {**desk.current.options({}), **changes})


def _window(offer: Offer) -> str:
    return f"{offer.context_window:,} tokens" if offer.context_window else ""


def _stacked(*bundles: Bundle) -> Bundle:
    return Bundle({kind: "\n".join(str(bundle.data[kind]) for bundle in bundles) for kind in bundles[0].data})
