"""Data flow over files: edits become the last text, readers find the version that they saw, runs are run."""

from __future__ import annotations

from pathlib import Path

import pytest
from recorded import Recorded, code_of, run_plainly, words_of

from harness_nb.export import clean_notebook
from harness_nb.export.files import source_of_write


def write(session: Recorded, path: str, content: str, say: str = "") -> None:
    session.call("write_file", {"path": path, "content": content}, say)


def replace(session: Recorded, path: str, search: str, new: str, say: str = "") -> None:
    session.call("search_replace", {"path": path, "search": search, "replace": new}, say)


@pytest.mark.parametrize("files", [True, False], ids=["files_changed", "sources only"])
def test_edits_are_collapsed_into_the_last_text(session: Recorded, files: bool) -> None:
    session.files = files
    write(session, "model.py", "def f():\n    return 1\n", "A first model.")
    replace(session, "model.py", "return 1", "return 2", "Better.")
    session.python("from model import f\nprint(f'{f()}')")
    export = clean_notebook(session.events, session.blob)
    assert code_of(export.notebook) == [
        "%%writefile model.py\ndef f():\n    return 2",
        "from model import f\nprint(f'{f()}')",
    ]
    assert export.complete
    assert "A first model." in words_of(export.notebook)
    assert run_plainly(export.notebook, session.workspace)["f"]() == 2


def test_each_reader_finds_the_version_that_it_saw(session: Recorded) -> None:
    write(session, "note.txt", "one\n")
    session.python("first = open('note.txt').read()")
    write(session, "note.txt", "two\n")
    session.python("second = open('note.txt').read()\nprint(f'{first}{second}')")
    export = clean_notebook(session.events, session.blob)
    namespace = run_plainly(export.notebook, session.workspace)
    assert (namespace["first"], namespace["second"]) == ("one\n", "two\n")
    assert [source.split("\n")[0] for source in code_of(export.notebook)][::2] == ["%%writefile note.txt"] * 2


def test_a_file_of_the_person_is_an_input_and_its_old_state_is_written_where_it_was_read(workspace: Path) -> None:
    (workspace / "limit.txt").write_text("10\n")
    session = Recorded(workspace)
    session.python("old = open('limit.txt').read()")
    replace(session, "limit.txt", "10", "20")
    session.python("print(f'{old} {open(\"limit.txt\").read()}')")
    export = clean_notebook(session.events, session.blob)
    assert "`limit.txt` as it was before:" in words_of(export.notebook)
    assert run_plainly(export.notebook, workspace)["old"] == "10\n"
    assert (workspace / "limit.txt").read_text() == "20\n"


def test_an_old_state_that_is_not_kept_is_told(workspace: Path) -> None:
    (workspace / "limit.txt").write_text("10\n")
    session = Recorded(workspace)
    session.python("old = open('limit.txt').read()")
    replace(session, "limit.txt", "10", "20")
    session.python("print(f'{old}')")
    export = clean_notebook(session.events, lambda digest: None)
    assert not export.complete
    assert "limit.txt" in {one.name for one in export.unresolved}


def test_folders_are_made_before_the_first_file_in_them(session: Recorded) -> None:
    (session.workspace / "src").mkdir()
    write(session, "src/helpers.py", "K = 3\n")
    session.python("import sys\nsys.path.insert(0, 'src')\nimport helpers\nprint(f'{helpers.K}')")
    export = clean_notebook(session.events, session.blob)
    sources = code_of(export.notebook)
    assert sources[0].endswith("from pathlib import Path")
    assert sources[1] == "Path('src').mkdir(parents=True, exist_ok=True)"
    (session.workspace / "src" / "helpers.py").unlink()
    (session.workspace / "src").rmdir()
    assert run_plainly(export.notebook, session.workspace)["helpers"].K == 3


def test_a_script_is_read_by_the_cell_that_runs_it_and_what_it_makes_is_not_written_but_made(session: Recorded) -> None:
    write(session, "train.py", "open('model.txt', 'w').write('bad')\n")
    session.call("bash", {"command": "python3 train.py"})
    write(session, "train.py", "import helpers\nopen('model.txt', 'w').write(helpers.TEXT)\n")
    write(session, "helpers.py", "TEXT = 'good'\n")
    session.call("bash", {"command": "python3 train.py"})
    session.python("print('weights', f\"{open('model.txt').read()}\")")
    export = clean_notebook(session.events, session.blob)
    firsts = [source.split("\n")[0] for source in code_of(export.notebook)]
    assert firsts[:-1] == ["%%writefile train.py", "%%writefile helpers.py", "%%bash"]
    (session.workspace / "model.txt").unlink()
    run_plainly(export.notebook, session.workspace)
    assert (session.workspace / "model.txt").read_text() == "good"


