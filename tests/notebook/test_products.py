"""What the last cell of a prompt's work says of the files that it left behind."""

from __future__ import annotations

from typing import Any

import nbformat
import pytest
from story import digest, tell

from harness_nb import events as ev
from harness_nb.notebook import NotebookFold, events_of
from harness_nb.types import Status

MACHINE = {"Python": "3.12.8 on Linux x86_64", "Processor cores": "2", "Memory": "8 GiB", "GPU": "NVIDIA T4, 15360 MiB"}


def changed(*changes: ev.FileChange, name: str = "python") -> ev.FilesChanged:
    return ev.FilesChanged(call_id=name, name=name, changes=changes)


def file(path: str, after: str | None = "a", before: str | None = None, size: int = 1) -> ev.FileChange:
    known = after is not None and after != ev.UNKNOWN_CONTENT
    return ev.FileChange(path=path, before=before, after=digest(after) if known and after else after, size=size)


def ending(*events: ev.Event, environment: dict[str, Any] | None = None) -> str:
    """The source of the last cell, after ``events`` of one prompt."""
    fold = NotebookFold("s")
    begin = ev.SessionStarted(
        session_id="s", format_version=2, harness_version="0", model="m", workspace="w", kernel="k",
        environment=environment or {},
    )  # fmt: skip
    for event in [begin, ev.PromptAdded(prompt="p"), *events, ev.SessionEnded(reason="finished", elapsed=200)]:
        fold.apply(event)
    notebook = fold.notebook()
    nbformat.validate(nbformat.from_dict(notebook))
    return str(notebook["cells"][-1]["source"])


def rows(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.startswith("|")][2:]


def test_the_story_ends_with_its_model_first() -> None:
    fold = NotebookFold("s")
    for event in tell():
        fold.apply(event)
    assert fold.notebook()["cells"][-1]["source"].split("\n")[2:] == [
        "| written | size | SHA-256 |",
        "|---|---:|---|",
        f"| `runs/model.pt` | 12.4 MB | `{digest('model')[:12]}` |",
        f"| `history.csv` | 412 B | `{digest('history')[:12]}` |",
        f"| `predict.py` | 45 B | `{digest('predict')[:12]}` |",
        "",
        "*On 4 processor cores, 16 GiB memory, no GPU, Python 3.12.8 on Linux x86\\_64. "
        "The longest cell (number 5) took 4.3 s.*",
    ]


def test_nothing_is_said_when_nothing_was_written() -> None:
    cell = ev.CellFinished(call_id="c", name="python", status=Status.OK, elapsed=9)
    assert ending(cell, environment=MACHINE) == "*Finished: 0 turns, tokens unknown, cost unknown, 3 min 20 s.*"


def test_the_files_came_back_with_the_notebook() -> None:
    fold = NotebookFold("s")
    for event in tell():
        fold.apply(event)
    recorded = [event for event in tell() if isinstance(event, ev.FilesChanged)]
    assert len(recorded) == 2
    assert [event for event in events_of(fold.notebook()) if isinstance(event, ev.FilesChanged)] == recorded


def test_what_is_gone_or_as_before_or_by_others_does_not_count() -> None:
    text = ending(
        changed(file("gone.txt"), file("same.txt", "b", digest("a")), file("stays.txt", size=5), file("edited.txt")),
        changed(file("gone.txt", None, digest("a")), file("same.txt", "a", digest("b"))),
        changed(file("theirs.txt"), file("edited.txt", "c", digest("a"), size=7), name="outside"),
    )
    assert rows(text) == [
        f"| `edited.txt` | 7 B | `{digest('c')[:12]}` |",
        f"| `stays.txt` | 5 B | `{digest('a')[:12]}` |",
    ]


def test_each_prompt_has_its_own() -> None:
    second: list[ev.Event] = [
        changed(file("one.txt")),
        ev.SessionEnded(reason="finished"),
        ev.PromptAdded(prompt="again"),
        changed(file("two.txt")),
    ]
    assert [row.split("`")[1] for row in rows(ending(*second))] == ["two.txt"]


def test_a_long_list_is_cut_and_counted() -> None:
    many = [file(f"{number:02d}.png", size=1000) for number in range(15)]
    found = rows(ending(changed(*many, file("z.SAFETENSORS"))))
    assert len(found) == 13
    assert found[0].startswith("| `z.SAFETENSORS`")
    assert found[-1] == "| and 4 more files | 4.0 KB | |"


def test_awkward_names_stay_in_their_cell_and_unread_files_say_so() -> None:
    found = rows(ending(changed(file("a|b`c.txt", ev.UNKNOWN_CONTENT, size=3 * 10**9))))
    assert found == ["| ``a\\|b`c.txt`` | 3.0 GB | not read |"]


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        (MACHINE, "On 2 processor cores, 8 GiB memory, GPU NVIDIA T4, 15360 MiB, Python 3.12.8 on Linux x86\\_64."),
        ({"Processor cores": "1", "Memory": "unknown", "GPU": "none that answers"}, "On 1 processor core, no GPU."),
        ({}, ""),
    ],
)
def test_the_machine_is_told_as_far_as_it_is_known(environment: dict[str, Any], expected: str) -> None:
    text = ending(changed(file("a.txt")), environment=environment)
    assert text.split("\n")[-1] == (f"*{expected}*" if expected else rows(text)[-1])


def test_the_longest_cell_is_named_by_its_number() -> None:
    cells = [
        ev.CellFinished(call_id=f"c{count}", name="python", status=Status.OK, execution_count=count, elapsed=seconds)
        for count, seconds in ((2, 3.0), (3, 250.0), (4, 1.0))
    ]
    assert ending(*cells, changed(file("a.txt"))).endswith("*The longest cell (number 3) took 4 min 10 s.*")
