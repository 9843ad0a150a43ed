"""The cells of a session notebook, run again by nbclient in an ordinary python3 kernel with harness_nb installed."""

from __future__ import annotations

import base64
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from harness_nb.tools import SETUP_SOURCE

DOCTEST = 'def double(x):\n    """\n    >>> double(2)\n    4\n    """\n    return 2 * x\n'
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="  # 1 x 1, PNG


def execute(folder: Path, *sources: str) -> list[nbformat.NotebookNode]:
    sessions = folder / "harness_sessions"
    sessions.mkdir(exist_ok=True)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    resources = {"metadata": {"path": str(sessions)}}
    NotebookClient(notebook, timeout=60, kernel_name="python3", resources=resources).execute()
    return [cell.outputs for cell in notebook.cells]


def test_all_tools_work_and_the_setup_cell_may_run_twice(tmp_path: Path) -> None:
    (tmp_path / "pixel.png").write_bytes(base64.b64decode(PIXEL))
    outputs = execute(
        tmp_path,
        SETUP_SOURCE,
        SETUP_SOURCE,
        f"%%writefile src/{{x}}.py\n{DOCTEST}",
        "%%bash\npython3 - <<'E'\nprint('from $HOME {y}')\nE\necho err >&2",
        "read_file('src/{x}.py', offset=3, limit=1)",
        "search_replace('src/{x}.py', search='2 * x', replace='x + x')",
        "view_image('pixel.png')",
        "list_files('src')\nsearch_files('x \\\\+ x')",
    )
    assert outputs[0] == []
    assert [output.output_type for output in outputs[1]] == ["stream"], "IPython says that it is loaded already"
    assert (tmp_path / "src" / "{x}.py").read_text() == DOCTEST.replace("2 * x", "x + x")
    texts = {(o.name, o.text) for o in outputs[3]}
    assert texts == {("stdout", "from $HOME {y}\n"), ("stderr", "err\n")}
    assert outputs[4][0].text.startswith("     3\t    >>> double(2)\n")
    assert "at line 6" in outputs[5][0].text
    assert outputs[6][0].text == "pixel.png: PNG, 1 x 1 pixels, 70 bytes\n"
    assert set(outputs[6][1].data) == {"image/png"}
    assert "src/{x}.py:6:    return x + x" in outputs[7][0].text


def test_failures_are_short_errors_that_stop_the_run(tmp_path: Path) -> None:
    with pytest.raises(CellExecutionError) as caught:
        execute(tmp_path, SETUP_SOURCE, "%%bash\necho before\nexit 4")
    assert (caught.value.ename, caught.value.evalue) == ("CalledProcessError", "bash exited with status 4")
    with pytest.raises(CellExecutionError) as caught:
        execute(tmp_path, SETUP_SOURCE, "read_file('../secrets.txt')")
    assert caught.value.ename == "PermissionError"
    assert caught.value.traceback.count("\n") < 20
    with pytest.raises(CellExecutionError, match=r"nobody can answer input\(\)"):
        execute(tmp_path, SETUP_SOURCE, "input('name? ')")
