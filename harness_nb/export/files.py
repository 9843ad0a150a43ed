"""The cells that put files in place: which version is written where, and how. Pure.

The export runs in the workspace as the session left it, so a file that no kept cell needs in an other version, and that
no cell of the session wrote, is not written.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from harness_nb.export.choice import Choice, Unresolved
from harness_nb.export.flow import Flow
from harness_nb.export.history import History, Version
from harness_nb.export.story import Story
from harness_nb.toolset import literal, write_file

AT_END = 10.0**9


@dataclass(frozen=True)
class Write:
    """A file that is put in place at ``position``: after the step of that number, or before it where it has a half.

    ``step`` is the step whose words in the session introduced it, -1 for none.
    """

    position: float
    version: Version
    step: int


def plan_writes(story: Story, flow: Flow, history: History, choice: Choice) -> list[Write]:
    """The writes that let every kept cell find the files that it found in the session, in order."""
    planner = _Planner(story, flow, history, choice)
    planner.run()
    return sorted(planner.writes, key=lambda write: (write.position, write.version.path))


class _Planner:
    def __init__(self, story: Story, flow: Flow, history: History, choice: Choice) -> None:
        self.story, self.flow, self.history, self.choice = story, flow, history, choice
        self.writes: list[Write] = []

    def run(self) -> None:
        """One file after the other."""
        for path in sorted({version.path for version in self.choice.versions}):
            self._plan(path, [version for version in self.choice.versions if version.path == path])

    def _plan(self, path: str, versions: list[Version]) -> None:
        final = self.history.final(path)
        current = final.digest
        satisfied: set[str] = set()
        events = self._events(path, versions)
        for position, version, kind in events:
            if kind == "made":
                current = version.digest
            elif kind == "edited" or (current != version.digest and not self._in_memory(position, version, satisfied)):
                current = self._write(position, version, current)
            satisfied.add(version.digest)
        if final in versions and current != final.digest:
            self._write(AT_END, final, current)

    def _in_memory(self, position: float, version: Version, satisfied: set[str]) -> bool:
        """Whether a reader has the module already, as an earlier cell loaded it."""
        step = self.story.steps[int(position + 0.5)]
        return step.source.kind == "python" and version.path.endswith(".py") and version.digest in satisfied

    def _events(self, path: str, versions: list[Version]) -> list[tuple[float, Version, str]]:
        """What happens to a file in the kept cells: written by an edit, made by a cell that runs, read."""
        events: list[tuple[float, Version, str]] = []
        for version in self.history.versions[path]:
            if version.since < 0:
                continue
            made = version.since < len(self.story.steps) and not written_as_text(version, self.story)
            if made and self.choice.keeps(self.flow, self.story.steps[version.since]):
                events.append((float(version.since), version, "made"))
            elif version in versions and version.origin == "edit":
                events.append((float(version.since), version, "edited"))
        for version in versions:
            readers = sorted(set(self.choice.readers.get(version, ())))
            events += [(reader - 0.5, version, "read") for reader in readers if version.digest]
        return sorted(events, key=lambda event: event[0])

    def _write(self, position: float, version: Version, current: str) -> str:
        if version.digest and version.text is None:
            if version.origin == "run" or (version.origin == "original" and not version.digest):
                return current
            size = f"{version.size:,} bytes" if version.size else "its content"
            reason = f"is not as it was then, and {size} of that state can not be written from the record"
            readers = self.choice.readers.get(version, [])
            reader = self.story.steps[readers[0]] if readers else None
            who, number = (reader.label, reader.count) if reader else ("the end", None)
            note = Unresolved(who, number, version.path, reason)
            if note not in self.choice.unresolved:
                self.choice.unresolved.append(note)
            return current
        step = version.since if 0 <= version.since < len(self.story.steps) else -1
        self.writes.append(Write(position, version, step))
        return version.digest


def written_as_text(version: Version, story: Story) -> bool:
    """Whether a version is put in place by writing its text, and not by running the cell that made it."""
    if version.origin != "edit":
        return False
    step = story.steps[version.since]
    return not version.digest or version.text is not None or step.source.kind == "edit" or not step.ok


def write_sources(writes: list[Write], preexisting: Callable[[str], bool]) -> Iterator[tuple[Write, str]]:
    """The source of a cell for each write; a folder is made before the first file in it."""
    made: set[str] = set()
    for write in writes:
        path, text = write.version.path, write.version.text
        folder = posixpath.dirname(path)
        if folder and folder not in made and write.version.digest and not preexisting(folder):
            made.add(folder)
            yield write, f"Path({folder!r}).mkdir(parents=True, exist_ok=True)"
        yield (
            write,
            source_of_write(path, text or "") if write.version.digest else f"Path({path!r}).unlink(missing_ok=True)",
        )


def source_of_write(path: str, text: str) -> str:
    """``%%writefile``, or plain Python where a cell cannot say the text byte for byte."""
    if text.endswith("\n"):
        source = write_file(path, text)
        if source.startswith("%%writefile"):
            return source
    return f'Path({path!r}).write_text({literal(text)}, encoding="utf-8", newline="");'
