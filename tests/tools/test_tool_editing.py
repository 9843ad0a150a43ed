"""write_file, search_replace and %%writefile: exact bytes, and answers that one can act on."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from harness_nb.tools.editing import search_replace, write_file, writefile_magic

SOURCE = """def total(prices, discount):
    amount = sum(prices)
    amount = amount - discount
    return amount - discount
"""


def test_writing_makes_folders_and_says_what_was_done(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_file("src/pkg/a.py", "x = 1\ny = 2\n")
    assert (folder / "src/pkg/a.py").read_text() == "x = 1\ny = 2\n"
    write_file("src/pkg/a.py", "z\n")
    write_file("src/pkg/a.py", "z\n")
    write_file("src/pkg/a.py", "end", append=True)
    write_file("src/pkg/a.py", "less\n", append=True)
    write_file("src/pkg/a.py", "", append=True)
    assert (folder / "src/pkg/a.py").read_bytes() == b"z\nendless\n"
    write_file("src/pkg/a.py", "")
    write_file("src/pkg/a.py", "1")
    write_file("new.txt", "1\n", append=True)
    (folder / "a.bin").write_bytes(b"a\n\0\n")
    write_file("a.bin", "x\n")
    assert capsys.readouterr().out.splitlines() == [
        "Created src/pkg/a.py: 2 lines, 12 bytes",
        "Replaced src/pkg/a.py (was 2 lines): 1 line, 2 bytes",
        "Replaced src/pkg/a.py (was the same): 1 line, 2 bytes",
        "Appended to src/pkg/a.py: 1 line, 3 bytes, without a final newline; it now has 2 lines, 5 bytes",
        "Appended to src/pkg/a.py: 1 line, 5 bytes; it now has 2 lines, 10 bytes; "
        "its last line had no final newline, so the new text goes on in that line",
        "Appended to src/pkg/a.py: 0 lines, 0 bytes; it now has 2 lines, 10 bytes",
        "Replaced src/pkg/a.py (was 2 lines): 0 lines, 0 bytes",
        "Replaced src/pkg/a.py (was empty): 1 line, 1 byte, without a final newline",
        "Created new.txt: 1 line, 2 bytes",
        "Replaced a.bin (was 4 bytes): 1 line, 2 bytes",
    ]


def test_content_is_written_byte_for_byte(folder: Path) -> None:
    content = "a\r\nb\rc {x} $HOME \\n ü\n\n  end"
    write_file("a.txt", content)
    assert (folder / "a.txt").read_bytes() == content.encode()


def test_the_mode_is_kept_and_no_temporary_file_stays(folder: Path) -> None:
    script = folder / "run.sh"
    script.write_text("old\n")
    script.chmod(0o755)
    write_file("run.sh", "new\n")
    search_replace("run.sh", "new", "newer")
    assert stat.S_IMODE(script.stat().st_mode) == 0o755
    assert [entry.name for entry in folder.iterdir()] == ["run.sh"]


def test_what_cannot_be_written_is_explained(folder: Path) -> None:
    (folder / "file").write_text("x")
    (folder / "sub").mkdir()
    for path, content, told in [
        ("sub", "x", "'sub' is a folder; give the path of a file"),
        ("file/a.txt", "x", "a part of 'file/a.txt' is a file, so nothing can be below it"),
        ("../a.txt", "x", "'../a.txt' is outside the workspace; only paths inside it work"),
        ("a.txt", "ab\ud800", "content holds a lone surrogate at character 2, which UTF-8 cannot say; remove it"),
        ("n" * 300, "x", f"'{'n' * 200}…' cannot be written: file name too long"),
    ]:
        with pytest.raises((OSError, ValueError)) as caught:
            write_file(path, content)
        assert str(caught.value) == told
        assert hasattr(caught.value, "_render_traceback_")
    assert not (folder / "a.txt").exists()


def test_the_magic_writes_the_cell(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    writefile_magic("src/a.py", "x = '{y} $z'\n")
    writefile_magic('-a "src/a.py"', "more\n")
    assert (folder / "src/a.py").read_text() == "x = '{y} $z'\nmore\n"
    assert capsys.readouterr().out.splitlines() == [
        "Created src/a.py: 1 line, 13 bytes with the final newline",
        "Appended to src/a.py: 1 line, 5 bytes with the final newline; it now has 2 lines, 18 bytes",
    ]
    with pytest.raises(ValueError) as two:
        writefile_magic("a b", "x")
    assert str(two.value) == "write %%writefile [-a] path, with one path; quote a path that has spaces"
    with pytest.raises(ValueError) as open_quote:
        writefile_magic("it's", "x")
    assert str(open_quote.value) == "the line after %%writefile cannot be read: No closing quotation"


def test_one_match_is_replaced_and_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "shop.py").write_text(SOURCE)
    search_replace("shop.py", "    return amount - discount\n", "    return amount\n")
    assert (folder / "shop.py").read_text() == SOURCE.replace("return amount - discount", "return amount")
    assert capsys.readouterr().out == (
        "Replaced 1 match in shop.py at line 4. The text there is now:\n"
        "     1\tdef total(prices, discount):\n"
        "     2\t    amount = sum(prices)\n"
        "     3\t    amount = amount - discount\n"
        "     4\t    return amount\n"
    )


def refusal(search: str, replace: str = "new text", path: str = "shop.py") -> str:
    with pytest.raises(ValueError) as caught:
        search_replace(path, search, replace)
    return str(caught.value)


def test_several_matches_are_shown_with_their_lines(folder: Path) -> None:
    (folder / "shop.py").write_text(SOURCE)
    assert refusal("amount - discount") == (
        "search matches 2 times in shop.py; nothing was changed. "
        "Add text around it so that it matches once. They begin in these lines:\n"
        "     3\t    amount = amount - discount\n"
        "     4\t    return amount - discount"
    )
    assert (folder / "shop.py").read_text() == SOURCE


def test_many_matches_are_named_once_a_line_and_not_all(folder: Path) -> None:
    (folder / "shop.py").write_text("x, x\n" * 40)
    assert refusal("x") == (
        "search matches 80 times in shop.py; nothing was changed. "
        "Add text around it so that it matches once. They begin in these lines:\n"
        + "".join(f"{number:6d}\tx, x\n" for number in range(1, 6))
        + "      \t… and in lines 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, …"
    )
    (folder / "shop.py").write_text("a\nx = 1; x = 2\n")
    assert refusal("x = ") == (
        "search matches 2 times in shop.py; nothing was changed. "
        "Add text around it so that it matches once. All of them begin in this line:\n     2\tx = 1; x = 2"
    )


ROW_2, ROW_3 = "     2\t    amount = sum(prices)", "     3\t    amount = amount - discount"


@pytest.mark.parametrize(
    ("search", "told"),
    [
        (
            "  amount = sum(prices)\n  amount = amount - discount",
            f"Lines 2 to 3 differ only in indentation: your first line is indented by 2 spaces, the file's by 4:\n"
            f"{ROW_2}\n{ROW_3}",
        ),
        (
            "    amount = sum(prices)\n  amount = amount - discount",
            f"Lines 2 to 3 differ only in indentation: line 2 of yours is indented by 2 spaces, the file's by 4:\n"
            f"{ROW_2}\n{ROW_3}",
        ),
        (
            "\tamount = sum(prices)",
            f"Line 2 differs only in indentation: your text is indented by 1 tab, the file's by 4 spaces:\n{ROW_2}",
        ),
        (
            "amount = sum(prices)\namount = amount - discount",
            "Lines 2 to 3 differ only in indentation: "
            "your first line is indented by nothing, the file's by 4 spaces:\n"
            f"{ROW_2}\n{ROW_3}",
        ),
        ("    amount = sum( prices )", f"Line 2 differs only in white space within a line:\n{ROW_2}"),
        (
            "    amount = sum(prices) ",
            "Line 2 differs only in white space at the end of a line: "
            "your text ends in 1 space, the file's in nothing:\n"
            f"{ROW_2}",
        ),
        (
            "\n    amount = sum(prices)\n\n",
            f"Line 2 differs only in the line ends before or behind it:\n{ROW_2}",
        ),
        ("    amount = sum(price)\n    amount = amount", f"The nearest lines are:\n{ROW_2}\n{ROW_3}"),
        ("qqqq wwww eeee", "Nothing in the file is like it; read the file again."),
        (" \n\t", "Read the file again and copy the text exactly."),
        (
            f"{ROW_2}\n{ROW_3}",
            "It holds the line numbers that read_file prints; leave out each number and the tab behind it.",
        ),
    ],
)
def test_no_match_shows_the_nearest_lines_and_the_reason(folder: Path, search: str, told: str) -> None:
    (folder / "shop.py").write_text(SOURCE)
    assert refusal(search) == f"search matches 0 times in shop.py; nothing was changed. {told}"
    assert (folder / "shop.py").read_text() == SOURCE


def test_line_ends_of_two_kinds_are_named(folder: Path) -> None:
    (folder / "shop.py").write_bytes(b"one = 1\r\ntwo = 2\nthree\n")
    assert refusal("one = 1\ntwo = 2") == (
        "search matches 0 times in shop.py; nothing was changed. "
        "Lines 1 to 2 differ only in the kind of line end:\n     1\tone = 1\n     2\ttwo = 2"
    )


MADE = "The text to put there is in the file already, so this edit may have been made before:"


@pytest.mark.parametrize(
    ("search", "replace", "told"),
    [
        ("amount = sum(prices)", "amount = fsum(prices)[0]", f"{MADE}\n     2\t    amount = fsum(prices)[0]"),
        ("def old(a):\n    pass\n", "def total(prices, discount):\n", f"{MADE}\n     1\tdef total(prices, discount):"),
        (
            "    amount = fsum(prices)[0] + 1",
            "amount = fsum(prices)[0]",
            "The nearest lines are:\n     2\t    amount = fsum(prices)[0]",
        ),
        (
            "  amount = amount - discount\n  return amount - discount",
            "  amount = amount - discount",
            "Lines 3 to 4 differ only in indentation: your first line is indented by 2 spaces, the file's by 4:\n"
            "     3\t    amount = amount - discount\n     4\t    return amount - discount",
        ),
        (
            "    amount = amounts - discounts\n",
            "    amount = fsum(prices)[0]\n",
            "The nearest lines are:\n     3\t    amount = amount - discount",
        ),
        ("qqqq wwww eeee", "discount)", "Nothing in the file is like it; read the file again."),
    ],
)
def test_a_repeated_edit_is_recognised_and_nothing_else_is(folder: Path, search: str, replace: str, told: str) -> None:
    (folder / "shop.py").write_text(SOURCE.replace("sum(prices)", "fsum(prices)[0]"))
    assert refusal(search, replace) == f"search matches 0 times in shop.py; nothing was changed. {told}"


def test_the_lines_of_a_refusal_are_bounded(folder: Path) -> None:
    (folder / "shop.py").write_text(f"key {'y' * 9000}\nend\n")
    assert refusal("key " + "y" * 3000 + "\nEND").endswith(f"\n     1\tkey {'y' * 496}…\n     2\tend")


def test_windows_line_ends_are_kept(folder: Path) -> None:
    (folder / "a.txt").write_bytes(b"one\r\ntwo\r\nthree\r\n")
    search_replace("a.txt", "one\ntwo\n", "1\n2\n")
    assert (folder / "a.txt").read_bytes() == b"1\r\n2\r\nthree\r\n"


def test_useless_or_impossible_edits_are_refused(folder: Path) -> None:
    (folder / "a.txt").write_text("x")
    (folder / "b.txt").write_bytes(b"caf\xe9")
    (folder / "c.npz").write_bytes(b"\0")
    for path, search, replace, told in [
        ("a.txt", "", "y", "search is empty; give the text to replace, or use write_file for a whole file"),
        ("a.txt", "x", "x", "search and replace are the same, so nothing would change"),
        ("a.txt", "x", "\ud800", "replace holds a lone surrogate at character 0, which UTF-8 cannot say; remove it"),
        ("b.txt", "c", "d", "'b.txt' is not UTF-8 (from byte 3 on); edit it with python and its own encoding"),
        ("c.npz", "c", "d", "'c.npz' is not text (1 byte); load it with python: numpy.load('c.npz')"),
    ]:
        assert refusal(search, replace, path) == told
    assert (folder / "a.txt").read_text() == "x"


def test_a_file_may_become_empty(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "a.txt").write_text("x\n")
    search_replace("a.txt", "x\n", "")
    assert capsys.readouterr().out == "Replaced 1 match in a.txt at line 1. The file is now empty.\n"


def test_a_long_change_is_shown_in_part(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "a.txt").write_text("start\nhere\nend\n")
    search_replace("a.txt", "here", "\n".join(f"line {i}" for i in range(100)))
    out = capsys.readouterr().out.splitlines()
    assert len(out) == 42
    assert out[0] == "Replaced 1 match in a.txt at line 2. The text there is now:"
    assert out[21] == "      \t… 62 lines not shown …"
    assert out[-1] == "   102\tend"


def test_the_nearest_lines_of_a_large_file_are_found_soon(folder: Path) -> None:
    (folder / "big.py").write_text("".join(f"value_{i} = compute({i}, {i + 1})\n" for i in range(20_000)))
    with pytest.raises(ValueError, match=" 15001\tvalue_15000 = compute"):
        search_replace("big.py", "value_15000 = compute(15000, 15002)", "x")


def test_a_long_search_text_that_is_wrong_in_its_middle_is_told_where(folder: Path) -> None:
    (folder / "shop.py").write_text(
        "def total(prices):\n    amount = sum(prices)\n    amount -= discount\n    return amount\n"
    )
    said = refusal("def total(prices):\n    amount = sum(prices)\n    amount = amount - discount\n    return amount")
    assert said.endswith(
        "\nThe first 2 lines are the same; then your search text has\n      \t    amount = amount - discount"
    )
