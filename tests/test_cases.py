"""Failures that users of other notebook agents reported, end to end through a session with the real tool kernel."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import nbformat
from test_session import DONE, call, opened, results, script, send, text_of

from harness_nb import events as ev
from harness_nb.types import Status


def outputs_of(path: Path) -> list[nbformat.NotebookNode]:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


async def test_a_million_lines_are_bounded_everywhere_and_kept_whole(tmp_path: Path) -> None:
    model = script(tmp_path, call("python", code="for i in range(1_000_000): print(i)"), DONE)
    async with opened(tmp_path, model=model) as session:
        tracemalloc.start()
        events = await send(session)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    printed = results(events)[0]
    assert printed.status is Status.OK
    assert len(text_of(printed)) < 18_000
    assert "0\n1\n2\n" in text_of(printed) and "999998\n999999\n" in text_of(printed)
    assert peak < 50 * 2**20
    (whole,) = [event for event in events if isinstance(event, ev.ContextOffloaded)]
    assert (whole.lines, whole.bytes) == (1_000_000, 6_888_890)
    assert whole.path in text_of(printed)
    assert (tmp_path / whole.path).stat().st_size == 6_888_890
    assert session.notebook_path.stat().st_size < 300_000
    (output,) = [output for output in outputs_of(session.notebook_path) if output.output_type == "stream"]
    assert "left out" in output.text
    assert sum(isinstance(event, ev.CellOutput) for event in events) < 1000


async def test_twenty_thousand_steps_of_a_bar_are_one_line(tmp_path: Path) -> None:
    write = "    sys.stderr.write(f'\\r{i} of 20000'); sys.stderr.flush()\n"
    code = f"import sys\nfor i in range(20_000):\n{write}print('done')"
    async with opened(tmp_path, model=script(tmp_path, call("python", code=code), DONE)) as session:
        events = await send(session)
    text = text_of(results(events)[0])
    assert text.count(" of 20000") == 1
    assert "19999 of 20000" in text and "done" in text
    streams = [output.text for output in outputs_of(session.notebook_path) if output.output_type == "stream"]
    assert sorted(streams) == ["19999 of 20000", "done\n"]


async def test_two_hundred_figures_are_counted(tmp_path: Path) -> None:
    code = (
        "import matplotlib.pyplot as plt\n"
        "for i in range(200):\n    plt.figure(figsize=(1, 1)); plt.plot([i, 1]); plt.show()"
    )
    async with opened(tmp_path, model=script(tmp_path, call("python", code=code, timeout=300), DONE)) as session:
        events = await send(session)
    result = results(events)[0]
    images = [part for part in result.content if part.type == "image"]
    assert 1 <= len(images) <= 4
    assert "of 200 images attached" in text_of(result)
    pictures = [output for output in outputs_of(session.notebook_path) if "image/png" in output.get("data", {})]
    assert 2 <= len(pictures) <= 30


async def test_outputs_keep_their_kind_and_order(tmp_path: Path) -> None:
    code = "import sys\nprint('a')\nprint('b', file=sys.stderr)\nprint('c')\ndisplay('d')\n1 / 0"
    async with opened(tmp_path, model=script(tmp_path, call("python", code=code), DONE)) as session:
        await send(session)
    kinds = [(output.output_type, output.get("name")) for output in outputs_of(session.notebook_path)]
    assert kinds == [
        *(("stream", "stdout"), ("stream", "stderr"), ("stream", "stdout")),
        *(("display_data", None), ("error", None)),
    ]


async def test_a_data_frame_is_told_by_shape_types_and_rows(tmp_path: Path) -> None:
    code = """import pandas as pd
pd.set_option("display.max_rows", None)
frame = pd.DataFrame({"n": range(20_000), "x": [0.5] * 20_000, "who": ["a"] * 20_000})
frame"""
    async with opened(
        tmp_path, model=script(tmp_path, call("python", code=code), call("python", code="frame[:2]"), DONE)
    ) as session:
        events = await send(session)
    large, small, _ = (text_of(result) for result in results(events))
    assert "[20000 rows x 3 columns]" in large
    assert "dtypes: n int64, x float64, who " in large
    assert len(large) < 2500
    assert "[2 rows x 3 columns]" in small
    frames = [output for output in outputs_of(session.notebook_path) if output.output_type == "execute_result"]
    assert all(len(str(output.data)) < 300_000 for output in frames)
    assert "text/html" in frames[1].data
