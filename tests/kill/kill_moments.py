"""The moments at which a process of the kill test dies: at random times, in a phase, at a write of the record.

All but the first kind are brought about from inside the process that dies, by SIGKILL, so that nothing is cleaned up.
"""

from __future__ import annotations

import mmap
import os
import random
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kill_story import APPROVAL, PHASES, STEP, STREAM, journal_of

RESUME = "resume"


@dataclass(frozen=True)
class Moment:
    """``kind``: ``time`` (``delay`` seconds after the start), ``phase`` (``delay`` after it began for the
    ``number``-th time), ``fsync`` and ``replace`` (``before`` or after the ``number``-th of ``what``), ``torn`` (the
    ``number``-th line of the journal is half written).
    """

    kind: str
    what: str = ""
    number: int = 1
    before: bool = True
    delay: float = 0.0


class Signs:
    """What the dying process leaves to its parent: the phase it was in, and whether it was resuming. Shared memory."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 16)

    def enter(self, phase: str) -> None:
        self._memory[0] = PHASES.index(phase)

    def resuming(self, begun: bool) -> None:
        self._memory[1] = begun

    @property
    def phase(self) -> str:
        return PHASES[self._memory[0]]

    @property
    def is_resuming(self) -> bool:
        return bool(self._memory[1])

    def close(self) -> None:
        self._memory.close()


def choose(rng: random.Random, duration: float, resumed: bool) -> Moment:
    """A moment at random. ``duration``: seconds of a whole session. ``resumed``: the process goes on with a record."""
    kinds = ["time", "phase", "phase", "fsync", "save", "torn", RESUME if resumed else "save"]
    kind, before = rng.choice(kinds), rng.random() < 0.5
    match kind:
        case "time":
            return Moment("time", delay=rng.uniform(0, duration))
        case "phase":
            what = rng.choice([STREAM, STEP, APPROVAL])
            return Moment("phase", what, rng.randint(1, 2), delay=rng.uniform(0, 0.004))
        case "resume":
            return Moment("fsync", "journal", rng.randint(1, 4), before)
        case "save":
            return Moment(rng.choice(["fsync", "replace"]), "notebook", rng.randint(1, 2), before)
        case "fsync":
            return Moment("fsync", "journal", rng.randint(1, 20), before)
        case _:
            return Moment("torn", "journal", rng.randint(1, 20))


def die() -> None:
    """End this process as ``kill -9`` does."""
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)


class Trap:
    """Set in the process that is to die. ``enter`` is to be told of each phase."""

    def __init__(self, moment: Moment | None, signs: Signs, workspace: Path) -> None:
        self._moment = moment or Moment("never")
        self._signs = signs
        self._workspace = workspace
        self._count = 0
        self._lock = threading.Lock()
        self._fsync, self._replace = os.fsync, os.replace
        os.fsync, os.replace = self._fsync_or_die, self._replace_or_die  # type: ignore[assignment]

    def enter(self, phase: str) -> None:
        """A phase begins."""
        self._signs.enter(phase)
        if self._moment.kind == "phase" and self._moment.what == phase and self._reached():
            killer = threading.Timer(self._moment.delay, die)
            killer.daemon = True
            killer.start()

    def _reached(self) -> bool:
        with self._lock:
            self._count += 1
            return self._count == self._moment.number

    def _fsync_or_die(self, descriptor: int) -> None:
        moment = self._moment
        due = moment.kind in ("fsync", "torn") and self._what(os.fstat(descriptor)) == moment.what and self._reached()
        if due and moment.kind == "torn":
            self._tear(descriptor)
            die()
        if due and moment.before:
            die()
        self._fsync(descriptor)
        if due:
            die()

    def _replace_or_die(self, source: Any, target: Any, **more: Any) -> None:
        due = self._moment.kind == "replace" and str(target).endswith(".ipynb") and self._reached()
        if due and self._moment.before:
            die()
        self._replace(source, target, **more)
        if due:
            die()

    def _what(self, about: os.stat_result) -> str:
        journal = journal_of(self._workspace)
        if journal is not None and os.path.samestat(about, journal.stat()):
            return "journal"
        temporary = [path for path in self._workspace.glob("harness_sessions/.*") if path.is_file()]
        return "notebook" if any(os.path.samestat(about, path.stat()) for path in temporary) else "other"

    def _tear(self, descriptor: int) -> None:
        """Leave half of the last line of the journal, as a write that was cut off does."""
        journal = journal_of(self._workspace)
        assert journal is not None
        data = journal.read_bytes()
        start = data.rstrip(b"\n").rfind(b"\n") + 1
        os.ftruncate(descriptor, start + max(1, (len(data) - start) // 2))
