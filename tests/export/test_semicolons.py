"""What a semicolon hides stays hidden where there is no history."""

from __future__ import annotations

import pytest

from harness_nb.export.semicolons import as_assignment, reads_underscore


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = 1\nplot(x);", "x = 1\n_ = plot(x)"),
        ("plot(\n    x,\n) ;  # quiet", "_ = plot(\n    x,\n)  # quiet"),
        ("x = 1; plot(x);", "x = 1; _ = plot(x)"),
        ("'ä'; plot('ä;');", "'ä'; _ = plot('ä;')"),
        ("plot(x);\n# the end\n", "_ = plot(x)\n# the end\n"),
        ("plot(x)", "plot(x)"),
        ("x = 1;", "x = 1;"),
        ("plot(x)  # not;", "plot(x)  # not;"),
        ("%time plot(x);", "%time plot(x);"),
        ("plot(;", "plot(;"),
        ("", ""),
    ],
)
def test_a_value_that_is_hidden_becomes_an_assignment(source: str, expected: str) -> None:
    assert as_assignment(source) == expected


def test_underscore_is_read_or_not() -> None:
    assert reads_underscore("print(_)") and reads_underscore("%time _ + 1")
    assert not reads_underscore("_ = 1\na_b = 2") and not reads_underscore("for _ in x: pass")
