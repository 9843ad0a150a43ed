"""A session that works and saves its notebook, without a kernel or a model, for the tests of the notebook's file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness_nb import events as ev
from harness_nb.notebook import NotebookFold
from harness_nb.notebook_file import NotebookFile
from harness_nb.types import Status, ToolCall, text_content


class Work:
    """A session that takes steps and saves after each."""

    def __init__(self, path: Path, past: list[ev.Event] | None = None, **options: Any) -> None:
        self.path = path
        self.events: list[ev.Event] = []
        self.fold = NotebookFold("s1")
        for event in past or ():
            self.apply(event)
        self.file = NotebookFile(path, past=tuple(past or ()), **options)

    def apply(self, event: ev.Event) -> None:
        self.events.append(event.model_copy(update={"seq": len(self.events) + 1}))
        self.fold.apply(self.events[-1])

    def begin(self) -> None:
        started = {"harness_version": "1", "model": "m", "workspace": "w", "kernel": "k", "format_version": 2}
        self.apply(ev.SessionStarted(session_id="s1", **started))
        self.apply(ev.PromptAdded(prompt="Do it"))

    def step(self, number: int, *, final: bool = True) -> None:
        ids: dict[str, Any] = {"call_id": f"c{number}", "name": "python"}
        source = f"print({number})"
        decision = {"verdict": "allow", "reason": "", "policy": ""}
        made = ToolCall(call_id=f"c{number}", name="python", arguments={"code": source})
        output = {"output_type": "stream", "name": "stdout", "text": f"{number}\n"}
        self.apply(ev.CallDecided.model_validate({**ids, "call": made, "source": source, "decision": decision}))
        self.apply(ev.CellStarted(**ids, source=source))
        self.apply(ev.CellOutput(**ids, output=output))
        self.apply(ev.CellFinished(**ids, status=Status.OK, execution_count=number))
        self.apply(ev.ResultAdded(**ids, status=Status.OK, content=text_content(f"{number}")))
        self.file.save(self.fold, final=final)

    def pure(self) -> bytes:
        return b"".join(self.fold.snapshot().chunks())
