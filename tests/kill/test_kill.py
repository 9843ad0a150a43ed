"""``kill -9`` at more than 200 random moments: nothing is lost, nothing runs twice, every notebook is valid.

See ``kill_story`` for what is killed, ``kill_moments`` for when, ``kill_invariants`` for what must hold. A trial alone:
``python tests/kill/kill_zygote.py FOLDER SEED``.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

SEED = 20261130
TRIALS = 80
LEAST_KILLS = 200
LEAST_HITS = {"step": 15, "stream": 20, "save": 30, "approval": 12, "resume": 20, "journal": 50}
"""How many kills must have hit what, so that the numbers say something."""

ZYGOTE = Path(__file__).parent / "kill_zygote.py"


def start(folder: Path, seeds: list[str], told: Path) -> subprocess.Popen[bytes]:
    with told.open("wb") as file:
        return subprocess.Popen([sys.executable, str(ZYGOTE), str(folder), *seeds], stdout=file)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_nothing_is_lost_and_nothing_runs_twice(tmp_path: Path) -> None:
    seeds = [str(SEED + number) for number in range(TRIALS)]
    told = [tmp_path / f"told-{half}" for half in (0, 1)]
    zygotes = [start(tmp_path / str(half), seeds[half::2], told[half]) for half in (0, 1)]
    try:
        codes = [zygote.wait(timeout=580) for zygote in zygotes]
    finally:
        for zygote in zygotes:
            zygote.kill()
            zygote.wait()
    lines = [line for path in told for line in path.read_text().splitlines()]
    trials = [result for result in map(json.loads, lines) if "seed" in result]
    problems = [result["problem"] for result in trials if result["problem"]]
    assert not problems, f"{len(problems)} of {len(trials)} trials failed; the first:\n{problems[0]}"
    assert codes == [0, 0] and len(trials) == TRIALS
    kills = sum(result["kills"] for result in trials)
    hits, statuses = (sum((Counter(result[key]) for result in trials), Counter()) for key in ("hits", "statuses"))
    report = f"{kills} kills in {TRIALS} sessions hit {dict(hits)}; the steps ended {dict(statuses)}"
    print(report)
    assert kills >= LEAST_KILLS, report
    assert all(hits[place] >= least for place, least in LEAST_HITS.items()), report
    assert statuses["ok"] > kills and statuses["unknown"] >= 10 and statuses["interrupted"] >= 10, report
