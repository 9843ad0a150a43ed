"""The verbs about recorded sessions in a real kernel: rewind, fork, resume, export, verify."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from test_magics import texts

WORK = [
    {"calls": [{"name": "python", "arguments": {"code": "x = 1"}}]},
    {"calls": [{"name": "write_file", "arguments": {"path": "notes.txt", "content": "first\n"}}]},
    {"calls": [{"name": "python", "arguments": {"code": "x += 1\nprint('x is', x)"}}]},
    {"calls": [{"name": "search_replace", "arguments": {"path": "notes.txt", "search": "first", "replace": "other"}}]},
    {"text": "Counted."},
]
OTHER = [
    {"calls": [{"name": "python", "arguments": {"code": "print('now', x, open('notes.txt').read())"}}]},
    {"text": "Went on."},
]


def run(folder: Path, *cells: str, **scripts: list[dict[str, Any]]) -> list[Any]:
    """The cells after a run of them; those that begin with ``!`` may fail."""
    for name, script in scripts.items():
        (folder / f"{name}.json").write_text(json.dumps(script))
    made = [nbformat.v4.new_code_cell("%load_ext harness_nb")]
    for cell in cells:
        made.append(nbformat.v4.new_code_cell(cell.removeprefix("!")))
        if cell.startswith("!"):
            made[-1].metadata["tags"] = ["raises-exception"]
    notebook = nbformat.v4.new_notebook(cells=made)
    NotebookClient(notebook, timeout=90, kernel_name="python3", resources={"metadata": {"path": str(folder)}}).execute()
    return notebook.cells[1:]


def error(cell: Any) -> str:
    (output,) = [output for output in cell.outputs if output.output_type == "error"]
    assert not any("File " in line or "Traceback" in line for line in output.traceback)
    return str(output.evalue)


def sessions(folder: Path) -> list[str]:
    return sorted(path.stem for path in (folder / "harness_sessions").glob("*.ipynb"))


def test_rewind_goes_back_and_the_next_cell_goes_on_from_there(tmp_path: Path) -> None:
    _, refused, back, went_on, again = run(
        tmp_path,
        "%%agent --model scripted:work.json\nCount and note",
        "!%agent rewind 2",
        "%agent rewind 2 --yes",
        "%%agent --model scripted:other.json\nGo on",
        "!%agent resume",
        work=WORK,
        other=OTHER,
    )
    first, fork = sessions(tmp_path)
    assert "Written as they were then: notes.txt." in error(refused)
    assert "Nobody can be asked here: add --yes, or fork --into FOLDER" in error(refused)
    assert f"Back at step 2 of {first}, in the new session {fork}." in texts(back)[0]
    assert "now 1 first" in "\n".join(texts(went_on)), "file and kernel are those of step 2"
    assert texts(went_on)[-1].endswith(f"{fork}.ipynb")
    assert f"The session {fork} is finished, there is nothing to resume" in error(again)


def test_work_that_reached_a_limit_is_resumed_in_the_same_kernel(tmp_path: Path) -> None:
    stopped, resumed, elsewhere = run(
        tmp_path,
        "%%agent --model scripted:work.json --max-turns 3\nCount and note",
        "%agent resume",
        "!%agent resume nowhere",
        work=WORK,
    )
    assert texts(stopped)[-1].startswith("■ stopped: the limit of 3 turns is reached")
    shown = "\n".join(texts(resumed))
    assert "Counted." in shown and "✓ finished" in texts(resumed)[-1]
    assert "[python]" not in shown, "nothing is run again"
    assert (tmp_path / "notes.txt").read_text() == "other\n"
    assert "There is no session 'nowhere'" in error(elsewhere)
    assert len(sessions(tmp_path)) == 1


def test_export_verify_and_fork(tmp_path: Path) -> None:
    _, clean, page, here, mixed, verified, fork, unverified = run(
        tmp_path,
        "%%agent --model scripted:work.json\nCount and note",
        "%agent export clean.ipynb --clean --verify",
        "%agent export page.html",
        "%agent export --here",
        "!%agent export --here --clean",
        "%agent verify clean.ipynb",
        "%agent fork --at 1 --into copy",
        "!%agent verify absent.ipynb",
        work=WORK,
    )
    assert "reproduced" in texts(clean)[0] and "✓" in texts(clean)[0]
    assert "harness_nb" not in "".join(
        cell.source for cell in nbformat.read(tmp_path / "clean.ipynb", 4).cells if cell.cell_type == "code"
    )
    assert "Exported." in texts(page)[0] and "Counted." in (tmp_path / "page.html").read_text()
    assert "No cells were put into this notebook: nobody has it open in a page that takes cells." in texts(here)[0]
    assert "--here puts the session's cells into this notebook; it goes with no other option" in error(mixed)
    assert "reproduced" in texts(verified)[0]
    (copy,) = sessions(tmp_path / "copy")
    assert copy in texts(fork)[0] and f"--dir {tmp_path / 'copy'}" in texts(fork)[0]
    assert "absent.ipynb" in error(unverified)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("rewind", "Missing argument 'STEP'. It is written: %agent rewind N"),
        ("rewind two", "'two' is not a valid integer"),
        ("rewind 1", "no session"),
        ("export --cleen", "No such option"),
        ("export 'open", "No closing quotation"),
        ("fork --at -1", "is not in the range"),
        ("verify", "Missing argument 'PATH'. It is written: %agent verify PATH [--repair]"),
        ("status now", "The verbs are:"),
    ],
)
def test_wrong_words_are_answered_in_a_sentence(client: Any, line: str, message: str) -> None:
    from user_kernel import execute

    reply, _ = execute(client, f"%agent {line}")
    assert reply["status"] == "error" and message in reply["evalue"], reply["evalue"]
