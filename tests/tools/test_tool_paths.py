"""Paths: relative to the workspace, and never out of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness_nb.tools import workspace as places
from harness_nb.tools.workspace import brief, existing_file, resolve, shown, workspace


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
        with pytest.raises(PermissionError, match="outside the workspace"):
            resolve(path)


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


def test_a_missing_file_names_near_ones(folder: Path) -> None:
    (folder / "training.py").write_text("x")
    with pytest.raises(FileNotFoundError, match=r"near names: training\.py"):
        existing_file("trainin.py")
    with pytest.raises(FileNotFoundError, match="no folder 'nowhere' either"):
        existing_file("nowhere/a.py")


def test_a_folder_is_no_file(folder: Path) -> None:
    (folder / "src").mkdir()
    with pytest.raises(IsADirectoryError, match=r"list_files\('src'\)"):
        existing_file("src")


def test_a_brief_error_renders_as_one_line() -> None:
    error = brief(ValueError("what to do"))
    assert error._render_traceback_() == ["ValueError: what to do"]  # type: ignore[attr-defined]
