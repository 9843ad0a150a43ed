"""The flight recorder: what is written by the kernel's side is read by the harness's side."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from harness_nb.kernel.recording import unsent_text
from harness_nb.tools.recorder import KEPT_CHARACTERS, Recorder


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    (tmp_path / "printed").touch()
    return Recorder(str(tmp_path / "printed"))


@pytest.fixture
def unsent(tmp_path: Path) -> Callable[[str, int], list[tuple[str, str]]]:
    return lambda request, received: unsent_text((tmp_path / "printed").read_bytes(), request, received)


def test_what_was_not_received_is_read_in_order(
    recorder: Recorder, unsent: Callable[[str, int], list[tuple[str, str]]]
) -> None:
    recorder.add("old", "stdout", "earlier cell")
    recorder.add("a", "stdout", "one")
    recorder.add("a", "stderr", "two")
    recorder.add("a", "stdout", "drei€\ud800")
    assert unsent("a", 0) == [("stdout", "one"), ("stderr", "two"), ("stdout", "drei€\ud800")]
    assert unsent("a", 4) == [("stderr", "wo"), ("stdout", "drei€\ud800")]
    assert unsent("a", 12) == []
    assert unsent("old", 0) == unsent("b", 0) == []


def test_a_client_with_more_than_was_recorded_gets_what_was_not_published(
    recorder: Recorder, unsent: Callable[[str, int], list[tuple[str, str]]]
) -> None:
    recorder.add("a", "stdout", "sent")
    recorder.published("a", 4)
    recorder.add("a", "stdout", "kept")
    assert unsent("a", 400) == [("stdout", "kept")]


def test_the_end_of_a_flood_is_kept(recorder: Recorder, unsent: Callable[[str, int], list[tuple[str, str]]]) -> None:
    chance, whole = random.Random(3), ""
    for number in range(3000):
        text = f"{number} " * chance.randrange(1, 60)
        recorder.add("a", "stdout", text)
        whole += text
    tail = "".join(text for _, text in unsent("a", 0))
    assert whole.endswith(tail)
    assert len(tail) > 100_000
    position = len(whole) - 12_345
    assert "".join(text for _, text in unsent("a", position)) == whole[position:]


def test_one_huge_print_keeps_its_end(recorder: Recorder, unsent: Callable[[str, int], list[tuple[str, str]]]) -> None:
    text = "".join(map(str, range(100_000)))
    recorder.add("a", "stdout", "before")
    recorder.add("a", "stdout", text)
    recorder.add("a", "stderr", "after")
    assert unsent("a", 6 + len(text) - 10) == [("stdout", text[-10:]), ("stderr", "after")]
    assert unsent("a", 6)[-2:] == [("stdout", text[-KEPT_CHARACTERS:]), ("stderr", "after")]


def test_an_empty_file_holds_nothing(tmp_path: Path) -> None:
    assert unsent_text(b"", "a", 0) == []
