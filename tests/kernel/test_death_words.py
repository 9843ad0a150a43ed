"""How a death is told: its signal, whether memory was the reason, and the part of a stack that is the cell's own."""

from __future__ import annotations

import pytest

from harness_nb.kernel import memory
from harness_nb.kernel.memory import memory_limit
from harness_nb.kernel.process import Death
from harness_nb.kernel.started import describe_death
from harness_nb.kernel.verdict import _telling_words


@pytest.mark.parametrize(
    ("death", "limit", "told"),
    [
        (Death(3), 10**9, "it exited with status 3"),
        (Death(-15, 900_000_000), 10**9, "killed by SIGTERM"),
        (Death(-11, 900_000_000), 10**9, "killed by SIGSEGV: a crash in native code"),
        (
            Death(-9, 53_000_000),
            10**9,
            "killed by SIGKILL (its memory had reached 53 MB, so not for lack of memory)",
        ),
        (
            Death(-9, 3_100_000_000),
            4_000_000_000,
            "killed by SIGKILL, probably because memory ran out (it had reached 3.1 GB of 4.0 GB)",
        ),
        (Death(-9), 10**9, "killed by SIGKILL, possibly because memory ran out"),
        (Death(-9, 53_000_000), 0, "killed by SIGKILL, possibly because memory ran out"),
    ],
)
def test_a_death_is_told_with_its_likely_cause(death: Death, limit: int, told: str) -> None:
    assert describe_death(death, limit) == told


def test_the_limit_is_the_smallest_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    known = memory_limit()
    assert known is not None and known > 10**8
    monkeypatch.setattr(memory, "_groups", lambda: [123])
    assert memory_limit() == 123
    for source in ("_groups", "_machine", "_process"):
        monkeypatch.setattr(memory, source, list)
    assert memory_limit() is None


STACK = """Fatal Python error: Segmentation fault

Stack (most recent call first):
  File "/usr/lib/python3.11/ctypes/__init__.py", line 519 in string_at
  File "/tmp/ipykernel_7088/2093624385.py", line 3 in read
  File "/tmp/ipykernel_7088/2093624385.py", line 7 in <module>
  File "/env/IPython/core/interactiveshell.py", line 3823 in run_code
"""


def test_of_a_stack_the_inside_of_the_kernel_is_left_out() -> None:
    assert _telling_words(STACK) == STACK.rpartition("\n  File")[0]
    assert _telling_words("\n".join(map(str, range(100)))) == "\n".join(map(str, range(12)))
    assert _telling_words("\n") == ""
