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


def test_writing_makes_folders_and_says_what_was_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_file("src/pkg/a.py", "x = 1\ny = 2\n")
    assert (folder / "src/pkg/a.py").read_text() == "x = 1\ny = 2\n"
    write_file("src/pkg/a.py", "z\n")
    write_file("src/pkg/a.py", "end", append=True)
    assert (folder / "src/pkg/a.py").read_bytes() == b"z\nend"
    assert capsys.readouterr().out.splitlines() == [
        "Wrote src/pkg/a.py: 2 lines, 12 bytes",
        "Overwrote src/pkg/a.py: 1 line, 2 bytes",
        "Appended 1 line, 3 bytes to src/pkg/a.py, which now has 2 lines, 5 bytes",
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
    with pytest.raises(IsADirectoryError, match="is a folder"):
        write_file("sub", "x")
    with pytest.raises(NotADirectoryError, match="nothing can be below it"):
        write_file("file/a.txt", "x")
    with pytest.raises(PermissionError, match="outside the workspace"):
        write_file("../a.txt", "x")
    with pytest.raises(ValueError, match="lone surrogate at position 2"):
        write_file("a.txt", "ab\ud800")
    assert not (folder / "a.txt").exists()


def test_the_magic_writes_the_cell(folder: Path) -> None:
    writefile_magic("src/a.py", "x = '{y} $z'\n")
    writefile_magic('-a "src/a.py"', "more\n")
    assert (folder / "src/a.py").read_text() == "x = '{y} $z'\nmore\n"
    with pytest.raises(ValueError, match="with one path"):
        writefile_magic("a b", "x")
    with pytest.raises(ValueError, match="cannot be read"):
        writefile_magic("it's", "x")


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


def test_several_matches_are_counted_with_their_lines(folder: Path) -> None:
    (folder / "shop.py").write_text(SOURCE)
    with pytest.raises(ValueError, match=r"matches 2 times in shop\.py \(lines 3, 4\); nothing was changed"):
        search_replace("shop.py", "amount - discount", "amount")
    assert (folder / "shop.py").read_text() == SOURCE


@pytest.mark.parametrize(
    ("search", "reason"),
    [
        ("  amount = sum(prices)\n  amount = amount - discount", "Lines 2 to 3 differ only in indentation:"),
        ("\tamount = sum(prices)", r"Lines 2 to 2 differ only in indentation \(tabs against spaces\)"),
        ("    amount = sum(prices) \n    amount = amount", "The nearest lines are:\n     2\t"),
        ("    amount = sum( prices )", "Lines 2 to 2 differ only in white space within a line"),
        ("    return amount - discount ", "differ only in white space at the end of a line"),
        ("    amount = sum(price)\n    amount = amount - discount", "The nearest lines are:\n     2\t    amount = sum"),
        ("qqqq wwww eeee", "Nothing in the file is like it"),
    ],
)
def test_no_match_shows_the_nearest_lines_and_the_reason(folder: Path, search: str, reason: str) -> None:
    (folder / "shop.py").write_text(SOURCE)
    with pytest.raises(ValueError, match=f"(?s)matches 0 times in shop.py; nothing was changed.*{reason}"):
        search_replace("shop.py", search, "x")
    assert (folder / "shop.py").read_text() == SOURCE


def test_a_repeated_edit_is_recognised(folder: Path) -> None:
    (folder / "shop.py").write_text(SOURCE)
    search_replace("shop.py", "sum(prices)", "fsum(prices)[0]")
    with pytest.raises(ValueError, match="already there, at line 2"):
        search_replace("shop.py", "amount = sum(prices)", "fsum(prices)[0]")


def test_windows_line_ends_are_kept(folder: Path) -> None:
    (folder / "a.txt").write_bytes(b"one\r\ntwo\r\nthree\r\n")
    search_replace("a.txt", "one\ntwo\n", "1\n2\n")
    assert (folder / "a.txt").read_bytes() == b"1\r\n2\r\nthree\r\n"


def test_useless_or_impossible_edits_are_refused(folder: Path) -> None:
    (folder / "a.txt").write_text("x")
    (folder / "b.txt").write_bytes(b"caf\xe9")
    with pytest.raises(ValueError, match="search is empty"):
        search_replace("a.txt", "", "y")
    with pytest.raises(ValueError, match="are the same"):
        search_replace("a.txt", "x", "x")
    with pytest.raises(ValueError, match="not UTF-8"):
        search_replace("b.txt", "c", "d")


def test_a_long_change_is_shown_in_part(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "a.txt").write_text("start\nhere\nend\n")
    search_replace("a.txt", "here", "\n".join(f"line {i}" for i in range(100)))
    out = capsys.readouterr().out.splitlines()
    assert len(out) == 42
    assert "… 62 lines …" in out[21]
    assert out[-1] == "   102\tend"


def test_the_nearest_lines_of_a_large_file_are_found_soon(folder: Path) -> None:
    (folder / "big.py").write_text("".join(f"value_{i} = compute({i}, {i + 1})\n" for i in range(20_000)))
    with pytest.raises(ValueError, match=" 15001\tvalue_15000 = compute"):
        search_replace("big.py", "value_15000 = compute(15000, 15002)", "x")
