"""``input()`` and ``getpass()`` where nobody can answer: an immediate error that says what to do instead.

ipykernel raises its own error in that case, whose text speaks of front-ends; a model cannot act on it. An answer that
is the end of a file (``EOFError``) says the same: nobody is there after all. Where somebody answers nothing changes.
Standard library only; runs in the tool kernel.
"""

from __future__ import annotations

import contextlib
import functools
from typing import Any

from harness_nb.tools.workspace import brief


def explain_missing_answers(kernel: Any) -> None:
    """Make ``kernel`` (ipykernel's) explain itself when tool code asks a question that nobody can answer."""
    for name in ("raw_input", "getpass"):
        ask = getattr(kernel, name, None)
        if ask is None or getattr(ask, "explains", False):
            continue
        setattr(kernel, name, _explaining(kernel, ask, "input" if name == "raw_input" else name))


def _explaining(kernel: Any, ask: Any, name: str) -> Any:
    @functools.wraps(ask)
    def asking(prompt: object = "", *args: Any, **arguments: Any) -> Any:
        if getattr(kernel, "_allow_stdin", True):
            with contextlib.suppress(EOFError):
                return ask(prompt, *args, **arguments)
        raise brief(_error_type()(_message(name, str(prompt))))

    asking.explains = True  # type: ignore[attr-defined]
    return asking


def _message(name: str, prompt: str) -> str:
    asked = f" to the question {prompt.strip()!r}" if prompt.strip() else ""
    return (
        f"nobody can answer {name}(){asked}: this kernel has no keyboard. "
        f"Put the value into the code, read it from a file, or pass it as an argument."
    )


def _error_type() -> type[Exception]:
    """IPython's own error for this case, so that code which catches it goes on working."""
    try:
        from ipykernel.kernelbase import StdinNotImplementedError  # type: ignore[attr-defined]
    except ImportError:
        return EOFError
    return StdinNotImplementedError
