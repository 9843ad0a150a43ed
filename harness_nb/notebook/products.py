"""What the work on one prompt produced: the files it left behind, on which machine, and how long its longest cell took.

``NotebookFold`` hands it every event and puts its words under the end of a prompt's work, so that a trained model can
be told from another of its name years later.
"""

from __future__ import annotations

from pathlib import PurePosixPath

from harness_nb import events as ev
from harness_nb.notebook.prose import count, escape_line, inline_code
from harness_nb.outputs import format_bytes, format_seconds
from harness_nb.types import JsonObject

ROWS = 12
DIGEST_CHARS = 12

CHECKPOINTS = (
    *(".pt", ".pth", ".ckpt", ".safetensors", ".keras", ".h5", ".hdf5", ".npz", ".onnx", ".gguf"),
    *(".pkl", ".pickle", ".joblib"),
)
"""Suffixes of trained models and their like, which are named first."""

_OUTSIDE = "outside"


class Products:
    """The files that calls have written since the last prompt and that are still there, and the longest cell."""

    def __init__(self) -> None:
        self._environment: JsonObject = {}
        self._before: dict[str, str | None] = {}
        self._files: dict[str, ev.FileChange] = {}
        self._longest: ev.CellFinished | None = None

    def apply(self, event: ev.Event) -> None:
        """Take note of an event; most say nothing here."""
        match event:
            case ev.SessionStarted():
                self._environment = event.environment
            case ev.PromptAdded():
                self._before, self._files, self._longest = {}, {}, None
            case ev.CellFinished():
                if self._longest is None or event.elapsed > self._longest.elapsed:
                    self._longest = event
            case ev.FilesChanged():
                for change in event.changes:
                    self._take(change, event.name == _OUTSIDE)
            case _:
                pass

    def describe(self) -> str:
        """A table of the files, and a line on machine and time; empty when nothing was written."""
        files = sorted(self._files.values(), key=lambda file: (not _is_checkpoint(file.path), file.path))
        if not files:
            return ""
        rows = [f"| {_cell(file.path)} | {format_bytes(file.size)} | {_digest(file.after)} |" for file in files[:ROWS]]
        rest = files[ROWS:]
        if rest:
            rows.append(f"| and {count(len(rest), 'more file')} | {format_bytes(sum(f.size for f in rest))} | |")
        head = "| written | size | SHA-256 |\n|---|---:|---|"
        about = ". ".join(part for part in (self._machine(), self._time()) if part)
        return "\n".join([head, *rows]) + (f"\n\n*{about}.*" if about else "")

    def _take(self, change: ev.FileChange, by_others: bool) -> None:
        if by_others and change.path not in self._files:
            return
        before = self._before.setdefault(change.path, change.before)
        if change.after is None or (change.after == before and before != ev.UNKNOWN_CONTENT):
            self._files.pop(change.path, None)
        else:
            self._files[change.path] = change

    def _machine(self) -> str:
        """``On 2 processor cores, 8 GiB memory, no GPU, Python 3.12.1 on Linux x86_64``, as far as it is known."""
        known = {name: str(value).strip() for name, value in self._environment.items()}
        cores, memory, gpu, python = (known.get(name, "") for name in ("Processor cores", "Memory", "GPU", "Python"))
        parts = []
        if cores:
            parts.append(f"{cores} processor core{'' if cores == '1' else 's'}")
        if memory and memory != "unknown":
            parts.append(f"{memory} memory")
        if gpu:
            parts.append(f"GPU {gpu}" if not gpu.startswith("none") else "no GPU")
        if python:
            parts.append(f"Python {python}")
        return f"On {escape_line(', '.join(parts))}" if parts else ""

    def _time(self) -> str:
        cell = self._longest
        if cell is None:
            return ""
        number = "" if cell.execution_count is None else f" (number {cell.execution_count})"
        return f"The longest cell{number} took {format_seconds(cell.elapsed)}"


def _is_checkpoint(path: str) -> bool:
    return PurePosixPath(path).suffix.lower() in CHECKPOINTS


def _cell(path: str) -> str:
    """A path in a cell of a table; a bar would end the cell, in code too (GitHub Flavored Markdown, 4.10)."""
    return inline_code(path).replace("|", "\\|")


def _digest(digest: str | None) -> str:
    return "not read" if digest is None or digest == ev.UNKNOWN_CONTENT else f"`{digest[:DIGEST_CHARS]}`"
