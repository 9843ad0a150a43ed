"""read_file: what it prints, what it says of what it left out, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_nb.tools.reading import read_file


def test_lines_are_numbered(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "a.py").write_text("import os\n\n  x = 1\n")
    read_file("a.py")
    assert capsys.readouterr().out == "     1\timport os\n     2\t\n     3\t  x = 1\n(all of a.py: 3 lines)\n"


@pytest.mark.parametrize(
    ("offset", "limit", "first", "last"),
    [
        (1, 400, "     1\tline 1", "(lines 1 to 400 of 1,234; go on with offset=401)"),
        (1000, 2, "  1000\tline 1000", "(lines 1000 to 1001 of 1,234; go on with offset=1002)"),
        (1230, 400, "  1230\tline 1230", "(lines 1230 to 1234 of 1,234; the end of the file)"),
        (7, 1, "     7\tline 7", "(line 7 of 1,234; go on with offset=8)"),
        (1234, 1, "  1234\tline 1234", "(line 1234 of 1,234; the end of the file)"),
    ],
)
def test_offset_and_limit_say_how_to_go_on(
    folder: Path, capsys: pytest.CaptureFixture[str], offset: int, limit: int, first: str, last: str
) -> None:
    (folder / "a.txt").write_text("".join(f"line {i}\n" for i in range(1, 1235)))
    read_file("a.txt", offset, limit)
    out = capsys.readouterr().out.splitlines()
    assert (out[0], out[-1]) == (first, last)


def test_a_cut_by_characters_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "a.txt").write_text("".join(f"{'x' * 43}\n" for _ in range(5000)))
    read_file("a.txt", limit=2000)
    out = capsys.readouterr().out
    assert out.splitlines()[-1] == "(lines 1 to 294 of 5,000, cut at 15,000 characters; go on with offset=295)"
    assert len(out) < 15_100


def test_following_the_hints_reads_every_line_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f"{i} " + "x" * (i % 90) for i in range(1, 900)]
    (folder / "a.txt").write_text("\n".join(lines))
    seen, offset = [], 1
    while offset:
        read_file("a.txt", offset=offset)
        *shown, last = capsys.readouterr().out.splitlines()
        seen += [line.split("\t", 1)[1] for line in shown]
        assert sum(len(line) + 1 for line in shown) <= 15_000
        offset = int(last.rpartition("offset=")[2].rstrip(")")) if "offset=" in last else 0
    assert seen == lines


@pytest.mark.parametrize(
    ("content", "last"),
    [
        ("x" * 5000 + "\nend\n", "(lines 1 to 2 of 2; long lines are cut at 2,000 characters)"),
        ("x" * 5000, "(line 1 of 1; long lines are cut at 2,000 characters)"),
    ],
)
def test_a_file_with_a_cut_line_is_not_called_all_of_it(
    folder: Path, capsys: pytest.CaptureFixture[str], content: str, last: str
) -> None:
    (folder / "a.json").write_text(content)
    read_file("a.json")
    out = capsys.readouterr().out.splitlines()
    cut = "… (3,000 more characters in this line; slice it with python to see them)"
    assert out[0] == f"     1\t{'x' * 2000} {cut}"
    assert out[-1] == last


def test_long_lines_and_many_of_them(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "a.json").write_text(("y" * 2001 + "\n") * 100)
    read_file("a.json", offset=2)
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == (
        "(lines 2 to 8 of 100, cut at 15,000 characters; go on with offset=9; long lines are cut at 2,000 characters)"
    )


@pytest.mark.parametrize(("content", "last"), [("", "(a is empty)"), ("one", "(all of a: 1 line)")])
def test_small_files(folder: Path, capsys: pytest.CaptureFixture[str], content: str, last: str) -> None:
    (folder / "a").write_text(content)
    read_file("a")
    assert capsys.readouterr().out.splitlines()[-1] == last


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"offset": 3002}, "offset 3002 is past the end: a.txt has 2 lines"),
        ({"offset": 0}, "offset and limit count from 1; got offset=0, limit=400"),
        ({"limit": -1}, "offset and limit count from 1; got offset=1, limit=-1"),
    ],
)
def test_what_is_outside_of_the_file_is_explained(folder: Path, arguments: dict[str, int], told: str) -> None:
    (folder / "a.txt").write_text("1\n2\n")
    with pytest.raises(ValueError) as caught:
        read_file("a.txt", **arguments)
    assert str(caught.value) == told


@pytest.mark.parametrize(
    ("name", "data", "told"),
    [
        ("a.npz", b"PK\0\0rest", "'a.npz' is not text (8 bytes); load it with python: numpy.load('a.npz')"),
        ("a.pkl", b"\0", "'a.pkl' is not text (1 byte); load it with python: pickle.load(open('a.pkl', 'rb'))"),
        ("a.tar.gz", b"\0\0", "'a.tar.gz' is not text (2 bytes); load it with python: tarfile.open('a.tar.gz')"),
        ("model", b"\0\0", "'model' is not text (2 bytes); load it with python: open('model', 'rb')"),
        ("a.pdf", b"%PDF-1.4\n", "'a.pdf' is not text (9 bytes); load it with python: open('a.pdf', 'rb')"),
        ("a.dat", b"\x89PNG\r\n\x1a\n\0\0", "'a.dat' is a picture (10 bytes), not text; view_image('a.dat') shows it"),
    ],
)
def test_what_is_no_text_names_what_shows_or_loads_it(folder: Path, name: str, data: bytes, told: str) -> None:
    (folder / name).write_bytes(data)
    with pytest.raises(ValueError) as caught:
        read_file(name)
    assert str(caught.value) == told


def test_line_ends_encodings_and_control_characters(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "dos.txt").write_bytes(b"a\r\nb\r\n")
    (folder / "bar.log").write_bytes(b"10%\r20%\rdone\nlatin \xe9\n\x1b[31mred\x08\n")
    (folder / "wide.txt").write_text("ä\nö\n", encoding="utf-16")
    for name in ("dos.txt", "bar.log", "wide.txt"):
        read_file(name)
    out = capsys.readouterr().out
    assert "     1\ta\n     2\tb\n(all" in out
    assert "     1\t10%\\r20%\\rdone\n     2\tlatin \ufffd\n     3\t\\x1b[31mred\\x08\n" in out
    assert "     1\tä\n     2\tö\n" in out
