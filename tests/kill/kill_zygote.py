"""A process that has everything imported and forks a child a life, so that a trial costs milliseconds.

``python kill_zygote.py FOLDER SEED…`` makes one trial a seed: a session that is killed again and again, and lives on.
It prints one JSON object a trial. The kill test starts two; by hand it does for long runs.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import signal
import sys
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

from kill_invariants import Watcher, check_messages
from kill_moments import RESUME, Moment, Signs, Trap, choose
from kill_story import BETWEEN, journal_of, live

MAX_KILLS = 5
PATIENCE = 60.0
"""Seconds that one life may last."""


def trial(folder: Path, seed: int, duration: float) -> dict[str, Any]:
    """One session, killed up to five times, to its end."""
    rng = random.Random(seed)
    workspace = folder / f"trial-{seed}" / "workspace"
    workspace.mkdir(parents=True)
    watcher = Watcher(workspace)
    hits: Counter[str] = Counter()
    moments: list[Moment | None] = []
    kills = rng.randint(2, MAX_KILLS)
    try:
        while True:
            moment = choose(rng, duration, bool(moments)) if watcher.kills < kills else None
            moments.append(moment)
            before = watcher.temporary_files()
            killed, signs = one_life(workspace, seed, moment)
            watcher.kills += killed
            watcher.look()
            if not killed:
                statuses = watcher.end()
                break
            hits.update(places(moment, signs, watcher, before))
            if not watcher.events and (journal := journal_of(workspace)):
                shutil.rmtree(journal.parent)  # nothing was begun; a person starts anew
    except AssertionError as error:
        error.add_note(f"seed {seed}, moments {moments}, files in {workspace}")
        return {"seed": seed, "problem": "".join(traceback.format_exception(error)), "kills": watcher.kills}
    shutil.rmtree(workspace.parent)
    return {"seed": seed, "problem": "", "kills": watcher.kills, "hits": hits, "statuses": statuses}


def places(moment: Moment | None, signs: Signs, watcher: Watcher, before: list[str]) -> set[str]:
    """What a kill has hit."""
    found = {signs.phase} - {BETWEEN}
    if moment is not None and moment.kind in ("torn", "fsync") and moment.what == "journal":
        found.add("journal")
    if (moment is not None and moment.what == "notebook") or set(watcher.temporary_files()) - set(before):
        found.add("save")
    if signs.is_resuming:
        found.add(RESUME)
    return found or {BETWEEN}


def one_life(workspace: Path, seed: int, moment: Moment | None) -> tuple[bool, Signs]:
    """A child that works until it dies or is done. Whether it was killed, and what it was at."""
    signs = Signs()
    started = time.monotonic()
    child = os.fork()
    if child == 0:
        os._exit(_live(workspace, seed, moment, signs))
    due = started + moment.delay if moment is not None and moment.kind == "time" else None
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        now = time.monotonic()
        if due is not None and now >= due:
            os.kill(child, signal.SIGKILL)
            due = None
        if now - started > PATIENCE:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise AssertionError(f"a process hangs, in phase {signs.phase}, moment {moment}{_said(workspace)}")
        time.sleep(0.0005)
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    assert killed or status == 0, f"a process failed with {status}, moment {moment}{_said(workspace)}"
    return killed, signs


def _said(workspace: Path) -> str:
    log = workspace.parent / "log"
    return f":\n{log.read_text()[-4000:]}" if log.exists() else ""


def _live(workspace: Path, seed: int, moment: Moment | None, signs: Signs) -> int:
    """The child. Never returns to the zygote's own work."""
    log = os.open(workspace.parent / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for descriptor in (1, 2):
        os.dup2(log, descriptor)
    try:
        trap = Trap(moment, signs, workspace)
        asyncio.run(live(workspace, seed, trap.enter, signs.resuming, check_messages))
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        return 1
    return 0


def main(folder: Path, seeds: list[int]) -> None:
    """Make the trials; the first life is measured."""
    first = folder / "first" / str(seeds[0]) / "workspace"
    first.mkdir(parents=True)
    started = time.monotonic()
    one_life(first, 0, None)
    duration = time.monotonic() - started
    print(json.dumps({"duration": duration}), flush=True)
    for seed in seeds:
        print(json.dumps(trial(folder, seed, duration)), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), [int(seed) for seed in sys.argv[2:]])
