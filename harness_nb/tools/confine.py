"""Runs a command under limits that it cannot lift again: resources, Landlock, a filter of system calls.

The harness starts it by path, inside the sandbox or in its place, with ``python -I -S``::

    confine.py ORDER COMMAND [ARGUMENT …]

ORDER is JSON: ``folders`` (to be made), ``environment`` (variables to be set), ``before`` (a command that is started
first and goes on), ``limits`` (names of setrlimit(2) without RLIMIT_, and numbers), ``landlock`` (``readable``,
``writable``, ``tcp``), ``filter`` (``network``). A part that is missing is not done. Standard library only; what cannot
be done ends the command before it starts, so the harness must have found out what can be done here.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import types
from contextlib import suppress
from pathlib import Path
from typing import Any

TOOLS = Path(__file__).resolve().parent
OUT_OF_MEMORY_SCORE = 500
"""When memory runs out, the system ends this before the person's own programs: proc(5), oom_score_adj."""

READY_SECONDS = 10.0


def limit(name: str, most: int) -> None:
    """Set a limit for good, but not above what holds already."""
    import resource

    kind = getattr(resource, f"RLIMIT_{name}", None)
    if kind is None:
        return
    hard = resource.getrlimit(kind)[1]
    kept = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (kept, kept))


def start_before(command: list[str]) -> None:
    """Start what goes on beside, and wait until it has written a line or closed its output, ten seconds at most.

    It is no child of this process, which becomes the kernel: tool code that waits for its children would wait for it.
    """
    import select

    reading, writing = os.pipe()
    if not (child := os.fork()):
        with suppress(OSError):
            subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=writing, start_new_session=True)
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as ready:
        if select.select([ready], [], [], READY_SECONDS)[0] and ready.readline():
            return
    raise OSError(f"{command[0]} was to be started before the kernel and did not say that it is ready")


def confine(order: dict[str, Any]) -> None:
    """Take on what the order says; nothing of it can be undone."""
    for folder in order.get("folders", ()):
        Path(folder).mkdir(parents=True, exist_ok=True)
    os.environ.update(order.get("environment", {}))
    if order.get("before"):
        start_before(order["before"])
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(str(OUT_OF_MEMORY_SCORE))
    for name, most in order.get("limits", {}).items():
        limit(name, most)
    if order.get("landlock") or order.get("filter"):
        make_tools_importable()
        from harness_nb.tools import landlock, syscall_filter

        if rules := order.get("landlock"):
            landlock.restrict(rules["readable"], rules["writable"], tcp=rules["tcp"])
        else:
            landlock.forgo_privileges()
        if "filter" in order:
            syscall_filter.install(network=order["filter"]["network"])


def make_tools_importable() -> None:
    """``harness_nb.tools`` from this folder, in a package that has nothing else."""
    package = types.ModuleType("harness_nb")
    package.__path__ = [str(TOOLS.parent)]
    sys.modules["harness_nb"] = package


def main() -> None:
    """Confine this process and become the command."""
    order, command = json.loads(sys.argv[1]), sys.argv[2:]
    try:
        confine(order)
    except (OSError, ValueError) as error:
        print(f"the sandbox could not be closed, so nothing was started: {error}", file=sys.stderr)
        sys.exit(126)
    with suppress(OSError):
        os.setpgid(0, 0)  # of its own, so that an interrupt reaches what it starts
    for name in ("SIGPIPE", "SIGXFSZ"):  # Python ignores them, and what is ignored stays so
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)
        sys.exit(127)


if __name__ == "__main__":
    main()
