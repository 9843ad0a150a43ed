"""What the folder was before a session began: files that its calls made or changed are set back in the copy.

Otherwise a notebook that reads what a failed or deleted cell wrote would seem to run. ``verification`` calls it for the
notebook of a session, and for an export of one, when the session's record is beside it. It changes the copy only.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from harness_nb.errors import StoreError
from harness_nb.events import Event, FilesChanged
from harness_nb.files import files_at
from harness_nb.files.blobs import Blobs
from harness_nb.journal import read_journal
from harness_nb.store import FOLDER
from harness_nb.verify.document import Document

OUTSIDE = "outside"


def set_back(copy: Path, document: Document) -> tuple[set[Path], list[str]]:
    """Set the copy of the session's workspace back to its beginning; the paths concerned, and notes for people."""
    folder = document.path.parent
    session = str(document.machine.get("session_id", ""))
    home = (folder if folder.name == FOLDER else folder / FOLDER) / session
    if not session or not (home / "journal.jsonl").is_file():
        return set(), []
    try:
        events, _ = read_journal(home / "journal.jsonl")
    except StoreError:
        return set(), []
    return _set_back(copy, events, Blobs(home / "files", 0))


def _set_back(copy: Path, events: Sequence[Event], blobs: Blobs) -> tuple[set[Path], list[str]]:
    made = {
        change.path
        for event in events
        if isinstance(event, FilesChanged) and event.name != OUTSIDE
        for change in event.changes
    }
    concerned: set[Path] = set()
    lost: list[str] = []
    for path, then in files_at(events, 0).items():
        if path not in made or not _inside(path):
            continue
        target = copy / path
        if target.is_symlink() or (target.exists() and not target.is_file()):
            continue
        content = None if then is None else blobs.read(then)
        if then is not None and content is None:
            lost.append(path)
            continue
        concerned.add(Path(path))
        target.unlink(missing_ok=True)
        if content is not None:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
    notes = [f"the run began with the files as they were before the session ({len(concerned)} set back)"]
    told = ", ".join(lost[:5]) + (" …" if len(lost) > 5 else "")
    return concerned, (notes if concerned else []) + (
        [f"as they are after the session, for their content before it was not kept: {told}"] if lost else []
    )


def _inside(path: str) -> bool:
    """Whether the path stays in the folder: the record may have been edited by anybody."""
    pure = PurePosixPath(path)
    return bool(pure.parts) and not pure.is_absolute() and ".." not in pure.parts and "\0" not in path
