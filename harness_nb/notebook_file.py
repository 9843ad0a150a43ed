"""The session notebook on disk: written often enough, never in part, and never over what somebody else has put there.

The session calls ``save`` after each event. The thread of this class does the writing, so that the event loop does not
wait for a disk. Whoever makes a ``NotebookFile`` holds the lock of the session: one process at a time writes the file.

Before the file is replaced it is looked at. If it is not as it was left here, what is new in it is somebody else's, and
is kept: see ``notebook.merge`` for the rules. A save that comes between that look and the replacement is seen too: the
look is repeated right before, and the file that is replaced stays open here until the next save, so that what a program
writes into it (in place, as Jupyter's server does) is read and merged. What remains is a program that itself replaces
the file by renaming, in the microseconds between the last look and our own renaming.
"""

from __future__ import annotations

import asyncio
import stat
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from harness_nb.draft import Draft, OpenFile, Stamp, remove_leftovers, stamp_of
from harness_nb.events import Event, SessionStarted
from harness_nb.notebook.fold import NotebookFold
from harness_nb.notebook.merge import Overlay, Versions, arranged, foreign, overlay_of, parse
from harness_nb.notebook.serial import Snapshot

SHARE = 0.05
"""Share of the time that writing the notebook may take, except at the end of a prompt's work."""

_PAUSE_AFTER_FAILURE = 2.0
_TRIES = 5
_WAITS = (0.05, 0.1, 0.2, 0.4)
"""Seconds to wait for a file that is no notebook: a program may be in the middle of writing it."""