def test_edits_by_the_shell_are_edits(session: Recorded) -> None:
    session.call("bash", {"command": "cat > helpers.py <<'END'\nN = 1\nEND"})
    session.call("bash", {"command": "sed -i s/1/7/ helpers.py"})
    session.python("import helpers\nprint(f'{helpers.N}')")
    export = clean_notebook(session.events, session.blob)
    assert code_of(export.notebook)[0] == "%%writefile helpers.py\nN = 7"
    assert run_plainly(export.notebook, session.workspace)["helpers"].N == 7


def test_a_path_that_a_name_holds_is_followed(session: Recorded) -> None:
    session.python("from pathlib import Path\nout = Path('data') / 'table.csv'")
    session.python("out.parent.mkdir(exist_ok=True)\nout.write_text('a,b')")
    session.python("unused = 1")
    session.python("text = out.read_text()\nprint(f'{text}')")
    export = clean_notebook(session.events, session.blob)
    assert "unused = 1" not in code_of(export.notebook)
    (session.workspace / "data" / "table.csv").unlink()
    assert run_plainly(export.notebook, session.workspace)["text"] == "a,b"


def test_a_run_that_is_done_again_and_only_writes_is_kept_once(session: Recorded) -> None:
    for value in (1, 2):
        session.python(f"score = {value}\nopen('results.txt', 'w').write(str(score))")
    session.python("print('score', f'{score}')")
    export = clean_notebook(session.events, session.blob)
    assert [source for source in code_of(export.notebook) if "score = 1" in source] == []
    run_plainly(export.notebook, session.workspace)
    assert (session.workspace / "results.txt").read_text() == "2"


def test_appending_needs_what_was_there(session: Recorded) -> None:
    for value in (1, 2):
        session.python(f"with open('log.txt', 'a') as file:\n    file.write('{value}')")
    session.python("print('end', f'{1}')")
    export = clean_notebook(session.events, session.blob)
    (session.workspace / "log.txt").unlink()
    run_plainly(export.notebook, session.workspace)
    assert (session.workspace / "log.txt").read_text() == "12"


def test_a_file_that_was_deleted_is_deleted(workspace: Path) -> None:
    (workspace / "old.txt").write_text("old\n")
    session = Recorded(workspace)
    session.call("bash", {"command": "rm old.txt"})
    session.python("print('gone', f'{1}')")
    export = clean_notebook(session.events, session.blob)
    (workspace / "old.txt").write_text("old\n")
    run_plainly(export.notebook, workspace)
    assert not (workspace / "old.txt").exists()


def test_inputs_and_downloads_are_listed_with_their_hashes(workspace: Path) -> None:
    (workspace / "input.csv").write_text("1,2\n")
    session = Recorded(workspace)
    code = "url = 'https://example.org/data.txt'\nopen('data.txt', 'w').write('downloaded')"
    session.python(code + "\nrows = open('input.csv').read()")
    session.python("print(f'{rows}', open('data.txt').read())")
    from harness_nb.export.writing import WorkspaceNow

    words = words_of(clean_notebook(session.events, session.blob, WorkspaceNow(workspace)).notebook)
    assert "<https://example.org/data.txt>" in words
    assert "| `data.txt` | 10 | `" in words
    assert "| `input.csv` | 4 | `" in words and "was there before" in words


@pytest.mark.parametrize("text", ["", "no newline", "a\r\nb\n", "two\n\n", "a\n  \n", "\n\nx\n", "tab\there\n"])
def test_a_write_puts_down_every_byte(workspace: Path, text: str) -> None:
    source = source_of_write("file.txt", text)
    session = Recorded(workspace)
    if source.startswith("%%"):
        (workspace / "file.txt").write_text(source.partition("\n")[2] + "\n")
    else:
        session.python("from pathlib import Path\n" + source)
    assert (workspace / "file.txt").read_bytes() == text.encode()
