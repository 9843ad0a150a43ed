"""Paths: relative to the workspace, and never out of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness_nb.tools import workspace as places
from harness_nb.tools.entries import existing_file, existing_folder, near_entries
from harness_nb.tools.workspace import brief, counted, plainly, quoted, resolve, shown, workspace


def test_the_setup_cell_can_run_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "harness_sessions").mkdir()
    monkeypatch.chdir(tmp_path / "harness_sessions")
    monkeypatch.setattr(places, "_places", {})
    workspace("..")
    assert Path.cwd() == tmp_path
    workspace("..")
    assert Path.cwd() == tmp_path
    assert resolve("a.txt") == tmp_path / "a.txt"


@pytest.mark.parametrize("path", ["../secrets.txt", "/etc/passwd", "a/../../secrets.txt", ".."])
def test_paths_do_not_leave_the_workspace(folder: Path, path: str) -> None:
    with pytest.raises(PermissionError, match="outside the workspace"):
        resolve(path)


def test_a_link_that_leads_out_is_refused(folder: Path) -> None:
    (folder / "innocent").symlink_to(folder.parent / "secrets.txt")
    (folder / "up").symlink_to(folder.parent)
    for path in ("innocent", "up/secrets.txt"):
        with pytest.raises(PermissionError) as caught:
            resolve(path)
        assert str(caught.value) == f"'{path}' leads outside the workspace by a link; only paths inside it work"


def test_absolute_paths_inside_and_changed_directories_are_fine(folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "a.txt").write_text("a")
    os.chdir(folder / "sub")
    assert resolve("a.txt") == folder / "a.txt"
    assert resolve(str(folder / "a.txt")) == folder / "a.txt"
    assert shown(folder / "sub" / "b.txt") == "sub/b.txt"


@pytest.mark.parametrize("path", ["", "  ", "a\0b"])
def test_what_is_no_path_is_refused(folder: Path, path: str) -> None:
    with pytest.raises(ValueError, match="is not a path"):
        resolve(path)


@pytest.fixture
def project(folder: Path) -> Path:
    for path in (
        "checkout/cart.py",
        "checkout/deep/price.py",
        "tests/cart.py",
        "data/train.csv",
        ".env",
        ".git/cart.py",
    ):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("x")
    return folder


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("cart.py", "there is no file 'cart.py'; near names: checkout/cart.py, tests/cart.py"),
        ("checkout/Price.py", "there is no file 'checkout/Price.py'; near names: checkout/deep/price.py"),
        ("data/training.csv", "there is no file 'data/training.csv'; near names: data/train.csv"),
        (
            "chekout/qqqq.py",
            "there is no file 'chekout/qqqq.py'; there is no folder 'chekout' either; near names: checkout/",
        ),
        ("env", "there is no file 'env'; near names: .env"),
        ("checkout/zzz", "there is no file 'checkout/zzz'; see list_files('checkout')"),
        ("qqq/www/zzz", "there is no file 'qqq/www/zzz'; there is no folder 'qqq/www' either; see list_files('.')"),
        ("a\\b", "there is no file 'a\\b'; see list_files('.')"),
        ("x" * 300, f"'{'x' * 200}…' cannot be read: file name too long"),
    ],
)
def test_a_missing_file_names_near_ones_in_all_folders(project: Path, path: str, told: str) -> None:
    with pytest.raises(OSError) as caught:
        existing_file(path)
    assert str(caught.value) == told
    assert caught.value._render_traceback_() == [f"{type(caught.value).__name__}: {told}"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("deep", "there is no folder 'deep'; near names: checkout/deep/"),
        ("checkot", "there is no folder 'checkot'; near names: checkout/"),
        ("train.csv", "there is no folder 'train.csv'; see list_files('.')"),
        ("data/train.csv", "'data/train.csv' is a file; read it with read_file('data/train.csv')"),
    ],
)
def test_a_missing_folder_names_near_folders(project: Path, path: str, told: str) -> None:
    with pytest.raises(OSError) as caught:
        existing_folder(path)
    assert str(caught.value) == told


def test_what_may_be_either_is_looked_for_among_both(project: Path) -> None:
    assert near_entries(project / "train.csv") == "; near names: data/train.csv"
    assert near_entries(project / "deep") == "; near names: checkout/deep"


def test_a_folder_is_no_file(folder: Path) -> None:
    (folder / "src").mkdir()
    os.mkfifo(folder / "pipe")
    with pytest.raises(IsADirectoryError) as caught:
        existing_file("src")
    assert str(caught.value) == "'src' is a folder; list it with list_files('src')"
    with pytest.raises(ValueError, match=r"^'pipe' is not a regular file and cannot be read$"):
        existing_file("pipe")


def test_what_the_system_objects_to_is_told_in_one_line(folder: Path) -> None:
    with pytest.raises(PermissionError) as caught, plainly(folder / "a.txt", "written"):
        raise PermissionError(13, "Permission denied", "/tmp/.a.txt.17.tmp")
    assert str(caught.value) == "'a.txt' cannot be written: permission denied"
    assert hasattr(caught.value, "_render_traceback_")
    with pytest.raises(FileNotFoundError, match=r"^our own words$"), plainly(folder, "read"):
        raise brief(FileNotFoundError("our own words"))


def test_names_are_quoted_as_they_stand(folder: Path) -> None:
    assert quoted(r"total\(") == r"'total\('"
    assert quoted("two\nlines") == r"'two\nlines'"
    assert quoted("y" * 201) == f"'{'y' * 200}…'"


@pytest.mark.parametrize(
    ("number", "noun", "told"),
    [(1, "byte", "1 byte"), (0, "entry", "0 entries"), (1, "entry", "1 entry"), (1234, "line", "1,234 lines")],
)
def test_counts_have_the_right_number(number: int, noun: str, told: str) -> None:
    assert counted(number, noun) == told


def test_a_brief_error_renders_as_one_line() -> None:
    error = brief(ValueError("what to do"))
    assert error._render_traceback_() == ["ValueError: what to do"]  # type: ignore[attr-defined]
