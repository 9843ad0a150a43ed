"""Cells for the open notebook: how they are made, what is said to a page, and what comes of each kind of answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness_nb.tools import SETUP_SOURCE
from harness_nb.ui import here, here_words
from harness_nb.ui.engine import Engine
from harness_nb.ui.here import Failure, Placed, cells_for, put_below
from harness_nb.ui.here_words import placed_block
from harness_nb.ui.html import Link

NOTEBOOK = {
    "cells": [
        {"cell_type": "markdown", "id": "task", "metadata": {}, "source": "# Draw"},
        {"cell_type": "code", "id": "setup", "metadata": {}, "source": SETUP_SOURCE, "outputs": []},
        {
            "cell_type": "code",
            "id": "step.1",
            "metadata": {"harness_nb": {"call": {"name": "python"}}, "tags": ["mine"], "trusted": True},
            "source": "x",
            "outputs": [{"output_type": "display_data", "data": {"text/html": "<b>x</b>"}, "metadata": {}}],
        },
    ]
}


Answers = Callable[[str, dict[str, Any]], list[dict[str, Any]]]


class Kernel:
    """A kernel whose page answers each message by ``page``, with what it says back."""

    iopub_socket = None

    def __init__(
        self, page: Callable[[str, dict[str, Any]], list[dict[str, Any]]], cell: str | None = "asking"
    ) -> None:
        self.session = SimpleNamespace(send=self._send)
        self.sent: list[tuple[str, dict[str, Any]]] = []
        self._page = page
        self._cell = cell

    def get_parent(self, channel: str) -> dict[str, Any]:
        return {"metadata": {"cellId": self._cell} if self._cell else {}, "header": {"msg_id": "request"}}

    def _send(self, socket: None, kind: str, content: dict[str, Any], *, parent: dict[str, Any], **keys: Any) -> None:
        assert parent["header"]["msg_id"] == "request"
        self.sent.append((kind, content["data"]))
        for answer in self._page(kind, content["data"]):
            line = lines[-1]
            line.handle_close({}) if answer == CLOSE else line.handle_msg({"content": {"data": answer}})


CLOSE: dict[str, Any] = {"event": "close"}
lines: list[here.PageLine] = []


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """An engine; the lines that it opens are in ``lines``."""
    made = here.PageLine.__init__

    def init(self: here.PageLine, *arguments: Any) -> None:
        lines.append(self)
        made(self, *arguments)

    monkeypatch.setattr(here.PageLine, "__init__", init)
    engine = Engine()
    yield engine
    engine.close()
    lines.clear()


def page(**done: Any) -> Answers:
    """A page that shows the notebook and does as it is told."""

    def answer(kind: str, data: dict[str, Any]) -> list[dict[str, Any]]:
        if kind == "comm_open":
            return [{"event": "here", "from": "p1", "exact": True, "name": "JupyterLab 4.6"}]
        return [{"event": "done", "from": "p1", **done}] if data.get("event") == "put" else []

    return answer


def test_cells_keep_what_they_show_and_lose_what_belongs_to_the_session(tmp_path: Path) -> None:
    made = cells_for(NOTEBOOK, "s1", tmp_path / "work", tmp_path)
    assert [cell["id"] for cell in made] == ["s1-task", "s1-setup", "s1-step-1"]
    assert made[1]["source"].endswith('workspace("work")')
    assert made[2]["metadata"] == {"tags": ["mine"], "harness_nb": {"placed": {"cell": "step.1", "session": "s1"}}}
    assert made[1]["metadata"]["trusted"] is True, "it has no output that could act in a page"
    trusted = cells_for(NOTEBOOK, "s1", tmp_path, tmp_path, trusted=True)
    assert trusted[2]["metadata"]["trusted"] is True and trusted[2]["outputs"] == NOTEBOOK["cells"][2]["outputs"]


def test_the_page_is_told_where_the_cells_go_and_says_what_it_did(engine: Engine) -> None:
    kernel = Kernel(page(inserted=2, kept=["a"], below="agent cell"))
    placed = put_below(engine, kernel, [{"id": "one"}], "s1", ["agent cell"])
    assert placed == Placed(inserted=2, kept=("a",), below="agent cell", front_end="JupyterLab 4.6")
    opened, put, closed = kernel.sent
    assert opened == ("comm_open", {"version": 1, "below": ["agent cell", "asking"]})
    assert put[1] == {
        "event": "put", "to": "p1", "session": "s1", "below": ["agent cell", "asking"], "cells": [{"id": "one"}],
    }  # fmt: skip
    assert closed[0] == "comm_close"
    own = put_below(engine, Kernel(page(inserted=2, below="asking")), [], "s1")
    assert own == Placed(inserted=2, front_end="JupyterLab 4.6")


def test_what_does_not_work_is_a_value_with_its_reason(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(here, "FIND_TIMEOUT", 0.05)
    monkeypatch.setattr(here, "PUT_TIMEOUT", 0.05)
    shown = {"event": "here", "from": "p1", "exact": False}
    monkeypatch.setattr(here, "ELSEWHERE", 0.05)
    failed = {"event": "failed", "from": "p1", "message": "the notebook is read-only"}
    cases: list[tuple[Any, Failure, str]] = [
        (None, Failure.NO_PAGE, ""),
        (Kernel(page(), cell=None), Failure.NO_PAGE, ""),
        (Kernel(lambda kind, data: []), Failure.NO_ANSWER, ""),
        (Kernel(lambda kind, data: [CLOSE] if kind == "comm_open" else []), Failure.NO_EXTENSION, ""),
        (Kernel(lambda kind, data: [failed]), Failure.REFUSED, "the notebook is read-only"),
        (Kernel(lambda kind, data: [shown] if kind == "comm_open" else [failed]), Failure.REFUSED, failed["message"]),
        (Kernel(lambda kind, data: [shown] if kind == "comm_open" else []), Failure.REFUSED, "did not say within"),
        (Kernel(lambda kind, data: [shown] if kind == "comm_open" else [CLOSE]), Failure.REFUSED, "the page has gone"),
    ]
    for kernel, failure, detail in cases:
        placed = put_below(engine, kernel, [], "s1")
        assert (placed.failure, detail in placed.detail) == (failure, True), placed


@pytest.mark.parametrize(
    ("placed", "words"),
    [
        (Placed(inserted=1), "✓ 1 cell put below this one. Also in s.ipynb"),
        (Placed(inserted=3, below="x"), "✓ 3 cells put below the %%agent cell. Also in s.ipynb"),
        (Placed(unchanged=2, kept=("a", "b")), "✓ 2 cells as before. 2 cells that you have edited since were left as"),
        (Placed(), "✓ No cells to put here. Also in s.ipynb"),
        (Placed(failure=Failure.NO_PAGE), "○ No cells were put into this notebook: nobody has it open in a page that"),
        (Placed(failure=Failure.NO_EXTENSION), "this page has no extension for it. JupyterLab 4.4 and Notebook 7.4"),
        (Placed(failure=Failure.NO_ANSWER), "the front-end does not answer. JupyterLab 4.4 and Notebook 7.4 can"),
        (
            Placed(failure=Failure.REFUSED, detail="it is read-only.", front_end="Lab 4"),
            "✗ No cells were put into this notebook: Lab 4 says: it is read-only. They are in s.ipynb",
        ),
    ],
)
def test_each_outcome_is_said_and_where_the_cells_are(placed: Placed, words: str) -> None:
    told = placed_block(placed, Link("s.ipynb", "s.ipynb")).data["text/plain"]
    assert words in told and told.endswith("s.ipynb")


def test_doctor_can_say_whether_the_page_script_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jupyter_core.paths.jupyter_path", lambda *parts: [str(Path(tmp_path, *parts))])
    found, words = here_words.installed_extension()
    assert not found and str(here_words.PACKAGED) in words
    script = tmp_path / "labextensions" / "harness-nb" / "static" / "remoteEntry.js"
    script.parent.mkdir(parents=True)
    for path in (here_words.PACKAGED / "static").glob("*.js"):
        (script.parent / path.name).write_bytes(path.read_bytes())
    assert here_words.installed_extension()[0]
    script.write_text("another")
    found, words = here_words.installed_extension()
    assert not found and "is of another version of harness_nb" in words
