"""Score predictions.csv against labels: the check of the demo ``digits``. Standard library only.

    python score.py LABELS PREDICTIONS [--at-least 0.97]

Both files are CSV with the columns id and label. Prints the accuracy and what was taken for what; exit status 0 when
the accuracy is reached, 1 when it is not or a file cannot be scored.
"""

import argparse
import csv
import sys
from collections import Counter
from pathlib import Path


class Unscorable(Exception):
    """A file that is not what it should be; the text says how."""


def read_labels(path: Path) -> dict[int, str]:
    """The label of each id in a CSV file."""
    if not path.is_file():
        raise Unscorable(f"there is no file {path.name}")
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = csv.DictReader(file)
        if [name.strip() for name in rows.fieldnames or []] != ["id", "label"]:
            raise Unscorable(f"the columns of {path.name} are {rows.fieldnames or 'missing'}; they must be id,label")
        rows.fieldnames = ["id", "label"]
        labels: dict[int, str] = {}
        for row in rows:
            text, label = (row["id"] or "").strip(), (row["label"] or "").strip()
            if not text.isdecimal() or not label or None in row:
                raise Unscorable(f"line {rows.line_num} of {path.name} is not an id and a label: {list(row.values())}")
            if int(text) in labels:
                raise Unscorable(f"the id {text} occurs twice in {path.name} (again in line {rows.line_num})")
            labels[int(text)] = label
    return labels


def compare(truth: dict[int, str], predicted: dict[int, str]) -> Counter[tuple[str, str]]:
    """How often each pair of true and predicted label occurs."""
    if missing := sorted(truth.keys() - predicted.keys()):
        raise Unscorable(f"{len(missing)} of {len(truth)} ids have no prediction, the first is {missing[0]}")
    if unknown := sorted(predicted.keys() - truth.keys()):
        raise Unscorable(f"{len(unknown)} ids are not among the {len(truth)} of the test, the first is {unknown[0]}")
    return Counter((label, predicted[key]) for key, label in truth.items())


def report(pairs: Counter[tuple[str, str]]) -> float:
    """Print the summary; the accuracy, from 0 to 1."""
    total = sum(pairs.values())
    right = sum(count for (true, guess), count in pairs.items() if true == guess)
    print(f"accuracy {right / total:.4f} ({right} of {total} right)")
    wrong = Counter({pair: count for pair, count in pairs.items() if pair[0] != pair[1]})
    for (true, guess), count in sorted(wrong.items(), key=lambda item: (-item[1], item[0]))[:10]:
        print(f"  {true} taken for {guess}: {count}")
    if len(wrong) > 10:
        print(f"  and {len(wrong) - 10} other mix-ups")
    return right / total


def main() -> int:
    parser = argparse.ArgumentParser(description="Score predictions.csv against labels.")
    parser.add_argument("labels", type=Path)
    parser.add_argument("predictions", type=Path)
    parser.add_argument("--at-least", type=float, default=0.0, metavar="ACCURACY", help="from 0 to 1")
    options = parser.parse_args()
    try:
        accuracy = report(compare(read_labels(options.labels), read_labels(options.predictions)))
    except Unscorable as error:
        print(f"not scored: {error}")
        return 1
    reached = accuracy >= options.at_least
    print(f"{'reached' if reached else 'NOT reached'}: at least {options.at_least:g} is asked for")
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
