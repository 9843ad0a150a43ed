"""Whole verifications in real kernels: reproduced, differs, failed, not run; and what they leave in the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from written_notebooks import code, notebook, printed, prose, raised, read, shown, value, write

from harness_nb.errors import UsageError
from harness_nb.verify import standing_verdict

PLOT = "import matplotlib.pyplot as plt\nplt.figure(figsize=(4, 3))\nplt.plot({numbers})\nplt.show()"


def badges(path: Path) -> list[int]:
    cells = read(path)["cells"]
    return [n for n, cell in enumerate(cells) if cell["metadata"].get("harness_nb", {}).get("badge")]


def without_verdict(path: Path) -> dict[str, Any]:
    data = read(path)
    data["cells"] = [cell for cell in data["cells"] if "badge" not in cell["metadata"].get("harness_nb", {})]
    data["metadata"].pop("harness_nb", None)
    return data


async def test_a_good_notebook_is_reproduced_and_the_badge_is_replaced(tmp_path: Path, check: Any) -> None:
    cells = (
        prose("# Title"),
        code("import time, json\nprint('began at', time.time())", printed("began at 1796079463.7078\n")),
        code("x = 3"),
        code("x * 2", value("6")),
        code("from IPython.display import HTML\nHTML('<table><tr><td>1</td></tr></table>')",
             value("<IPython.core.display.HTML object>", text_html="<table><tr><td>1</td></tr></table>")),
    )  # fmt: skip
    path = write(tmp_path / "good.ipynb", *cells)
    before = path.read_text()
    for _ in range(2):
        verdict = await check(path)
        assert verdict.lines()[0] == (
            "✅ good.ipynb: reproduced: 4 of 4 code cells compared, all the same; left aside: times"
        )
        assert (verdict.reproduced, verdict.exit_code, verdict.written) == (True, 0, True)
        assert badges(path) == [0]
        assert without_verdict(path) == json.loads(before)
    nbformat.validate(nbformat.read(path, as_version=4))
    standing = standing_verdict(read(path))
    assert standing is not None
    assert (standing.reproduced, standing.stale) == (True, False)
    record = standing.record
    assert record["python"].startswith("3.")
    assert record["kernel"] == "python3"
    assert [cell["verdict"] for cell in record["cells"]] == ["same"] * 4
    assert record["digest"][:12] in "".join(read(path)["cells"][0]["source"])
    assert {file.name for file in tmp_path.iterdir()} == {"good.ipynb", "good.nbval-sanitize.cfg"}


async def test_the_rest_of_the_file_stays_byte_for_byte(tmp_path: Path, check: Any) -> None:
    path = tmp_path / "odd.ipynb"
    text = '{"nbformat":4, "nbformat_minor": 4,\n\t"metadata": {"x": 1.50e1},\n\t"cells": [\n\t\t' + json.dumps(
        {"cell_type": "code", "execution_count": 1, "metadata": {"é": "\ud83d"}, "outputs": [printed("1\n")],
         "source": "print(1)"}
    ) + "\n\t]}"  # fmt: skip
    path.write_text(text)
    assert (await check(path)).reproduced
    after = iter(path.read_text())
    assert all(character in after for character in text)
    assert "1.50e1" in path.read_text()


async def test_stale_verdicts_are_known(tmp_path: Path, check: Any) -> None:
    path = write(tmp_path / "n.ipynb", code("print(1)", printed("1\n")))
    assert standing_verdict(read(path)) is None
    await check(path)
    for change in ({"source": ["print(2)"]}, {"outputs": [printed("2\n")]}):
        data = read(path)
        data["cells"][1] |= change
        standing = standing_verdict(data)
        assert standing is not None
        assert (standing.state, standing.stale, standing.reproduced) == ("reproduced", True, False)


async def test_a_number_that_differs_is_named_and_a_tolerance_lets_it_pass(tmp_path: Path, check: Any) -> None:
    source = "accuracy = 0.9754\nprint('accuracy', accuracy)"
    path = write(tmp_path / "n.ipynb", code("1 + 1", value("2")), code(source, printed("accuracy 0.9812\n")))
    verdict = await check(path)
    assert verdict.headline == (
        "differs: cell 2: accuracy 0.9812 recorded, 0.9754 now; a tolerance of 0.0058 would pass"
    )
    assert (verdict.exit_code, verdict.first.number, [c.state for c in verdict.cells]) == (1, 2, ["same", "differs"])
    standing = standing_verdict(read(path))
    assert standing is not None
    assert (standing.state, standing.record["first"]["cell"]) == ("differs", 2)
    path = write(
        tmp_path / "n.ipynb",
        code(source, printed("accuracy 0.9812\n"), harness_nb={"tolerance": 0.01}),
        code(f"# HARNESS_NB_TOLERANCE 0.01\n{source}", printed("accuracy 0.9812\n")),
    )
    assert "numbers within the tolerance" in (await check(path)).headline


async def test_pictures_are_compared_by_how_they_look(tmp_path: Path, check: Any) -> None:
    recorded = notebook(code(PLOT.format(numbers="[1, 2, 3]")))
    loaded = nbformat.reads(json.dumps(recorded), as_version=4)
    ran = NotebookClient(loaded, timeout=60, kernel_name="python3").execute()
    picture = next(o for o in ran.cells[0].outputs if "image/png" in o.get("data", {}))
    kept = {"data": dict(picture.data), "metadata": {}, "output_type": "display_data"}
    same = write(tmp_path / "same.ipynb", code(PLOT.format(numbers="[1, 2, 3]"), kept))
    assert (await check(same)).reproduced
    other = write(tmp_path / "other.ipynb", code(PLOT.format(numbers="[3, 1, 2]"), kept))
    verdict = await check(other)
    assert verdict.headline.startswith("differs: cell 1: the picture looks different (distance 0.")


async def test_random_output_differs_unless_it_is_marked(tmp_path: Path, check: Any) -> None:
    source = "import random\nprint('draw', random.random())"
    plain = write(tmp_path / "n.ipynb", code("print('ok')", printed("ok\n")), code(source, printed("draw 0.111\n")))
    assert (await check(plain)).headline.startswith("differs: cell 2: draw 0.111 recorded, 0.")
    marked = write(
        tmp_path / "m.ipynb",
        code("print('ok')", printed("ok\n")),
        code(f"# NBVAL_IGNORE_OUTPUT\n{source}", printed("draw 0.111\n")),
        code(source, printed("draw 0.111\n"), tags=["nbval-ignore-output"]),
    )
    assert (await check(marked)).headline == (
        "reproduced: 1 of 3 code cells compared, all the same; 2 not compared as marked"
    )


async def test_exceptions_skips_and_unrun_cells(tmp_path: Path, check: Any) -> None:
    division = raised("ZeroDivisionError", "division by zero")
    path = write(
        tmp_path / "n.ipynb",
        code("print('a')", printed("a\n")),
        code("1 / 0", division, tags=["raises-exception"]),
        code("# NBVAL_RAISES_EXCEPTION\n1 / 0", division),
        code("raise SystemError('never run')", tags=["skip-execution"]),
        code("raise SystemError('never run')", tags=["nbval-skip"]),
        code("print('new')", count=None),
        code("  ", count=None),
    )
    verdict = await check(path)
    states = ["same", "same", "same", "skipped", "skipped", "not recorded", "skipped"]
    assert [cell.state for cell in verdict.cells] == states
    assert verdict.reproduced
    assert "1 run without a recorded output to compare" in verdict.headline
    other = write(tmp_path / "o.ipynb", code("1 / 0", raised("ValueError", "x"), tags=["raises-exception"]))
    assert "-ValueError" in (await check(other)).first.detail
    calm = write(tmp_path / "c.ipynb", code("1", value("1"), division, tags=["raises-exception"]))
    assert "an error is recorded and does not come now" in (await check(calm)).headline


async def test_an_error_ends_the_run_and_is_named_though_it_was_recorded(tmp_path: Path, check: Any) -> None:
    division = raised("ZeroDivisionError", "division by zero")
    path = write(tmp_path / "n.ipynb", code("print(1)", printed("2\n")), code("1 / 0", division), code("2", value("2")))
    verdict = await check(path)
    assert [cell.state for cell in verdict.cells] == ["differs", "failed", "not run"]
    assert verdict.headline.startswith("failed: cell 2 raises ZeroDivisionError: division by zero (the recorded run")
    assert verdict.headline.endswith("(and cell 1 differs before)")
    assert verdict.exit_code == 1


async def test_a_notebook_that_was_never_run_is_not_reproduced(tmp_path: Path, check: Any) -> None:
    path = write(tmp_path / "n.ipynb", code("print(1)", count=None))
    verdict = await check(path)
    assert verdict.headline == "ran, nothing to compare: no cell has a recorded output"
    assert (verdict.reproduced, verdict.exit_code) == (False, 1)
    ignored = write(tmp_path / "i.ipynb", code("# NBVAL_IGNORE_OUTPUT\nprint(1)", printed("1\n")))
    assert (await check(ignored)).state == "nothing to compare"
    silent = write(tmp_path / "s.ipynb", code("x = 1"))
    assert (await check(silent)).state == "nothing to compare"
    empty = write(tmp_path / "e.ipynb", prose("only words"))
    assert (await check(empty)).state == "nothing to compare"
    doubtful = write(tmp_path / "d.ipynb", code("print(1)", printed("1\n"), count=None))
    assert "no execution count" in (await check(doubtful)).headline


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "the kernel died in cell 2 by SIGKILL"),
        ("import os\nos._exit(3)", "the kernel died in cell 2 with exit status 3"),
        ("import time\ntime.sleep(100)", "cell 2 was stopped: it ran longer than 3 s. Give it more with --timeout"),
        ("input('name? ')", "cell 2 raises StdinNotImplementedError"),
        ("import no_such_module", "cell 2 raises ModuleNotFoundError: No module named 'no_such_module'. It is not"),
        ("open('none.csv')", "cell 2 raises FileNotFoundError"),
        ("%%no_such_magic\nx", "cell 2 raises"),
        ("scale * 2", "cell 2 needs `scale`; it is defined only in cell 3, below"),
        ("lost * 2", "cell 2 needs `lost`; no cell of this notebook defines it"),
    ],
)
async def test_failures_are_clear(source: str, words: str, tmp_path: Path, check: Any) -> None:
    path = write(tmp_path / "n.ipynb", code("print(1)", printed("1\n")), code(source, value("6")), code("scale = 3"))
    verdict = await check(path, timeout=3)
    assert verdict.headline.startswith(f"failed: {words}")
    assert [cell.state for cell in verdict.cells] == ["same", "failed", "not run"]
    assert (verdict.exit_code, standing_verdict(read(path)).state) == (1, "failed")  # type: ignore[union-attr]


async def test_a_kernel_that_is_not_there_is_said(tmp_path: Path, check: Any) -> None:
    path = write(tmp_path / "n.ipynb", code("print(1)", printed("1\n")), kernel="no-such-kernel")
    verdict = await check(path)
    assert verdict.headline.startswith("not run: there is no kernel 'no-such-kernel' here; there are: ")
    assert "--kernel" in verdict.headline
    assert verdict.exit_code == 1
    assert (await check(path, kernel="python3")).reproduced


async def test_what_cannot_be_read_is_a_wrong_call(tmp_path: Path, check: Any) -> None:
    (tmp_path / "n.ipynb").write_text("{")
    with pytest.raises(UsageError, match="not JSON"):
        await check(tmp_path / "n.ipynb")
    path = write(tmp_path / "m.ipynb", code("1", value("1")))
    (tmp_path / "m.nbval-sanitize.cfg").write_text("regex: (\nreplace: x\n")
    with pytest.raises(UsageError, match="sanitise file is wrong"):
        await check(path)


async def test_old_notebooks_without_ids_stay_old(tmp_path: Path, check: Any) -> None:
    path = write(tmp_path / "old.ipynb", prose("x"), code("1 + 1", value("2")), minor=4)
    before = read(path)
    assert (await check(path)).reproduced
    assert (await check(path)).reproduced
    after = without_verdict(path)
    assert after == before
    assert "id" not in read(path)["cells"][0]
    nbformat.validate(json.loads(path.read_text()))


async def test_a_later_update_of_a_display_counts(tmp_path: Path, check: Any) -> None:
    path = write(
        tmp_path / "n.ipynb",
        code("from IPython.display import display, clear_output\nh = display('a', display_id=True)",
             shown("text/plain", "'b'")),
        code("h.update('b')"),
        code("print('x')\nclear_output(wait=True)\nprint('y')", printed("y\n")),
    )  # fmt: skip
    verdict = await check(path)
    assert verdict.reproduced, verdict.lines()


async def test_versions_of_what_was_imported_are_kept(tmp_path: Path, check: Any) -> None:
    path = write(tmp_path / "n.ipynb", code("import numpy\nprint(1)", printed("1\n")))
    verdict = await check(path)
    assert verdict.versions["numpy"]
    assert "ipykernel" not in verdict.versions


async def test_no_write_leaves_everything_as_it_is(tmp_path: Path, check: Any) -> None:
    path = write(tmp_path / "n.ipynb", code("print(1)", printed("1\n")))
    before = path.read_bytes()
    verdict = await check(path, write=False)
    assert (verdict.reproduced, verdict.written) == (True, False)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["n.ipynb"]


async def test_a_notebook_that_changes_meanwhile_keeps_the_change(tmp_path: Path, check: Any) -> None:
    path = write(tmp_path / "n.ipynb", code("print(1)", printed("1\n")))
    edited = json.dumps(notebook(code("print(2)", printed("2\n"))))
    verdict = await check(path, progress=lambda line: path.write_text(edited))
    assert not verdict.written
    assert any("was changed during the run" in note for note in verdict.notes)
    assert path.read_text() == edited


async def test_an_own_sanitise_file_is_used_and_said(tmp_path: Path, check: Any) -> None:
    path = write(tmp_path / "n.ipynb", code("import random\nprint('draw', random.random())", printed("draw 0.111\n")))
    (tmp_path / "n.nbval-sanitize.cfg").write_text("# draws\nregex: draw .*\nreplace: DRAW\n")
    verdict = await check(path)
    assert verdict.reproduced
    assert "left aside: draws" in verdict.headline
    assert any("which a person has changed" in note for note in verdict.notes)
