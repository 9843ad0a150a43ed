"""The files of a session through time: which version of each was there when, who made it, and its text if known. Pure.

Made from ``files_changed`` events; where a session has none, from what ``%%writefile`` cells, ``search_replace`` and
calls such as ``to_csv`` say.
"""

from __future__ import annotations

import ast
import posixpath
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Literal, Protocol

from harness_nb.events import UNKNOWN_CONTENT, FileChange
from harness_nb.export.mentions import CODE_SUFFIXES, first_words, shell_mentions
from harness_nb.export.reading import effects_of
from harness_nb.export.sharing import Knowledge
from harness_nb.export.source import call_arguments
from harness_nb.export.story import Step, Story

Blob = Callable[[str], bytes | None]
UNKNOWN = "?"
"""Begins the digest of a version whose content is not known."""

TEXT_BYTES = 200_000
"""The longest file that a ``%%writefile`` cell may hold, in bytes."""

_EDITING = frozenset(
    [
        "cat",
        "echo",
        "printf",
        "sed",
        "tee",
        "cp",
        "mv",
        "rm",
        "mkdir",
        "touch",
        "patch",
        "chmod",
        "cd",
        "true",
        "ln",
        "perl",
        "awk",
    ]
)
_JUNK = ("__pycache__", ".ipynb_checkpoints", ".pytest_cache", ".mypy_cache", ".ruff_cache", "harness_sessions", ".git")


class Disk(Protocol):
    """The workspace as it is now, for what the record does not hold."""

    def paths(self) -> Collection[str]:
        """The files there, relative, with ``/``."""

    def read(self, path: str) -> bytes | None:
        """The content of a file, ``None`` if there is none or it is too big."""

    def fact(self, path: str) -> tuple[int, str] | None:
        """Size in bytes and SHA-256 of a file."""


class NoDisk:
    """A workspace of which nothing is known."""

    def paths(self) -> Collection[str]:
        """None."""
        return ()

    def read(self, path: str) -> bytes | None:
        """Nothing."""
        return None

    def fact(self, path: str) -> tuple[int, str] | None:
        """Nothing."""
        return None


@dataclass(frozen=True)
class Version:
    """A state of a file. ``since`` is the number of the step that made it, -1 for what was there before.

    ``origin``: ``original`` and ``outside`` were made by others, ``edit`` by a cell that only writes text, ``run`` by a
    cell that must run to make it. ``digest`` is empty where there is no file, and begins with ``UNKNOWN`` where the
    hash is not known.
    """

    path: str
    index: int
    since: int
    digest: str
    size: int
    origin: Literal["original", "outside", "edit", "run"]
    content: bytes | None = field(default=None, repr=False)

    @property
    def text(self) -> str | None:
        """The content where a ``%%writefile`` cell can hold it."""
        if self.content is None or len(self.content) > TEXT_BYTES or b"\0" in self.content:
            return None
        try:
            return self.content.decode("utf-8")
        except UnicodeDecodeError:
            return None


