"""The fold: one event after the other becomes a notebook that reads as if a person had written it.

The session applies each event that it has journalled. An event that has something to show makes a cell or changes the
one it belongs to; any other is kept in the machine data of the newest cell. So the notebook holds every event at every
moment.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from harness_nb import events as ev
from harness_nb.notebook import texts
from harness_nb.notebook.calls import CallCell, CallEvent
from harness_nb.notebook.cells import KEY, Cell, MarkdownCell
from harness_nb.notebook.products import Products
from harness_nb.notebook.reading import FORMAT_VERSION
from harness_nb.notebook.serial import Snapshot
from harness_nb.outputs.mime import clean_json
from harness_nb.types import JsonObject, ToolCall

FINISH, CELLLESS = "finish", ("wait", "rebuild", "web_fetch")

NoteEvent = ev.Nudged | ev.CheckFinished | ev.FinishRejected | ev.Warned | ev.ContextCompacted | ev.ModelSwitched
"""What is said once, in a cell of its own."""


class NotebookFold:
    """The notebook of one session.

    ``apply`` costs as much as its event, ``snapshot`` as much as the cells that have changed since it was last called.
    """

    def __init__(self, session_id: str) -> None:
        self._session_id = session_id
        self._seq = 0
        self._cells: list[Cell] = []
        self._title_cell: MarkdownCell | None = None
        self._calls: dict[str, CallCell] = {}
        self._replied: dict[str, ToolCall] = {}
        self._started: ev.SessionStarted | None = None
        self._prompts = 0
        self._first_prompt = ""
        self._reply: MarkdownCell | None = None
        self._reply_text = ""
        self._plan: MarkdownCell | None = None
        self._ending: MarkdownCell | None = None
        self._refusal = ""
        self._products = Products()

    def notebook(self) -> JsonObject:
        """The notebook as the JSON object of a valid nbformat 4.5 file. Its cells must not be changed."""
        snapshot = self.snapshot()
        return {"cells": [piece.cell for piece in snapshot.pieces], **snapshot.around}

    def snapshot(self) -> Snapshot:
        """The notebook as it stands, ready to be written to its file."""
        machine: JsonObject = {"format_version": FORMAT_VERSION, "session_id": self._session_id, "last_seq": self._seq}
        if self._started is not None:
            machine |= {"harness_version": self._started.harness_version, "model": self._started.model}
        around = {
            "metadata": {
                KEY: clean_json(machine),
                "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
                "language_info": {"name": "python"},
            },
            "nbformat": 4,
            "nbformat_minor": 5,
        }
        pieces = tuple(piece for cell in self._cells for piece in cell.pieces())
        return Snapshot(self._session_id, self._seq, pieces, around)

    def apply(self, event: ev.Event) -> None:
        """Fold one event in. Transient states of outputs are passed over."""
        self._seq = max(self._seq, event.seq)
        self._products.apply(event)
        if isinstance(event, CallEvent):
            self._change_call(event)
            return
        match event:
            case ev.SessionStarted():
                self._started = event
                self._attach(event, self._title())
            case ev.PromptAdded():
                self._add_prompt(event)
            case ev.ModelReplied():
                self._add_reply(event)
            case (
                ev.Nudged()
                | ev.CheckFinished()
                | ev.FinishRejected()
                | ev.Warned()
                | ev.ContextCompacted()
                | ev.ModelSwitched()
            ):
                self._attach(event, self._note(event))
            case ev.PlanUpdated():
                self._plan = self._plan or self._markdown("plan", "")
                self._plan.text = texts.plan(event)
                self._attach(event, self._plan)
            case ev.FinishAccepted():
                self._accept(event)
            case ev.LimitReached():
                self._ending = self._markdown("end", texts.limit(event))
                self._attach(event, self._ending)
            case ev.SessionEnded():
                ending = self._ending or self._markdown("end", "")
                ending.text = texts.ending(event, self._products.describe())
                self._attach(event, ending)
                self._ending = self._plan = None
            case ev.FilesChanged() | ev.NetworkUsed():
                self._attach(event, self._calls.get(event.call_id))
            case ev.ModelRequested():
                self._attach(event, None)
            case _:
                assert_never(event)

    def _note(self, event: NoteEvent) -> MarkdownCell | None:
        """The cell of something that is said once."""
        match event:
            case ev.CheckFinished():
                return self._markdown("check", texts.check(event))
            case ev.Warned():
                return self._markdown("note", texts.warning(event))
            case ev.ContextCompacted():
                return self._markdown("compacted", texts.compacted(event))
            case ev.ModelSwitched():
                return self._markdown("model", texts.switched(event))
            case ev.FinishRejected():
                self._refusal = event.reason
                return self._markdown("refused", texts.rejected(event, self._claim()))
            case ev.Nudged():
                return (
                    None
                    if self._refusal and event.text.endswith(self._refusal)
                    else self._markdown("nudge", texts.nudge(event))
                )

    def _attach(self, event: ev.Event, cell: Cell | None) -> None:
        """Keep ``event`` in ``cell``, or in the newest one."""
        if cell is None:
            cell = self._cells[-1] if self._cells else self._title()
        cell.add(event)

    def _markdown(self, kind: str, text: str | Callable[[], str]) -> MarkdownCell:
        cell = MarkdownCell(len(self._cells), kind, text)
        self._cells.append(cell)
        return cell

    def _title(self) -> MarkdownCell:
        """The first cell, made when it is first needed; its text follows what is known.

        In a damaged record, whose first events are lost, it may come later or not at all.
        """
        if self._title_cell is None:
            self._title_cell = self._markdown("title", lambda: texts.title(self._first_prompt, self._started))
        return self._title_cell

    def _add_prompt(self, event: ev.PromptAdded) -> None:
        self._prompts += 1
        if self._prompts == 1:
            self._first_prompt = event.prompt
            if self._title_cell is not None or not self._cells:
                self._title().touch()
        self._ending = self._plan = self._reply = None
        self._attach(event, self._markdown("task", texts.task(event.prompt, self._prompts)))

    def _add_reply(self, event: ev.ModelReplied) -> None:
        """The assistant's text is a cell; without one the reply is kept where the last thing happened."""
        message = event.message
        self._replied = {call.call_id: call for call in message.tool_calls}
        for call_id in self._replied:
            self._calls.pop(call_id, None)
        self._reply, self._reply_text = None, message.text.strip()
        if self._reply_text:
            self._reply = self._markdown("text", texts.reply(self._reply_text))
        self._attach(event, self._reply)

    def _claim(self) -> str:
        """The summary of the ``finish`` call in the last reply."""
        calls = [call for call in self._replied.values() if call.name == FINISH]
        return str(calls[0].arguments.get("summary", "")) if calls else ""

    def _accept(self, event: ev.FinishAccepted) -> None:
        """A reply that ended the work becomes the result; the summary of a ``finish`` is a cell of its own."""
        if self._reply is not None and event.summary.strip() == self._reply_text:
            self._reply.text = texts.result(event.summary)
            self._attach(event, self._reply)
        else:
            self._attach(event, self._markdown("result", texts.result(event.summary)))

    def _change_call(self, event: CallEvent) -> None:
        """Hand an event about a call to its cell. That of ``finish`` and of those in ``CELLLESS`` is prose."""
        cell = self._calls.get(event.call_id)
        if cell is None and event.name == FINISH and isinstance(event, ev.ResultAdded):
            self._attach(event, None)
            return
        if event.name in CELLLESS:
            waited = self._markdown(event.name, texts.looked(event)) if isinstance(event, ev.ResultAdded) else None
            self._attach(event, waited)
            return
        if cell is None:
            cell = CallCell(len(self._cells), event.name, event.call_id, self._replied.get(event.call_id))
            self._calls[event.call_id] = cell
            self._cells.append(cell)
        cell.fold(event)
