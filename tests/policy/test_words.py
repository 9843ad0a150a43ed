"""The words that the rules see are those that bash sees: commands at random, read by bash itself."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from harness_nb.policy.findings import PLAIN, UNKNOWN
from harness_nb.policy.shell.parsing import parse

BASH = shutil.which("bash")
TELL = 'command_not_found_handle() { printf "%s\\x1f" "$@"; printf "\\x1e"; }\n'
PIECES = (
    *("a", "zz", "\\m", "'q r'", '"s t"', '"\\""', "''", '""', "$'\\x41'", "$'b\\tc'", "$'\\101'", "-x", "a=b", "\\\n"),
    *(
        "{p,q}",
        "x{1}",
        "\\#",
        "1",
        "@",
        "%",
        "+",
        ":",
        ",",
        "^",
        "\\\\",
        "\\;",
        "\\$",
        "\\'",
        '"$"',
        '"\\$x"',
        "'$y'",
    ),
)
GAPS = (
    " ",
    " ",
    " ",
    "  ",
    "\t",
    "",
    " ; ",
    ";",
    " && ",
    "\n",
    "&&",
    " # c\n",
    " 2>/dev/null ",
    ">/dev/null ",
    "</dev/null ",
    "<<<w ",
)


def seen_by_bash(text: str, folder: Path) -> list[list[str]] | None:
    """The commands that bash tried to run, none of which exists; ``None`` if the text is no command."""
    assert BASH is not None
    told = subprocess.run(
        [BASH, "-c", f"{TELL}set -u\n{text}"],
        env={"PATH": "/nonexistent"},
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=30,
        check=False,
    )
    if b"syntax error" in told.stderr or b"unexpected" in told.stderr:
        return None
    return [part.split("\x1f")[:-1] for part in told.stdout.decode("utf-8", "replace").split("\x1e") if part]


@pytest.mark.skipif(BASH is None, reason="bash is not there")
def test_bash_sees_the_same_words(tmp_path: Path) -> None:
    source, compared = random.Random(11), 0
    for _ in range(120):
        pieces = [
            source.choice(PIECES) + (source.choice(GAPS) if source.random() < 0.6 else "")
            for _ in range(source.randrange(1, 8))
        ]
        text = "zz " + "".join(pieces)
        script, commands = parse(text), seen_by_bash(text, tmp_path)
        if script.problem or commands is None:
            continue  # asked about, or nothing that runs
        compared += 1
        ours = [segment.words for segment in script.segments]
        for words in commands:
            assert any(_same(words, each) for each in ours), (text, words, ours)
    assert compared > 60


def _same(words: list[str], ours: list[str]) -> bool:
    unknown = (UNKNOWN, PLAIN)
    return len(words) == len(ours) and all(
        word == our or any(mark in our for mark in unknown) for word, our in zip(words, ours, strict=True)
    )
