"""Routing, with made-up messages."""

from __future__ import annotations

from typing import Any

import pytest

from harness_nb.kernel.routing import Execution, Router, output_of


def message(kind: str, parent: str, **content: Any) -> dict[str, Any]:
    return {"msg_type": kind, "parent_header": {"msg_id": parent}, "content": content}


def idle(parent: str) -> dict[str, Any]:
    return message("status", parent, execution_state="idle")


@pytest.mark.parametrize("reply_first", [True, False])
async def test_an_execution_ends_with_reply_and_idle_in_any_order(reply_first: bool) -> None:
    router = Router()
    execution = router.open("a", 7)
    steps = [
        lambda: router.take_reply(message("execute_reply", "a", status="ok", execution_count=8)),
        lambda: router.take_published(idle("a")),
    ]
    for step in steps if reply_first else reversed(steps):
        assert not execution.finished
        step()
    assert execution.finished
    assert execution.execution_count == 8


async def test_each_output_goes_to_its_own_execution() -> None:
    router = Router()
    first, second = router.open("a"), router.open("b")
    router.take_published(message("stream", "b", name="stdout", text="for b"))
    router.take_published(message("stream", "a", name="stdout", text="for a"))
    router.take_published(message("stream", "gone", name="stdout", text="for nobody"))
    router.take_published({"msg_type": "stream", "parent_header": {}, "content": {"name": "stdout", "text": "x"}})
    assert [output.content["text"] for output in first.take()] == ["for a"]
    assert [output.content["text"] for output in second.take()] == ["for b"]
    assert router.strays == 2
    router.close(first)
    router.take_published(message("stream", "a", name="stdout", text="late"))
    assert first.take() == []


async def test_text_is_joined_only_while_nobody_has_taken_it() -> None:
    execution = Router().open("a")
    router = Router()
    execution = router.open("a")
    for name, text in (("stdout", "1"), ("stdout", "2"), ("stderr", "3"), ("stdout", "4")):
        router.take_published(message("stream", "a", name=name, text=text))
    assert [(o.content["name"], o.content["text"]) for o in execution.take()] == [
        ("stdout", "12"),
        ("stderr", "3"),
        ("stdout", "4"),
    ]
    router.take_published(message("stream", "a", name="stdout", text="5"))
    assert [output.content["text"] for output in execution.take()] == ["5"]
    assert execution.printed == 5


async def test_a_lost_idle_is_made_good_by_a_later_one() -> None:
    router = Router()
    replied, running = router.open("a"), router.open("b")
    router.take_reply(message("execute_reply", "a", status="ok", execution_count=1))
    heard: list[str] = []
    router.expect_idle("probe", lambda: heard.append("probe"))
    router.take_published(idle("other"))
    assert not replied.finished
    router.take_published(idle("probe"))
    assert replied.finished
    assert not running.idle
    assert heard == ["probe"]


async def test_replies_of_other_kinds_and_clients_change_nothing() -> None:
    router = Router()
    execution = router.open("a")
    router.take_reply(message("kernel_info_reply", "a", status="ok"))
    router.take_reply(message("execute_reply", "elsewhere", status="ok"))
    assert execution.reply is None


def test_outputs_are_taken_over_without_what_is_transient() -> None:
    data = {"text/plain": "x"}
    output = output_of(message("display_data", "a", data=data, metadata={}, transient={"display_id": "d"}))
    assert output is not None
    assert (output.kind, output.content, output.display_id) == ("display_data", {"data": data, "metadata": {}}, "d")
    for kind in ("comm_open", "comm_msg", "comm_close", "execute_input", "status", "debug_event", "iopub_welcome"):
        assert output_of(message(kind, "a")) is None


def widget(kind: str, comm: str, parent: str = "a", **data: Any) -> dict[str, Any]:
    return message(kind, parent, comm_id=comm, target_name="jupyter.widget", data=data)


def label(comm: str, text: str) -> dict[str, Any]:
    return widget("comm_open", comm, state={"_model_name": "LabelModel", "value": text})


def view(parent: str, comm: str) -> dict[str, Any]:
    data = {"text/plain": "Label()", "application/vnd.jupyter.widget-view+json": {"model_id": comm}}
    return message("display_data", parent, data=data, metadata={})


def texts(execution: Execution) -> list[str]:
    return [output.content["data"]["text/plain"] for output in execution.take()]


async def test_a_widget_is_followed_by_every_cell_that_shows_it_whoever_changes_it() -> None:
    router = Router()
    first, second = router.open("a"), router.open("b")
    router.take_published(label("m", "old"))
    router.take_published(view("a", "m"))
    router.take_published(view("b", "m"))
    assert texts(first) == texts(second) == ["old"]
    first.changed.clear()
    router.take_published(widget("comm_msg", "m", parent="elsewhere", method="update", state={"value": "new"}))
    assert first.changed.is_set()
    for execution in (first, second):
        execution.draw_widgets()
        assert texts(execution) == ["new"]
    assert router.strays == 0


async def test_what_an_output_widget_captures_is_counted_and_not_shown_in_the_cell() -> None:
    router = Router()
    execution = router.open("a")
    router.take_published(widget("comm_open", "out", state={"_model_name": "OutputModel"}))
    router.take_published(view("a", "out"))
    assert texts(execution) == [""]
    router.take_published(widget("comm_msg", "out", method="update", state={"msg_id": "a"}))
    router.take_published(message("stream", "a", name="stdout", text="inside"))
    assert execution.take() == []
    assert execution.printed == len("inside")
    execution.draw_widgets()
    assert texts(execution) == ["inside"]
    router.take_published(message("display_data", "a", data={"image/png": "aGk=", "text/plain": "p"}, metadata={}))
    router.take_published(message("stream", "b", name="stdout", text="of another cell"))
    assert [list(output.content["data"]) for output in execution.take()] == [["image/png", "text/plain"]]
