"""What recording a step costs as a session grows: at step 10 and at step 1,000, in turn in one run: ``make bench``.

A step is what is written from ``call_decided`` to the checkpoint after ``result_added``: five journal lines, each one
synced, the fold, and the notebook at its pace. No kernel and no model: a short pause stands for them, which is far
less than they take. Sessions take turns in blocks of steps, so that the ratio holds although the machine's speed
drifts; what a session writes in the background is done before the other one's turn.

The peer is the plain way: the whole notebook through ``json.dumps`` and to the disk at each step.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from harness_nb import events as ev
from harness_nb.draft import Draft
from harness_nb.notebook import NotebookFold
from harness_nb.notebook_file import NotebookFile
from harness_nb.store import SessionStore
from harness_nb.types import Decision, Message, Status, ToolCall, text_content

EARLY, LATE = 10, 1000
BLOCKS, STEPS = 20, 10
PEER_STEPS = 5
SIZES = {"2 KB": 2_000, "100 KB": 100_000}
MODEL_SEES = 8_000
"""Characters of an output that go to the model."""
PAUSE = 0.05
"""Seconds between two steps."""
GOAL = 1.3
ALLOW = Decision(verdict="allow", reason="inside the workspace", policy="allow_by_default")


def output_of(number: int, size: int) -> str:
    """Lines such as a training run prints."""
    line = f"epoch {number:04d}  loss 0.4312  val_loss 0.4520  val_acc 0.8711  12.3 s\n"
    return (line * (size // len(line) + 1))[:size]


def reply(number: int) -> list[ev.Event]:
    """What comes before a step: the model's turn."""
    call = ToolCall(call_id=f"c{number}", name="python", arguments={"code": f"train(epoch={number})"})
    message = Message(role="assistant", content=text_content(f"Now epoch {number}."), tool_calls=(call,))
    return [
        ev.ModelRequested(turn=number, model="scripted:x", messages=number),
        ev.ModelReplied(turn=number, message=message),
    ]


def step(number: int, size: int) -> list[ev.Event]:
    """The events of one step."""
    ids: dict[str, Any] = {"call_id": f"c{number}", "name": "python"}
    source, text = f"train(epoch={number})", output_of(number, size)
    call = ToolCall(call_id=f"c{number}", name="python", arguments={"code": source})
    return [
        ev.CallDecided(**ids, call=call, source=source, decision=ALLOW),
        ev.CellStarted(**ids, source=source),
        ev.CellOutput(**ids, output={"output_type": "stream", "name": "stdout", "text": text}),
        ev.CellFinished(**ids, status=Status.OK, execution_count=number, elapsed=1.0),
        ev.ResultAdded(**ids, status=Status.OK, content=text_content(text[:MODEL_SEES])),
    ]


class TimedFile(NotebookFile):
    """A ``NotebookFile`` that adds up the seconds that its writing takes."""

    spent, writes = 0.0, 0

    def _write(self, snapshot: Any, began: float, final: bool) -> None:
        super()._write(snapshot, began, final)
        self.spent += self._clock() - began
        self.writes += 1


class Recorded:
    """One session, brought to a step without a disk; from there on everything is written."""

    def __init__(self, folder: Path, name: str, steps: int, size: int) -> None:
        self.size, self.number = size, steps
        self.fold = NotebookFold(name)
        self.store = SessionStore(folder, name)
        self.file = TimedFile(self.store.notebook_path)
        seq = 0
        for number in range(1, steps + 1):
            for event in [*reply(number), *step(number, size)]:
                seq += 1
                self.fold.apply(event.model_copy(update={"seq": seq}))
        self.store.continue_after(seq)
        self.file.save(self.fold, final=True)
        self.file.spent, self.file.writes, self.file._next = 0.0, 0, 0.0

    def step(self) -> float:
        """Take a step; milliseconds that recording it took."""
        self.number += 1
        for event in reply(self.number):
            self.fold.apply(self.store.append(event))
        events = step(self.number, self.size)
        began = time.perf_counter()
        for event in events:
            self.fold.apply(self.store.append(event))
            if isinstance(event, ev.CellOutput | ev.ResultAdded):
                self.checkpoint()
        return 1000 * (time.perf_counter() - began)

    def checkpoint(self) -> None:
        """Write the notebook as the session does."""
        self.file.save(self.fold)

    def settle(self) -> None:
        """Wait for the write in the background."""
        self.file._settle()

    def close(self) -> None:
        """Let go of the files."""
        self.file.close()
        self.store.close()


