"""The bytes of the file: those of ``json.dumps``, each cell written out once."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from story import Story, begin, call, stream, tell

from harness_nb import events as ev
from harness_nb.notebook import NotebookFold
from harness_nb.notebook import serial as serial_module


def old_layout(fold: NotebookFold) -> bytes:
    text = json.dumps(fold.notebook(), indent=1, ensure_ascii=False) + "\n"
    return text.encode("utf-8", "backslashreplace")


def test_the_layout_is_that_of_json_dumps_at_every_moment() -> None:
    fold = NotebookFold("s")
    assert b"".join(fold.snapshot().chunks()) == old_layout(fold)
    for event in tell():
        fold.apply(event)
        assert b"".join(fold.snapshot().chunks()) == old_layout(fold)


@pytest.mark.parametrize("seed", range(5))
def test_wild_text_in_any_order_keeps_the_layout(seed: int) -> None:
    rng = random.Random(seed)
    story = Story()
    begin(story)
    for number in range(12):
        wild = "".join(
            rng.choice(["\n", "  ", '"', "\\", "\ud800", "\0", "\u2028", "ü", "{", "]", "\r"]) for _ in "x" * 9
        )
        made = call(f"c{number}", "python", code=wild)
        story.reply(wild, made)
        story.ran(made, wild, stream("stdout", wild), stream("stderr", wild))
        story.add(ev.Warned(text=wild))
    fold = NotebookFold("s")
    for event in story.events:
        fold.apply(event)
    assert b"".join(fold.snapshot().chunks()) == old_layout(fold)


def test_a_cell_that_is_done_is_written_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    dump = serial_module._dump

    def counted(value: dict[str, Any]) -> bytes:
        written.append(str(value.get("id", "around")))
        return dump(value)

    monkeypatch.setattr(serial_module, "_dump", counted)
    fold = NotebookFold("s")
    for event in tell():
        fold.apply(event)
    fold.snapshot().chunks()
    cells = len(fold.notebook()["cells"])
    assert len(written) == cells + 1
    written.clear()
    fold.apply(ev.Warned(text="one more", seq=99))
    fold.snapshot().chunks()
    assert written[0] == "around"
    assert [name.split("-")[-1] for name in written[1:]] == ["note"]


def test_a_snapshot_stays_as_it_was() -> None:
    fold = NotebookFold("s")
    events = tell()
    for event in events[:10]:
        fold.apply(event)
    early = fold.snapshot()
    before = json.dumps([piece.cell for piece in early.pieces])
    for event in events[10:]:
        fold.apply(event)
    assert json.dumps([piece.cell for piece in early.pieces]) == before
    assert early.seq == 10
