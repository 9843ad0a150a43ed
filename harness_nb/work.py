"""What the loop works with. The session puts it together; it imports the ports and the pure layers only."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field

from harness_nb import events as ev
from harness_nb.cells import Cells
from harness_nb.consent import Grants
from harness_nb.context import Conversation
from harness_nb.past import Spent
from harness_nb.policy import Rule
from harness_nb.policy.judging import Thresholds
from harness_nb.ports import Approver, Delta, ExecuteReply, Judge, Model, ModelSettings, Output
from harness_nb.toolset import Toolset
from harness_nb.types import Limits

Fetch = Callable[[str], AsyncGenerator[Output | ExecuteReply]]
"""Brings the page at a URL, as a kernel gives the outputs of a cell."""

Item = ev.Event | Delta
"""What the loop yields: events for everyone, deltas for the screen."""


@dataclass(frozen=True, slots=True)
class Work:
    """The parts of one prompt's work. ``clock`` gives seconds and only ever goes forward.

    ``spent`` is what the same prompt had taken before its work was cut off. ``small`` is a cheaper model for summaries,
    where one is set. ``judge`` is the classifier, where there is one, with its ``thresholds``; the user's words that it
    is told are those of ``conversation``. ``window`` is the context window of ``model`` in tokens as the person says
    it, ``None`` where the model is to be asked. ``grants`` is what a person has allowed in the session, kept up
    to date by whoever iterates over the loop. ``fetch`` brings pages of the web, where the session has that tool.
    ``tag`` marks what checks print as data.
    """

    system: str
    model: Model
    cells: Cells
    tools: Toolset
    rules: Sequence[Rule]
    approver: Approver
    gate: Callable[[], AsyncGenerator[ev.CheckFinished]]
    clock: Callable[[], float]
    limits: Limits
    settings: ModelSettings
    spent: Spent = field(default_factory=Spent)
    small: Model | None = None
    window: int | None = None
    judge: Judge | None = None
    thresholds: Thresholds = field(default_factory=Thresholds)
    conversation: Conversation | None = None
    fetch: Fetch | None = None
    grants: Grants = field(default_factory=Grants)
    tag: str = ""
