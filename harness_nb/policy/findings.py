"""What the rules find in a command or a cell: values that shell rules, Python rules and file rules share. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal

from pathspec import GitIgnoreSpec

UNKNOWN = "\0"
"""Stands in a word for a part that is only known when the command runs."""

PLAIN = "\x05"
"""The same, for a part that begins with no dash and is no operator: the name of a file in a loop."""

OWN_PROCESS = "\x06"
"""The same, for the number of a process that this script has started."""

MAX_DEPTH = 6
"""How many scripts may stand within one another; deeper ones are asked about."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to ask about or to deny.

    ``kind`` names its kind for people, such as "git push"; one that ends in a colon holds for the very same part only.
    ``why`` goes on from the part it is about: "deletes
    folders". ``words`` are those of the command, ``path`` is the path it is about: a rule of the user for either can
    lift it. ``part`` is the text that model and person see.
    """

    verdict: Literal["ask", "deny"]
    kind: str
    why: str
    part: str = ""
    words: tuple[str, ...] = ()
    path: str = ""

    @property
    def key(self) -> str:
        """What tells its kind from others."""
        return f"{self.kind} {self.part}" if self.kind.endswith(":") else self.kind

    @property
    def reason(self) -> str:
        """A clause that people and models read, without a full stop."""
        return f"`{shorten(self.part)}` {self.why}" if self.part else self.why


@dataclass(frozen=True, slots=True)
class Report:
    """What was found in a script: ``findings``, the words of each command in it, and the paths that it names."""

    findings: tuple[Finding, ...] = ()
    commands: tuple[tuple[str, ...], ...] = ()
    paths: tuple[str, ...] = ()

    def __add__(self, other: Report) -> Report:
        return Report(self.findings + other.findings, self.commands + other.commands, self.paths + other.paths)


Examiner = Callable[[str, "Ground"], Report]


@dataclass(frozen=True, slots=True)
class Ground:
    """What the rules know of a session: its workspace (absolute, or empty), what is read-only, how deep they are.

    ``shell`` and ``python`` examine a script in the other language that stands within the one at hand.
    """

    shell: Examiner
    python: Examiner
    workspace: str = ""
    read_only: GitIgnoreSpec = field(default_factory=lambda: GitIgnoreSpec.from_lines([]))
    depth: int = 0

    def deeper(self) -> Ground:
        """The ground of a script within this one."""
        return Ground(self.shell, self.python, self.workspace, self.read_only, self.depth + 1)


def words_in(text: str) -> frozenset[str]:
    """The words of a text, for long lists of names."""
    return frozenset(text.split())


def shorten(text: str, most: int = 160) -> str:
    """A text on one line, its middle left out where it is long."""
    line = " ".join(shown(text).split())
    return line if len(line) <= most else f"{line[: most - 60]} … {line[-50:]}"


def shown(text: str) -> str:
    """A text with ``…`` for what is only known when it runs."""
    return text.replace(UNKNOWN, "…").replace(PLAIN, "…").replace(OWN_PROCESS, "$!")


def joined(reports: Iterable[Report]) -> Report:
    """Several reports as one."""
    return sum(reports, Report())
