from __future__ import annotations

from typing import Any

from ui_cells import Cell

from harness_nb.ui.publish import BLANK, Bundle, Canvas, KernelPublisher


class Session:
    def __init__(self) -> None:
        self.sent: list[tuple[str, dict[str, Any], Any]] = []

    def send(self, socket: Any, kind: str, content: dict[str, Any], parent: Any) -> None:
        assert socket == "iopub"
        self.sent.append((kind, content, parent))


class Kernel:
    iopub_socket = "iopub"

    def __init__(self) -> None:
        self.session = Session()


def text(value: str) -> Bundle:
    return Bundle({"text/plain": value})


def test_messages_carry_the_parent_and_one_display_id() -> None:
    kernel, parent = Kernel(), {"header": {"msg_id": "cell"}}
    block = KernelPublisher(kernel, parent).block(Bundle({"text/plain": "a"}, {"isolated": True}))
    block.update(text("b"))
    (kind, first, of), (kind_2, second, of_2) = kernel.session.sent
    assert (kind, kind_2) == ("display_data", "update_display_data")
    assert of is parent and of_2 is parent
    assert first["data"] == {"text/plain": "a"} and first["metadata"] == {"isolated": True}
    assert second["data"] == {"text/plain": "b"}
    assert first["transient"]["display_id"] == second["transient"]["display_id"] != ""


def test_only_what_changed_is_sent() -> None:
    cell = Cell()
    canvas = Canvas(cell)
    canvas.draw([text("a"), text("footer 1")])
    canvas.draw([text("a"), text("b"), text("footer 2")])
    assert cell.shown == [text("a"), text("b"), text("footer 2")]
    assert cell.messages == 4
    canvas.draw([text("a"), text("b"), text("footer 2")])
    assert cell.messages == 4


def test_a_bundle_may_come_late_in_the_middle() -> None:
    cell = Cell()
    canvas = Canvas(cell)
    canvas.draw([text("a"), text("c")])
    canvas.draw([text("a"), text("b"), text("c")])
    assert cell.shown == [text("a"), text("b"), text("c")]


def test_a_shorter_list_leaves_blanks_that_are_used_again() -> None:
    cell = Cell()
    canvas = Canvas(cell)
    canvas.draw([text("a"), text("b"), text("c")])
    canvas.draw([text("a")])
    assert cell.shown == [text("a"), BLANK, BLANK]
    canvas.draw([text("a"), text("d")])
    assert cell.shown == [text("a"), text("d"), BLANK]
