"""Messages of a kernel to the execution that they belong to: one place, no sockets, no clock.

``Connection`` feeds it what it receives; ``ToolKernel`` reads ``Execution``. Tested with made-up messages. Message
types and fields are those of the Jupyter messaging protocol 5.4.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, cast

from harness_nb.kernel.questions import Question, question_of
from harness_nb.outputs.widgets import COMM_KINDS, WidgetModels, WidgetViews
from harness_nb.ports import Output
from harness_nb.types import JsonObject

KINDS = frozenset({"stream", "display_data", "execute_result", "update_display_data", "error", "clear_output"})


class Execution:
    """One request to run code, from sending to its last output.

    It is finished when the reply and the "idle" that follows its outputs have both come, in whichever order.
    ``printed`` counts the characters of stdout and stderr; ``changed`` is set whenever there is something new to look
    at; ``ask`` takes the questions of its code, while there is somebody to answer; ``views`` are its widgets on show.
    """

    def __init__(self, message_id: str, execution_count: int | None, widgets: WidgetModels) -> None:
        self.message_id = message_id
        self.changed = asyncio.Event()
        self.reply: JsonObject | None = None
        self.idle = False
        self.execution_count = execution_count
        self.printed = 0
        self.ask: Callable[[Question], None] | None = None
        self.views = WidgetViews(widgets)
        self._outputs: deque[Output] = deque()

    @property
    def finished(self) -> bool:
        """Whether nothing more can come of it."""
        return self.reply is not None and self.idle

    def add(self, output: Output) -> None:
        """Keep an output until it is taken; text that continues the last untaken output is joined to it."""
        self.count(output)
        for shown in self.views.show(output):
            self._append(shown)

    def count(self, output: Output) -> None:
        """Note text that the kernel has sent, wherever it goes."""
        self.printed += len(output.content["text"]) if output.kind == "stream" else 0

    def draw_widgets(self) -> None:
        """Add what has changed of the widgets on show."""
        for output in self.views.update():
            self._append(output)

    def show(self, text: str) -> None:
        """Add text that the kernel has not printed itself."""
        self._append(Output(kind="stream", content={"name": "stdout", "text": text}))

    def _append(self, output: Output) -> None:
        last = self._outputs[-1] if self._outputs else None
        if last is not None and last.kind == output.kind == "stream" and last.content["name"] == output.content["name"]:
            joined = {"name": last.content["name"], "text": last.content["text"] + output.content["text"]}
            self._outputs[-1] = Output(kind="stream", content=joined)
        else:
            self._outputs.append(output)
        self.changed.set()

    def take(self) -> list[Output]:
        """The outputs since the last call."""
        taken = list(self._outputs)
        self._outputs.clear()
        return taken


class Router:
    """Which execution each message belongs to. What belongs to none is dropped, and counted in ``strays``.

    A stray is most often the output of a thread whose cell has ended: it must not appear in another cell. ``widgets``
    are the widgets of the kernel.
    """

    def __init__(self) -> None:
        self.widgets = WidgetModels()
        self._executions: dict[str, Execution] = {}
        self._probes: set[str] = set()
        self._idle_callbacks: dict[str, Callable[[], None]] = {}
        self.received = 0
        self.strays = 0

    def open(self, message_id: str, execution_count: int | None = None) -> Execution:
        """Expect messages for the request ``message_id``, which should get that execution count."""
        execution = self._executions[message_id] = Execution(message_id, execution_count, self.widgets)
        return execution

    def close(self, execution: Execution) -> None:
        """Expect no more messages for it."""
        self._executions.pop(execution.message_id, None)

    def expect_idle(self, message_id: str, callback: Callable[[], None] | None = None) -> None:
        """Expect the "idle" of a request that is no execution.

        Outputs are published in order. So its "idle" also ends every execution that has its reply and whose own
        "idle" got lost.
        """
        self._probes.add(message_id)
        if callback is not None:
            self._idle_callbacks[message_id] = callback

    def take_reply(self, message: JsonObject) -> None:
        """A message of the shell channel."""
        execution = self._executions.get(_parent(message))
        if execution is None or message["msg_type"] != "execute_reply":
            return
        execution.reply = message["content"]
        execution.execution_count = message["content"].get("execution_count", execution.execution_count)
        execution.changed.set()

    def take_question(self, message: JsonObject) -> bool:
        """A message of the stdin channel. False when there is nobody to answer: its cell has ended."""
        execution = self._executions.get(_parent(message))
        if message["msg_type"] != "input_request":
            return True
        if execution is None or execution.ask is None:
            return False
        execution.ask(question_of(message))
        return True

    def take_published(self, message: JsonObject) -> None:
        """A message of the iopub channel."""
        self.received += 1
        parent, kind, content = _parent(message), message["msg_type"], message["content"]
        if kind == "status":
            if content.get("execution_state") == "idle":
                self._take_idle(parent)
            return
        if kind in COMM_KINDS:
            self.widgets.take(message)
            self._wake_views()
            return
        execution = self._executions.get(parent)
        output = output_of(message)
        if output is not None and self.widgets.capture(parent, output):
            if execution is not None:
                execution.count(output)
            self._wake_views(at_once="data" in content)
        elif execution is None:
            self.strays += kind in KINDS
        elif kind == "execute_input":
            execution.execution_count = content.get("execution_count", execution.execution_count)
        elif output is not None:
            execution.add(output)

    def _wake_views(self, at_once: bool = False) -> None:
        """Whoever shows a widget may have something to draw; ``at_once``: below it, before another output comes."""
        for execution in self._executions.values():
            if execution.views.stale:
                execution.changed.set()
            if at_once:
                execution.draw_widgets()

    def _take_idle(self, parent: str) -> None:
        ended = [self._executions[parent]] if parent in self._executions else []
        if parent in self._probes:
            self._probes.discard(parent)
            ended += [execution for execution in self._executions.values() if execution.reply is not None]
            self._idle_callbacks.pop(parent, lambda: None)()
        for execution in ended:
            execution.idle = True
            execution.changed.set()


def _parent(message: JsonObject) -> str:
    return cast(str, (message.get("parent_header") or {}).get("msg_id", ""))


def output_of(message: JsonObject) -> Output | None:
    """The output that an iopub message carries, or ``None`` when it carries none (widget traffic, status, …)."""
    kind, content = message["msg_type"], message["content"]
    if kind not in KINDS:
        return None
    display_id = (content.get("transient") or {}).get("display_id")
    kept: dict[str, Any] = {name: value for name, value in content.items() if name != "transient"}
    return Output(kind=kind, content=kept, display_id=display_id)
