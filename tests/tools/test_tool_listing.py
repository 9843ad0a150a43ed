"""list_files: paths that every tool takes as they are, sizes, and what is said when there is nothing to list."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_nb.tools.listing import list_files


def test_one_folder_is_listed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "src" / "deep").mkdir(parents=True)
    (folder / "src" / "app.py").write_text("12345")
    (folder / "src" / "deep" / "one").touch()
    for hidden in (".git", "__pycache__", "harness_sessions", ".venv"):
        (folder / hidden).mkdir()
    (folder / "b.txt").write_text("1")
    (folder / "a.txt").write_text("1" * 1234)
    list_files()
    assert capsys.readouterr().out == "a.txt  (1,234 bytes)\nb.txt  (1 byte)\nsrc/  (2 entries)\n"
    list_files("src")
    assert capsys.readouterr().out == "src/app.py  (5 bytes)\nsrc/deep/  (1 entry)\n"


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        (".", "*.py"),
        (".", "**/*.py"),
        (".", "src/**/*.py"),
        (".", "./src/*/*.py"),
        ("src", "*.py"),
        ("src", "deep/*.py"),
        ("src", "src/deep/*.py"),
        ("src/deep", "a.*y"),
    ],
)
def test_a_pattern_looks_below_and_gives_paths_of_the_workspace(
    folder: Path, capsys: pytest.CaptureFixture[str], path: str, pattern: str
) -> None:
    (folder / "src" / "deep").mkdir(parents=True)
    (folder / "src" / "deep" / "a.py").write_text("x")
    (folder / "src" / "deep" / "a.txt").write_text("x")
    list_files(path, pattern=pattern)
    assert capsys.readouterr().out == "src/deep/a.py  (1 byte)\n"


def test_nothing_to_list_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "harness_sessions").mkdir()
    list_files()
    (folder / "src").mkdir()
    list_files("src")
    (folder / "src" / ".env").touch()
    list_files("src")
    list_files(pattern="*.rs")
    list_files("src", pattern="[!a]*.rs")
    assert capsys.readouterr().out.splitlines() == [
        "(the workspace is empty)",
        "('src' is empty)",
        "('src' holds only hidden files)",
        "(no file in the workspace matches '*.rs'; hidden files are not looked at)",
        "(no file below 'src' matches '[!a]*.rs'; hidden files are not looked at)",
    ]


def test_a_missing_folder_is_told_with_near_ones(folder: Path) -> None:
    (folder / "dataset").mkdir()
    with pytest.raises(FileNotFoundError) as caught:
        list_files("datasets")
    assert str(caught.value) == "there is no folder 'datasets'; near names: dataset/"


def test_many_files_are_counted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(350):
        (folder / f"{number:03d}").touch()
    list_files()
    out = capsys.readouterr().out.splitlines()
    assert len(out) == 301
    assert out[-1] == "(… and 50 more, 350 in all; narrow it with path or pattern)"


def test_long_names_are_bounded_too(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(100):
        (folder / f"{number:03d}{'n' * 197}").touch()
    list_files()
    out = capsys.readouterr().out
    assert out.splitlines()[-1] == "(… and 30 more, 100 in all; narrow it with path or pattern)"
    assert len(out) < 15_100
