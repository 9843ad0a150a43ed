"""Widgets of real tool code: the record has their text, kept up to date, and no view that a notebook cannot show."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from harness_nb.kernel import ToolKernel
from harness_nb.outputs import Firewall, result_content
from harness_nb.outputs.mime import WIDGET_VIEW
from harness_nb.ports import ExecuteReply, Output
from harness_nb.tools import SETUP_SOURCE
from harness_nb.types import ImagePart, Status, TextPart

pytestmark = pytest.mark.asyncio(loop_scope="module")

BAR = """
from tqdm.notebook import tqdm
import time
for i in tqdm(range(40), desc='epoch'):
    time.sleep(0.04)
"""
BROKEN = """
bar = tqdm(range(10))
for i in bar:
    if i == 6:
        time.sleep(0.3)
        bar.set_postfix(loss=0.5)
        raise ValueError('too much')
"""
NESTED = """
for i in tqdm(range(2), desc='outer'):
    for j in tqdm(range(3), leave=False, desc='inner'):
        time.sleep(0.02)
"""
FORM = """
import ipywidgets as w
import matplotlib.pyplot as plt
out = w.Output()
slider = w.IntSlider(description='n', max=10)
display(w.VBox([slider, w.HBox([w.Button(description='Go'), w.Label('ready')]), out]))
with out:
    print('inside')
    plt.plot([1, 2])
    plt.show()
    1 / 0
print('below')
slider.value = 7
w.Dropdown(options=['a', 'b'], description='pick')
"""
MANY = """
slider = w.FloatProgress(max=5000)
display(slider)
for i in range(5001):
    slider.value = i
"""


class Shown:
    """A cell that was run: its reply, its outputs as the kernel sent them, and what the firewall made of them."""

    def __init__(self) -> None:
        self.sent: list[Output] = []
        self.firewall = Firewall("c1", "python")
        self.reply = ExecuteReply(Status.UNKNOWN)

    @property
    def texts(self) -> list[str]:
        return [str(output.get("data", {}).get("text/plain", output.get("text"))) for output in self.firewall.outputs]

    def updates(self) -> list[str]:
        return [o.content["data"]["text/plain"] for o in self.sent if o.kind == "update_display_data"]


async def show(kernel: ToolKernel, source: str) -> Shown:
    shown = Shown()
    async for item in kernel.execute(source, 60):
        if isinstance(item, ExecuteReply):
            shown.reply = item
        else:
            shown.sent.append(item)
            shown.firewall.feed(item)
    shown.firewall.close(time.monotonic())
    assert not any(WIDGET_VIEW in output.get("data", {}) for output in shown.firewall.outputs)
    return shown


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ToolKernel]:
    folder: Path = tmp_path_factory.mktemp("widgets") / "harness_sessions"
    made = ToolKernel(directory=folder, setup=SETUP_SOURCE, grace=2.0)
    yield made
    await made.aclose()


async def test_the_last_state_of_a_bar_stands_and_the_states_before_come_at_leisure(shared: ToolKernel) -> None:
    shown = await show(shared, BAR)
    assert shown.reply.status is Status.OK
    (text,) = shown.texts
    assert text.startswith("epoch: 100%|████████████████████| 40/40 [")
    assert 2 <= len(shown.updates()) <= 30
    assert shown.updates()[0] != text


async def test_a_bar_that_breaks_says_where(shared: ToolKernel) -> None:
    shown = await show(shared, BAR.replace("range(40)", "range(1)") + BROKEN)
    assert shown.reply.status is Status.ERROR
    assert "| 6/10 [" in shown.texts[1] and "loss=0.5" in shown.texts[1]


async def test_bars_that_do_not_stay_are_gone(shared: ToolKernel) -> None:
    shown = await show(shared, NESTED)
    assert [text[:15] for text in shown.texts] == ["outer: 100%|███", "", ""]


async def test_a_form_and_what_its_output_widget_captures_reach_the_model(shared: ToolKernel) -> None:
    shown = await show(shared, FORM)
    assert shown.reply.status is Status.OK
    form, image, below, result = shown.texts
    assert form.startswith("n: 7 (0 … 10)\n[Go] ready\ninside\n")
    assert form.endswith("ZeroDivisionError: division by zero")
    assert "Figure" in image and below == "below\n" and result == "pick: a (of a, b)"
    parts: list[Any] = list(result_content(shown.reply, shown.firewall, 1.0, True))
    assert [type(part) for part in parts].count(ImagePart) == 1
    told = "".join(part.text for part in parts if isinstance(part, TextPart))
    assert "n: 7 (0 … 10)\n[Go] ready\ninside" in told and "pick: a (of a, b)" in told


async def test_a_flood_of_changes_is_a_few_updates(shared: ToolKernel) -> None:
    shown = await show(shared, MANY)
    assert shown.texts == ["|████████████████████| 5000/5000"]
    assert len(shown.updates()) < 100
