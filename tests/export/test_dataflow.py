"""Which cells the result needs: by the names that they bind, use and change."""

from __future__ import annotations

import pytest
from recorded import PLOT, Recorded, code_of, run_plainly

from harness_nb.export import clean_notebook
from harness_nb.types import Status

KEPT_AND_DROPPED = {
    "an unused value": (["a = 1", "b = 2", "print(a)"], ["a = 1", "print(a)"]),
    "a function and what it uses": (
        ["k = 3", "def f(x):\n    return x * k", "unused = 0", "print(f(2))"],
        ["k = 3", "def f(x):\n    return x * k", "print(f(2))"],
    ),
    "a function that uses what is defined later": (
        ["def f():\n    return g()", "def g():\n    return 1", "print(f())"],
        ["def f():\n    return g()", "def g():\n    return 1", "print(f())"],
    ),
    "a value bound anew": (["x = 1", "x = 5", "print(x)"], ["x = 5", "print(x)"]),
    "a change in place": (
        ["rows = []", "other = []", "rows.append(1)", "other.append(2)", "print(rows)"],
        ["rows = []", "rows.append(1)", "print(rows)"],
    ),
    "a change by another name": (
        ["rows = [[]]", "alias = rows[0]", "alias.append(1)", "print(rows)"],
        ["rows = [[]]", "alias = rows[0]", "alias.append(1)", "print(rows)"],
    ),
    "a change by a function that nobody knows": (
        ["def put(d):\n    d['k'] = 1", "d = {}", "put(d)", "print(d)"],
        ["def put(d):\n    d['k'] = 1", "d = {}", "put(d)", "print(d)"],
    ),
    "a function that changes nothing": (
        ["def twice(d):\n    return len(d) * 2", "d = {}", "n = twice(d)", "print(d)"],
        ["d = {}", "print(d)"],
    ),
    "a global that a function counts up": (
        ["n = 0", "def count():\n    global n\n    n += 1", "count()", "print(n)"],
        ["n = 0", "def count():\n    global n\n    n += 1", "count()", "print(n)"],
    ),
    "comprehensions have names of their own": (
        ["i = 7", "xs = [i for i in range(3)]", "print(xs)"],
        ["xs = [i for i in range(3)]", "print(xs)"],
    ),
    "a name in an f-string": (["n = 4", "m = 2", "print(f'{n:>3}')"], ["n = 4", "print(f'{n:>3}')"]),
    "what may not be bound": (
        ["x = 1", "if len('ab') > 5:\n    x = 2", "print(x)"],
        ["x = 1", "if len('ab') > 5:\n    x = 2", "print(x)"],
    ),
    "a class and its instance": (  # what C() runs is not known, so its first step stays
        ["step = 2", "class C:\n    def go(self):\n        return step", "c = C()", "step = 3", "print(c.go())"],
        ["step = 2", "class C:\n    def go(self):\n        return step", "c = C()", "step = 3", "print(c.go())"],
    ),
    "augmented assignment": (["n = 1", "n += 1", "print(n)"], ["n = 1", "n += 1", "print(n)"]),
    "parts of a tuple": (["a, (b, *c) = 1, (2, 3)", "z = 0", "print(c)"], ["a, (b, *c) = 1, (2, 3)", "print(c)"]),
    "a seed and the numbers after it": (
        ["import random", "random.seed(1)", "a = random.random()", "b = random.random()", "z = 3", "print(b)"],
        ["import random", "random.seed(1)", "a = random.random()", "b = random.random()", "print(b)"],
    ),
    "numbers without a seed need no others": (
        ["import random", "a = random.random()", "b = random.random()", "print(b)"],
        ["import random", "b = random.random()", "print(b)"],
    ),
    "settings": (
        ["import warnings", "warnings.filterwarnings('ignore')", "print(1)"],
        ["import warnings", "warnings.filterwarnings('ignore')", "print(1)"],
    ),
    "looks": (
        ["xs = [3, 1]", "xs", "len(xs)", "print(sorted(xs))", "ys = sorted(xs)", "print('ys', f'{ys}')"],
        ["xs = [3, 1]", "ys = sorted(xs)", "print('ys', f'{ys}')"],
    ),
    "magics": (["%matplotlib inline", "x = 1", "print(x)"], ["%matplotlib inline", "x = 1", "print(x)"]),
    "dotted imports": (
        ["import os.path", "import json", "print(os.path.join('a', 'b'))"],
        ["import os.path", "print(os.path.join('a', 'b'))"],
    ),
}


