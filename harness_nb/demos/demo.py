"""What a demo is: a workspace that can be prepared, and acts that are played in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from harness_nb.errors import UsageError

DATA = Path(__file__).parent
"""The folder below which the demos keep their data files."""

MARK = ".harness-nb-demo"
"""A file in the workspace of a demo that holds the demo's name: what is there may be written over."""

Prepare = Callable[[Path, Mapping[str, str]], list[str]]


@dataclass(frozen=True, slots=True)
class Act:
    """One session of a demo: a task, the script that a scripted model plays, and how it has to end.

    ``checks`` are shell commands for the workspace, ``read_only`` gitignore patterns, ``expected`` is the reason in
    ``SessionEnded``.
    """

    title: str
    task: str
    script: Path
    checks: tuple[str, ...]
    read_only: tuple[str, ...]
    max_turns: int
    expected: Literal["finished", "limit", "rejected", "denied", "model_error", "kernel_error", "interrupted"]


@dataclass(frozen=True, slots=True)
class Demo:
    """A demo. ``summary`` is one line for people.

    ``prepare(workspace, environment)`` puts the demo's files into an existing folder that is empty or was
    prepared before, as if the demo had never run there, and returns notes for the person. It raises ``UsageError``,
    before it writes anything, where something that the demo needs is not here. ``acts(workspace)`` are its
    sessions, in order.
    """

    name: str
    summary: str
    prepare: Prepare
    acts: Callable[[Path], tuple[Act, ...]]


def claim_workspace(workspace: Path, name: str) -> None:
    """Make sure that ``workspace`` is the demo's own, and mark it: a demo writes over files, but never over a user's.

    Raises:
        UsageError: if the folder holds anything and bears no mark of this demo.
    """
    mark = workspace / MARK
    owner = mark.read_text("utf-8").strip() if mark.is_file() else None
    others = [entry.name for entry in workspace.iterdir() if entry.name != "harness_sessions"]
    if owner != name and others:
        holds = f"is the workspace of the demo {owner}" if owner else f"holds other files ({sorted(others)[0]}, …)"
        raise UsageError(
            f"{workspace} {holds}. Give an empty folder with --dir; the demo {name} writes its files there."
        )
    mark.write_text(f"{name}\n", "utf-8")
