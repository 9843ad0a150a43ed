"""The files of the workspace in the record: what each call changed, the contents before and after, and the way back.

The session asks a ``FileStore`` after each call what has changed and journals the answer; fork, rewind and replay plan
and restore with what the events say. Nothing here knows the loop, the kernel or the screen.
"""

from harness_nb.files.restoring import (
    OUTSIDE,
    PlannedFile,
    Restored,
    RestorePlan,
    files_at,
    files_now,
    listed,
    plan_restore,
    restore,
    shown,
)
from harness_nb.files.store import FileStore

__all__ = [
    "OUTSIDE",
    "FileStore",
    "PlannedFile",
    "RestorePlan",
    "Restored",
    "files_at",
    "files_now",
    "listed",
    "plan_restore",
    "restore",
    "shown",
]
