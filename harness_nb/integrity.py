"""What has become of tests and of the files that configure them since the start, by name and deed.

The workplace makes one ``Integrity`` before the first prompt. The finish gate asks ``findings``, and has ``mend`` give
a copy of the workspace the files as they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pathspec import GitIgnoreSpec

from harness_nb.check_copy import CheckCopy
from harness_nb.pristine import Pristine
from harness_nb.watched import (
    STARTUP,
    counting_part,
    counts_when_new,
    settings_patterns,
    shadowing,
    test_patterns,
    what_was_done,
)

READ_AT_MOST = 8 * 2**20


@dataclass(frozen=True, slots=True)
class Finding:
    """A file that is not as it was: what was ``done``. One that does not ``count`` is only left out of the run."""

    name: str
    done: str
    counts: bool


class Integrity:
    """The watched files of ``commands``, as they are when this is made, beside the read-only ones in ``pristine``.

    A pattern of the read-only files with ``!`` takes files out of the watch.
    """

    def __init__(self, workspace: Path, commands: Sequence[str], pristine: Pristine) -> None:
        self._workspace = workspace
        self._pristine = pristine
        tests, settings = test_patterns(commands, workspace), settings_patterns(commands, workspace)
        self._read_only = GitIgnoreSpec.from_lines(pristine.patterns)
        self._settings = GitIgnoreSpec.from_lines(settings)
        self._startup = GitIgnoreSpec.from_lines(STARTUP if commands else ())
        self._watched = Pristine(workspace, (*tests, *settings, *pristine.patterns) if commands else pristine.patterns)
        found = GitIgnoreSpec.from_lines(tests)
        self._had_tests = any(found.match_file(name) for name in self._watched.names)
        self._out = GitIgnoreSpec.from_lines([line[1:] for line in pristine.patterns if line.startswith("!")])
        self._shadowing = shadowing(workspace) if commands else None

    @property
    def names(self) -> list[str]:
        """The watched files, read-only ones included, relative to the workspace."""
        return sorted({*self._watched.names, *self._pristine.names})

    def stamps(self) -> dict[str, tuple[int, ...] | None]:
        """Stamps of the watched files as they are now."""
        return self._watched.stamps()

    def findings(self) -> list[Finding]:
        """What is not as it was, by name. Blocking."""
        read_only = set(self._pristine.touched())
        found = [self._finding(name, name in read_only) for name in sorted({*read_only, *self._watched.touched()})]
        new = shadowing(self._workspace) - self._shadowing if self._shadowing is not None else set()
        told = {finding.name for finding in found if finding}
        found += [
            Finding(name, "added, in the place of a module of Python or of the test runner", True)
            for name in sorted(new)
            if name not in told and not self._out.match_file(name)
        ]
        return [finding for finding in found if finding is not None]

    def mend(self, copy: CheckCopy, findings: Sequence[Finding]) -> None:
        """Give ``copy`` the watched files as they were; what ``findings`` say has come since goes."""
        touched = {finding.name for finding in findings}
        for name in self.names:
            kept = self._watched.kept(name) or self._pristine.kept(name)
            partly = counting_part(name, b"x") != b"x" or name.endswith(("pyproject.toml", "setup.cfg", "package.json"))
            if kept is not None and kept.data is not None and (name in touched or not partly):
                copy.put(name, kept.data, kept.mode)
        for finding in findings:
            if (self._watched.kept(finding.name) or self._pristine.kept(finding.name)) is None:
                copy.remove(finding.name)

    def _finding(self, name: str, read_only: bool) -> Finding | None:
        kept = self._watched.kept(name) or self._pristine.kept(name)
        after = self._read(name)
        if kept is None:
            data = after or b""
            settings = self._settings.match_file(name)
            counts = read_only or (
                settings and counts_when_new(name, data) and (self._had_tests or self._startup.match_file(name))
            )
            return Finding(name, what_was_done(name, None, data), counts) if counts or self._leaves_out(name) else None
        before = kept.data
        if before is None or after is None:
            return Finding(name, "deleted" if after is None else "edited", True)
        if before == after:
            return Finding(name, "its mode or kind changed", True)
        same = counting_part(name, before) == counting_part(name, after)
        return Finding(name, what_was_done(name, before, after), True) if read_only or not same else None

    def _leaves_out(self, name: str) -> bool:
        return self._had_tests and not self._settings.match_file(name)

    def _read(self, name: str) -> bytes | None:
        """The file as it is; ``None`` where there is none. Of a big one, the beginning."""
        path = self._workspace / name
        if name not in self._watched.present() and name not in self._pristine.present():
            return None
        try:
            with path.open("rb") as file:
                return file.read(READ_AT_MOST + 1)
        except OSError:
            return b"" if path.exists() else None
