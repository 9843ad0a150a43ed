"""What a session has used, as a table: one row a task, one a turn of the last task, and the sum. Pure.

The figures are the providers'; what one of them did not say is unknown. ``%agent cost`` shows it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from harness_nb import events as ev
from harness_nb.budget import add_usage
from harness_nb.types import Usage
from harness_nb.ui import html
from harness_nb.ui.last_line import count_turns, dollars
from harness_nb.ui.publish import Bundle

COLUMNS = (
    ("in", "input_tokens", True),
    ("cached", "cached_input_tokens", False),
    ("to cache", "cache_write_tokens", False),
    ("out", "output_tokens", True),
    ("reasoning", "reasoning_tokens", False),
    ("searches", "searches", False),
)
"""Heading, figure, and whether it is shown although it is nothing in all rows."""

TITLE_CHARS = 40


@dataclass
class Task:
    """What one task took: a usage for each thing that a model was asked, with its label; the classifier's apart."""

    prompt: str
    rows: list[tuple[str, Usage]] = field(default_factory=list)
    judgements: list[Usage] = field(default_factory=list)
    turns: int = 0

    @property
    def usage(self) -> Usage:
        """The sum."""
        return sum_of([*(usage for _, usage in self.rows), *self.judgements])

    @property
    def unpriced(self) -> int:
        """How many of them have no known price."""
        return sum(usage.cost_usd is None for usage in [*(usage for _, usage in self.rows), *self.judgements])


def tasks_of(events: Iterable[ev.Event]) -> list[Task]:
    """The tasks of a session with what they took."""
    tasks: list[Task] = []
    for event in events:
        usage = ev.usage_of(event)
        if isinstance(event, ev.PromptAdded):
            tasks.append(Task(event.prompt))
        elif usage is not None and tasks:
            tasks[-1].turns += isinstance(event, ev.ModelReplied)
            if isinstance(event, ev.CallDecided):
                tasks[-1].judgements.append(usage)
            else:
                label = f"turn {event.turn}" if isinstance(event, ev.ModelReplied) else "summary"
                tasks[-1].rows.append((label, usage))
    return tasks


def cost_table(events: Iterable[ev.Event]) -> Bundle:
    """The table of a session's events."""
    tasks = [task for task in tasks_of(events) if task.rows]
    rows: list[tuple[str, Usage, int]] = []
    for number, task in enumerate(tasks, start=1):
        title = " ".join(task.prompt.split())
        title = title if len(title) <= TITLE_CHARS else title[: TITLE_CHARS - 1] + "…"
        rows.append((f"task {number}, {count_turns(task.turns)}: {title}", task.usage, task.unpriced))
    if tasks:
        rows += [(f"  {label}", usage, int(usage.cost_usd is None)) for label, usage in tasks[-1].rows]
        if judgements := tasks[-1].judgements:
            unpriced = sum(usage.cost_usd is None for usage in judgements)
            calls = f"{len(judgements)} call{'' if len(judgements) == 1 else 's'} judged"
            rows.append((f"  {calls}", sum_of(judgements), unpriced))
    turns, usage = sum(task.turns for task in tasks), sum_of(task.usage for task in tasks)
    rows.append((f"session, {count_turns(turns)}", usage, sum(task.unpriced for task in tasks)))
    columns = [(name, key) for name, key, always in COLUMNS if always or any(getattr(row[1], key) for row in rows)]
    headings = ["", *(name for name, _ in columns), "cost"]
    shown = [
        (label, *(_figure(getattr(usage, key)) for _, key in columns), _cost(usage, unpriced))
        for label, usage, unpriced in rows
    ]
    return html.table(headings, shown)


def sum_of(usages: Iterable[Usage]) -> Usage:
    """The sum, in which an unknown figure does not hide a known one."""
    total = Usage()
    for usage in usages:
        total = add_usage(total, usage)
    return total


def _figure(number: int | None) -> str:
    return "unknown" if number is None else f"{number:,}"


def _cost(usage: Usage, unpriced: int) -> str:
    """The cost; where some of it is not known, it says so, since the sum is then too low."""
    if usage.cost_usd is None or not unpriced:
        return dollars(usage.cost_usd)
    return f"{dollars(usage.cost_usd)} and {unpriced} of unknown cost"