class NotebookFile:
    """The file of one session notebook.

    ``past`` are the events of a session that is taken up again: with them an older state of our own, left by a crash,
    is told from a change by somebody else. ``clock`` gives seconds and never goes back. Trouble with the file is in
    ``warnings`` and raises nothing.
    """

    def __init__(
        self,
        path: Path,
        *,
        past: Sequence[Event] = (),
        clock: Callable[[], float] = time.monotonic,
        share: float = SHARE,
    ) -> None:
        self.path = path
        self._clock, self._share = clock, share
        self._versions = Versions(past)
        self._names = {event.session_id for event in past if isinstance(event, SessionStarted)}
        self._overlay: Overlay | None = None
        self._written: Snapshot | None = None
        self._stamp: Stamp | None = None
        self._replaced: tuple[OpenFile, Stamp] | None = None
        self._conflict: tuple[Path, Stamp] | None = None
        self._conflicts: set[str] = set()
        self._told: deque[str] = deque()
        self._failing = False
        self._next = float("-inf")
        self._fold: NotebookFold | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._flight: Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        remove_leftovers(path)

    # ---- for the session

    def save(self, fold: NotebookFold, *, final: bool = False) -> None:
        """Have the notebook written: now if it is time, else as soon as it is; the latest state wins.

        Returns at once; with ``final`` when the file is written, or has failed to be.
        """
        self._fold = fold
        if final:
            self._settle()
            self._write(fold.snapshot(), self._clock(), True)
        elif self._busy or self._clock() < self._next:
            self._remember()
        else:
            self._begin(fold)

    def warnings(self) -> list[str]:
        """What the person should know, since this was last asked. The same trouble is told once."""
        told = []
        while self._told:
            told.append(self._told.popleft())
        return told

    def close(self) -> None:
        """Wait for the write in flight and let go of everything. What is not yet written stays in the journal only."""
        self._settle()
        if self._written is not None and self._saved_after_replacement():
            self._write(self._written, self._clock(), True)
        if self._thread is not None:
            self._thread.shutdown()
            self._thread = None
        self._let_go()

    # ---- pace; on the caller's thread

    @property
    def _busy(self) -> bool:
        return self._flight is not None and not self._flight.done()

    def _begin(self, fold: NotebookFold) -> None:
        self._cancel_timer()
        began = self._clock()
        snapshot = fold.snapshot()
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "notebook-file")
        self._flight = self._thread.submit(self._write, snapshot, began, False)

    def _remember(self) -> None:
        """See to it that the latest state is written even if no other event comes; needs a running event loop."""
        if self._timer is not None:
            return
        with suppress(RuntimeError):
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(self._next - self._clock(), 0.05), self._catch_up)

    def _catch_up(self) -> None:
        self._timer = None
        if self._fold is not None:
            self.save(self._fold)

    def _settle(self) -> None:
        """Nothing waits to be written and nothing is being written."""
        self._cancel_timer()
        if self._flight is not None:
            self._flight.result()
            self._flight = None

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # ---- writing; on one thread at a time

    def _write(self, snapshot: Snapshot, began: float, final: bool) -> None:
        try:
            self._versions.record(snapshot)
            self._replace(snapshot, final)
            self._failing = False
        except Exception as error:  # a file of somebody else's may hold anything; the work goes on, the journal has it
            self._tell_failure(error)
        ended = self._clock()
        pause = max((ended - began) / self._share, _PAUSE_AFTER_FAILURE if self._failing else 0.0)
        self._next = ended + pause

    def _tell_failure(self, error: Exception) -> None:
        if self._failing:
            return
        self._failing = True
        reason = (error.strerror or str(error)) if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
        self._told.append(
            f"The session notebook {self.path.name} could not be saved ({reason}). The file is as it was, the journal "
            "has everything, and saving is tried again."
        )

    def _replace(self, snapshot: Snapshot, final: bool) -> None:
        for _ in range(_TRIES):
            seen = self._look(snapshot)
            merged, conflicts = arranged(snapshot, self._overlay, self._versions)
            self._keep_aside(snapshot, conflicts, final)
            with Draft(self.path, merged.chunks()) as draft:
                if stamp_of(self.path) != seen:
                    continue
                self._let_go()
                if seen is not None:
                    with suppress(OSError):
                        self._replaced = OpenFile(self.path), seen
                self._stamp, self._written = draft.put_in_place(), merged
            if not self._saved_after_replacement():
                return
        raise OSError(f"another program keeps changing {self.path.name}")

    def _let_go(self) -> None:
        """Close the file that was replaced."""
        if self._replaced is not None:
            self._replaced[0].close()
            self._replaced = None

    def _saved_after_replacement(self) -> bool:
        """Whether somebody has written to the file that is replaced by now."""
        return self._replaced is not None and self._replaced[0].stamp != self._replaced[1]

    # ---- what somebody else has written

    def _look(self, snapshot: Snapshot) -> Stamp | None:
        """Take up what is new in the file, and say which file it was; ``None`` if there is none."""
        if self._replaced is not None and self._saved_after_replacement():
            self._look_back(self._replaced[0], snapshot)
        found = stamp_of(self.path)
        if found is None or found == self._stamp:
            return found
        if not stat.S_ISREG(self.path.lstat().st_mode):
            self._move_aside("it is not a regular file")
            return None
        file = OpenFile(self.path)
        try:
            data, stamp = _settled(file)
        finally:
            file.close()
        if self._written is not None and data == b"".join(self._written.chunks()):
            self._stamp = stamp
            return stamp
        problem = self._take(data, snapshot) if data else ""
        if not problem or stamp_of(self.path) != stamp:
            return stamp
        self._move_aside(problem)
        return None

    def _look_back(self, replaced: OpenFile, snapshot: Snapshot) -> None:
        """Take up what was saved into the file after it was replaced."""
        data, stamp = _settled(replaced)
        self._replaced = replaced, stamp
        if problem := self._take(data, snapshot) if data else "":
            aside = _free_name(self.path, "aside")
            with Draft(aside, [data]) as draft:
                draft.put_in_place()
            self._tell_aside(problem, aside)

    def _take(self, data: bytes, snapshot: Snapshot) -> str:
        """Take up what is somebody else's in ``data``, or say why it is not this notebook at all."""
        notebook = parse(data)
        if notebook is None:
            return "it is not a notebook that can be read"
        problem = foreign(notebook, snapshot, self._names)
        if not problem:
            self._overlay = overlay_of(notebook, snapshot, self._versions)
        return problem

    def _move_aside(self, problem: str) -> None:
        aside = _free_name(self.path, "aside")
        self.path.rename(aside)
        self._tell_aside(problem, aside)

    def _tell_aside(self, problem: str, aside: Path) -> None:
        self._told.append(f"{self.path.name} was changed by another program: {problem}. It is kept as {aside.name}.")

    def _keep_aside(self, snapshot: Snapshot, conflicts: Sequence[str], final: bool) -> None:
        """Write the session as it is by itself to a sibling, if somebody changed what it has changed too."""
        new = [name for name in conflicts if name not in self._conflicts]
        if not conflicts or not (new or final):
            return
        if self._conflict is None or stamp_of(self._conflict[0]) != self._conflict[1]:
            self._conflict = _free_name(self.path, "conflict"), (0, 0, 0)
            new = list(conflicts)
        path = self._conflict[0]
        with Draft(path, snapshot.chunks()) as draft:
            self._conflict = path, draft.put_in_place()
        self._conflicts |= set(new)
        if new:
            self._told.append(
                f"Somebody else changed what the session changed too, in {self.path.name}: {', '.join(new)}. "
                f"Their version stays there; the session's own is in {path.name}."
            )


def _free_name(path: Path, kind: str) -> Path:
    """The first of ``ID.kind.ipynb``, ``ID.kind-2.ipynb`` … that is not there."""
    number, name = 1, path.with_name(f"{path.stem}.{kind}{path.suffix}")
    while stamp_of(name) is not None:
        number += 1
        name = path.with_name(f"{path.stem}.{kind}-{number}{path.suffix}")
    return name


def _settled(file: OpenFile) -> tuple[bytes, Stamp]:
    """What is in ``file`` once it is a notebook, or has not become one in a while."""
    data, stamp = file.read()
    for wait in _WAITS:
        if parse(data) is not None:
            break
        time.sleep(wait)
        data, stamp = file.read()
    return data, stamp
