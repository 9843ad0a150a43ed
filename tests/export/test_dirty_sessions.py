"""Row R6 and its like: failed tries, definitions out of order, names of deleted cells; and programs made at random."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from recorded import Recorded, code_of, run_plainly, words_of

from harness_nb import events as ev
from harness_nb.export import clean_notebook
from harness_nb.notebook import NotebookFold, events_of

TRIES = [
    "scale = 2\nraise ValueError('too soon')",
    "x = undefined",
    "data = load('nowhere.csv')",
    "import math\nlimit = math.floor(9.9)\nlimit.nothing",
    "for i in range(3):\n    1 / (1 - i)",
    "data[0] = 'x'",
    "def broken(:\n    pass",
    "assert False",
    "raise KeyError('x')",
    "data.append(1)",
    "open('nowhere.txt')",
    "'a' + 1",
]


def dirty(session: Recorded) -> None:
    """Twelve failed tries between five good cells; ``total`` uses ``weight``, which is defined after it."""
    good = [
        "data = (1, 2, 3)",
        "def total():\n    return sum(data) * weight * scale",
        "weight = limit",
        "answer = total()",
        "print(f'answer {answer}')",
    ]
    tries = iter(TRIES)
    for number, cell in enumerate(good):
        session.python(cell, f"Step {number}.")
        for again in range(3 if number < 4 else 0):
            session.python(next(tries, "1 / 0"), "Sorry, another thing." if again else "")


def test_twelve_failed_tries_are_dropped_but_for_what_they_had_bound(session: Recorded) -> None:
    for code in TRIES[:4]:
        session.python(code)
    dirty(session)
    session.finish("The answer is 108.")
    export = clean_notebook(session.events, session.blob)
    assert export.complete, export.notes
    assert run_plainly(export.notebook, session.workspace)["answer"] == session.namespace["answer"] == 108
    text = "\n".join(code_of(export.notebook))
    assert "undefined" not in text and "raise" not in text and "scale = 2" in text
    assert text.index("def total") < text.index("weight = limit")
    assert "Sorry" not in words_of(export.notebook)
    assert (export.kept, export.cells) == (7, 21)


def test_a_name_of_a_cell_that_a_person_deleted_is_told(session: Recorded) -> None:
    session.python("secret = 41", "First a value.")
    session.python("answer = secret + 1")
    session.python("print(f'answer {answer}')")
    fold = NotebookFold("20260101-000000-abcd")
    for number, event in enumerate(session.events, start=1):
        fold.apply(event.model_copy(update={"seq": number}))
    notebook = fold.notebook()
    notebook = {**notebook, "cells": [cell for cell in notebook["cells"] if cell["source"] != "secret = 41"]}
    export = clean_notebook(events_of(notebook), session.blob)
    assert not export.complete
    assert [one.name for one in export.unresolved] == ["secret"]
    assert "whose cell is not in the record" in export.unresolved[0].reason


def test_what_a_failing_statement_had_begun_to_change_is_told(session: Recorded) -> None:
    session.python("rows = []\nfor value in (1, 2, 0):\n    rows.append(1 / value)")
    session.python("print(f'{rows}')")
    export = clean_notebook(session.events, session.blob)
    assert [(one.name, one.count) for one in export.unresolved] == [("rows", 3)]
    assert "cell \\[3\\]" in export.notebook["cells"][1]["source"]


def test_without_a_traceback_the_manifest_says_what_was_bound(session: Recorded) -> None:
    session.python("a = 1\nb = 2\nraise ValueError", trace=False)
    session.python("print(f'{a}')")
    export = clean_notebook(session.events, session.blob)
    assert code_of(export.notebook) == ["a = 1", "print(f'{a}')"]


def test_words_before_a_failed_try_come_before_the_good_one_and_talk_of_the_failure_goes(session: Recorded) -> None:
    session.python("1 / 0", "## The sum\n\nNow the sum.")
    session.python("total = 1 + 1\nprint(f'{total}')", "I divided by zero, sorry.")
    words = words_of(clean_notebook(session.events, session.blob).notebook)
    assert "Now the sum." in words and "sorry" not in words


def test_a_second_prompt_has_its_place(session: Recorded) -> None:
    session.python("a = 1\nprint(f'{a}')")
    session.finish("It is one.")
    session.events.append(ev.PromptAdded(prompt="And twice that?"))
    session.python("b = 2 * a\nprint(f'{b}')")
    session.finish("It is two.")
    words = words_of(clean_notebook(session.events, session.blob).notebook)
    assert words.index("It is one.") < words.index("## Task 2") < words.index("It is two.")


def random_program(chance: random.Random, length: int) -> list[str]:
    """Cells over a few names: values, lists that share and change, functions over globals, files."""
    names = ["a", "b", "c", "d"]
    cells = [f"{name} = [{number}]" for number, name in enumerate(names)]
    for _ in range(length):
        x, y, z = (chance.choice(names) for _ in range(3))
        number = chance.randrange(9)
        path = chance.choice(["one.txt", "two.txt"])
        cells.append(
            chance.choice(
                [
                    f"{x} = [{number}]",
                    f"{x} = {y} + {z}",
                    f"{x} = {y}",
                    f"{x} = ({y}, {z})[{number % 2}]",
                    f"{x}.append({number})",
                    f"{x} = {y}[-3:] + [len({z})]",
                    f"{x} += [{number}]",
                    f"def f(v):\n    return v + {y}[:2]",
                    f"{x} = f({z})" if any(cell.startswith("def f") for cell in cells) else f"{x} = [0]",
                    f"def g():\n    {y}.append({number})",
                    "g()" if any(cell.startswith("def g") for cell in cells) else "None",
                    f"if {number} > 4:\n    {x} = {y}[:1]",
                    f"for {x} in [{y}, {z}]:\n    {x}.append({number})",
                    f"with open('{path}', 'w') as file:\n    file.write(str({x}))",
                    f"{x} = [len(open('{path}').read())]",
                    f"import random\nrandom.seed({number})",
                    f"import random\n{x} = [random.random()]",
                    f"{x} = sorted({y}, key=lambda v: (v, len({z})))",
                    f"del {x}\n{x} = [{number}]",
                ]
            )
        )
    return cells


@pytest.mark.parametrize("seed", range(60))
def test_the_slice_of_a_random_program_has_the_same_result(tmp_path: Path, seed: int) -> None:
    """Names, aliases, calls, files and seeds: whatever is left out, what the last cell shows is the same."""
    chance = random.Random(seed)
    session = Recorded(tmp_path)
    for cell in random_program(chance, 25):
        session.python(cell)
    watched = chance.choice("abcd")
    session.python(f"result = str({watched})\nprint(f'result {{result}}')")
    export = clean_notebook(session.events, session.blob)
    if not export.complete:
        assert export.unresolved[0].reason
        return
    seeded = "random.random()" not in "".join(code_of(export.notebook))
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    result = run_plainly(export.notebook, fresh)["result"]
    assert not seeded or result == session.namespace["result"]
    assert export.kept < export.cells
