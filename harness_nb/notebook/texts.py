"""What the Markdown cells of a session notebook say, one function a kind of cell. The fold calls them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import PureWindowsPath

from harness_nb import events as ev
from harness_nb.notebook.prose import count, demote_headings, escape_line, fenced, inline_code, noted, quote, title_of
from harness_nb.outputs import format_seconds
from harness_nb.types import Part, TextPart, Usage

_REASONS = {
    "finished": "Finished",
    "limit": "Stopped at a limit",
    "rejected": "Stopped, the finish was not accepted",
    "denied": "Stopped, too many calls were denied",
    "model_error": "Stopped by an error of the model",
    "kernel_error": "Stopped by an error of the tool kernel",
    "interrupted": "Interrupted",
}


def title(first_prompt: str, started: ev.SessionStarted | None) -> str:
    """The head of the notebook: a title from the first prompt, and a line that says what this is."""
    heading = f"# {title_of(first_prompt)}"
    if started is None:
        return heading
    date = f", {_date(started.time)}" if started.time else ""
    return (
        f"{heading}\n\n"
        f"*Session of harness_nb with {inline_code(_short_model(started.model))}{date}. "
        "Every code cell is a call that the model made, with the outputs it got. The cells can be run again from top "
        "to bottom where harness_nb is installed; no model is called.*"
    )


def _short_model(spec: str) -> str:
    """A model spec, the file of a script by its name only: where it lay helps nobody who reads."""
    kind, _, name = spec.partition(":")
    return f"{kind}:{PureWindowsPath(name).name}" if kind == "scripted" else spec


def _date(time: str) -> str:
    try:
        return f"{datetime.fromisoformat(time).astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    except ValueError:
        return escape_line(time)


def task(prompt: str, number: int) -> str:
    """The user's words under a heading."""
    heading = "## Task" if number == 1 else f"## Task {number}"
    return f"{heading}\n\n{quote(prompt)}"


def reply(text: str) -> str:
    """The assistant's words, below the headings of the notebook."""
    return demote_headings(text)


def result(summary: str) -> str:
    """The words that ended the work."""
    return f"## Result\n\n{demote_headings(summary.strip())}"


def looked(event: ev.ResultAdded) -> str:
    """What a ``wait``, a ``rebuild`` or a ``web_fetch`` came to: the last line of its result."""
    lines = first_text(event.content).strip().splitlines() or [""]
    standing = lines[-1].removeprefix("[").removesuffix("]")
    if event.name == "web_fetch":
        return f"*Web page: {escape_line(_one_line(standing).removesuffix('.'))}.*"
    return f"*{'Waited' if event.name == 'wait' else 'Rebuilt'}: {_one_line(standing).removesuffix('.')}.*"


def nudge(event: ev.Nudged) -> str:
    """A word of the harness to the model."""
    return f"**Note to the model** ({escape_line(event.reason)}):\n\n{quote(event.text)}"


def warning(event: ev.Warned) -> str:
    """A word of the harness to the person."""
    return f"**Note:** {escape_line(_one_line(event.text))}"


def switched(event: ev.ModelSwitched) -> str:
    """Another model."""
    where = f", at {inline_code(event.base_url)}" if event.base_url else ""
    return f"*From here on with {inline_code(_short_model(event.model))}{where}.*"


def compacted(event: ev.ContextCompacted) -> str:
    """A compaction, in one line: the notebook has every cell all the same."""
    by = f" by {inline_code(_short_model(event.model))} ({', '.join(_usage(event.usage))})" if event.model else ""
    why = f": {escape_line(_one_line(event.reason))}" if event.reason else ""
    first = "first message was" if event.dropped == 1 else f"first {event.dropped:,} messages were"
    return f"*For the model, the {first} summarised{by}{why}. This notebook keeps everything.*"


def plan(event: ev.PlanUpdated) -> str:
    """The model's checklist. A step has its words under ``step``, ``text`` or ``title``, and a ``status``."""
    lines = []
    for step in event.steps:
        words = next((str(step[key]) for key in ("step", "text", "title") if step.get(key)), "")
        done = step.get("status") in ("done", "completed")
        running = " *(in progress)*" if step.get("status") == "in_progress" else ""
        lines.append(f"- [{'x' if done else ' '}] {escape_line(_one_line(words))}{running}")
    return "\n".join(["**Plan**", "", *lines])


def check(event: ev.CheckFinished) -> str:
    """One check: command, verdict, output."""
    ending = "" if event.passed or event.exit_code is None else f"exit code {event.exit_code}, "
    head = f"**Check {'passed' if event.passed else 'failed'}:** {inline_code(event.command)} "
    output = f"\n\n{fenced(event.output)}" if event.output.strip() else ""
    return f"{head}({ending}{format_seconds(event.elapsed)}){output}"


def rejected(event: ev.FinishRejected, claim: str) -> str:
    """A finish that did not count. What the model claimed is quoted."""
    reason = _one_line(event.reason.split("\n\n")[0]).removeprefix("The finish is refused, the work goes on.")
    text = f"**Finish refused:** {escape_line(reason)}" if reason else "**Finish refused.**"
    if event.final:
        text += " The work ends here."
    return f"{text}\n\nThe model had said:\n\n{quote(claim)}" if claim.strip() else text


def limit(event: ev.LimitReached) -> str:
    """A bound that stopped the work, until the session's end says the rest."""
    return f"**Limit reached:** {escape_line(_one_line(event.text or event.limit))}"


def ending(event: ev.SessionEnded, produced: str = "") -> str:
    """The last cell of one prompt's work: how it ended, and what it ``produced``."""
    head = _REASONS[event.reason]
    text = _one_line(event.text)
    told = f"**{head}:** {escape_line(text)}\n\n" if text else ""
    facts = [count(event.turns, "turn"), *_usage(event.usage)]
    line = f"{told}*{'' if told else head + ': '}{', '.join(facts)}, {format_seconds(event.elapsed)}.*"
    return f"{line}\n\n{produced}" if produced else line


def refusal(name: str, reason: str) -> str:
    """Why a call was not run; its source follows in a raw cell."""
    words = _one_line(reason).removeprefix("Not run: ")
    if re.match(r"[a-z]+ ", words):
        words = words[0].upper() + words[1:]
    return f"**Not run** ({inline_code(name)}): {escape_line(words)}"


def first_text(content: Sequence[Part]) -> str:
    """The first text of a result."""
    return next((part.text for part in content if isinstance(part, TextPart)), "")


def _usage(usage: Usage) -> list[str]:
    if usage.input_tokens is None and usage.output_tokens is None:
        tokens = "tokens unknown"
    else:
        cached = noted((usage.cached_input_tokens, "cached"), (usage.cache_write_tokens, "written to the cache"))
        read = "unknown" if usage.input_tokens is None else f"{usage.input_tokens:,}"
        written = "unknown" if usage.output_tokens is None else f"{usage.output_tokens:,}"
        tokens = f"{read} tokens in{cached} and {written} out{noted((usage.reasoning_tokens, 'reasoning'))}"
    searches = [f"{usage.searches:,} search{'' if usage.searches == 1 else 'es'}"] if usage.searches else []
    if usage.cost_usd is None:
        return [tokens, *searches, "cost unknown"]
    return [
        tokens,
        *searches,
        f"{usage.cost_usd:.{2 if usage.cost_usd >= 1 or usage.cost_usd == 0 else 4}f} USD",
    ]


def _one_line(text: str) -> str:
    return " ".join(text.split())
