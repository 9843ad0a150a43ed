"""Code that lies in files of the workspace: what it imports, names, runs and changes, as a step found it. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from harness_nb.export.effects import STAR, Effects
from harness_nb.export.history import History
from harness_nb.export.mentions import module_files, shell_mentions
from harness_nb.export.reading import effects_of
from harness_nb.export.sharing import Knowledge
from harness_nb.export.source import parse_cell

READ_BYTES = 1_000_000
"""Longer files are not read as code."""


@dataclass(frozen=True)
class _Code:
    """One file: the effects of its statements, and those of its functions and classes by name."""

    top: list[Effects]
    parts: dict[str, Effects]


class CodeFiles:
    """The modules and scripts of a workspace, in the versions of ``history``."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._known = history.known()
        self._read: dict[tuple[str, bytes], _Code] = {}

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
        code = self._code(path, step)
        return [*code.top, *code.parts.values()]

    def statements_in(self, path: str, step: int) -> list[Effects]:
        """What happens when a code file runs, without what it defines."""
        return self._code(path, step).top

    def _code(self, path: str, step: int) -> _Code:
        content = self._history.content(path, step)
        if content is None or len(content) > READ_BYTES:
            return _Code([], {})
        key = (path, content)
        if key not in self._read:
            self._read[key] = _read_code(path, content.decode("utf-8", "replace"))
        return self._read[key]

    # ---- what a call into a module runs

    def bodies_run(
        self, dotted: Iterable[str], called: Collection[str], kinds: Iterable[tuple[str, str]], step: int
    ) -> list[tuple[str, Effects]]:
        """The functions and classes of the workspace's modules, each with its file, that dotted names and objects run.

        ``called`` are those of the names that are called, ``kinds`` the objects: (file of the class, its name).
        """
        waiting = [one for name in dotted for one in self._named(name, name in called, step)] + list(kinds)
        found: dict[tuple[str, str], Effects] = {}
        while waiting:
            path, name = waiting.pop()
            body = self._code(path, step).parts.get(name)
            if body is None or (path, name) in found:
                continue
            found[path, name] = body
            waiting += [(path, other) for other in body.uses]
            for other in body.dotted:
                waiting += self._named(_absolute(other, path), True, step)
        return [(path, body) for (path, _), body in found.items()]

    def _named(self, dotted: str, called: bool, step: int, depth: int = 5) -> list[tuple[str, str]]:
        """(file, name) of what a dotted name means; everything in the file where that cannot be told of a call."""
        words = [] if dotted.startswith(".") else dotted.split(".")
        for count in range(len(words) - 1, 0, -1):
            module, name = ".".join(words[:count]), words[count]
            paths = module_files(module, self._known) - module_files(".".join(words[: count - 1]), self._known)
            for path in paths:
                code = self._code(path, step)
                meant = next((one.imports[name] for one in code.top if name in one.imports), "")
                if meant and depth:
                    return self._named(".".join([_absolute(meant, path), *words[count + 1 :]]), called, step, depth - 1)
                return [(path, name)] if name in code.parts else [(path, one) for one in code.parts if called]
        return []

    def changes_inside(self, path: str, body: Effects, step: int) -> tuple[bool, bool]:
        """Whether a function or class of a file changes what the file has bound: for sure, and perhaps."""
        code = self._code(path, step)
        own = {name for one in code.top for name in one.binds}
        return bool((body.changes | body.binds) & own), bool(body.touches & (own - set(code.parts)))


def _read_code(path: str, text: str) -> _Code:
    if path.endswith(".sh"):
        return _Code([Effects(texts=shell_mentions(text))], {})
    tree = parse_cell(text)[0] if path.endswith(".py") else None
    body = tree.body if tree else []
    imports = {name: dotted for node in body for name, dotted in effects_of(node, Knowledge({})).imports.items()}
    top = [
        effects_of(node, Knowledge({name: dotted for name, dotted in imports.items() if name != STAR})) for node in body
    ]
    return _Code(top, {name: part for one in top for name, part in one.bodies.items()})


def _absolute(dotted: str, path: str) -> str:
    """A relative import as seen from the workspace."""
    level = len(dotted) - len(dotted.lstrip("."))
    if not level:
        return dotted
    folder = path.split("/")[:-level]
    return ".".join([*folder, dotted.lstrip(".")]).strip(".")
