"""What is left aside, and the file in nbval's format that says so."""

from __future__ import annotations

import re
import time

import pytest

from harness_nb.verify.sanitise import (
    DEFAULT,
    Pattern,
    dump_patterns,
    is_untouched,
    left_aside,
    parse_patterns,
    sanitise,
)


@pytest.mark.parametrize(
    ("one", "other", "kind"),
    [
        ("at 2026-01-02 03:04:05.678", "at 2026-11-30T10:20:30", "times"),
        ("Mon Nov 30 22:57:43 2026", "Tue Dec  1 02:07:03 2026", "times"),
        ("now 1796079463.7078214", "now 1796079999.1234567", "times"),
        ("took 1.25 s", "took 890 ms", "durations"),
        ("trained for 2 min 3 s", "trained for 59 s", "durations"),
        ("CPU times: user 3.2 ms, total: 4 ms", "CPU times: user 1 s, total: 2.5 s", "durations"),
        ("0:00:01.5 passed", "0:02:11 passed", "durations"),
        (
            "1.2 ms \u00b1 30 \u00b5s per loop (mean \u00b1 std. dev. of 7 runs, 1,000 loops each)",
            "800 \u00b5s \u00b1 5 \u00b5s per loop (mean \u00b1 std. dev. of 7 runs, 100 loops each)",
            "durations",
        ),
        ("100%|#####| 10/10 [00:01<00:00,  7.9it/s]", "100%|#####| 10/10 [00:03<00:00,  2.1it/s]", "progress"),
        ("read at 12.5 MB/s", "read at 8 MB/s", "speeds"),
        ("<A object at 0x7f01aa020>", "<A object at 0x7f55bb120>", "addresses"),
        ("job 123e4567-e89b-12d3-a456-426614174000", "job 00000000-0000-4000-8000-426614174000", "ids"),
        ("/tmp/ipykernel_12/3456.py:1: UserWarning", "/tmp/ipykernel_99/3456.py:1: UserWarning", "process numbers"),
        ("pid=4711", "pid=12", "process numbers"),
        ("saved /home/ada/project/model.pt", "saved /srv/work/model.pt", "paths"),
        ("in tmpab12cd34", "in tmpzz99zz99", "paths"),
        ("Writing a.txt", "Overwriting a.txt", "whether a file was there"),
        ("http://127.0.0.1:8888", "http://127.0.0.1:4040", "ports"),
    ],
)
def test_these_differences_do_not_count(one: str, other: str, kind: str) -> None:
    assert sanitise(one, DEFAULT) == sanitise(other, DEFAULT)
    assert kind in left_aside(one, other, DEFAULT)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("accuracy 0.9812", "accuracy 0.9754"),
        ("saved /home/ada/a.pt", "saved /home/ada/b.pt"),
        ("1/2/3", "1/2/4"),
        ("on 2024-01-02", "on 2024-01-03"),
        ("epoch 12", "epoch 13"),
        ("5 samples", "6 samples"),
        ("<Figure size 640x480 with 1 Axes>", "<Figure size 640x480 with 2 Axes>"),
        ("[ 1  2 s]", "[ 1  3 m]"),
        ("ratio 10:30", "ratio 10:40"),
        ("https://a.org/x/y", "https://a.org/x/z"),
        ("v1.2.3", "v1.2.4"),
        ("<td>1</td>", "<td>2</td>"),
        ("id 12345678", "id 12345679"),
    ],
)
def test_these_differences_count(one: str, other: str) -> None:
    assert sanitise(one, DEFAULT) != sanitise(other, DEFAULT)


def test_the_file_is_in_the_format_that_nbval_reads() -> None:
    text = dump_patterns(DEFAULT)
    assert text.isascii()
    theirs = dict(re.findall(r"^regex: (.*)$\n^replace: (.*)$", text, flags=re.MULTILINE))
    assert theirs == {pattern.regex: pattern.replace for pattern in DEFAULT}
    assert parse_patterns(text) == DEFAULT


def test_a_changed_file_is_told_from_one_that_an_older_version_wrote() -> None:
    assert is_untouched(dump_patterns(DEFAULT))
    assert is_untouched(dump_patterns(DEFAULT[:3]))
    assert not is_untouched(dump_patterns(DEFAULT) + "regex: .*\nreplace: X\n")
    assert not is_untouched("regex: a\nreplace: b\n")


def test_a_persons_file_is_read_and_its_errors_are_named() -> None:
    assert parse_patterns("# dates\nregex: \\d+\nreplace: N\nregex: alone\n\nreplace: x\n") == (
        Pattern("dates", r"\d+", "N"),
    )
    with pytest.raises(ValueError, match=r"pattern '\(' of the sanitise file is wrong"):
        parse_patterns("regex: (\nreplace: x\n")
    with pytest.raises(ValueError, match="sanitise file is wrong"):
        parse_patterns("regex: a\nreplace: \\2\n")


def test_long_texts_are_sanitised_in_time() -> None:
    texts = ["1,2,3," * 30_000, "a/b/" * 40_000, "/" * 100_000, "12 " * 50_000, "0x" * 50_000, "<td " * 40_000]
    begin = time.monotonic()
    for text in texts:
        assert sanitise(text, DEFAULT)
    assert time.monotonic() - begin < 60
