"""The plot: a picture of a sane size, with the lines that are told, drawn without touching the person's matplotlib."""

from __future__ import annotations

import io
import subprocess
import sys
from typing import Any

import matplotlib
import pytest
from matplotlib.axes import Axes
from PIL import Image
from training_logs import hugging_face, keras, plain, read, transfer, xgboost

from harness_nb.outputs.metrics import Series
from harness_nb.outputs.metrics.chart import describe_chart, draw_chart


def series_of(pieces: Any) -> Series:
    series = read(pieces, finish=True).series()
    assert series is not None
    return series


def picture(pieces: Any) -> Image.Image:
    return Image.open(io.BytesIO(draw_chart(series_of(pieces))))


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[tuple[float, float]]]:
    """The points of each line that has a name, as they were given to matplotlib."""
    lines: dict[str, list[tuple[float, float]]] = {}
    plot = Axes.plot

    def spy(axes: Axes, xs: Any, ys: Any, *rest: Any, **options: Any) -> Any:
        if rest != ("o",):
            lines[options.get("label", "rate")] = list(zip(xs, ys, strict=True))
        return plot(axes, xs, ys, *rest, **options)

    monkeypatch.setattr(Axes, "plot", spy)
    return lines


def test_it_is_a_picture_for_light_and_dark_pages() -> None:
    image = picture(plain(12))
    assert image.size == (840, 312)
    assert image.mode == "RGBA"
    pixels = image.tobytes()
    shown = {pixels[at : at + 3] for at in range(0, len(pixels), 4) if pixels[at + 3] > 200}
    assert pixels[3] == 0
    assert all(60 < sum(colour) < 3 * 220 for colour in shown)


def test_losses_and_scores_are_drawn_over_the_epochs(drawn: dict[str, list[tuple[float, float]]]) -> None:
    picture(transfer(4, 25))
    assert drawn == {
        "train_loss": [(0, 1), (1, 0.5), (2, 0.3333), (3, 0.25)],
        "val_loss": [(0, 1.1), (1, 0.55), (2, 0.3667), (3, 0.275)],
        "train_acc": [(0, 0.5), (1, 0.75), (2, 0.8333), (3, 0.875)],
        "val_acc": [(0, 0.4), (1, 0.7), (2, 0.8), (3, 0.85)],
    }


def test_a_learning_rate_is_drawn_too(drawn: dict[str, list[tuple[float, float]]]) -> None:
    picture(hugging_face(100))
    assert list(drawn) == ["loss", "rate"]
    assert drawn["rate"][0] == pytest.approx((0.01, 4.95e-5))


def test_nan_and_infinity_leave_gaps(drawn: dict[str, list[tuple[float, float]]]) -> None:
    picture(f"epoch {n} loss {loss}\n" for n, loss in enumerate(["1", "nan", "inf", "0.5"]))
    assert drawn == {"loss": [(0, 1), (3, 0.5)]}


def test_nothing_but_nan_is_drawn_without_a_word(drawn: dict[str, list[tuple[float, float]]]) -> None:
    assert picture(f"epoch {n} loss nan\n" for n in range(5)).size == (840, 312)
    assert drawn == {}


@pytest.mark.parametrize("losses", [["1e300", "1e-300", "0.5"], ["0", "0", "0"], ["1e20", "-1e20", "1e-20"], ["5"] * 3])
def test_wild_values_can_be_drawn(losses: list[str]) -> None:
    """A warning of matplotlib would be an error here."""
    assert picture(f"epoch {n} loss {loss} acc {loss} lr {loss}\n" for n, loss in enumerate(losses)).size == (840, 312)


def test_enough_whole_lines_are_drawn_alone(drawn: dict[str, list[tuple[float, float]]]) -> None:
    picture(keras(5, 10))
    assert len(drawn["loss"]) > 20
    picture(keras(9, 10))
    assert [x for x, _ in drawn["loss"]] == [1, 2, 3, 4, 5, 6, 7, 8, 9]


def test_percentages_and_fractions_share_an_axis(drawn: dict[str, list[tuple[float, float]]]) -> None:
    picture(f"epoch {n} train_acc {50 + n}% val_acc 0.4{n}\n" for n in range(3))
    assert [y for _, y in drawn["train_acc"]] == [50, 51, 52]
    assert [y for _, y in drawn["val_acc"]] == pytest.approx([40, 41, 42])


def test_metrics_of_no_known_kind_are_drawn_if_there_is_nothing_else(
    drawn: dict[str, list[tuple[float, float]]],
) -> None:
    picture(f"step {n} kl=0.{n} entropy=1.{n}\n" for n in range(4))
    assert list(drawn) == ["kl", "entropy"]


def test_the_picture_is_told_in_words() -> None:
    assert describe_chart(series_of(xgboost(9))) == "train-rmse, eval-rmse by iteration, 9 lines"


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("axes.facecolor", "red"),
        ("figure.facecolor", "red"),
        ("lines.marker", "s"),
        ("lines.linestyle", ":"),
        ("font.size", 20),
        ("savefig.dpi", 20),
        ("figure.dpi", 20),
        ("figure.figsize", (1, 1)),
        ("axes.prop_cycle", matplotlib.cycler(color=["red"])),
        ("legend.framealpha", 1.0),
    ],
)
def test_the_settings_of_the_person_do_not_matter(setting: str, value: Any) -> None:
    series = series_of(transfer(5, 25))
    usual = draw_chart(series)
    with matplotlib.rc_context({setting: value}):
        before = dict(matplotlib.rcParams)
        assert draw_chart(series) == usual
        assert dict(matplotlib.rcParams) == before


def test_texts_are_not_set_by_latex() -> None:
    with matplotlib.rc_context({"text.usetex": True}):
        assert picture(f"step {n} train_loss 0.5 val_loss 0.4\n" for n in range(9)).size == (840, 312)


def test_matplotlib_is_imported_only_to_draw_and_pyplot_never() -> None:
    code = (
        "import sys, harness_nb.outputs\n"
        "from harness_nb.outputs.metrics import MetricsReader\n"
        "from harness_nb.outputs.metrics.chart import draw_chart\n"
        "reader = MetricsReader()\n"
        "reader.feed('epoch 1 loss 3\\nepoch 2 loss 2\\nepoch 3 loss 1\\n', 0.0)\n"
        "print('matplotlib' in sys.modules)\n"
        "draw_chart(reader.series())\n"
        "print('matplotlib' in sys.modules, 'matplotlib.pyplot' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True", "False"]
