"""The words between the kept cells: the model's own, without those about what was left out. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection

from harness_nb.export.story import Story

_HEADING = re.compile(r"^#{1,6} .*$", re.MULTILINE)


def choose_words(story: Story, kept: Collection[int]) -> dict[int, list[str]]:
    """The texts that stand before kept steps, by step number. ``kept`` are the numbers of kept steps.

    Words before calls that failed belong to the next kept call, which does what they announce; the words after a
    failure, which speak of it, are left out, but for headings and what follows them. Of words before mere looks only a
    last heading stays.
    """
    found: dict[int, list[str]] = {}
    pending: list[str] = []
    after_failure = False
    calls = {step.call_id: step for step in story.steps if step.reply >= 0}
    prompt = 0
    for number, reply in enumerate(story.replies):
        if reply.prompt != prompt:
            prompt, pending, after_failure = reply.prompt, [], False
        steps = [calls[call] for call in reply.calls if call in calls and calls[call].reply == number]
        mine = [step for step in steps if step.number in kept]
        text = reply.text
        if after_failure and text:
            text = _from_heading(text)
        failed = (bool(steps) and not steps[-1].ok) or (bool(reply.calls) and not steps and bool(reply.text))
        if mine:
            found[mine[0].number] = [words for words in [*pending, text] if words]
            pending = []
        elif steps and any(not step.ok or step.source.kind == "edit" for step in steps):
            pending += [text] if text else []
        elif heading := _from_heading(text):
            pending = [heading]
        if steps or reply.calls:
            after_failure = failed
    return found


def _from_heading(text: str) -> str:
    """A text from its last heading on; empty if it has none."""
    headings = list(_HEADING.finditer(text))
    return text[headings[-1].start() :].strip() if headings else ""
