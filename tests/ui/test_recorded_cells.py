"""The verbs about recorded sessions in real kernels: interrupted, answered, in another process, without a person."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from user_kernel import ask, execute, finish

from harness_nb.store import session_ids


def call(tool: str, /, **arguments: Any) -> dict[str, Any]:
    return {"calls": [{"name": tool, "arguments": arguments}]}


SLEEP = "import time; print('asleep', flush=True); time.sleep(300)"
STOPPED = [
    call("python", code="x = 41"),
    call("write_file", path="notes.txt", content="first\n"),
    call("python", code=SLEEP),
    call("python", code="print('then', x + 1)"),
    {"text": "Counted."},
]
OTHER = [call("python", code="print('now', x)"), {"text": "Went on."}]


def write(folder: Path, **scripts: list[dict[str, Any]]) -> None:
    for name, script in scripts.items():
        (folder / f"{name}.json").write_text(json.dumps(script))


def run(folder: Path, *cells: str) -> list[Any]:
    """The cells after a run of them in a fresh kernel; those that begin with ``!`` may fail."""
    made = [nbformat.v4.new_code_cell("%load_ext harness_nb")]
    for cell in cells:
        made.append(nbformat.v4.new_code_cell(cell.removeprefix("!")))
        if cell.startswith("!"):
            made[-1].metadata["tags"] = ["raises-exception"]
    notebook = nbformat.v4.new_notebook(cells=made)
    NotebookClient(notebook, timeout=90, kernel_name="python3", resources={"metadata": {"path": str(folder)}}).execute()
    return notebook.cells[1:]


def texts(cell: Any) -> list[str]:
    return [output.data["text/plain"] for output in cell.outputs if "data" in output]


def error(cell: Any) -> str:
    (output,) = [output for output in cell.outputs if output.output_type == "error"]
    assert len(output.traceback) == 1, "a sentence, not a traceback"
    return str(output.evalue)


@pytest.mark.filterwarnings("ignore:unclosed")
def test_stopped_work_is_resumed_in_its_kernel_and_rewound_when_the_person_says_so(client: Any, tmp_path: Path) -> None:
    write(tmp_path, work=STOPPED, other=OTHER)
    reply, _ = execute(client, "%%agent --model scripted:work.json\nCount", interrupt_at="asleep")
    assert reply["ename"] == "KeyboardInterrupt" and "%agent resume goes on with it" in reply["evalue"]
    reply, shown = execute(client, "%agent resume")
    assert reply["status"] == "ok"
    assert "then 42" in shown.values() and any(text.startswith("✓ finished") for text in shown.values())
    (first,) = session_ids(tmp_path)

    busy = "import types; get_ipython().magics_manager.registry['AgentMagics'].run = "
    execute(client, f"{busy}types.SimpleNamespace(running=True)")
    for line in ("resume", "rewind 1", "fork", "export", "export --here"):
        reply, shown = execute(client, f"%agent {line}")
        assert "A task is being worked on. Wait for it, or stop it with %agent stop." in reply["evalue"]
    assert execute(client, "%agent steps")[0]["status"] == "ok"
    execute(client, f"{busy}None")

    for answer, there in (("no", True), ("y", False)):
        message, question = ask(client, "%agent rewind 1")
        assert question == "Change these files? [y/N] "
        client.input(answer)
        reply, shown = finish(client, message)
        assert reply["status"] == "ok" and (tmp_path / "notes.txt").exists() is there
    (fork,) = set(session_ids(tmp_path)) - {first}
    _, shown = execute(client, "%agent status")
    assert list(shown.values()) == [f"○ The next %%agent cell goes on in {fork}."]
    _, shown = execute(client, "%%agent --model scripted:other.json\nGo on")
    assert "now 41" in shown.values(), "the kernel was rebuilt up to step 1"
    assert any(text.startswith("✓ finished") and text.endswith(f"{fork}.ipynb") for text in shown.values())


def test_a_verification_is_stopped_by_an_interrupt_and_leaves_the_file_as_it_was(client: Any, tmp_path: Path) -> None:
    cell = nbformat.v4.new_code_cell("import time; time.sleep(300)")
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "slow.ipynb")
    before = (tmp_path / "slow.ipynb").read_bytes()
    at = "● Verifying slow.ipynb: cell 1 of 1: import time"
    reply, shown = execute(client, "%agent verify slow.ipynb", interrupt_at=at)
    assert (reply["ename"], reply["evalue"]) == ("KeyboardInterrupt", "%agent verify was stopped")
    assert list(shown.values()) == [""], "it does not say that it still verifies"
    assert (tmp_path / "slow.ipynb").read_bytes() == before


def test_another_process_resumes_and_forks_and_the_kernel_is_rebuilt(tmp_path: Path) -> None:
    script = [
        call("python", code="x = 41"),
        call("rebuild"),
        call("python", code="print('then', x + 1)"),
        {"text": "Ok"},
    ]
    write(tmp_path, work=script, other=OTHER)
    (stopped,) = run(tmp_path, "%%agent --model scripted:work.json --max-turns 1\nCount")
    assert texts(stopped)[-1].startswith("■ stopped: the limit of 1 turn is reached")
    (first,) = session_ids(tmp_path)
    find = f"import os, harness_nb.store as s\nfork, = {{*s.session_ids(s.Path())}} - {{{first!r}}}"
    resumed, again, nowhere, forked, went_on = run(
        tmp_path,
        f"%agent resume {first} --max-turns 9",
        "%agent resume",
        "!%agent resume nowhere",
        "%agent fork --at 1",
        f"{find}\nget_ipython().run_cell_magic('agent', f'--session {{fork}} --model scripted:other.json', 'Go on')",
    )
    shown = "\n".join(texts(resumed))
    assert "then 42" in shown and "in a fresh kernel" in shown and "✓ finished" in shown
    assert texts(again) == [
        f"○ There is nothing to resume: the work of {first} is finished. A %%agent cell gives it another task."
    ]
    assert "There is no session 'nowhere'" in error(nowhere)
    assert "Go on in it with %%agent --session" in texts(forked)[0]
    assert "now 41" in "\n".join(texts(went_on))


def test_without_a_person_nothing_is_asked_and_nothing_is_put_into_the_notebook(tmp_path: Path) -> None:
    write(tmp_path, work=[STOPPED[0], STOPPED[1], {"text": "Counted."}])
    _, refused, here, clean, usage, wrong = run(
        tmp_path,
        "%%agent --model scripted:work.json\nCount",
        "!%agent rewind 1",
        "%agent export --here",
        "%agent export --clean --verify",
        "%agent help",
        "!%agent export --cleen",
    )
    (session,) = session_ids(tmp_path)
    assert "Deleted, for they were not there then: notes.txt." in texts(refused)[0]
    assert "Nobody can be asked here: add --yes" in error(refused)
    assert texts(here) == [
        "○ No cells were put into this notebook: nobody has it open in a page that takes cells. They are in "
        f"harness_sessions/{session}.ipynb"
    ]
    assert texts(clean)[0].startswith("✓ Exported; reproduced: ") or texts(clean)[0].startswith("⚠ Exported; ran")
    assert all(f"{verb} " in texts(usage)[0] for verb in ("resume", "steps", "rewind", "fork", "export", "verify"))
    assert "No such option" in error(wrong) and "It is written: %agent export [PATH]" in error(wrong)
