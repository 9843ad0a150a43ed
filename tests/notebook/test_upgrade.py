"""Notebooks of nbformat 4.4: stable ids for the cells, every other byte as it was."""

from __future__ import annotations

import copy
import json

import nbformat
import pytest
from edited import folded, ids, markdown, notebook_of, without_ids
from story import tell

from harness_nb.errors import StoreError
from harness_nb.notebook import events_of, upgraded

OLD = without_ids(notebook_of(folded(tell()).snapshot()))


def test_ids_are_valid_unique_and_the_same_each_time() -> None:
    before = copy.deepcopy(OLD)
    made = upgraded(OLD)
    nbformat.validate(made)
    assert (made["nbformat"], made["nbformat_minor"]) == (4, 5)
    assert len(set(ids(made))) == len(OLD["cells"])
    assert upgraded(json.loads(json.dumps(OLD))) == made
    assert before == OLD


def test_nothing_else_is_touched_not_even_the_order_of_keys() -> None:
    def text(notebook: dict[str, object]) -> str:
        return json.dumps(notebook, indent=1, ensure_ascii=False)

    made = upgraded(OLD)
    assert text({**made, **without_ids(made)}) == text(OLD)
    places = [list(cell).index("id") for cell in made["cells"]]
    assert places == [list(cell).index("metadata") - 1 for cell in made["cells"]]


def test_ids_do_not_change_when_cells_are_added_elsewhere() -> None:
    more = {**OLD, "cells": [*OLD["cells"][:2], {**markdown("x"), "id": "bad id!"}, *OLD["cells"][2:]]}
    made = ids(upgraded(more))
    assert [name for at, name in enumerate(made) if at != 2] == ids(upgraded(OLD))
    assert made[2].startswith("cell-")


def test_only_cells_without_a_good_id_are_new_objects() -> None:
    good, twice, long = markdown("a_b-1"), markdown("a_b-1", "other"), markdown("x" * 65)
    without = {key: value for key, value in markdown("").items() if key != "id"}
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [good, twice, long, without, {**without}]}
    made = upgraded(notebook)
    nbformat.validate(made)
    assert made["cells"][0] is good
    assert len(set(ids(made))) == 5
    assert [cell["source"] for cell in made["cells"]] == ["mine", "other", "mine", "mine", "mine"]
    assert upgraded(made) is made


def test_a_later_minor_version_stays() -> None:
    notebook = {"nbformat": 4, "nbformat_minor": 6, "metadata": {}, "cells": [markdown("")]}
    assert upgraded(notebook)["nbformat_minor"] == 6


@pytest.mark.parametrize("notebook", [{"nbformat": 3, "worksheets": []}, {"nbformat": 4}, {}])
def test_other_formats_are_refused_with_the_way_out(notebook: dict[str, object]) -> None:
    with pytest.raises(StoreError, match="Open it in JupyterLab"):
        upgraded(notebook)


def test_a_session_is_read_from_a_notebook_without_ids() -> None:
    assert events_of(OLD) == events_of(notebook_of(folded(tell()).snapshot()))
    assert events_of(upgraded(OLD)) == events_of(OLD)
