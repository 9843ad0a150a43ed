"""Tools as the model sees them, and the cells that calls render to."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from harness_nb.toolset import STANDARD_TOOLS, Toolset, literal
from harness_nb.types import ToolCall

TOOLS = Toolset(STANDARD_TOOLS)


def call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall(call_id="c1", name=name, arguments=arguments)


def test_the_model_is_told_what_it_must_know() -> None:
    specs = {spec.name: spec for spec in TOOLS.specs}
    assert list(specs) == [
        *("python", "bash", "read_file", "write_file", "search_replace"),
        *("list_files", "search_files", "view_image", "wait", "rebuild", "finish"),
    ]
    for name in ("python", "bash"):
        assert "default 120" in specs[name].description
        assert "16,000 characters" in specs[name].description
    assert "Names, imports, loaded data and the working directory persist" in specs["python"].description
    assert "`cd`, `export`, aliases and shell variables do not" in specs["bash"].description
    assert "picture" in specs["python"].description


def test_schemas_come_from_signatures() -> None:
    specs = {spec.name: spec.parameters for spec in TOOLS.specs}
    assert specs["read_file"]["required"] == ["path"]
    assert specs["read_file"]["properties"]["limit"]["default"] == 400
    assert specs["list_files"]["properties"]["pattern"]["type"] == "string"
    assert specs["write_file"]["additionalProperties"] is False
    assert "title" not in str(specs)


@pytest.mark.parametrize(
    ("made", "source"),
    [
        (call("python", code="x = 1\nx"), "x = 1\nx"),
        (call("bash", command="ls -l"), "%%bash\nls -l"),
        (call("read_file", path="a b.txt", offset=3), "read_file('a b.txt', offset=3)"),
        (call("write_file", path="src/a.py", content="x = 1\n"), "%%writefile src/a.py\nx = 1"),
        (call("write_file", path="a.py", content="x = 1", append=True), "%%writefile -a a.py\nx = 1"),
        (call("write_file", path="a b.py", content="x\n"), '%%writefile "a b.py"\nx'),
        (call("write_file", path="a", content="x\n\n"), "write_file('a', 'x\\n\\n', append=False)"),
        (call("write_file", path="a", content="\n"), "write_file('a', '\\n', append=False)"),
        (call("write_file", path="a", content="x\n  \n"), "write_file('a', 'x\\n  \\n', append=False)"),
        (call("write_file", path="a", content=""), "write_file('a', '', append=False)"),
        (call("write_file", path="a", content="x\r\ny"), "write_file('a', 'x\\r\\ny', append=False)"),
        (call("list_files"), "list_files()"),
        (call("list_files", path="d", pattern="*.py"), "list_files('d', pattern='*.py')"),
        (call("search_files", pattern=r"def \w+"), r"search_files('def \\w+')"),
        (call("view_image", path="p.png"), "view_image('p.png')"),
        (call("finish", summary="done"), ""),
    ],
    ids=lambda value: value.name if isinstance(value, ToolCall) else None,
)
def test_a_call_renders_to_one_cell(made: ToolCall, source: str) -> None:
    assert TOOLS.problem(made) is None
    assert TOOLS.render(made) == source


@pytest.mark.parametrize(
    "text",
    [
        "one line",
        "a\nb",
        "say \"hi\"\nand 'bye'\n",
        "\"\"\"\n'''\nx",
        "back\\slash\nline",
        "ends with \\\n\\",
        "\ttab\nx\r",
        '"x\ny"',
    ],
)
def test_literals_evaluate_to_the_text(text: str) -> None:
    assert ast.literal_eval(literal(text)) == text


def test_code_with_backslashes_stays_readable() -> None:
    assert literal('print("a\\n")\nprint(2)\n') == "r'''print(\"a\\n\")\nprint(2)\n'''" or literal(
        'print("a\\n")\nprint(2)\n'
    ).startswith('r"""print("a\\n")\nprint(2)\n')


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (call("pyhton", code="1"), "no tool named 'pyhton'"),
        (call("python"), "code is missing"),
        (call("python", code="1", timeout=-1), "timeout"),
        (call("python", code="1", timout=5), "timout is not a parameter"),
        (call("read_file", path="a", offset=0), "offset"),
        (ToolCall(call_id="c", name="bash", malformed='{"command": "ls'), "not a whole JSON object"),
    ],
)
def test_a_call_that_cannot_be_run_says_why(made: ToolCall, words: str) -> None:
    problem = TOOLS.problem(made)
    assert problem is not None
    assert words in problem


def test_arguments_have_their_defaults() -> None:
    assert TOOLS.arguments(call("python", code="1")) == {"code": "1", "timeout": 120.0}
    assert TOOLS.arguments(call("wait")) == {"call": "last", "seconds": 600.0, "until": None, "stop": False}
