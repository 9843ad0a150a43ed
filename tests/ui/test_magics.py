"""The magics in real kernels, run by nbclient, with scripted models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

PLOT = "import matplotlib.pyplot as plt\nplt.plot([3, 2, 1])\nplt.show()"
SCRIPT = [
    {
        "text": "I **plot** first.",
        "calls": [
            {"name": "python", "arguments": {"code": "print('to stdout')\nraise ValueError('a slip')"}},
            {"name": "python", "arguments": {"code": PLOT}},
            {"name": "bash", "arguments": {"command": "rm -rf build"}},
        ],
        "usage": {"input_tokens": 100, "output_tokens": 10},
    },
    {"text": "Done: the curve falls.", "usage": {"input_tokens": 200, "output_tokens": 20}},
]


def run(folder: Path, *cells: str, script: list[dict[str, Any]] | None = None) -> list[Any]:
    """The cells after a run of them in a fresh kernel, with the extension loaded before."""
    (folder / "script.json").write_text(json.dumps(script or SCRIPT))
    made = [nbformat.v4.new_code_cell(cell) for cell in ["%load_ext harness_nb", *cells]]
    notebook = nbformat.v4.new_notebook(cells=made)
    client = NotebookClient(notebook, timeout=90, kernel_name="python3", resources={"metadata": {"path": str(folder)}})
    client.execute()
    nbformat.validate(notebook)
    return notebook.cells[1:]


def texts(cell: Any) -> list[str]:
    return [output.data["text/plain"] for output in cell.outputs]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Any]]:
    folder = tmp_path_factory.mktemp("finished")
    task = "%%agent --model scripted:script.json\n>>> Plot {x} for $5,\n    'as it is' \\n %time `` ä\n"
    return folder, run(folder, task, "%agent status", "%agent cost", "%agent sessions", "%agent help", "%agent stop")


def test_a_task_runs_and_all_of_it_stays_in_the_cell(finished: tuple[Path, list[Any]]) -> None:
    folder, (cell, *_) = finished
    assert {output.output_type for output in cell.outputs} == {"display_data"}
    shown = texts(cell)
    assert cell.outputs[0].data["text/markdown"] == shown[0] == "I **plot** first."
    assert shown[1].startswith("[python] print('to stdout')  (✗ error")
    assert shown[2] == "to stdout"
    assert "ValueError" in shown[3] and "a slip" in shown[3]
    assert [output.data["image/png"][:5] for output in cell.outputs if "image/png" in output.data] == ["iVBOR"]
    assert shown[-2] == "Done: the curve falls."
    notebook = next((folder / "harness_sessions").glob("*.ipynb"))
    assert shown[-1].startswith("✓ finished · 2 turns · 300 tokens in, 30 out · $0 · ")
    assert shown[-1].endswith(f"harness_sessions/{notebook.name}")


def test_an_ask_is_denied_at_once_where_nobody_can_answer(finished: tuple[Path, list[Any]]) -> None:
    blocked = [text for text in texts(finished[1][0]) if text.startswith("[bash] rm -rf build")]
    assert len(blocked) == 1
    assert "⊘ denied" in blocked[0]


def test_the_task_reaches_the_model_byte_for_byte(finished: tuple[Path, list[Any]]) -> None:
    journal = next((finished[0] / "harness_sessions").glob("*/journal.jsonl"))
    events = [json.loads(line) for line in journal.read_text().splitlines()]
    prompts = [event["prompt"] for event in events if event["type"] == "prompt_added"]
    assert prompts == [">>> Plot {x} for $5,\n    'as it is' \\n %time `` ä"]


def test_the_verbs_show_what_is_there(finished: tuple[Path, list[Any]]) -> None:
    status, cost, sessions, usage, stop = ("\n".join(texts(cell)) for cell in finished[1][1:])
    assert "idle, last task: finished" in status and "scripted:script.json" in status
    assert "task 1, 2 turns: >>> Plot {x} for $5" in cost and "session, 2 turns" in cost
    assert "Plot {x} for $5" in sessions and "finished" in sessions
    assert "--max-turns" in usage and "%agent [verb]" in usage
    assert "Nothing is running" in stop


def test_a_second_cell_continues_the_session_and_its_kernel(tmp_path: Path) -> None:
    script = [
        {"calls": [{"name": "python", "arguments": {"code": "kept = 41"}}]},
        {"text": "Kept."},
        {"calls": [{"name": "python", "arguments": {"code": "print(kept + 1)"}}]},
        {"text": "Added."},
    ]
    first, second, third, sessions = run(
        tmp_path,
        "%%agent --model scripted:script.json\nKeep a number",
        "%%agent\nAdd one",
        "%%agent --new --model scripted:script.json\nKeep a number",
        "%agent sessions",
        script=script,
    )
    assert "42" in texts(second)
    assert texts(first)[-1].split(" · ")[-1] == texts(second)[-1].split(" · ")[-1] != texts(third)[-1].split(" · ")[-1]
    assert len(list((tmp_path / "harness_sessions").glob("*.ipynb"))) == 2
    assert texts(sessions)[0].count("Keep a number") == 2


def test_a_run_without_an_accepted_finish_says_so_and_does_not_fail_the_cell(tmp_path: Path) -> None:
    loop = [{"calls": [{"name": "bash", "arguments": {"command": "echo again"}}]}]
    (cell,) = run(tmp_path, "%%agent --model scripted:script.json --max-turns 1\nGo on", script=loop)
    assert texts(cell)[-1].startswith("■ stopped: the limit of 1 turn is reached")


def test_a_wrong_call_fails_the_cell_with_one_readable_block_and_leaves_the_session_as_it_was(tmp_path: Path) -> None:
    wrong = {
        "%%agent --modle x\nDo it": "No such option",
        "%%agent --model scripted:absent.json\nDo it": "absent.json",
        "%%agent --model scripted:script.json\n  \n": "The task is empty",
        "%%agent --model scripted:script.json --session nope\nDo it": "no session 'nope'",
        "%agent steer left": "The verbs are: status, stop, cost, sessions, help",
    }
    tagged = {"metadata": {"tags": ["raises-exception"]}}
    (tmp_path / "script.json").write_text(json.dumps([{"text": "Fine."}]))
    there = nbformat.v4.new_code_cell("import pathlib\nprint([*pathlib.Path().glob('harness_sessions/*.ipynb')])")
    cells = [
        nbformat.v4.new_code_cell("%load_ext harness_nb"),
        *(nbformat.v4.new_code_cell(cell, **tagged) for cell in wrong),
        there,
        nbformat.v4.new_code_cell("%%agent --model scripted:script.json\nOne"),
        nbformat.v4.new_code_cell("%%agent --model scripted:absent.json\nx", **tagged),
        nbformat.v4.new_code_cell("%%agent\nTwo"),
    ]
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, timeout=90, resources={"metadata": {"path": str(tmp_path)}}).execute()
    for cell, message in zip(cells[1:], wrong.values(), strict=False):
        (shown,) = [output for output in cell.outputs if output.output_type == "error"]
        assert message in shown.evalue and len(shown.traceback) == 1, shown
    assert there.outputs[0].text == "[]\n"
    assert texts(cells[-1])[-1].startswith("✓ finished")
    assert len(list((tmp_path / "harness_sessions").glob("*.ipynb"))) == 1


def test_without_a_kernel_that_awaits_it_still_works(tmp_path: Path) -> None:
    script = [{"text": "Fine."}]
    off, called, unloaded = run(
        tmp_path,
        "%autoawait off\nget_ipython().run_cell_magic('agent', '--model scripted:script.json', 'One {x}\\n')",
        "get_ipython().run_cell('%%agent\\nTwo')",
        "%unload_ext harness_nb\n'agent' in get_ipython().magics_manager.magics['cell']",
        script=script,
    )
    assert "Fine." in texts(off) and "Fine." in texts(called)[0]
    assert texts(unloaded) == ["False"]