class History:
    """All versions of all files that the session changed."""

    def __init__(self, story: Story, blob: Blob, disk: Disk) -> None:
        self.versions: dict[str, list[Version]] = {}
        self._blob, self._disk = blob, disk
        self._guessed: dict[str, bytes] = {}
        self.workspace = story.started.workspace if story.started else ""
        outside = list(story.outside)
        for step in story.steps:
            while outside and outside[0][0] <= step.number:
                self._change(outside.pop(0)[1], step.number - 1, "outside")
            changes = step.changes if story.files_known else list(self._guess(step))
            for change in changes:
                self._change(change, step.number, "edit" if is_edit(step, change.path) else "run")
        for _, change in outside:
            self._change(change, len(story.steps), "outside")
        self._finish()

    def known(self) -> set[str]:
        """Every path that the session or the disk knows."""
        return {*self.versions, *self._disk.paths()}

    def at(self, path: str, step: int) -> Version | None:
        """The version of a file that a step found when it began; ``None`` for a file that was never changed."""
        versions = self.versions.get(path)
        return next((one for one in reversed(versions) if one.since < step), versions[0]) if versions else None

    def final(self, path: str) -> Version:
        """The version that is left at the end."""
        return self.versions[path][-1]

    def content(self, path: str, step: int) -> bytes | None:
        """What a step could read in a file."""
        version = self.at(path, step)
        return version.content if version else self._disk.read(path)

    def _change(self, change: FileChange, since: int, origin: Literal["outside", "edit", "run"]) -> None:
        if is_junk(change.path):
            return
        versions = self.versions.setdefault(change.path, [])
        if not versions:
            unread = change.before in (UNKNOWN, UNKNOWN_CONTENT)
            content = self._blob(change.before) if change.before and not unread else None
            before = f"{UNKNOWN}0" if unread else change.before or ""
            versions.append(Version(change.path, 0, -1, before, len(content or b""), "original", content))
        content = self._guessed.pop(change.path, None)
        if content is None and change.after:
            content = self._blob(change.after)
        index = len(versions)
        digest = f"{UNKNOWN}{index}" if change.after in (UNKNOWN, UNKNOWN_CONTENT) else change.after or ""
        versions.append(Version(change.path, index, since, digest, change.size, origin, content))

    def _finish(self) -> None:
        """What is on the disk now fills a last version that the record does not hold."""
        for path, versions in self.versions.items():
            last = versions[-1]
            if last.content is None and last.digest and (content := self._disk.read(path)) is not None:
                fact = self._disk.fact(path)
                if last.digest.startswith(UNKNOWN) or (fact and fact[1] == last.digest):
                    digest = fact[1] if fact else last.digest
                    versions[-1] = Version(path, last.index, last.since, digest, len(content), last.origin, content)

    # ---- a record without files_changed

    def _guess(self, step: Step) -> Iterator[FileChange]:
        """The changes of a step as far as its source tells them."""
        if step.source.kind == "edit" and step.ok:
            path = posixpath.normpath(step.source.path)
            content = self._edited(step, path)
            self._guessed = {} if content is None else {path: content}
            before = UNKNOWN if step.tool == "search_replace" else self._now(path)
            yield FileChange(path=path, before=before, after=UNKNOWN, size=len(content or b""))
        elif step.source.kind == "shell":
            for path in {text for text, mode in shell_mentions(step.source.command) if mode in ("w", "a")}:
                if path and not path.startswith(("/", "$", "-")):
                    yield FileChange(path=posixpath.normpath(path), before=self._now(path), after=UNKNOWN)
        elif step.source.tree is not None:
            texts = [text for node in step.source.tree.body for text in _written(node)]
            for path in dict.fromkeys(texts):
                yield FileChange(path=posixpath.normpath(path), before=self._now(path), after=UNKNOWN)

    def _now(self, path: str) -> str | None:
        versions = self.versions.get(posixpath.normpath(path))
        return UNKNOWN if versions and versions[-1].digest else None

    def _edited(self, step: Step, path: str) -> bytes | None:
        """The content after an edit; ``None`` where the content before is not known."""
        versions = self.versions.get(path)
        old = versions[-1].content if versions else None
        text = step.source.text
        if text.startswith("%%"):
            first, _, body = text.partition("\n")
            added, append = (body + "\n").encode(), " -a " in f"{first} "
        else:
            arguments = call_arguments(text)
            if step.tool == "search_replace" and len(arguments) == 3:
                search, replace = (str(one).encode() for one in arguments[1:])
                return old.replace(search, replace, 1) if old is not None else None
            added, append = str(arguments[1]).encode() if len(arguments) > 1 else b"", arguments[2:3] == [True]
        return (old or b"") + added if append else added


def _written(node: ast.stmt) -> Iterator[str]:
    """Paths that a statement writes, by its calls and its constants."""
    effects = effects_of(node, Knowledge({}))
    for inner in [effects, *effects.bodies.values()]:
        for text, mode in inner.texts:
            if mode in ("w", "a") and "." in text and not set(text) & set("*\n :") and len(text) > 2:
                yield text


def is_edit(step: Step, path: str) -> bool:
    """Whether a step only wrote text into a file: then the text can be written without running the step."""
    if step.source.kind == "edit":
        return True
    commands = first_words(step.source.command) if step.source.kind == "shell" else []
    if commands and all(words and words[0] in _EDITING for words in commands):
        return True
    return not step.ok and step.source.kind == "shell" and path.endswith(CODE_SUFFIXES)


def is_junk(path: str) -> bool:
    """Whether a file is a by-product that no reader wants."""
    parts = path.split("/")
    return any(part in _JUNK for part in parts) or parts[-1].endswith((".pyc", "~", ".swp", ".DS_Store"))
