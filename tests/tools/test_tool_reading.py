"""read_file, list_files and search_files: what they print and what they refuse."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_nb.tools.reading import list_files, read_file, search_files


def test_lines_are_numbered(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "a.py").write_text("import os\n\n  x = 1\n")
    read_file("a.py")
    assert capsys.readouterr().out == "     1\timport os\n     2\t\n     3\t  x = 1\n(all of a.py: 3 lines)\n"


def test_offset_and_limit_say_how_to_go_on(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "a.txt").write_text("".join(f"line {i}\n" for i in range(1, 1235)))
    read_file("a.txt")
    out = capsys.readouterr().out.splitlines()
    assert out[-1] == "(lines 1 to 400 of 1,234; go on with offset=401)"
    assert out[-2] == "   400\tline 400"
    read_file("a.txt", offset=1230, limit=400)
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "  1230\tline 1230"
    assert out[-1] == "(lines 1,230 to 1,234 of 1,234; the end of the file)"


def test_following_the_hints_reads_every_line_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f"{i} " + "x" * (i % 90) for i in range(1, 900)]
    (folder / "a.txt").write_text("\n".join(lines))
    seen, offset = [], 1
    while offset:
        read_file("a.txt", offset=offset)
        *shown, last = capsys.readouterr().out.splitlines()
        seen += [line.split("\t", 1)[1] for line in shown]
        assert sum(map(len, shown)) < 16_000
        offset = int(last.rpartition("offset=")[2].rstrip(")")) if "offset=" in last else 0
    assert seen == lines


def test_long_lines_are_cut_and_counted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "a.json").write_text("x" * 5000 + "\nend\n")
    read_file("a.json")
    first, second, _ = capsys.readouterr().out.splitlines()
    assert "3,000 more characters" in first
    assert second == "     2\tend"


@pytest.mark.parametrize(("content", "last"), [("", "(a is empty)"), ("one", "(all of a: 1 line)")])
def test_small_files(folder: Path, capsys: pytest.CaptureFixture[str], content: str, last: str) -> None:
    (folder / "a").write_text(content)
    read_file("a")
    assert capsys.readouterr().out.splitlines()[-1] == last


def test_past_the_end_says_how_long_the_file_is(folder: Path) -> None:
    (folder / "a.txt").write_text("1\n2\n")
    with pytest.raises(ValueError, match="has 2 lines"):
        read_file("a.txt", offset=9)
    with pytest.raises(ValueError, match="count from 1"):
        read_file("a.txt", offset=0)


def test_binaries_and_images_name_the_right_tool(folder: Path) -> None:
    (folder / "a.npz").write_bytes(b"PK\0\0rest")
    (folder / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    with pytest.raises(ValueError, match="binary file"):
        read_file("a.npz")
    with pytest.raises(ValueError, match=r"view_image\('a\.png'\)"):
        read_file("a.png")


def test_line_ends_and_encodings(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "dos.txt").write_bytes(b"a\r\nb\r\n")
    (folder / "bar.log").write_bytes(b"10%\r20%\rdone\nlatin \xe9\n")
    (folder / "wide.txt").write_text("ä\nö\n", encoding="utf-16")
    for name in ("dos.txt", "bar.log", "wide.txt"):
        read_file(name)
    out = capsys.readouterr().out
    assert "     1\ta\n     2\tb\n(all" in out
    assert "     1\t10%\\r20%\\rdone\n     2\tlatin \ufffd\n" in out
    assert "     1\tä\n     2\tö\n" in out


def test_one_folder_is_listed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "src" / "deep").mkdir(parents=True)
    (folder / "src" / "app.py").write_text("12345")
    for hidden in (".git", "__pycache__", "harness_sessions", ".venv"):
        (folder / hidden).mkdir()
    (folder / "b.txt").write_text("1")
    (folder / "a.txt").write_text("1" * 1234)
    list_files()
    assert capsys.readouterr().out == "a.txt  (1,234 bytes)\nb.txt  (1 bytes)\nsrc/  (2 entries)\n"
    list_files("src")
    assert capsys.readouterr().out == "app.py  (5 bytes)\ndeep/  (0 entries)\n"


@pytest.mark.parametrize("pattern", ["*.py", "**/*.py", "src/**/*.py", "./src/*/*.py"])
def test_a_pattern_looks_below(folder: Path, capsys: pytest.CaptureFixture[str], pattern: str) -> None:
    (folder / "src" / "deep").mkdir(parents=True)
    (folder / "src" / "deep" / "a.py").write_text("x")
    (folder / "src" / "deep" / "a.txt").write_text("x")
    list_files(pattern=pattern)
    assert capsys.readouterr().out == "src/deep/a.py  (1 bytes)\n"


def test_nothing_to_list_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    list_files()
    list_files(pattern="*.rs")
    assert capsys.readouterr().out == "('.' is empty)\n(no file below '.' matches '*.rs')\n"
    with pytest.raises(FileNotFoundError, match="no folder 'data'"):
        list_files("data")


def test_many_files_are_counted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(350):
        (folder / f"{number:03d}").touch()
    list_files()
    out = capsys.readouterr().out.splitlines()
    assert len(out) == 301
    assert out[-1] == "(… and 50 more, 350 in all; narrow it with path or pattern)"


def test_matches_have_path_and_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "src").mkdir()
    (folder / "src" / "a.py").write_text("x = 1\ny = total(2)\n")
    (folder / "b.bin").write_bytes(b"total\0")
    (folder / ".hidden").write_text("total")
    search_files(r"total\(")
    out = capsys.readouterr().out
    assert out == "src/a.py:2: y = total(2)\n(1 matching lines in 1 of 2 files)\n"
    search_files("nothing like it", "src/a.py")
    assert "no match for 'nothing like it' in 1 files" in capsys.readouterr().out


def test_a_bad_pattern_is_explained(folder: Path) -> None:
    with pytest.raises(ValueError, match=r"not a regular expression: missing \).*literally use") as caught:
        search_files("total(")
    assert "total\\\\(" in str(caught.value)


def test_many_and_long_matches_are_bounded(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "a.txt").write_text(("-" * 400 + "key" + "-" * 400 + "\n") * 120)
    search_files("key")
    out = capsys.readouterr().out.splitlines()
    assert len(out) == 101
    assert all("key" in line and len(line) < 330 for line in out[:-1])
    assert out[-1].startswith("(120 matching lines in 1 of 1 files; the first 100 are shown")


def test_search_does_not_follow_links_out(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "link.txt").symlink_to(folder.parent / "secrets.txt")
    search_files("secret")
    assert "no match" in capsys.readouterr().out
