from __future__ import annotations

import re

import pytest

from harness_nb.ui.html import GREEN, CallState, Link, call_block, last_line, table
from harness_nb.ui.last_line import dollars, duration
from harness_nb.ui.relay import SHOWN_LINES, relay
from harness_nb.ui.source import TITLE_LENGTH, call_title, highlight, visible

OK = CallState("✓", "1 s", GREEN)


def plain_text(markup: str) -> str:
    return re.sub(r"<[^>]*>", "", markup).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


@pytest.mark.parametrize(
    "source",
    [
        "x = 1  # <one> & two\nprint('a', f\"{x!r}\")",
        '%%bash\nfor i in 1 2; do\n  echo "$i" && ls\ndone',
        "%%writefile src/a.py\n\n\ndef f():\n    return 1",
        "%%writefile notes.unknown\n<b>bold</b>",
        '%%writefile x.json\n{"a": 1}',
        "read_file('a.py', offset=1, limit=400)",
    ],
)
def test_highlighting_changes_no_character(source: str) -> None:
    markup = highlight(source)
    assert plain_text(markup).replace("&#x27;", "'").replace("&quot;", '"') == source


def test_code_is_coloured_by_its_language() -> None:
    assert 'style="color' in highlight("%%bash\nif true; then ls; fi")
    assert 'style="color' in highlight("%%writefile a.py\nimport os")
    assert ">import</span>" in highlight("import os")


def test_nothing_in_a_source_can_hide() -> None:
    assert visible("rm x\r\x1b[8m\u202e ok\n\ttab é") == "rm x\\r\\x1b[8m\\u202e ok\n\ttab é"
    assert "\u202e" not in highlight("x = 1 # \u202e")


@pytest.mark.parametrize(
    ("name", "arguments", "title"),
    [
        ("python", {"code": "\n# Train the net\nimport torch"}, "Train the net"),
        ("python", {"code": "import os\nfrom a import b\nprint(os)"}, "print(os)"),
        ("python", {"code": "import os"}, "import os"),
        ("python", {"code": ""}, ""),
        ("bash", {"command": "set -e\ncd src\npytest -q"}, "pytest -q"),
        ("read_file", {"path": "a.py"}, "a.py"),
        ("read_file", {"path": "a.py", "offset": 20}, "a.py from line 20"),
        ("write_file", {"path": "a.py", "content": "x\ny\n"}, "a.py (2 lines)"),
        ("write_file", {"path": "a.py", "content": "x", "append": True}, "a.py (+1 line)"),
        ("search_files", {"pattern": "def f", "path": "src"}, "def f in src"),
        ("list_files", {}, "."),
        ("view_image", {"path": "plot.png"}, "plot.png"),
        ("other", {"n": 3}, "3"),
    ],
)
def test_titles(name: str, arguments: dict[str, object], title: str) -> None:
    assert call_title(name, arguments) == title


def test_a_title_is_one_line_of_bounded_length() -> None:
    title = call_title("python", {"code": "x = '" + "a" * 500})
    assert len(title) == TITLE_LENGTH


def test_short_source_is_open_and_long_source_is_folded() -> None:
    short, long = call_block("python", "t", "x = 1", OK), call_block("python", "t", "x = 1\n" * 40, OK)
    assert "<details open" in str(short.data["text/html"])
    assert "<details style" in str(long.data["text/html"])
    assert "<details open" in str(call_block("python", "t", "x = 1\n" * 40, OK, unfold=True).data["text/html"])
    assert "<details style" in str(call_block("read_file", "a", "read_file('a')", OK).data["text/html"])


def test_titles_and_notes_are_escaped() -> None:
    block = call_block("<b>", "<script>", "<i>", OK, note="<u>")
    markup = str(block.data["text/html"])
    assert not any(tag in markup for tag in ("<b>&lt;b&gt;</b><", "<script>", "<i>", "<u>"))
    assert "&lt;script&gt;" in markup


