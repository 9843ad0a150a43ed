"""The namespace manifest: which names tool code has defined, what they are, and which cell made them.

The kernel's owner keeps the last one, so that it can say what is lost when the kernel dies; the launcher sets it up.
 Only cheap and harmless questions are put to the values: type, length of built-in containers, shape of
arrays and tables of known libraries. Standard library only; runs in the tool kernel.
"""

from __future__ import annotations

import types
from typing import Any

LISTED = 200
SHAPED = {"numpy", "pandas", "torch", "scipy", "polars", "jax", "jaxlib", "tensorflow", "xarray", "cupy", "dask", "PIL"}
SOURCE = "harness_nb.names"
SIZED = (str, bytes, bytearray, list, tuple, dict, set, frozenset, range)


def report_names(shell: Any) -> None:
    """Have ``shell`` (``ZMQInteractiveShell``) send the manifest with the reply of each cell, whether it failed or not.

    It travels as a payload of the execute reply, which front-ends that do not know its source pass over.
    """
    made: dict[str, tuple[int, int]] = {}

    def send(result: Any) -> None:
        rows = manifest(shell.user_ns, shell.user_ns_hidden, shell.execution_count - 1, made)
        shell.payload_manager.write_payload({"source": SOURCE, "names": rows}, single=True)

    shell.events.register("post_run_cell", send)


def manifest(
    namespace: dict[str, Any], hidden: Any, cell: int, made: dict[str, tuple[int, int]]
) -> list[dict[str, Any]]:
    """The user's names, the latest first: ``name``, ``type``, ``size`` (a text) and ``cell`` (an execution count).

    ``made`` remembers which value a name had and which cell gave it; it is brought up to date with ``cell``.
    """
    names = [name for name in list(namespace) if not name.startswith("_") and name not in hidden]
    for name in set(made) - set(names):
        del made[name]
    rows: list[dict[str, Any]] = []
    for name in names:
        value = namespace[name]
        if name not in made or made[name][0] != id(value):
            made[name] = (id(value), cell)
        rows.append({"name": name, "type": _type_of(value), "size": _size_of(value), "cell": made[name][1]})
    rows.sort(key=lambda row: -row["cell"])
    return rows[:LISTED]


def _type_of(value: Any) -> str:
    if issubclass(type(value), types.ModuleType):
        return "module"
    if issubclass(type(value), type):
        return "class"
    return type(value).__name__


def _size_of(value: Any) -> str:
    """``1000 x 5 float64``, ``12``, or nothing where asking might cost time or have effects."""
    if type(value) in SIZED:
        return f"{len(value)}"
    if type(value).__module__.split(".")[0] not in SHAPED:
        return ""
    try:
        shape: Any = getattr(value, "shape", None) or getattr(value, "size", ())
        kind = getattr(value, "dtype", "")
        return f"{' x '.join(str(length) for length in shape)} {kind}".strip()
    except Exception:
        return ""
