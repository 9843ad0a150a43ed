"""Events that the session records before a prompt: what it is, and what has changed. Pure."""

from __future__ import annotations

from harness_nb import __version__
from harness_nb import events as ev
from harness_nb.context import Conversation
from harness_nb.notebook import FORMAT_VERSION
from harness_nb.settings import Settings
from harness_nb.tools import SETUP_SOURCE
from harness_nb.types import JsonObject, Status


def starting_events(
    session_id: str,
    settings: Settings,
    *,
    model: str,
    kernel: str,
    environment: JsonObject,
    origin: JsonObject,
    data_tag: str = "",
) -> list[ev.Event]:
    """The first events of a session: what it is, and the cell that sets its kernel up.

    ``model`` and ``kernel`` are names, ``environment`` are facts about the machine, ``origin`` says what it is a fork
    or a replay of, ``data_tag`` marks what results bring from elsewhere.
    """
    return [
        ev.SessionStarted(
            session_id=session_id,
            format_version=FORMAT_VERSION,
            harness_version=__version__,
            model=model,
            workspace=str(settings.directory),
            kernel=kernel,
            options=settings.options,
            environment=environment,
            origin=origin,
            data_tag=data_tag,
        ),
        ev.CellStarted(call_id="setup", name="setup", source=SETUP_SOURCE),
        ev.CellFinished(call_id="setup", name="setup", status=Status.OK, execution_count=1),
    ]


def switching_events(conversation: Conversation, model: str, settings: Settings) -> list[ev.Event]:
    """What says that from here on another model works, or the same one elsewhere; empty where none has worked yet.

    ``model`` is the spec of the one that works from here on.
    """
    before = (conversation.model, conversation.base_url)
    if not conversation.model or before == (model, settings.base_url):
        return []
    return [ev.ModelSwitched(model=model, before=conversation.model, base_url=settings.base_url)]
