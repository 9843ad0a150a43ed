"""Cells below a cell of the open notebook: the kernel's half of ``%agent export --here``.

The front-end has to do it, and can where our extension runs in its page: ``labextensions/harness-nb``, whose one file
tells the protocol. The verb calls ``put_below``, which ends by a deadline, whatever the front-end is; what came of it
is a value. Nothing here touches a file, and the session notebook has the same cells in any case. This module must not
import IPython: it is given the kernel.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from comm import get_comm_manager
from comm.base_comm import BaseComm

from harness_nb.notebook.cells import KEY
from harness_nb.tools import SETUP_SOURCE
from harness_nb.types import JsonObject
from harness_nb.ui.engine import Engine, Handle
from harness_nb.ui.run import TICK, short

TARGET = "harness_nb.cells"
VERSION = 1
"""Of the protocol; the page has the same number."""

FIND_TIMEOUT = 6.0
"""Seconds that a page gets to say that it shows the notebook. Those that do take less than one."""
PUT_TIMEOUT = 60.0
"""Seconds that it then gets to put the cells there."""
ELSEWHERE = 1.0
"""Seconds in which the page that asked may speak up after another one that shows the same notebook."""


INERT = frozenset({"text/plain", "text/latex", "image/png", "image/jpeg", "image/gif", "image/webp"})
"""Kinds of output that can do nothing in a page."""


class Failure(StrEnum):
    """Why no cells were put into the notebook."""

    NO_PAGE = "no_page"
    """A terminal, or an executor without a person: nobody shows a notebook."""
    NO_EXTENSION = "no_extension"
    """The front-end says that it does not know the request."""
    NO_ANSWER = "no_answer"
    """It says nothing."""
    REFUSED = "refused"
    """It says why not: ``Placed.detail``."""


@dataclass(frozen=True, slots=True)
class Placed:
    """What came of it: numbers of cells, or the failure."""

    inserted: int = 0
    replaced: int = 0
    unchanged: int = 0
    removed: int = 0
    kept: tuple[str, ...] = ()
    """Ids of earlier cells that a person has edited since; they were left as they are."""
    below: str = ""
    """Id of the cell that they stand below; empty where that is the one that asked."""
    front_end: str = ""
    """Name and version, as it says itself."""
    failure: Failure | None = None
    detail: str = ""


def cell_of(request: Mapping[str, Any]) -> str | None:
    """The id of the notebook cell that sent an execute request; ``None`` where the front-end does not say it."""
    cell = request.get("metadata", {}).get("cellId")
    return cell if isinstance(cell, str) and cell else None


def cells_for(
    notebook: JsonObject, session_id: str, workspace: Path, folder: Path, *, trusted: bool = False
) -> list[JsonObject]:
    """The cells of a session notebook as they go into another one, which lies in ``folder``.

    Their ids begin with the session's, so that several sessions fit into one notebook; of the machine data only the
    name of the cell is left, by which a later call finds it again; the setup cell enters the workspace from ``folder``.

    Args:
        trusted: whether HTML and scripts of the outputs may act in the page, as those of cells do that the person has
            run. Without it Jupyter shows HTML without its scripts, and takes the saved notebook for untrusted, unless
            no output could act anyway.
    """
    relative = Path(os.path.relpath(workspace, folder)).as_posix()
    setup = SETUP_SOURCE.replace('workspace("..")', f"workspace({json.dumps(relative)})")
    cells = []
    for number, cell in enumerate(notebook["cells"]):
        name = str(cell.get("id") or f"cell-{number}")
        made = {key: value for key, value in cell.items() if key != "metadata"}
        made["id"] = re.sub(r"[^A-Za-z0-9_-]", "-", f"{session_id}-{name}")[-64:]
        made["metadata"] = {
            key: value for key, value in cell.get("metadata", {}).items() if key not in (KEY, "trusted")
        }
        made["metadata"][KEY] = {"placed": {"cell": name, "session": session_id}}
        if cell["cell_type"] == "code" and (trusted or all(map(_inert, cell["outputs"]))):
            made["metadata"]["trusted"] = True
        if cell["source"] == SETUP_SOURCE:
            made["source"] = setup
        cells.append(made)
    return cells


def _inert(output: JsonObject) -> bool:
    return output["output_type"] in ("stream", "error") or INERT.issuperset(output.get("data", {}))


def put_below(
    engine: Engine, kernel: Any, cells: Sequence[JsonObject], session_id: str, below: Sequence[str] = ()
) -> Placed:
    """Put cells below a cell of the notebook that shows the running request, and wait for the page to say so.

    That works where messages of pages are read while a cell is busy: JupyterLab from 4.4 and Notebook from 7.4 on, as
    they are set by default.

    Args:
        engine: does the talking, beside this thread.
        kernel: the user's kernel; ``None`` in a terminal.
        cells: from ``cells_for``.
        session_id: cells that an earlier call put there for the same session are replaced.
        below: ids of cells; the first that the notebook has is the one. The asking cell comes last.

    Raises:
        KeyboardInterrupt: if the cell was interrupted.
    """
    handle = _start(engine, kernel, cells, session_id, below)
    try:
        while not handle.wait(TICK):
            pass
    except KeyboardInterrupt:
        raise _interrupted(handle) from None
    return handle.result()


def _start(
    engine: Engine, kernel: Any, cells: Sequence[JsonObject], session_id: str, below: Sequence[str]
) -> Handle[Placed]:
    request = {} if kernel is None else kernel.get_parent("shell")
    asking = cell_of(request)
    if asking is None:
        return engine.submit(_nobody())
    places = [*below, asking]
    line = PageLine(kernel, request, engine.loop, {"version": VERSION, "below": places})
    return engine.submit(_put(line, {"session": session_id, "below": places, "cells": list(cells)}))


async def _nobody() -> Placed:
    return Placed(failure=Failure.NO_PAGE)


def _interrupted(handle: Handle[Placed]) -> KeyboardInterrupt:
    handle.cancel()
    words = "cells that were on their way may still appear; the session notebook has them all"
    return short(KeyboardInterrupt(words), f"\x1b[33mKeyboardInterrupt\x1b[0m: {words}")


async def _put(line: PageLine, request: JsonObject) -> Placed:
    """The kernel's side of the conversation."""
    try:
        page = await _find_page(line)
        if isinstance(page, Placed):
            return page
        line.send({"event": "put", "to": page["from"], **request})
        async with asyncio.timeout(PUT_TIMEOUT):
            while (answer := await line.hear()) is not None:
                if answer.get("from") == page["from"] and answer.get("event") in ("done", "failed"):
                    return _outcome(answer, str(page.get("name", "")), request["below"][-1])
        return Placed(failure=Failure.REFUSED, detail="the page has gone")
    except TimeoutError:
        return Placed(failure=Failure.REFUSED, detail=f"the page did not say within {PUT_TIMEOUT:g} s that it is done")
    finally:
        line.close()


