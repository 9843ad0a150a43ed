"""docs/classifier.md against the code: levels, thresholds, tools, ways, fields and examples."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

from harness_nb.evaluation.labelled import LabelledCall, parse_labelled
from harness_nb.judging import TIMEOUT
from harness_nb.models.judging import SAMPLES
from harness_nb.models.judging_scripted import read_judgements
from harness_nb.policy.judging import LEVELS, READ_ONLY_TOOLS, Thresholds, read_thresholds
from harness_nb.policy.judging_text import LEVEL_WORDS, MOST_CALL

PAGE = (Path(__file__).parent.parent / "docs" / "classifier.md").read_text("utf-8")


def rows(heading: str) -> list[list[str]]:
    """The first table below a heading."""
    text = PAGE.split(f"## {heading}\n", 1)[1]
    table = re.search(r"^\|.*\n\|[-|]+\n((?:\|.*\n)+)", text, re.MULTILINE)
    assert table
    return [[column.strip() for column in line.strip("|").split("|")] for line in table[1].splitlines()]


def block(language: str, containing: str) -> str:
    found = [text for text in re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL) if containing in text]
    assert len(found) == 1
    return str(found[0])


def test_the_levels_are_those_that_the_classifier_is_told() -> None:
    told = [[str(number), LEVELS[number], words] for number, words in enumerate(LEVEL_WORDS)]
    assert rows("The two questions") == told
    assert f"more than {MOST_CALL:,} characters" in PAGE


def test_the_thresholds_are_the_default_ones() -> None:
    table = tomllib.loads(block("toml", "thresholds"))
    assert read_thresholds(table["tool"]["harness-nb"]["policy"]) == Thresholds()
    verdicts = " ".join(" ".join(row) for row in rows("The verdict"))
    for name, value in Thresholds().model_dump().items():
        assert f"`{name}` ({value:g})" in verdicts


def test_tools_times_and_samples() -> None:
    sentence = re.search(r"skips\nit\. (.*?) are not sent", PAGE, re.DOTALL)
    assert sentence and set(re.findall(r"`(\w+)`", sentence[1])) == READ_ONLY_TOOLS
    assert f"{TIMEOUT:g} seconds without an answer" in PAGE
    ways = {row[0].strip("`"): row for row in rows("How it is asked")}
    assert set(ways) == {"decisions", "labels", "samples", "scripted"}
    assert ways["samples"][1].startswith(f"{SAMPLES} answers") and ways["samples"][2] == str(SAMPLES)


def test_the_examples_are_read(tmp_path: Path) -> None:
    script = tmp_path / "judgements.json"
    script.write_text(block("json", '"when"'))
    assert len(read_judgements(script)) == 3
    (labelled,) = parse_labelled(block("json", '"words"'), "the page")
    assert labelled.label == "ask" and labelled.risk == 1
    assert json.loads(block("json", '"words"'))["authorised"] is True


def test_the_fields_of_a_labelled_call() -> None:
    named = [name for row in rows("Labelled calls") for name in re.findall(r"`(\w+)`", row[0])]
    assert set(named) == set(LabelledCall.model_fields)
