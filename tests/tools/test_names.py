"""The namespace manifest."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness_nb.tools.names import manifest


class Greedy:
    """Anything but type(value) is too much to ask of it."""

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(f"asked for {name}")

    def __len__(self) -> int:
        raise AssertionError("asked for its length")


def test_names_have_type_size_and_the_cell_that_made_them() -> None:
    made: dict[str, tuple[int, int]] = {}
    namespace = {"a": np.zeros((3, 4)), "words": ["x", "y"], "np": np, "_hidden": 1, "In": [], "odd": Greedy()}
    first = {row["name"]: row for row in manifest(namespace, {"In"}, 2, made)}
    assert first == {
        "a": {"name": "a", "type": "ndarray", "size": "3 x 4 float64", "cell": 2},
        "words": {"name": "words", "type": "list", "size": "2", "cell": 2},
        "np": {"name": "np", "type": "module", "size": "", "cell": 2},
        "odd": {"name": "odd", "type": "Greedy", "size": "", "cell": 2},
    }
    namespace["words"] = ["z"]
    namespace["f"] = len
    del namespace["odd"]
    rows = manifest(namespace, {"In"}, 5, made)
    assert [(row["name"], row["cell"]) for row in rows] == [("words", 5), ("f", 5), ("a", 2), ("np", 2)]


def test_the_manifest_is_bounded() -> None:
    rows = manifest({f"n{number}": number for number in range(1000)}, set(), 1, {})
    assert len(rows) == 200
