"""The workspace: the folder that the tools work in and may not leave.

Every function of this package that takes a path calls ``resolve``. Standard library only; runs in the tool kernel.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, TypeVar

E = TypeVar("E", bound=BaseException)

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


def workspace(path: str = ".") -> None:
    """Enter the folder ``path`` and make it the root that paths may not leave.

    ``path`` is relative to the working directory at the first call, so that running the cell again is harmless.

    Raises:
        NotADirectoryError: if there is no such folder.
    """
    start = _places.setdefault("start", Path.cwd())
    folder = (start / path).resolve()
    if not folder.is_dir():
        raise brief(NotADirectoryError(f"there is no folder {path!r} (looked for {folder})"))
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
        raise brief(ValueError(f"{text!r} is not a path; give one relative to the workspace, like 'src/app.py'"))
    base = root()
    target = Path(os.path.realpath(base / text))
    if target != base and base not in target.parents:
        raise brief(PermissionError(f"{text!r} is outside the workspace; only paths inside it can be used"))
    return target


def shown(path: Path) -> str:
    """The path as the model writes it: relative to the workspace, with forward slashes."""
    base = root()
    return path.relative_to(base).as_posix() if path == base or base in path.parents else str(path)


def existing_file(path: str | os.PathLike[str]) -> Path:
    """Like ``resolve``, for a file that must be there.

    Raises:
        FileNotFoundError: if nothing is there; names near ones.
        IsADirectoryError: if it is a folder.
        ValueError: if it is something else, such as a pipe or a device.
    """
    target = resolve(path)
    if target.is_dir():
        raise brief(IsADirectoryError(f"{shown(target)!r} is a folder; list it with list_files({shown(target)!r})"))
    if not target.exists():
        raise brief(FileNotFoundError(f"there is no file {os.fspath(path)!r}{_near(target)}"))
    if not target.is_file():
        raise brief(ValueError(f"{shown(target)!r} is not a regular file and cannot be read"))
    return target


def _near(target: Path) -> str:
    """A hint at files of a like name, in the same folder first; empty when there is none."""
    import difflib

    folder = target.parent
    if not folder.is_dir():
        return f"; there is no folder {shown(folder)!r} either"
    names = sorted(entry.name for entry in folder.iterdir())[:2000]
    near = difflib.get_close_matches(target.name, names, n=3, cutoff=0.6)
    if not near:
        return f"; see list_files({shown(folder)!r})"
    return "; near names: " + ", ".join(shown(folder / name) for name in near)
