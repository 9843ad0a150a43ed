"""What a process of the kill test does: one session with a model, a kernel and a person that are played.

``live`` opens the session of a workspace, or makes it, and works until both of its tasks are done, from wherever an
earlier process was killed. Everything is real but the three: the loop, the record, the file store, the disk.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import stat
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from pathlib import Path

from harness_nb import events as ev
from harness_nb.journal import read_journal
from harness_nb.kernel.fake import FakeKernel
from harness_nb.ports import Delta, ExecuteReply, ModelSettings, Output, TextDelta
from harness_nb.session import Session
from harness_nb.settings import Settings
from harness_nb.types import Approval, Decision, Message, TextPart, ToolCall, ToolSpec, Usage

TASKS = ("Do the first half.", "Do the second half.")
REPLIES = 4
"""Replies to a task, its finish among them."""

BETWEEN, STREAM, STEP, APPROVAL = "between", "stream", "step", "approval"
PHASES = (BETWEEN, STREAM, STEP, APPROVAL)

Enter = Callable[[str], None]
"""Told when a phase begins."""

PLOT = "iVBORw0KGgo" + "A" * 3000


def journal_of(workspace: Path) -> Path | None:
    """The journal of the one session of a workspace."""
    return next(iter(workspace.glob("harness_sessions/*/journal.jsonl")), None)


def effects_in(text: str) -> list[int]:
    """The numbers of the effects that a source has."""
    return [int(number) for number in re.findall(r"effect (\d+)", text)]


class PlayedModel:
    """Replies by how many replies the conversation has, so that a killed process changes nothing of what is asked for.

    Each request must be one that a provider would take.
    """

    accepts_images = True
    name = "played"

    def __init__(self, seed: int, enter: Enter, check: Callable[[Sequence[Message]], None]) -> None:
        self._seed = seed
        self._enter = enter
        self._check = check

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> AsyncGenerator[Delta | Message]:
        """A few words, then the reply; see ``ports.Model``."""
        self._check(messages)
        number = sum(message.role == "assistant" for message in messages)
        begun = max(index for index, message in enumerate(messages) if message.text in TASKS)
        last = sum(message.role == "assistant" for message in messages[begun:]) + 1 >= REPLIES
        self._enter(STREAM)
        words = f"Reply {number} says what it will do, in some words that come one by one."
        for word in words.split():
            yield TextDelta(word + " ")
            await asyncio.sleep(0.0005)
        self._enter(BETWEEN)
        yield Message(
            role="assistant",
            content=(TextPart(text=words),) if number % 2 else (),
            tool_calls=tuple(self._finish(number) if last else self._calls(number)),
            usage=Usage(input_tokens=100, output_tokens=10, cost_usd=0.0),
            finish_reason="tool_calls",
            model=self.name,
        )

    def _finish(self, number: int) -> Iterator[ToolCall]:
        yield ToolCall(call_id=f"call_{number}_0", name="finish", arguments={"summary": f"Done {number}."})

    def _calls(self, number: int) -> Iterator[ToolCall]:
        rng = random.Random(self._seed * 1000 + number)
        for index, kind in enumerate(rng.choices(["python", "asked"], k=rng.choice([1, 2]))):
            effect, size = 10 * number + index, rng.choice([2, 2, 20, 100])
            code = f"run(size={size})  # effect {effect}"
            if kind == "asked":
                name, arguments = "bash", {"command": f"rm -r build; {code}"}
            else:
                name, arguments = "python", {"code": code}
            yield ToolCall(call_id=f"call_{number}_{index}", name=name, arguments=arguments)

    async def aclose(self) -> None:
        """Nothing is open."""


class PlayedKernel(FakeKernel):
    """Each cell has one effect, a line in a file outside the workspace, on disk at once; and it writes in there."""

    def __init__(self, workspace: Path, effects: Path, enter: Enter) -> None:
        super().__init__(self._play)
        self._workspace = workspace
        self._effects = effects
        self._enter = enter
        self._fsync = os.fsync
        self.python = str(facts_program(effects.parent))

    async def execute(
        self, source: str, timeout: float | None = None, *, beside: bool = False
    ) -> AsyncGenerator[Output | ExecuteReply]:
        """See ``ports.Kernel``; takes some milliseconds."""
        self._enter(STEP)
        async with aclosing(super().execute(source, timeout, beside=beside)) as items:
            async for item in items:
                await asyncio.sleep(0.001)
                yield item
        self._enter(BETWEEN)

    def _play(self, source: str) -> Iterator[Output | ExecuteReply]:
        numbers = effects_in(source)
        size = int((re.search(r"size=(\d+)", source) or [0, 0])[1])
        line = "some output of the cell, which goes on and on\n"
        yield Output("stream", {"name": "stdout", "text": line * (size * 1000 // len(line) // 2)})
        for number in numbers:
            with self._effects.open("ab") as file:
                file.write(f"{number}\n".encode())
                file.flush()
                self._fsync(file.fileno())
            (self._workspace / f"made-{number % 3}.txt").write_text(f"by {number}\n")
        yield Output("display_data", {"data": {"image/png": PLOT, "text/plain": "a plot"}, "metadata": {}})
        yield Output("stream", {"name": "stderr", "text": line * (size * 1000 // len(line) // 2)})


class PlayedPerson:
    """Says yes, and now and then no, after a moment."""

    can_answer = True

    def __init__(self, seed: int, enter: Enter) -> None:
        self._seed = seed
        self._enter = enter

    async def ask(self, call: ToolCall, source: str, decision: Decision) -> Approval:
        """See ``ports.Approver``. The same call gets the same answer."""
        self._enter(APPROVAL)
        await asyncio.sleep(0.004)
        self._enter(BETWEEN)
        refused = random.Random(f"{self._seed}{call.call_id}").random() < 0.25
        return Approval(approved=not refused, reason="not this one" if refused else "")

    async def answer(self, question: str, *, secret: bool) -> str | None:
        """Nothing is asked."""
        return None


def facts_program(folder: Path) -> Path:
    """A program that says nothing of the machine, at once, where the session would ask the kernel's Python."""
    path = folder / "facts.sh"
    if not path.exists():
        path.write_text("#!/bin/sh\necho '{}'\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


async def live(
    workspace: Path,
    seed: int,
    enter: Enter,
    resuming: Callable[[bool], None],
    check: Callable[[Sequence[Message]], None],
) -> None:
    """Work until both tasks are done. ``resuming`` is told when ``resume`` begins, and when it has led to a request."""

    def ask(messages: Sequence[Message]) -> None:
        resuming(False)
        check(messages)

    opened = False
    while (task := next_task(workspace)) is not None:
        prompt, begun = task
        session = await _open(workspace, seed, enter, ask)
        resuming(begun)
        async with aclosing(session.resume() if begun else session.send(prompt)) as items:
            async for _ in items:
                pass
        resuming(False)
        assert session.ending is not None and session.ending.reason == "finished", session.ending
        await session.aclose()
        opened = True
    if not opened:  # killed after the last event: the notebook may be behind, and opening the session is enough
        session = await _open(workspace, seed, enter, ask)
        await session.aclose()


async def _open(workspace: Path, seed: int, enter: Enter, ask: Callable[[Sequence[Message]], None]) -> Session:
    """The session of the workspace, or a new one."""
    journal = journal_of(workspace)
    overrides = {"session": journal.parent.name} if journal else {}
    return await Session.open(
        Settings.load(workspace, overrides, {}),
        PlayedPerson(seed, enter),
        model=PlayedModel(seed, enter, ask),
        kernel=PlayedKernel(workspace, workspace.parent / "effects", enter),
    )


def next_task(workspace: Path) -> tuple[str, bool] | None:
    """What is left to do: a task, and whether its work has begun; ``None`` when all is done."""
    journal = journal_of(workspace)
    events = read_journal(journal)[0] if journal else []
    ended = [event for event in events if isinstance(event, ev.SessionEnded)]
    begun = [event for event in events if isinstance(event, ev.PromptAdded)]
    if len(begun) > len(ended):
        return begun[-1].prompt, True
    return (TASKS[len(begun)], False) if len(begun) < len(TASKS) else None
