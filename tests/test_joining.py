"""A journal and a session notebook put together: nothing that one of them has is lost, nothing comes in twice."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from harness_nb import events as ev
from harness_nb.joining import joined
from harness_nb.notebook import NotebookFold, events_of
from harness_nb.past import renumbered
from harness_nb.types import Decision, Message, Status, ToolCall, text_content

ALLOW = Decision(verdict="allow", reason="", policy="p")


def step(call_id: str, *printed: str) -> list[ev.Event]:
    call = ToolCall(call_id=call_id, name="python", arguments={"code": call_id})
    outputs = [{"output_type": "display_data", "data": {"text/plain": text}, "metadata": {}} for text in printed]
    return [
        ev.ModelRequested(turn=1, model="m", messages=2),
        ev.ModelReplied(turn=1, message=Message(role="assistant", tool_calls=(call,))),
        ev.CallDecided(call_id=call_id, name="python", call=call, source=call_id, decision=ALLOW),
        ev.CellStarted(call_id=call_id, name="python", source=call_id),
        *(ev.CellOutput(call_id=call_id, name="python", output=output) for output in outputs),
        ev.CellFinished(call_id=call_id, name="python", status=Status.OK, execution_count=2),
        ev.ResultAdded(call_id=call_id, name="python", status=Status.OK, content=text_content(call_id)),
    ]


def stamped(events: Sequence[ev.Event]) -> list[ev.Event]:
    return [
        event.model_copy(update={"seq": seq, "time": f"2026-01-01T00:00:{seq:02}.000+00:00"})
        for seq, event in enumerate(events, start=1)
    ]


STORY = stamped(
    [ev.PromptAdded(prompt="Go."), *step("a", "1", "2"), *step("b", "3"), *step("c"), ev.SessionEnded(reason="limit")]
)


def notebook(events: Sequence[ev.Event]) -> list[ev.Event]:
    fold = NotebookFold("s")
    for event in events:
        fold.apply(event)
    return events_of(fold.notebook())


def told(events: Sequence[ev.Event]) -> list[tuple[str, str, str]]:
    """Which events, in which order, and what was printed."""
    return [(event.type, str(getattr(event, "call_id", "")), str(getattr(event, "output", ""))) for event in events]


@pytest.mark.parametrize("seed", range(40))
def test_what_a_journal_lacks_comes_from_the_notebook(seed: int) -> None:
    rng = random.Random(seed)
    kept = [event for event in STORY if rng.random() < rng.choice([0.3, 0.9])]
    assert told(joined(kept, notebook(STORY))) == told(STORY)


@pytest.mark.parametrize("seed", range(40))
def test_a_journal_that_was_numbered_anew_is_told_by_its_events(seed: int) -> None:
    """A crash between the writing of the journal and of the notebook leaves the old numbers in the notebook."""
    rng = random.Random(seed)
    lost = rng.sample([event for event in STORY if not isinstance(event, ev.CellOutput)], 4)
    whole = renumbered([event for event in STORY if event not in lost])
    assert joined(whole, notebook([event for event in STORY if event not in lost])) == whole
    assert told(joined(whole, notebook(STORY))) == told(STORY)


def test_a_journal_that_ends_before_the_notebook_goes_on_with_it() -> None:
    for length in range(1, len(STORY)):
        assert told(joined(STORY[:length], notebook(STORY))) == told(STORY)


def test_a_notebook_that_lags_takes_nothing_away() -> None:
    for length in range(len(STORY) + 1):
        assert joined(STORY, notebook(STORY[:length])) == STORY
    holed = [event for event in STORY if not (isinstance(event, ev.CellOutput) and "'1'" in str(event.output))]
    before_the_end_of_a = next(at for at, event in enumerate(STORY) if isinstance(event, ev.CellFinished))
    assert joined(holed, notebook(STORY[: before_the_end_of_a - 1])) == holed


def test_a_notebook_of_another_record_adds_nothing() -> None:
    other = [event.model_copy(update={"time": event.time.replace("2026", "2025")}) for event in STORY]
    assert joined(STORY[:5], notebook(other)) == STORY[:5]


def test_two_events_of_one_moment_are_two() -> None:
    twins = stamped([ev.PromptAdded(prompt="x"), ev.Warned(text="w"), ev.Warned(text="w"), ev.Warned(text="v")])
    twins = [event.model_copy(update={"time": "t"}) for event in twins]
    assert joined([twins[0], twins[3]], notebook(twins)) == twins
    assert joined(twins, notebook(twins)) == twins
