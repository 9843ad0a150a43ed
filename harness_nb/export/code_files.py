"""Code that lies in files of the workspace: what it imports and what files it names, as a step found it. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from harness_nb.export.effects import Effects
from harness_nb.export.history import History
from harness_nb.export.mentions import module_files, shell_mentions
from harness_nb.export.reading import effects_of
from harness_nb.export.sharing import Knowledge
from harness_nb.export.source import parse_cell

READ_BYTES = 1_000_000
"""Longer files are not read as code."""


class CodeFiles:
    """The modules and scripts of a workspace, in the versions of ``history``."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._known = history.known()
        self._read: dict[tuple[str, bytes], list[Effects]] = {}

    def closure(self, files: Iterable[str], step: int) -> set[str]:
        """Code files and the workspace's modules that they import, and so on."""
        waiting, seen = list(files), set()
        while waiting:
            path = waiting.pop()
            if path in seen or path not in self._known:
                continue
            seen.add(path)
            for effects in self.effects_in(path, step):
                for dotted in {*effects.dotted, *effects.imports.values()}:
                    waiting += module_files(_absolute(dotted, path), self._known)
        return seen

    def imports_in(self, path: str, step: int) -> set[str]:
        """The dotted names that a code file imports, as it was before a step."""
        return {dotted for effects in self.effects_in(path, step) for dotted in effects.imports.values()}

    def effects_in(self, path: str, step: int) -> list[Effects]:
        """What the statements, functions and classes of a code file do, as it was before a step."""
        content = self._history.content(path, step)
        if content is None or len(content) > READ_BYTES:
            return []
        key = (path, content)
        if key not in self._read:
            self._read[key] = _read_code(path, content.decode("utf-8", "replace"))
        return self._read[key]


def _read_code(path: str, text: str) -> list[Effects]:
    if path.endswith(".sh"):
        return [Effects(texts=shell_mentions(text))]
    tree = parse_cell(text)[0] if path.endswith(".py") else None
    found = [effects_of(node, Knowledge({})) for node in tree.body] if tree else []
    return [*found, *(body for one in found for body in one.bodies.values())]


def _absolute(dotted: str, path: str) -> str:
    """A relative import as seen from the workspace."""
    level = len(dotted) - len(dotted.lstrip("."))
    if not level:
        return dotted
    folder = path.split("/")[:-level]
    return ".".join([*folder, dotted.lstrip(".")]).strip(".")
