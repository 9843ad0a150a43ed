"""The workspace: the folder that the tools work in and may not leave; and how its paths and errors are told.

Every function of this package that takes a path calls ``resolve``. Standard library only; runs in the tool kernel.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

E = TypeVar("E", bound=BaseException)

QUOTED_CHARACTERS = 200

_places: dict[str, Path] = {}


def brief(error: E) -> E:
    """The same error, which IPython then shows as one line instead of a traceback into this package.

    The model (and the person) reads what is wrong and the way out; the frames of the tool would only bury it. IPython
    asks an exception for ``_render_traceback_`` before it formats one itself.
    """

    def render(*_: Any) -> list[str]:
        return [f"{type(error).__name__}: {error}"]

    error._render_traceback_ = render  # type: ignore[attr-defined]
    return error


@contextmanager
def plainly(target: Path, done: str) -> Iterator[None]:
    """Within it, what the system objects to is told in one line that names ``target`` and what cannot be ``done``."""
    try:
        yield
    except OSError as error:
        if hasattr(error, "_render_traceback_"):
            raise
        why = (error.strerror or str(error)).lower()
        raise brief(type(error)(f"{quoted(shown(target))} cannot be {done}: {why}")) from None


def quoted(name: object) -> str:
    """A path, a name or a pattern in quotes, as it stands: a repr would double its backslashes."""
    text = str(name)
    short = text if len(text) <= QUOTED_CHARACTERS else text[:QUOTED_CHARACTERS] + "…"
    return f"'{short}'" if short.isprintable() else repr(short)


def workspace(path: str = ".") -> None:
    """Enter the folder ``path`` and make it the root that paths may not leave.

    ``path`` is relative to the working directory at the first call, so that running the cell again is harmless.

    Raises:
        NotADirectoryError: if there is no such folder.
    """
    start = _places.setdefault("start", Path.cwd())
    folder = (start / path).resolve()
    if not folder.is_dir():
        raise brief(NotADirectoryError(f"there is no folder {quoted(path)} (looked for {folder})"))
    _places["root"] = folder
    os.chdir(folder)


def root() -> Path:
    """The workspace folder, resolved; the working directory of the first use where ``workspace`` was not called."""
    return _places.setdefault("root", Path.cwd().resolve())


def resolve(path: str | os.PathLike[str]) -> Path:
    """The absolute path of ``path``, which is relative to the workspace, with symbolic links followed.

    Raises:
        PermissionError: if it leads out of the workspace.
        ValueError: if it is empty or holds a NUL character.
    """
    text = os.fspath(path)
    if not text.strip() or "\0" in text:
        raise brief(ValueError(f"{quoted(text)} is not a path; give one relative to the workspace, like 'src/app.py'"))
    base = root()
    target = Path(os.path.realpath(base / text))
    if _within(target):
        return target
    if _within(Path(os.path.normpath(base / text))):
        raise brief(PermissionError(f"{quoted(text)} leads outside the workspace by a link; only paths inside it work"))
    raise brief(PermissionError(f"{quoted(text)} is outside the workspace; only paths inside it work"))


def _within(path: Path) -> bool:
    base = root()
    return path == base or base in path.parents


def shown(path: Path) -> str:
    """The path as the model writes it: relative to the workspace, with forward slashes."""
    return path.relative_to(root()).as_posix() if _within(path) else str(path)


def named(folder: Path) -> str:
    """A folder in a sentence: ``'src'``, or ``the workspace``."""
    return "the workspace" if folder == root() else quoted(shown(folder))


def counted(number: int, noun: str) -> str:
    """``1 line``, ``1,234 lines``, ``2 entries``: a count for people. (Numbers to be typed again have no commas.)"""
    plural = noun if number == 1 else f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {plural}"
