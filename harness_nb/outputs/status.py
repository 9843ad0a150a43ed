"""How the execution of a call ended, in one line for the model, and which outputs that line makes superfluous.

``content`` uses it. Calls of ``bash`` and of the file tools raise Python exceptions in the tool kernel, so that a
re-run of the notebook stops there; the model, which wrote no Python, is told the exit status, or the words alone. It
imports only its neighbours in ``outputs``, types and ports.
"""

from __future__ import annotations

import re

from harness_nb.outputs.bounds import format_seconds
from harness_nb.outputs.items import DisplayItem, StreamItem
from harness_nb.ports import ExecuteReply
from harness_nb.types import Status

_BASH_FAILED = re.compile(r"bash (?:exited with (?P<status>status \d+)|(?P<killed>was killed by [\w ]+))\Z")
_BASH_ENDED = "bash and what it had started were ended"
_LONGEST_TIMEOUT = 3600
_STOPPED = (Status.TIMED_OUT, Status.INTERRUPTED)
_WITH_TIMEOUT = ("python", "bash")
_PYTHON = ("python", "wait", "")
"""Tools whose errors are those of code that the model wrote, or may be."""


def told_by_status(item: DisplayItem | StreamItem, reply: ExecuteReply, tool: str) -> bool:
    """Whether an output is an error that says, in Python's words, what the status line says: how bash ended.

    For other tools that are no Python, also the traceback of an interrupt.
    """
    if not isinstance(item, DisplayItem) or item.kind != "error":
        return False
    if reply.status in _STOPPED and reply.ename == "KeyboardInterrupt" and tool not in _PYTHON:
        return True
    same = (item.output.get("ename"), item.output.get("evalue")) == (reply.ename, reply.evalue)
    return same and (_bash_failure(reply) is not None or _is_bash_stopped(reply))


def words_of_refusal(item: DisplayItem | StreamItem, tool: str) -> str:
    """What a file tool says of itself in an error of one part, without Python's name for it; else empty."""
    if not isinstance(item, DisplayItem) or item.kind != "error" or tool in _PYTHON:
        return ""
    name, parts = f"{item.output.get('ename')}: ", item.output.get("traceback", [])
    text = "".join(map(str, item.reading()[::2]))
    return text.removeprefix(name) if len(parts) == 1 and text.startswith(name) else ""


def _bash_failure(reply: ExecuteReply) -> re.Match[str] | None:
    if reply.status is not Status.ERROR or reply.ename != "CalledProcessError":
        return None
    return _BASH_FAILED.match(reply.evalue or "")


def _is_bash_stopped(reply: ExecuteReply) -> bool:
    return reply.status in _STOPPED and (reply.ename, reply.evalue) == ("KeyboardInterrupt", _BASH_ENDED)


def status_line(reply: ExecuteReply, elapsed: float, *, shown: bool = True, tool: str = "", remark: str = "") -> str:
    """How the execution ended, in brackets: ``[ok, 0.4 s]``, ``[error: KeyError, 0.1 s]``, ``[exit status 1, 0.2 s]``.

    ``elapsed`` is in seconds, ``shown`` says whether there is output above the line, ``tool`` is the name of the tool
    that was called, ``remark`` is added at the end.
    """
    time, detail = format_seconds(elapsed), " ".join(reply.detail.split()).removesuffix(".")
    match reply.status:
        case Status.OK:
            parts = [f"ok, {time}", detail]
        case Status.ERROR:
            parts = [f"{_failure(reply, tool)}, {time}", detail]
        case Status.TIMED_OUT | Status.INTERRUPTED:
            ended, kept = _stopped(reply, time)
            until = "so far" if reply.status is Status.TIMED_OUT else "until then"
            parts = [ended, f"the output {until} is above" if shown else "", detail, kept, _advice(reply, tool)]
        case Status.RUNNING:
            parts = [f"still running after {time}", "its new output is above" if shown else "no new output", detail]
        case Status.KERNEL_DIED:
            parts = [f"kernel died after {time}", "the last output is above" if shown else "", detail]
        case Status.DENIED:
            parts = [f"denied: {detail or 'it was not run'}"]
        case Status.UNKNOWN:
            parts = [f"outcome unknown: {detail or 'no reply was recorded'}"]
    return f"[{'; '.join(part for part in (*parts, remark) if part)}]"


def _failure(reply: ExecuteReply, tool: str) -> str:
    failed = _bash_failure(reply)
    if failed is not None:
        return f"exit {failed['status']}" if failed["status"] else f"bash {failed['killed']}"
    return f"error: {reply.ename}" if reply.ename and tool in _PYTHON else "error"


def _stopped(reply: ExecuteReply, time: str) -> tuple[str, str]:
    """What a timeout or an interrupt did to the call, and what is left of it."""
    timeout = reply.extra.get("timeout")
    ended = f"timed out after {f'{timeout:g} s' if timeout else time}"
    if reply.status is Status.INTERRUPTED:
        ended = f"interrupted after {time}"
    if _is_bash_stopped(reply):
        return f"{ended} and was ended, with all it had started", ""
    return ended, "" if reply.extra.get("names_lost") else "the kernel lives on with its names"


def _advice(reply: ExecuteReply, tool: str) -> str:
    """What to do after a timeout. Only ``python`` and ``bash`` take one; the other tools have a fixed one."""
    if reply.status is not Status.TIMED_OUT or not tool:
        return ""
    if tool in _WITH_TIMEOUT:
        return f"pass a larger timeout (at most {_LONGEST_TIMEOUT}) if it needs longer"
    return "ask for less at once"