class Plain(Recorded):
    """The peer: everything anew at each step."""

    def checkpoint(self) -> None:
        """Write the whole notebook."""
        text = json.dumps(self.fold.notebook(), indent=1, ensure_ascii=False)
        with Draft(self.store.notebook_path, [text.encode("utf-8", "backslashreplace")]) as draft:
            draft.put_in_place()


def describe(name: str, costs: list[float]) -> str:
    """Median, mean and the worst of some costs in milliseconds."""
    ordered = sorted(costs)
    tail = ordered[int(0.95 * (len(ordered) - 1))]
    return (
        f"  {name:<24} median {statistics.median(costs):8.2f} ms   mean {statistics.fmean(costs):8.2f}   "
        f"95 % {tail:8.2f}   max {ordered[-1]:8.2f}   n={len(costs)}"
    )


async def bench(folder: Path, label: str, size: int) -> bool:
    """Measure one size of output; whether the goal is met."""
    late = Recorded(folder, f"late-{size}", LATE, size)
    costs: dict[str, list[float]] = {"early": [], "late": []}
    opened = time.perf_counter()
    for block in range(BLOCKS):
        early = Recorded(folder, f"early-{size}-{block}", EARLY - STEPS // 2, size)
        for name, session in (("early", early), ("late", late)):
            for _ in range(STEPS):
                costs[name].append(session.step())
                await asyncio.sleep(PAUSE)
            session.settle()
        early.close()
    share, writes = late.file.spent / (time.perf_counter() - opened), late.file.writes
    ratio = statistics.median(costs["late"]) / statistics.median(costs["early"])
    means = statistics.fmean(costs["late"]) / statistics.fmean(costs["early"])
    size_on_disk = late.store.notebook_path.stat().st_size / 1e6
    print(f"outputs of {label}; the notebook at step {LATE} has {size_on_disk:.1f} MB")
    print(describe(f"at step {EARLY}", costs["early"]))
    print(describe(f"at step {LATE}", costs["late"]))
    print(f"  ratio of the medians     {ratio:.2f}   (goal: under {GOAL}; of the means {means:.2f})")
    print(f"  writing the notebook at step {LATE}: {writes} times, {100 * share:.1f} % of the time, in the background")
    late.close()
    peers = {steps: Plain(folder, f"plain-{steps}-{size}", steps, size) for steps in (EARLY, LATE)}
    plain: dict[int, list[float]] = {EARLY: [], LATE: []}
    for _ in range(PEER_STEPS):
        for steps, session in peers.items():
            plain[steps].append(session.step())
    for steps, session in peers.items():
        print(describe(f"json.dumps, step {steps}", plain[steps]))
        session.close()
    print(f"  ratio of the medians     {statistics.median(plain[LATE]) / statistics.median(plain[EARLY]):.2f}\n")
    return ratio < GOAL


async def main() -> None:
    """Both sizes."""
    print(f"recording: Python {platform.python_version()}, {os.cpu_count()} cores, {platform.system()}\n")
    met = []
    for label, size in SIZES.items():
        with tempfile.TemporaryDirectory(prefix="record-bench-", dir=Path.cwd()) as folder:
            met.append(await bench(Path(folder), label, size))
    print("The goal is met." if all(met) else "The goal is missed.")


if __name__ == "__main__":
    asyncio.run(main())
