"""Changes in the text of a JSON file: the value is there, and every other byte is as it was."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness_nb.verify.splice import insert_element, remove_element, replace_value

TEXTS = {
    "jupyter": '{\n "cells": [\n  {\n   "a": 1.0e5\n  },\n  {\n   "b": "\\u00fc"\n  }\n ],\n'
    ' "metadata": {\n  "k": 1\n }\n}\n',
    "four": '{\n    "cells": [\n        {\n            "a": 1\n        }\n    ],\n    "metadata": {}\n}',
    "tabs": '{\n\t"cells": [],\n\t"metadata": {\n\t\t"k": {}\n\t}\n}\n',
    "one line": '{"cells": [{"a": 1}, {"b": 2}], "metadata": {"k": 1}}',
    "compact": '{"cells":[{"a":1}],"metadata":{}}',
    "empty": '{"cells": [], "metadata": {}}\n',
    "no metadata": '{\n  "cells": [ {"a": 1} ]\n}\n',
    "mark and windows": '\ufeff{\r\n "cells": [\r\n  {"a": 1}\r\n ],\r\n "metadata": {\r\n  "k": [1, 2]\r\n }\r\n}\r\n',
}


def load(text: str) -> Any:
    return json.loads(text.lstrip("\ufeff"))


def lines_without(text: str, more: str) -> bool:
    """Whether all of ``text`` is still there, in its order."""
    rest = iter(more)
    return all(character in rest for character in text)


@pytest.mark.parametrize("name", TEXTS)
def test_a_member_is_added_deep_down_and_replaced(name: str) -> None:
    text = TEXTS[name]
    expected = load(text)
    expected.setdefault("metadata", {})["ours"] = {"v": {"x": [1, "ä"]}}
    added = replace_value(text, ["metadata", "ours", "v"], {"x": [1, "ä"]})
    assert load(added) == expected
    assert lines_without(text, added)
    replaced = replace_value(added, ["metadata", "ours", "v"], 7)
    expected["metadata"]["ours"]["v"] = 7
    assert load(replaced) == expected
    again = replace_value(replaced, ["metadata", "ours", "v"], {"x": [1, "ä"]})
    assert again == added, "the same place, the same bytes"
    assert ("\r\n" in text) == ("\r\n" in added)
    assert "\n" not in added.replace("\r\n", "") or "\r\n" not in text


@pytest.mark.parametrize("name", TEXTS)
def test_an_element_is_inserted_at_any_place_and_removed_again(name: str) -> None:
    text = TEXTS[name]
    cells = load(text)["cells"]
    for index in range(len(cells) + 1):
        more = insert_element(text, ["cells"], index, {"new": ["x"]})
        assert load(more)["cells"] == [*cells[:index], {"new": ["x"]}, *cells[index:]]
        assert lines_without(text, more)
        less = remove_element(more, ["cells"], index)
        assert load(less) == load(text)
        if cells:
            assert less == text


def test_the_layout_of_the_file_is_kept() -> None:
    more = insert_element(TEXTS["jupyter"], ["cells"], 0, {"new": 1})
    assert more.startswith('{\n "cells": [\n  {\n   "new": 1\n  },\n  {\n   "a": 1.0e5\n  },')
    added = replace_value(TEXTS["jupyter"], ["metadata", "x"], {"y": 1})
    assert added.endswith(' "metadata": {\n  "k": 1,\n  "x": {\n   "y": 1\n  }\n }\n}\n')
    assert "1.0e5" in added
    assert "\\u00fc" in added, "numbers and escapes are not written anew"


def test_what_cannot_be_done_is_refused() -> None:
    for text, path in [('{"a": 1}', ["a", "b"]), ("[1]", ["a"]), ('{"a": [1]}', ["a", 3])]:
        with pytest.raises(ValueError):
            replace_value(text, path, 1)
    with pytest.raises(ValueError, match="there is no 'cells'"):
        insert_element("{}", ["cells"], 0, 1)