async def _find_page(line: PageLine) -> JsonObject | Placed:
    """The message of the page that shows the notebook: the asking one at once, another if that stays silent."""
    other: JsonObject | None = None
    try:
        async with asyncio.timeout(FIND_TIMEOUT) as deadline:
            while (answer := await line.hear()) is not None:
                if answer.get("event") == "failed":
                    return _outcome(answer, "")
                if answer.get("event") == "here" and answer.get("exact"):
                    return answer
                if answer.get("event") == "here" and other is None:
                    other = answer
                    deadline.reschedule(asyncio.get_running_loop().time() + ELSEWHERE)
            return other or Placed(failure=Failure.NO_EXTENSION)
    except TimeoutError:
        return other or Placed(failure=Failure.NO_ANSWER)


def _outcome(answer: JsonObject, front_end: str, asking: str = "") -> Placed:
    if answer["event"] == "failed":
        return Placed(failure=Failure.REFUSED, detail=str(answer.get("message", "")), front_end=front_end)
    inserted, replaced, unchanged, removed = (
        int(answer.get(name, 0)) for name in ("inserted", "replaced", "unchanged", "removed")
    )
    kept = tuple(map(str, answer.get("kept", ())))
    below = str(answer.get("below", asking))
    below = below if below != asking else ""
    return Placed(inserted, replaced, unchanged, removed, kept=kept, below=below, front_end=front_end)


class PageLine(BaseComm):
    """A comm to the pages that show this kernel's notebook.

    ipykernel's own class would send the answers to the thread that asked, which is busy waiting (ipykernel 7.4), and
    run the hooks of the user's shell at each message. This one leaves the route to the front-end and only takes what
    comes in.
    """

    def __init__(
        self,
        kernel: Any,
        request: Mapping[str, Any],
        loop: asyncio.AbstractEventLoop,
        data: JsonObject,
        target: str = TARGET,
    ) -> None:
        self._kernel = kernel
        self._request = request
        self._loop = loop
        self._heard: asyncio.Queue[JsonObject | None] = asyncio.Queue()
        super().__init__(target_name=target, data=data)

    async def hear(self) -> JsonObject | None:
        """The next message of a page; ``None`` if one has hung up."""
        return await self._heard.get()

    def open_again(self, data: JsonObject) -> None:
        """Open it once more, for pages that have not heard of it."""
        self.publish_msg("comm_open", data=data, target_name=self.target_name, target_module=None)

    def stay(self) -> None:
        """Go on listening after one of several pages has hung up."""
        get_comm_manager().register_comm(self)
        self._closed = False

    def publish_msg(
        self,
        msg_type: str,
        data: JsonObject | None = None,
        metadata: JsonObject | None = None,
        buffers: list[bytes] | None = None,
        **keys: Any,
    ) -> None:
        """Send under the request of the cell that asks; from any thread."""
        content = {"data": data or {}, "comm_id": self.comm_id, **keys}
        self._kernel.session.send(
            self._kernel.iopub_socket, msg_type, content, metadata=metadata, parent=self._request, ident=self.topic
        )

    def handle_msg(self, msg: JsonObject) -> None:
        """Called by the kernel, in whatever thread."""
        self._loop.call_soon_threadsafe(self._heard.put_nowait, msg["content"]["data"])

    def handle_close(self, msg: JsonObject) -> None:
        """Called by the kernel, in whatever thread."""
        self._loop.call_soon_threadsafe(self._heard.put_nowait, None)
