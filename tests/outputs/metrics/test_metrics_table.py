"""The table, in text and in HTML."""

from __future__ import annotations

from collections.abc import Iterable
from html.parser import HTMLParser

from training_logs import hugging_face, keras, plain, read, transfer

from harness_nb.outputs.metrics.table import MOST_ROWS, html_table, text_table


def table(pieces: Iterable[str]) -> list[str]:
    reader = read(pieces, finish=True)
    series = reader.series()
    assert series is not None
    return text_table(series, reader.labels).split("\n")


def test_a_short_series_is_shown_whole() -> None:
    assert table(plain(4)) == [
        "epoch   loss     acc",
        "    1  2.000  0.1000",
        "    2  1.000  0.5500",
        "    3  0.667  0.7000",
        "    4  0.500* 0.7750*",
    ]


def test_of_a_long_one_first_best_and_last_are_shown() -> None:
    lines = table(f"epoch {n} val_acc {0.9 if n == 70 else n / 200:.3f}\n" for n in range(1, 101))
    assert len(lines) == 1 + MOST_ROWS
    assert [line.split()[0] for line in lines[1:]] == [
        "1",
        "10",
        "19",
        "28",
        "37",
        "46",
        "55",
        "64",
        "70",
        "82",
        "91",
        "100",
    ]
    assert lines[9] == "   70   0.9000*"


def test_of_a_bar_the_whole_lines_are_shown() -> None:
    lines = table(keras(4, 10))
    assert lines[0].split() == ["epoch", "step", "accuracy", "loss", "val_accuracy", "val_loss"]
    assert [line.split()[:2] for line in lines[1:]] == [["1", "100"], ["2", "100"], ["3", "100"], ["4", "100"]]


def test_rows_with_held_out_values_go_before_others() -> None:
    lines = table(hugging_face(500))
    assert lines[0].split() == ["epoch", "loss", "grad_norm", "learning_rate", "eval_loss"]
    assert [line.split()[0] for line in lines[1:]] == ["0.01", "1.00", "2.00", "3.00", "4.00", "5.00"]
    assert lines[3].split() == ["2.00", "0.410", "1.250", "3.01e-5", "0.406"]


def test_percentages_infinities_and_steps_are_written_out() -> None:
    lines = table(
        f"step {1000 * n} loss {loss} acc {80 + n}%\n" for n, loss in enumerate(["0.5", "12.25", "nan", "inf"])
    )
    assert lines == [
        " step   loss  acc",
        "    0   0.50* 80%",
        "1,000  12.25  81%",
        "2,000    nan  82%",
        "3,000    inf  83%*",
    ]


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.styles = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.styles += "".join(value or "" for _, value in attrs)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        self.rows[-1][-1] += data


def test_the_html_says_the_same_without_colours_of_its_own() -> None:
    reader = read(transfer(5, 25), finish=True)
    series = reader.series()
    assert series is not None
    parsed = Reader()
    parsed.feed(html_table(series, reader.labels))
    assert parsed.rows == [line.replace("*", "").split() for line in text_table(series, reader.labels).split("\n")]
    assert "color" not in parsed.styles
    assert "background" not in parsed.styles


def test_names_are_escaped_in_html() -> None:
    reader = read(f"step {n} loss<b> 1 a/b: 0.{n} loss: 0.5\n" for n in range(1, 5))
    reader.feed("".join(f"step {n} loss: 0.5 x@<i>=0.5\n" for n in range(4)), 9.0)
    series = reader.series()
    assert series is not None
    assert "<i>" not in html_table(series, reader.labels)
