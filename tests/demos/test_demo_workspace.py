"""Which demo is picked, and whose folder a demo may write into."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from harness_nb.demos import DEMOS, pick_demo
from harness_nb.demos import pick as pick_module
from harness_nb.errors import UsageError


def test_digits_is_picked_where_there_is_no_archive(tmp_path: Path) -> None:
    name, why = pick_demo({"XDG_CACHE_HOME": str(tmp_path)})
    assert name == "digits"
    assert "HARNESS_NB_CIFAR10 is not set" in why and str(tmp_path) in why


def test_cifar10_is_picked_where_its_archive_is_set_or_cached(tmp_path: Path) -> None:
    assert pick_demo({"HARNESS_NB_CIFAR10": "/data/cifar", "XDG_CACHE_HOME": str(tmp_path)})[0] == "cifar10"
    archive = tmp_path / "harness_nb" / "cifar-10-python.tar.gz"
    archive.parent.mkdir()
    archive.touch()
    name, why = pick_demo({"XDG_CACHE_HOME": str(tmp_path)})
    assert name == "cifar10"
    assert str(archive) in why


def test_the_choice_needs_nothing_installed(tmp_path: Path) -> None:
    command = [sys.executable, "-I", "-S", str(pick_module.__file__)]
    environment = {"XDG_CACHE_HOME": str(tmp_path)}
    why = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    name = subprocess.run([*command, "--name"], env=environment, capture_output=True, text=True, check=True).stdout
    assert (name.strip(), why.strip()) == pick_demo(environment)


@pytest.mark.parametrize("name", ["checkout", "digits"])
def test_a_folder_with_other_files_is_left_alone(name: str, tmp_path: Path) -> None:
    mine = tmp_path / "tests" / "test_mine.py"
    mine.parent.mkdir()
    mine.write_text("assert True\n")
    with pytest.raises(UsageError, match="Give an empty folder"):
        DEMOS[name].prepare(tmp_path, {})
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [mine]


def test_the_workspace_of_another_demo_is_left_alone(tmp_path: Path) -> None:
    workspace = tmp_path / "work"
    workspace.mkdir()
    DEMOS["checkout"].prepare(workspace, {})
    with pytest.raises(UsageError, match="workspace of the demo checkout"):
        DEMOS["digits"].prepare(workspace, {})


def test_sessions_alone_do_not_make_a_folder_somebody_elses(tmp_path: Path) -> None:
    workspace = tmp_path / "work"
    (workspace / "harness_sessions").mkdir(parents=True)
    assert DEMOS["checkout"].prepare(workspace, {})
    assert (workspace / "checkout" / "pricing.py").is_file()
