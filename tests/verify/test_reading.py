"""A notebook as it is read: cells and their rules, the digest, names of cells."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from written_notebooks import code, notebook, printed, prose, raised

from harness_nb.errors import StoreError
from harness_nb.verify.document import digest_of, parse_document, read_document
from harness_nb.verify.explanation import explain_name, order_notes
from harness_nb.verify.markers import Rules, rules_of
from harness_nb.verify.names import definition, statements_of


def parse(*cells: dict[str, Any], **options: Any) -> Any:
    return parse_document(Path("n.ipynb"), json.dumps(notebook(*cells, **options)))


@pytest.mark.parametrize(
    ("source", "tags", "rules"),
    [
        ("x = 1", [], Rules()),
        ("# NBVAL_IGNORE_OUTPUT\nx", [], Rules(check=False)),
        ("x\n  ## NBVAL_IGNORE_OUTPUT ", [], Rules(check=False)),
        ("# NBVAL_IGNORE_OUTPUT please", [], Rules()),
        ("x  # NBVAL_SKIP", [], Rules()),
        ("# NBVAL_SKIP", [], Rules(skip=True)),
        ("# NBVAL_RAISES_EXCEPTION\n1/0", [], Rules(raises=True)),
        ("1/0", ["raises-exception"], Rules(raises=True)),
        ("1/0", ["nbval-raises-exception", "nbval-ignore-output"], Rules(raises=True, check=False)),
        ("x", ["nbval-skip"], Rules(skip=True)),
        ("x", ["skip-execution"], Rules(skip=True)),
        ("# NBVAL_CHECK_OUTPUT\nx", ["nbval-ignore-output"], Rules()),
        ("# PYTEST_VALIDATE_IGNORE_OUTPUT", [], Rules(check=False)),
        ("# HARNESS_NB_TOLERANCE 0.01\nx", [], Rules(tolerance=0.01)),
        ("# HARNESS_NB_TOLERANCE: 1e-3", [], Rules(tolerance=0.001)),
        ("# HARNESS_NB_TOLERANCE nan", [], Rules()),
        ("x", "nbval-skip", Rules()),
    ],
)
def test_markers_and_tags(source: str, tags: Any, rules: Rules) -> None:
    assert rules_of(source, {"tags": tags}) == rules


def test_a_tolerance_in_the_metadata() -> None:
    assert rules_of("x", {"harness_nb": {"tolerance": 0.05}}).tolerance == 0.05
    assert rules_of("# HARNESS_NB_TOLERANCE 0.1", {"harness_nb": {"tolerance": 0.05}}).tolerance == 0.1
    for nonsense in (-1, "much", None, float("inf"), []):
        assert rules_of("x", {"harness_nb": {"tolerance": nonsense}}).tolerance == 0.0


def test_the_digest_is_of_code_outputs_and_rules_and_of_nothing_else() -> None:
    base = notebook(prose("# Title"), code("print(1)", printed("1\n")))
    same = json.loads(json.dumps(base))
    same["cells"][0]["source"] = ["other prose"]
    same["cells"][1] |= {"source": "print(1)", "id": "other", "execution_count": 9}
    same["cells"][1]["outputs"][0]["text"] = "1\n"
    same["cells"].append(prose("more"))
    assert digest_of(same) == digest_of(base)
    changes: list[dict[str, Any]] = [
        {"source": "print(2)"},
        {"outputs": []},
        {"outputs": [printed("2\n")]},
        {"metadata": {"tags": ["nbval-ignore-output"]}},
        {"metadata": {"harness_nb": {"tolerance": 0.5}}},
        {"execution_count": None},
    ]
    digests = {digest_of(base)}
    for change in changes:
        other = json.loads(json.dumps(base))
        other["cells"][1] |= change
        digests.add(digest_of(other))
    assert len(digests) == len(changes) + 1


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\xff\xfe", "not UTF-8"),
        (b"{", "not JSON"),
        (b"[]", "no key 'nbformat'"),
        (b'{"nbformat": 3, "worksheets": []}', "format 3"),
        (b'{"nbformat": 4, "cells": 1}', "format 4 is needed"),
        (b"[" * 100_000, "not JSON"),
    ],
)
def test_what_is_no_notebook_is_refused(content: bytes, words: str, tmp_path: Path) -> None:
    (tmp_path / "n.ipynb").write_bytes(content)
    with pytest.raises(StoreError, match=words):
        read_document(tmp_path / "n.ipynb")


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be read"):
        read_document(tmp_path / "none.ipynb")


def test_cells_are_numbered_by_what_is_code() -> None:
    document = parse(prose("a"), code("x = 1"), prose("b"), code("x"))
    assert [(cell.number, cell.index) for cell in document.cells] == [(1, 1), (2, 3)]
    assert (document.kernel, document.language) == ("python3", "python")


def test_an_order_that_is_not_top_to_bottom_is_said() -> None:
    assert order_notes(parse(code("a"), code("b")).cells) == []
    swapped = parse(code("a", count=2), code("b", count=1), number=False)
    assert order_notes(swapped.cells) == [
        "recorded out of order: cell 2 was run as [1], cell 1 above it as [2]",
    ]
    gaps = parse(code("a", count=2), code("b", count=5), number=False)
    assert order_notes(gaps.cells)[0].startswith("the recorded counts have gaps ([1, 3, 4] is missing)")


def test_where_a_missing_name_is_defined_is_said() -> None:
    cells = parse(
        code("def f():\n    scale = 1"),
        code("y = scale"),
        code("scale = 2"),
        code("scale = 3"),
        code("other = lost"),
        code("gone = 1", tags=["nbval-skip"]),
        code("gone"),
    ).cells
    assert explain_name("scale", cells[1], cells) == "cell 2 needs `scale`; it is defined only in cells 3, 4, below"
    assert explain_name("lost", cells[4], cells) == "cell 5 needs `lost`; no cell of this notebook defines it"
    assert explain_name("gone", cells[6], cells).endswith("cell 6 defines it, and is skipped by its tags or markers")


def test_statements_tell_what_they_bind_and_need() -> None:
    source = "import numpy as np\nfrom a import b as c\ndef f(x):\n    return x + k\n"
    source += "for i in range(n):\n    t = i\nz: int = np.pi"
    told = [(set(s.binds), set(s.needs)) for s in statements_of(source)]
    assert told == [({"np"}, set()), ({"c"}, set()), ({"f"}, {"k"}), ({"i", "t"}, {"n"}), ({"z"}, {"np"})]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("scale = 2\nprint(scale)", "scale = 2"),
        ("a = 1\nb = 2\nscale = a + 1", "a = 1\nscale = a + 1"),
        ("scale = scale * 2", ""),
        ("scale = 1\nscale += 1", "scale = 1\nscale += 1"),
        ("scale = []\nscale.append(1)\nprint(scale)", "scale = []\nscale.append(1)"),
        ("scale = {}\nscale['a'] = 1", "scale = {}\nscale['a'] = 1"),
        ("@cache\ndef scale(x):\n    return x", "@cache\ndef scale(x):\n    return x"),
        ("class scale: pass", "class scale: pass"),
        ("%matplotlib inline\nscale = 1", "scale = 1"),
        ("%%time\nscale = 1", "scale = 1"),
        ("%%bash\nscale=1", ""),
        ("files = !ls\nscale = 3", "scale = 3"),
        ("scale = await get()", "scale = await get()"),
        ("with open('f') as scale:\n    pass", "with open('f') as scale:\n    pass"),
        ("x = (scale := 5)", "x = (scale := 5)"),
        ("this is no Python", ""),
        ("print(1)", ""),
    ],
)
def test_the_definition_of_a_name_in_a_cell(source: str, expected: str) -> None:
    assert "\n".join(statement.source for statement in definition("scale", source)) == expected


def test_outputs_that_raise_are_read() -> None:
    document = parse(code("1/0", raised("ZeroDivisionError", "division by zero")))
    assert document.cells[0].outputs[0]["ename"] == "ZeroDivisionError"
