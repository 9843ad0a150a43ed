"""The ladder of approvals with a page that we play: buttons while one is there, a typed line where none is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from test_approve import ASK, CALL, Display, read_once

from harness_nb.types import Approval, ToolCall
from harness_nb.ui import buttons, here
from harness_nb.ui.approve import CellApprover
from harness_nb.ui.asks import Asks
from harness_nb.ui.buttons import Buttons

SOURCE = "%%bash\nrm -rf x"
Page = Callable[[str, dict[str, Any]], list[dict[str, Any]]]


class Kernel:
    """A kernel whose page answers by ``page``; keeps what was sent."""

    iopub_socket = None

    def __init__(self, page: Page) -> None:
        self.session = SimpleNamespace(send=self._send)
        self.sent: list[tuple[str, dict[str, Any]]] = []
        self.page = page
        self.line: here.PageLine | None = None

    def _send(self, socket: None, kind: str, content: dict[str, Any], **keys: Any) -> None:
        self.sent.append((kind, content["data"]))
        self.id = content["comm_id"]
        for answer in self.page(kind, content["data"]):
            self.say(answer)

    def say(self, message: dict[str, Any]) -> None:
        line = here.get_comm_manager().get_comm(self.id)
        asyncio.get_running_loop().call_soon(lambda: self._hand_over(line, message))

    def _hand_over(self, line: Any, message: dict[str, Any]) -> None:
        line = line or here.get_comm_manager().get_comm(self.id)
        if message.get("event") == "close":
            line.handle_close({})
        else:
            line.handle_msg({"content": {"data": message}})

    def heard(self, event: str) -> list[dict[str, Any]]:
        return [data for _, data in self.sent if data.get("event") == event]


def there(kind: str, data: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"event": "ready", "from": "p"}] if kind == "comm_open" else []


def made(page: Page, display: Display | None = None) -> tuple[Kernel, Asks, CellApprover]:
    kernel, asks = Kernel(page), Asks()
    request = {"metadata": {"cellId": "cell"}, "header": {"msg_id": "request"}}
    return kernel, asks, CellApprover(True, display or Display(), asks, Buttons(kernel, request, asks))


async def until(true: Callable[[], object]) -> None:
    for _ in range(2000):
        if true():
            return
        await asyncio.sleep(0.005)
    pytest.fail("it did not come true")


def answer(number: int, choice: str, **more: Any) -> dict[str, Any]:
    return {"event": "answer", "from": "p", "ask": number, "choice": choice, **more}


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (answer(1, "allow"), Approval(approved=True)),
        (answer(1, "kind"), Approval(approved=True, scope="kind")),
        (answer(1, "deny", word=" no "), Approval(approved=False, reason="a person said no: no")),
        (
            answer(1, "edit", texts={"command": "ls"}),
            Approval(approved=True, edited=ToolCall(call_id="c1", name="bash", arguments={"command": "ls"})),
        ),
    ],
)
async def test_a_click_is_the_answer(message: dict[str, Any], expected: Approval) -> None:
    display = Display()
    kernel, _, approver = made(there, display)
    asked = asyncio.ensure_future(approver.ask(CALL, SOURCE, ASK))
    await until(lambda: kernel.heard("show"))
    (told,) = kernel.heard("show")[0]["asks"]
    assert "".join(text for text, _ in told["source"]).rstrip("\n") == SOURCE
    assert told["fields"] == [{"name": "command", "text": "rm -rf x"}]
    kernel.say(message)
    assert await asked == expected
    assert "buttons" in display.told
    assert kernel.sent[-1][0] == "comm_close" and kernel.heard("settled")


async def test_the_first_answer_counts_and_the_second_hears_so() -> None:
    kernel, asks, approver = made(there)
    first, second = (asyncio.ensure_future(approver.ask(CALL, SOURCE, ASK)) for _ in range(2))
    await until(lambda: len(asks.open()) == 2 and kernel.heard("show"))
    kernel.say(answer(1, "allow"))
    kernel.say(answer(1, "deny"))
    assert (await first).approved
    await until(lambda: any("already answered: allowed" in data["words"] for data in kernel.heard("settled")))
    kernel.say(answer(2, "deny"))
    assert not (await second).approved


async def test_an_edit_that_cannot_be_leaves_the_question_open() -> None:
    kernel, asks, approver = made(there)
    asked = asyncio.ensure_future(approver.ask(CALL, SOURCE, ASK))
    await until(lambda: kernel.heard("show"))
    kernel.say(answer(1, "edit", texts={"command": "rm -rf x"}))
    await until(lambda: kernel.heard("refused"))
    assert len(asks.open()) == 1 and not asked.done()
    kernel.say(answer(1, "allow"))
    assert (await asked).approved


async def test_without_such_a_page_a_line_is_typed_at_once() -> None:
    display = Display()
    kernel, _, approver = made(lambda kind, data: [{"event": "close"}] if kind == "comm_open" else [], display)
    asked = asyncio.ensure_future(approver.ask(CALL, SOURCE, ASK))
    question, _ = await read_once(approver, "y")
    assert question.startswith("Run this bash cell?") and (await asked).approved
    assert "typed" in display.told and not kernel.heard("show")


async def test_a_silent_page_is_given_up_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buttons, "LIVE_TIMEOUT", 0.05)
    _, _, approver = made(lambda kind, data: [])
    asked = asyncio.ensure_future(approver.ask(CALL, SOURCE, ASK))
    await read_once(approver, "n use the bin")
    assert "use the bin" in (await asked).reason


async def test_a_question_has_no_deadline_and_a_page_that_comes_later_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buttons, "LATER", 0.01)
    kernel, asks, approver = made(there)
    asked = asyncio.ensure_future(approver.ask(CALL, SOURCE, ASK))
    await until(lambda: kernel.heard("show"))
    loop = asyncio.get_running_loop()
    now = loop.time
    monkeypatch.setattr(loop, "time", lambda: now() + 7200)  # two hours: whatever timer there was has run out
    shows = len(kernel.heard("show"))
    await until(lambda: len(kernel.heard("show")) > shows + 1)
    assert not asked.done() and len(asks.open()) == 1
    kernel.say(answer(1, "allow"))
    assert (await asked).approved


async def test_an_answer_by_the_verb_takes_the_buttons_away() -> None:
    kernel, asks, approver = made(there)
    asked = asyncio.ensure_future(approver.ask(CALL, SOURCE, ASK))
    await until(lambda: kernel.heard("show"))
    assert asks.open()[0].settle(Approval(approved=True)) == ""
    assert (await asked).approved
    assert kernel.heard("settled")[-1]["words"] == "allowed"
