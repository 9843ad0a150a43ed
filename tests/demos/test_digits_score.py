"""The scorer of digits: what it prints and how it exits, for good files and for bad ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from harness_nb.demos.demo import DATA

TRUTH = "id,label\n" + "".join(f"{n},{n % 10}\n" for n in range(20))


def score(folder: Path, predictions: str | None, at_least: str = "0.9") -> tuple[int, str]:
    (folder / "labels.csv").write_text(TRUTH)
    if predictions is not None:
        (folder / "predictions.csv").write_text(predictions)
    command = [sys.executable, "-I", str(DATA / "digits" / "score.py"), "labels.csv", "predictions.csv"]
    done = subprocess.run([*command, "--at-least", at_least], cwd=folder, capture_output=True, text=True)
    assert done.stderr == ""
    return done.returncode, done.stdout


def test_all_right(tmp_path: Path) -> None:
    code, text = score(tmp_path, TRUTH)
    assert code == 0
    assert "accuracy 1.0000 (20 of 20 right)" in text and "reached" in text


def test_the_order_of_rows_does_not_matter(tmp_path: Path) -> None:
    head, *rows = TRUTH.splitlines(keepends=True)
    assert score(tmp_path, head + "".join(reversed(rows)))[0] == 0


def test_mix_ups_are_named_and_the_bar_is_kept(tmp_path: Path) -> None:
    wrong = TRUTH.replace("3,3\n", "3,8\n").replace("13,3\n", "13,8\n").replace("5,5\n", "5,9\n", 1)
    code, text = score(tmp_path, wrong)
    assert code == 1
    assert "accuracy 0.8500 (17 of 20 right)" in text
    assert "3 taken for 8: 2" in text and "5 taken for 9: 1" in text and "NOT reached" in text
    assert score(tmp_path, wrong, at_least="0.85")[0] == 0


@pytest.mark.parametrize(
    ("predictions", "says"),
    [
        (None, "there is no file predictions.csv"),
        ("", "the columns of predictions.csv are missing"),
        (TRUTH.replace("id,label", "image,digit"), "['image', 'digit']; they must be id,label"),
        ("id,label\n0,0\n1,1\n", "18 of 20 ids have no prediction, the first is 2"),
        (TRUTH + "20,0\n", "1 ids are not among the 20 of the test, the first is 20"),
        (TRUTH + "4,4\n", "the id 4 occurs twice"),
        (TRUTH.replace("7,7\n", "7,\n"), "line 9 of predictions.csv is not an id and a label"),
        (TRUTH.replace("7,7\n", "7.0,7\n"), "line 9 of predictions.csv is not an id and a label"),
        (TRUTH.replace("7,7\n", "7,7,7\n"), "line 9 of predictions.csv is not an id and a label"),
    ],
)
def test_what_cannot_be_scored_is_said(tmp_path: Path, predictions: str | None, says: str) -> None:
    code, text = score(tmp_path, predictions)
    assert code == 1
    assert text.startswith("not scored: ") and says in text
