"""search_files: hits with path and line, honest counts, and no way into the record of the sessions."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_nb.tools import searching
from harness_nb.tools.searching import search_files


@pytest.fixture
def project(folder: Path) -> Path:
    (folder / "src").mkdir()
    (folder / "src" / "a.py").write_text("x = 1\ny = total(2)\n")
    (folder / "src" / "b.py").write_text("total(3)\ntotal(4)\n")
    (folder / "notes.txt").write_text("nothing\n")
    (folder / "b.bin").write_bytes(b"total(\0")
    (folder / ".hidden").write_text("total(")
    return folder


def last_line(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out.splitlines()[-1]


def test_matches_have_path_and_line(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    search_files(r"total\(")
    assert capsys.readouterr().out == (
        "src/a.py:2:y = total(2)\nsrc/b.py:1:total(3)\nsrc/b.py:2:total(4)\n"
        "(3 hits in 2 files; 3 text files searched)\n"
    )
    search_files("y =")
    assert last_line(capsys) == "(1 hit in 1 file; 3 text files searched)"
    search_files("x", "src/a.py")
    assert last_line(capsys) == "(1 hit in 1 file; 1 text file searched)"


def test_no_match_says_what_was_searched_and_for_what(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    search_files(r"sum\(", "src")
    assert last_line(capsys) == r"(no line matches 'sum\('; 2 text files searched, hidden ones left out)"
    search_files(r"x = 1\ny", "src/a.py")
    assert last_line(capsys) == (
        r"(no line matches 'x = 1\ny'; 1 text file searched, hidden ones left out; "
        r"each line is matched by itself, so \n finds nothing)"
    )


@pytest.mark.parametrize(
    ("pattern", "told"),
    [
        (
            "make_line(",
            "'make_line(' is not a regular expression: missing ), unterminated subpattern at position 9; "
            r"to find this text as it stands, pattern: make_line\(",
        ),
        (
            "a[0 b-c",
            r"'a[0 b-c' is not a regular expression: unterminated character set at position 1; "
            r"to find this text as it stands, pattern: a\[0 b-c",
        ),
        (
            "*.py",
            "'*.py' is not a regular expression: nothing to repeat at position 0; "
            r"to find this text as it stands, pattern: \*\.py",
        ),
    ],
)
def test_a_bad_pattern_is_explained_with_one_that_works(project: Path, pattern: str, told: str) -> None:
    with pytest.raises(ValueError) as caught:
        search_files(pattern)
    assert str(caught.value) == told
    search_files(told.rpartition("pattern: ")[2])


def test_many_and_long_matches_are_bounded(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "a.txt").write_text(("-" * 400 + "key" + "-" * 400 + "\n") * 120)
    search_files("key")
    out = capsys.readouterr().out.splitlines()
    assert all("key" in line and len(line) < 330 for line in out[:-1])
    assert sum(len(line) + 1 for line in out[:-1]) <= 15_000
    assert out[-1] == (
        "(120 hits in 1 file; 1 text file searched; the first 48 are shown, narrow the pattern or the path)"
    )
    (folder / "a.txt").write_text("key\n" * 120)
    search_files("key")
    assert "; the first 100 are shown, narrow" in last_line(capsys)


def test_what_could_not_be_searched_is_counted(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "SEARCHED_BYTES", 1_000_000)
    (project / "huge.txt").write_text("total(\n" * 200_000)
    search_files("nothing")
    assert last_line(capsys) == "(1 hit in 1 file; 3 text files searched; 1 file above 1 MB left out)"


def test_missing_paths_and_binary_files_are_explained(project: Path) -> None:
    with pytest.raises(FileNotFoundError) as missing:
        search_files("x", "a.py")
    assert str(missing.value) == "there is no file or folder 'a.py'; near names: src/a.py"
    with pytest.raises(ValueError) as binary:
        search_files("x", "b.bin")
    assert str(binary.value) == "'b.bin' is not text (7 bytes); load it with python: open('b.bin', 'rb')"


def test_search_does_not_follow_links_out(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "link.txt").symlink_to(folder.parent / "secrets.txt")
    search_files("secret")
    assert last_line(capsys) == "(no line matches 'secret'; 0 text files searched, hidden ones left out)"


def test_of_the_record_only_whole_outputs_are_searched(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outputs = folder / "harness_sessions" / "s" / "outputs"
    outputs.mkdir(parents=True)
    for path in (outputs / "c1.txt", outputs.parent / "journal.jsonl", outputs.parent.with_suffix(".ipynb")):
        path.write_text("key\n")
    search_files("key")
    assert last_line(capsys) == "(no line matches 'key'; 0 text files searched, hidden ones left out)"
    for path in ("harness_sessions/s/outputs", "harness_sessions/s/outputs/c1.txt"):
        search_files("key", path)
        assert capsys.readouterr().out == (
            "harness_sessions/s/outputs/c1.txt:1:key\n(1 hit in 1 file; 1 text file searched)\n"
        )
    for path in ("harness_sessions", "harness_sessions/s"):
        search_files("key", path)
        assert capsys.readouterr().out == (
            "harness_sessions/s/outputs/c1.txt:1:key\n"
            "(1 hit in 1 file; 1 text file searched; "
            "of harness_sessions only the files in <id>/outputs/ are searched)\n"
        )
    with pytest.raises(PermissionError) as caught:
        search_files("key", "harness_sessions/s/journal.jsonl")
    assert str(caught.value) == (
        "'harness_sessions/s/journal.jsonl' belongs to the record of the sessions; "
        "of harness_sessions only the files in <id>/outputs/ are searched"
    )