def test_a_link_is_relative_and_quoted() -> None:
    link = Link('harness sessions/ä"#.ipynb', "<label>")
    assert 'href="harness%20sessions/%C3%A4%22%23.ipynb"' in link.html
    assert "&lt;label&gt;</a>" in link.html
    line = last_line("✓", "finished", ["1 turn"], GREEN, link)
    assert line.data["text/plain"] == 'finished · 1 turn · harness sessions/ä"#.ipynb'.replace("finished", "✓ finished")


def test_a_table_has_a_plain_twin() -> None:
    bundle = table(["id", "task"], [(Link("a.ipynb", "s1"), "<x>"), ("s2", "y")])
    assert bundle.data["text/plain"] == "id  task\ns1  <x>\ns2  y"
    assert "&lt;x&gt;" in str(bundle.data["text/html"])


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (0.01, "< 0.1 s"),
        (1.25, "1.2 s"),
        (3.0, "3 s"),
        (59.6, "1 min 0 s"),
        (200, "3 min 20 s"),
        (3900, "1 h 5 min"),
    ],
)
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_costs() -> None:
    assert [dollars(None), dollars(0.0), dollars(0.0123)] == ["cost unknown", "$0", "$0.0123"]


def stream(text: str, name: str = "stdout") -> dict[str, object]:
    return {"output_type": "stream", "name": name, "text": text}


def test_streams_become_text_displays() -> None:
    shown = relay(stream("a\n"), running=False)
    assert shown is not None and shown.data == {"text/plain": "a"}
    error = relay(stream("a\n", "stderr"), running=False)
    assert error is not None and error.data["application/vnd.jupyter.stderr"] == "a"
    assert relay(stream("\n"), running=False) is None


def test_long_text_shows_its_end_while_it_runs_and_is_folded_then() -> None:
    text = "".join(f"\x1b[31mline {number}\x1b[0m\n" for number in range(1, 101))
    running = relay(stream(text), running=True)
    assert running is not None
    lines = str(running.data["text/plain"]).splitlines()
    assert len(lines) == SHOWN_LINES
    assert lines[0] == "… 71 earlier lines"
    assert "line 72" in lines[1]
    over = relay(stream(text), running=False)
    assert over is not None
    markup = str(over.data["text/html"])
    assert "100 lines of output" in markup
    assert markup.count("line 99\n") == 2 and markup.count("line 50\n") == 1
    assert "\x1b" not in markup
    assert str(over.data["text/plain"]).count("\n") == 99
    looked = relay(stream(text), running=False, look=True)
    assert looked is not None and str(looked.data["text/html"]).count("line 99\n") == 1


def test_lines_that_the_firewall_left_out_are_not_counted() -> None:
    lines = [f"line {number}" for number in range(50)]
    text = "\n".join([*lines[:25], "… 9,950 lines (1.2 MB) left out; whole output: outputs/c1.txt …", *lines[25:]])
    over, running = relay(stream(text), running=False), relay(stream(text), running=True)
    assert over is not None and "the first and last 50 lines of output" in str(over.data["text/html"])
    assert running is not None and str(running.data["text/plain"]).startswith("… earlier lines\n")


def test_an_error_becomes_text_and_a_result_a_display() -> None:
    trace = {"output_type": "error", "ename": "E", "evalue": "v", "traceback": ["\x1b[31mE\x1b[0m", "v"]}
    shown = relay(trace, running=False)
    assert shown is not None and shown.data["text/plain"] == "\x1b[31mE\x1b[0m\nv"
    bare = relay({**trace, "traceback": []}, running=False)
    assert bare is not None and bare.data["text/plain"] == "E: v"
    value = {"output_type": "execute_result", "execution_count": 1, "data": {"text/plain": "2"}, "metadata": {"a": 1}}
    result = relay(value, running=False)
    assert result is not None and result.data == {"text/plain": "2"} and result.metadata == {"a": 1}


def test_a_widget_is_shown_by_its_other_forms() -> None:
    data = {"application/vnd.jupyter.widget-view+json": {"model_id": "x"}, "text/plain": "0%|"}
    shown = relay({"output_type": "display_data", "data": data, "metadata": {}}, running=False)
    assert shown is not None and shown.data == {"text/plain": "0%|"}
