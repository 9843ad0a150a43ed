"""How an execution ended, from what is known of it: the reply, the payload, the process, and whether it was stopped.

``ToolKernel`` asks; the texts in ``detail`` are read by the model, so each is a clause or two that say what is lost and
what comes next. ``extra`` holds what ``outputs/status.py`` puts into its own words: ``timeout`` in seconds,
``names_lost``, ``words``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from harness_nb.context.names import describe_loss
from harness_nb.kernel.process import Death
from harness_nb.kernel.run import Run
from harness_nb.kernel.started import describe_death
from harness_nb.ports import ExecuteReply, Output
from harness_nb.types import JsonObject, Status

FRESH = "the next call starts a fresh kernel"
OWN_FRAME = re.compile(r"[/\\]ipykernel_\d+[/\\]\d+\.py")
"""A frame of a cell's own code in a stack that faulthandler prints, the innermost first."""
STATUS_OF_STOP = {"timeout": Status.TIMED_OUT, "interrupt": Status.INTERRUPTED, "closed": Status.INTERRUPTED}


def wants_to_exit(reply: JsonObject | None) -> bool:
    """Whether the code has asked the kernel to end: ``quit()`` answers "ok", and only the payload tells."""
    payload = (reply or {}).get("payload") or []
    return any(item.get("source") == "ask_exit" and not item.get("keepkernel") for item in payload)


def page_of(reply: JsonObject | None) -> Output | None:
    """What ``name?`` would show in a pager, as an output; the payload is the only place where it is."""
    for item in (reply or {}).get("payload") or []:
        if item.get("source") == "page" and item.get("data"):
            return Output("display_data", {"data": item["data"], "metadata": {}})
    return None


def reply_of(run: Run) -> ExecuteReply:
    """The reply of a cell that has finished, by itself or because it obeyed an interrupt."""
    content: JsonObject = run.execution.reply or {}
    failed = content.get("status") != "ok"
    names: dict[str, Any] = {
        "execution_count": run.execution.execution_count,
        "ename": content.get("ename") if failed else None,
        "evalue": content.get("evalue") if failed else None,
    }
    if run.stopped_by is None:
        detail = "the kernel did not run this cell" if content.get("status") == "aborted" else ""
        return ExecuteReply(Status.ERROR if failed else Status.OK, detail=detail, **names)
    detail = "" if failed else "the code handled the interrupt and ended by itself"
    return ExecuteReply(STATUS_OF_STOP[run.stopped_by], detail=detail, extra=_timeout_of(run), **names)


def killed_reply(run: Run, names: Sequence[JsonObject]) -> ExecuteReply:
    """The reply of a cell that did not obey an interrupt."""
    assert run.stopped_by is not None
    lost = f"{describe_loss(names)}; {FRESH}"
    detail = f"the code ignored the interrupt for {run.grace:g} s, so the kernel was killed; {lost}"
    return ExecuteReply(
        STATUS_OF_STOP[run.stopped_by],
        execution_count=run.execution.execution_count,
        detail=detail,
        extra={"names_lost": True, **_timeout_of(run)},
    )


def death_reply(run: Run, death: Death | None, names: Sequence[JsonObject]) -> ExecuteReply:
    """The reply of a cell whose kernel has died; ``death`` is ``None`` when the code itself ended it by ``quit()``."""
    count = run.execution.execution_count
    lost = f"{describe_loss(names)}; {FRESH}"
    if run.restarting:
        detail = f"the kernel was restarted while the cell ran; {lost}"
        return ExecuteReply(Status.INTERRUPTED, execution_count=count, detail=detail, extra={"names_lost": True})
    if death is None:
        detail = f"the code ended the kernel itself (quit or exit); {lost}"
        return ExecuteReply(Status.KERNEL_DIED, execution_count=count, detail=detail, extra={"names_lost": True})
    extra = {
        "names_lost": True,
        "exit_status": death.status,
        "signal": death.signal_name,
        "peak_bytes": death.peak,
        "words": _telling_words(death.words),
    }
    detail = f"{describe_death(death)}; {lost}"
    return ExecuteReply(Status.KERNEL_DIED, execution_count=count, detail=detail, extra=extra)


def _timeout_of(run: Run) -> dict[str, Any]:
    """The timeout, in seconds, where it is what stopped the cell."""
    return {"timeout": run.timeout} if run.stopped_by == "timeout" else {}


def _telling_words(words: str, count: int = 12) -> str:
    """The first lines of what the process printed at its end; of a stack, the frames down to those of the cell."""
    lines = words.strip().splitlines()
    own = [number for number, line in enumerate(lines) if OWN_FRAME.search(line)]
    return "\n".join(lines[: own[-1] + 1 if own else count][:count])
