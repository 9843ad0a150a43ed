"""Tracebacks for the model and for the cell, on what IPython 9 sends."""

from __future__ import annotations

from harness_nb.outputs.bounds import DEFAULT_BOUNDS
from harness_nb.outputs.tracebacks import clean_error, traceback_text

RULER = "\x1b[31m" + "-" * 75 + "\x1b[39m"
TITLE = "\x1b[31mValueError\x1b[39m                                Traceback (most recent call last)"
PLACE = "\x1b[36mCell\x1b[39m\x1b[36m \x1b[39m\x1b[32mIn[2]\x1b[39m\x1b[32m, line 2\x1b[39m"
USER = f"{PLACE}\n      1 import json\n----> 2 f()\n"
LIBRARY = (
    "\x1b[36mFile \x1b[39m\x1b[32m~/env/lib/python3.11/json/decoder.py:337\x1b[39m, in decode(s)\n"
    "    332 def decode(s):\n    333     pass\n\n--> 337     obj, end = raw()\n    338     end = _w(s, end).end()\n"
)
OWN_FILE = "File ~/project/src/train.py:12, in train()\n     11 x = 1\n---> 12 raise ValueError(x)\n"
MESSAGE = "\x1b[31mValueError\x1b[39m: it is\nwrong"


def error(*frames: str, message: str = MESSAGE) -> dict[str, object]:
    return {"ename": "ValueError", "evalue": "it is\nwrong", "traceback": [RULER, TITLE, *frames, message]}


def test_library_frames_become_two_lines() -> None:
    assert traceback_text(error(USER, LIBRARY, OWN_FILE)) == (
        "Cell In[2], line 2\n"
        "      1 import json\n"
        "----> 2 f()\n"
        "File ~/env/lib/python3.11/json/decoder.py:337, in decode(s)\n"
        "--> 337     obj, end = raw()\n"
        "File ~/project/src/train.py:12, in train()\n"
        "     11 x = 1\n"
        "---> 12 raise ValueError(x)\n"
        "ValueError: it is\n"
        "wrong"
    )


def test_a_deep_recursion_is_told_in_a_few_frames() -> None:
    text = traceback_text(error(*[USER] * 2000))
    assert text.count("Cell In[2]") == 8
    assert "… 1,992 frames left out …" in text
    assert text.endswith("ValueError: it is\nwrong")


def test_chained_errors_keep_their_link() -> None:
    link = "\nThe above exception was the direct cause of the following exception:\n"
    text = traceback_text(error(USER, MESSAGE, link, TITLE, USER))
    assert text.split("\n")[3:6] == [
        "ValueError: it is",
        "wrong",
        "The above exception was the direct cause of the following exception:",
    ]


def test_a_syntax_error_keeps_its_caret() -> None:
    shown = "  Cell In[3], line 1\n    x = = 3\n        ^\nSyntaxError: invalid syntax\n"
    assert traceback_text({"ename": "SyntaxError", "evalue": "invalid syntax", "traceback": [shown]}) == (
        "  Cell In[3], line 1\n    x = = 3\n        ^\nSyntaxError: invalid syntax"
    )


def test_without_a_traceback_name_and_value_are_told() -> None:
    assert traceback_text({"ename": "OSError", "evalue": "\x1b[31mno\x1b[0m", "traceback": []}) == "OSError: no"
    interrupted = {"ename": "KeyboardInterrupt", "evalue": "", "traceback": ["KeyboardInterrupt: "]}
    assert traceback_text(interrupted) == "KeyboardInterrupt"
    assert traceback_text({}) == "Error"


def test_a_long_message_is_bounded() -> None:
    text = traceback_text(error(message="ValueError: " + "x" * 100_000))
    assert len(text) < 4200
    assert "characters left out" in text


def test_the_cell_keeps_colours_and_a_bounded_traceback() -> None:
    output = clean_error(error(*[USER] * 2000), DEFAULT_BOUNDS)
    assert output["output_type"] == "error"
    assert (output["ename"], output["evalue"]) == ("ValueError", "it is\nwrong")
    assert len(output["traceback"]) == 31
    assert output["traceback"][-1] == "\x1b[31mValueError\x1b[0m: it is\nwrong"
