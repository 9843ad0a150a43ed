"""What is known of the files at one look, and the file that remembers it between two processes.

``FileStore`` alone uses it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from harness_nb.events import UNKNOWN_CONTENT
from harness_nb.files.walk import Stamp, Walk

VERSION = 1


class Known(NamedTuple):
    """A file as it was last seen. Without a ``stamp`` it is known from the record only.

    ``recent``: it had been written so shortly before that its stamp proves nothing.
    """

    stamp: Stamp | None
    digest: str
    recent: bool = False

    def still_is(self, stamp: Stamp) -> bool:
        """Whether a file with this stamp has the content that was seen."""
        if self.stamp is None or self.recent:
            return False
        if self.digest == UNKNOWN_CONTENT:  # nothing of it is known but the stamp: a change of its rights is no change
            return self.stamp[:3] == stamp[:3]
        return self.stamp == stamp


def load_index(path: Path) -> tuple[dict[str, Known], Walk] | None:
    """What an earlier process saw last, and what was hidden from it; ``None`` where that is not known or is broken."""
    try:
        data = json.loads(path.read_text("utf-8"))
        if data["version"] != VERSION:
            return None
        known = {name: Known(Stamp(*row[:4]), str(row[4]), bool(row[5])) for name, row in data["files"].items()}
        return known, Walk(crowded=set(data["crowded"]), closed=set(data["closed"]))
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError):
        return None


def save_index(path: Path, known: Mapping[str, Known], walk: Walk) -> bool:
    """Remember a look; whether that worked. Without it, only what happens between two processes goes unseen."""
    rows = {
        name: [*seen.stamp, seen.digest, seen.recent] if seen.stamp else [0, 0, 0, 0, seen.digest, True]
        for name, seen in known.items()
    }
    data = {"version": VERSION, "crowded": sorted(walk.crowded), "closed": sorted(walk.closed), "files": rows}
    temporary = path.with_suffix(".tmp")  # one name: what a crash left is written over
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(json.dumps(data), encoding="utf-8")
        temporary.replace(path)
    except OSError:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        return False
    return True