@pytest.mark.parametrize("case", KEPT_AND_DROPPED)
def test_the_cells_that_the_last_output_needs_are_kept(session: Recorded, case: str) -> None:
    cells, expected = KEPT_AND_DROPPED[case]
    for cell in cells:
        session.python(cell)
    export = clean_notebook(session.events, session.blob)
    assert code_of(export.notebook) == expected
    assert export.complete
    run_plainly(export.notebook, session.workspace)


def test_the_import_of_a_look_is_kept_without_the_look(session: Recorded) -> None:
    session.python("import math\nprint(math.pi)")
    session.python("print(f'{math.tau:.3f}')")
    assert code_of(clean_notebook(session.events).notebook) == ["import math", "print(f'{math.tau:.3f}')"]


def test_imports_stand_first_sorted_and_once(session: Recorded) -> None:
    session.python("import json, sys\nfrom collections import deque\nx = deque([1])")
    session.python("from collections import Counter\nimport json\n\ny = Counter(x)\nprint(json.dumps(y), sys)")
    head, *body = code_of(clean_notebook(session.events).notebook)
    assert head == "import json\nimport sys\nfrom collections import Counter, deque"
    assert body == ["x = deque([1])", "y = Counter(x)\nprint(json.dumps(y), sys)"]


def test_an_import_whose_name_means_something_else_elsewhere_stays(session: Recorded) -> None:
    session.python("from math import sqrt\na = sqrt(4)")
    session.python("from cmath import sqrt\nb = sqrt(-4)\nprint(a, b, f'{b}')")
    export = clean_notebook(session.events)
    assert code_of(export.notebook)[0].startswith("from math import sqrt")
    assert run_plainly(export.notebook, session.workspace)["b"] == 2j


def test_plots_are_kept_and_those_that_were_done_again_are_not(session: Recorded) -> None:
    session.python("loss = [3, 2, 1]")
    session.python("title = 'Loss'; ys = loss; draw = (title, ys, 'tab:red')", outputs=[PLOT])
    session.python("title = 'Loss'; ys = loss; draw = (title, ys, 'tab:blue')", outputs=[PLOT])
    session.python("other = ('Accuracy', [0.1, 0.9])", outputs=[PLOT])
    session.python("print('done', f'{len(loss)}')")
    sources = code_of(clean_notebook(session.events).notebook)
    assert [("tab:red" in s, "tab:blue" in s) for s in sources if "tab" in s] == [(False, True)]
    assert any("Accuracy" in source for source in sources)


def test_the_cell_with_the_figures_of_the_answer_is_kept(session: Recorded) -> None:
    session.python("hits, all_of_them = 987, 1000")
    session.python("print(f'accuracy {hits / all_of_them:.2%}')")
    session.python("print('bye', f'{1}')")
    session.finish("The accuracy is 98.70 %.")
    assert "print(f'accuracy {hits / all_of_them:.2%}')" in code_of(clean_notebook(session.events).notebook)


def test_outputs_are_the_recorded_ones_without_derived_plots_and_counted_anew(session: Recorded) -> None:
    derived = {**PLOT, "metadata": {"harness_nb": {"derived": "metrics"}}}
    result = {"output_type": "execute_result", "data": {"text/plain": "7"}, "metadata": {}, "execution_count": 99}
    session.python("x = 1")
    session.python("print(x, f'{x}')", outputs=[result, derived])
    cell = clean_notebook(session.events).notebook["cells"][-1]
    assert [output["output_type"] for output in cell["outputs"]] == ["stream", "execute_result"]
    assert cell["execution_count"] == cell["outputs"][1]["execution_count"] == 3


def test_names_lost_with_a_kernel_are_told_and_rebuilt_ones_are_there(session: Recorded) -> None:
    session.python("x = 1")
    session.die()
    session.python("try:\n    y = x\nexcept NameError:\n    y = 5")
    session.python("print(f'{y}')")
    export = clean_notebook(session.events, session.blob)
    assert [one.name for one in export.unresolved] == ["x"]
    assert "lost when the kernel ended" in export.notes[1]


def test_a_cell_that_calls_a_function_of_the_harness_is_told(session: Recorded) -> None:
    session.namespace["read_file"] = lambda path: print("text")
    session.python("read_file('a.txt'); print(f'{1}')")
    export = clean_notebook(session.events, session.blob)
    assert not export.complete and "only harness_nb has" in str(export.unresolved[0])
    assert "This notebook is not complete" in export.notebook["cells"][1]["source"]


def test_what_was_interrupted_is_not_taken_for_done(session: Recorded) -> None:
    session.python("model = []")
    session.python("model.append(1)", status=Status.INTERRUPTED, trace=False)
    session.python("print(f'{model}')")
    export = clean_notebook(session.events, session.blob)
    assert [(one.name, "interrupted" in one.reason) for one in export.unresolved] == [("model", True)]
