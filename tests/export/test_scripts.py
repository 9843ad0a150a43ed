"""Cell magics in scripts: the Python for them does the same, without IPython."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from harness_nb.export.scripts import without_magics


@pytest.mark.parametrize(
    "body", ["second\n", "", "a = '''x'''\nb = \"\"\"y\"\"\"\n", "\\n \\ {braces} é\n", "no end", "\n\nblank\n\n"]
)
def test_a_file_is_written_as_the_magic_writes_it(tmp_path: Path, body: str) -> None:
    script = without_magics(f"%%writefile 'a b.txt'\n{body}")
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
    assert (tmp_path / "a b.txt").read_text("utf-8") == (body if not body or body.endswith("\n") else body + "\n")


def test_a_shell_cell_runs_in_bash(tmp_path: Path) -> None:
    script = without_magics("%%bash\necho $((6 * 7)) > out.txt\n[[ a == a ]] && echo 'it is' >> out.txt\n")
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
    assert (tmp_path / "out.txt").read_text() == "42\nit is\n"


@pytest.mark.parametrize(
    "source", ["x = 1", "%time x", "%%bash --bg\nsleep 9", "%%writefile -a f\nx", "%%bash '\nx", ""]
)
def test_anything_else_stays(source: str) -> None:
    assert without_magics(source) == source
