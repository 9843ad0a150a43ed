"""Displays of widgets in a cell: the twin at once, and its updates."""

from __future__ import annotations

from comm_messages import closed, models_of, opened, shown, tqdm, updated, view

from harness_nb.outputs import Firewall
from harness_nb.outputs.mime import WIDGET_VIEW
from harness_nb.outputs.widgets import WidgetViews, views
from harness_nb.ports import Output


def test_a_view_becomes_its_twin_and_follows_its_widget() -> None:
    models = models_of(*tqdm("0%", 0, "0/20"))
    cell = WidgetViews(models)
    (first,) = cell.show(view("box"))
    assert shown([first]) == [("display_data", first.display_id, "0%|                    | 0/20")]
    assert WIDGET_VIEW not in first.content["data"]
    assert cell.update() == [] and not cell.stale
    for message in (updated("left", value="50%"), updated("bar", value=10), updated("right", value="10/20")):
        models.take(message)
    assert cell.stale
    assert shown(cell.update()) == [("update_display_data", first.display_id, "50%|██████████          | 10/20")]
    assert cell.update() == []


def test_only_what_says_something_else_is_drawn_again() -> None:
    models = models_of(*tqdm("0%", 0, "0/20"), opened("label", "Label", value="a"))
    cell = WidgetViews(models)
    cell.show(view("box"))
    (label,) = cell.show(view("label"))
    models.take(updated("style", bar_color="red"))
    models.take(updated("bar", bar_style="success"))
    assert cell.update() == []
    models.take(updated("label", value="b"))
    assert shown(cell.update()) == [("update_display_data", label.display_id, "b")]


def test_a_result_stays_a_result() -> None:
    models = models_of(opened("label", "Label", value="a"))
    cell, firewall = WidgetViews(models), Firewall("c", "python")
    result = view("label", "execute_result")
    result.content["execution_count"] = 7
    for output in cell.show(result):
        firewall.feed(output)
    models.take(updated("label", value="b"))
    for output in cell.update():
        firewall.feed(output)
    (output,) = firewall.outputs
    assert (output["output_type"], output["execution_count"], output["data"]) == (
        "execute_result",
        7,
        {"text/plain": "b"},
    )


def test_two_views_of_one_widget_are_both_kept_up() -> None:
    models = models_of(opened("label", "Label", value="a"))
    cell = WidgetViews(models)
    ids = {output.display_id for output in [*cell.show(view("label")), *cell.show(view("label"))]}
    models.take(updated("label", value="b"))
    assert {output.display_id for output in cell.update()} == ids
    assert len(ids) == 2


def test_a_display_that_is_updated_to_a_widget_and_back_follows() -> None:
    models = models_of(opened("label", "Label", value="a"))
    cell = WidgetViews(models)
    plain = Output("update_display_data", {"data": {"text/plain": "x"}, "metadata": {}}, "d")
    assert cell.show(plain) == [plain]
    assert shown(cell.show(view("label", "update_display_data", "d"))) == [("update_display_data", "d", "a")]
    models.take(updated("label", value="b"))
    assert shown(cell.update()) == [("update_display_data", "d", "b")]
    assert cell.show(plain) == [plain]
    models.take(updated("label", value="c"))
    assert cell.update() == []


def test_a_display_with_another_rich_form_keeps_it() -> None:
    cell = WidgetViews(models_of(opened("figure", "Figure")))
    (output,) = cell.show(view("figure", **{"text/html": "<svg>"}))
    assert set(output.content["data"]) == {"text/plain", "text/html"}


def test_a_view_of_an_unknown_model_keeps_its_own_text() -> None:
    cell = WidgetViews(models_of())
    (output,) = cell.show(view("gone"))
    assert output.content["data"] == {"text/plain": "HBox(…)"}
    bare = Output("display_data", {"data": {WIDGET_VIEW: {"model_id": ""}}, "metadata": {}})
    assert shown(cell.show(bare)) == [("display_data", None, "[a closed widget]")]


def test_a_closed_widget_leaves_nothing_to_read() -> None:
    models = models_of(*tqdm("0%", 0, "0/20"))
    cell, firewall = WidgetViews(models), Firewall("c", "python")
    for output in cell.show(view("box")):
        firewall.feed(output)
    models.take(closed("box"))
    for output in cell.update():
        firewall.feed(output)
    assert firewall.outputs[0]["data"] == {"text/plain": ""}
    assert "widget" not in firewall.items[0].reading()[0]


def test_a_picture_in_an_output_widget_is_shown_below_its_text_and_replaced() -> None:
    models = models_of(opened("out", "Output", outputs=[], msg_id=""), updated("out", msg_id="cell"))
    cell = WidgetViews(models)
    (first,) = cell.show(view("out"))
    for data in ("MQ==", "Mg=="):
        models.capture("cell", Output("clear_output", {"wait": True}))
        models.capture("cell", Output("display_data", {"data": {"image/png": data}, "metadata": {}}))
        outputs = cell.update()
        assert [output.content["data"].get("image/png") for output in outputs] == [data]
        assert outputs[0].display_id == f"{first.display_id}-0"
    models.capture("cell", Output("clear_output", {"wait": False}))
    assert shown(cell.update()) == [("update_display_data", f"{first.display_id}-0", "")]


def test_of_very_many_views_the_latest_are_kept_up(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(views, "MOST_VIEWS", 2)
    models = models_of(*(opened(name, "Label", value=name) for name in "abc"))
    cell = WidgetViews(models)
    for name in "abc":
        cell.show(view(name))
    for name in "abc":
        models.take(updated(name, value=name * 2))
    assert [text for _, _, text in shown(cell.update())] == ["bb", "cc"]
