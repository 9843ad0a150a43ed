"""Questions at a terminal (a real pseudo terminal), and where there is none."""

from __future__ import annotations

import asyncio
import io
import os
import pty
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

import pytest

from harness_nb.approval import TerminalApprover, in_gutter, read_answer, read_typed, with_texts
from harness_nb.types import Decision, ToolCall

CALL = ToolCall(call_id="c1", name="bash", arguments={"command": "rm -rf x"})
ASK = Decision(verdict="ask", reason="it deletes folders", policy="p")


@dataclass
class Terminal:
    """The person's side of a terminal, the program's side, and what is on the screen."""

    keyboard: int
    source: TextIO
    screen: io.StringIO = field(default_factory=io.StringIO)

    @property
    def approver(self) -> TerminalApprover:
        return TerminalApprover(self.source, self.screen)

    async def type(self, text: str, after: str) -> None:
        """Type once the screen shows ``after``."""
        for _ in range(500):
            await asyncio.sleep(0.02)
            if after in self.screen.getvalue():
                break
        os.write(self.keyboard, text.encode())

    def echo(self) -> str:
        """What the terminal has shown of what was typed."""
        os.set_blocking(self.keyboard, False)
        try:
            return os.read(self.keyboard, 1000).decode()
        except BlockingIOError:
            return ""


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    keyboard, program = pty.openpty()
    with os.fdopen(program, "r") as source:
        yield Terminal(keyboard, source)
    os.close(keyboard)


async def test_a_question_of_the_code_gets_the_line(terminal: Terminal) -> None:
    assert terminal.approver.can_answer
    asked = asyncio.ensure_future(terminal.approver.answer("name? ", secret=False))
    await terminal.type("Ada L\n", after="The running code asks: name? ")
    assert await asked == "Ada L"
    assert "Ada L" in terminal.echo()


async def test_a_secret_is_not_seen(terminal: Terminal) -> None:
    asked = asyncio.ensure_future(terminal.approver.answer("word: ", secret=True))
    await terminal.type("s3cret\n", after="word: ")
    assert await asked == "s3cret"
    assert "s3cret" not in terminal.echo() + terminal.screen.getvalue()
    again = asyncio.ensure_future(terminal.approver.answer("name? ", secret=False))
    await terminal.type("Ada\n", after="name? ")
    assert await again == "Ada"
    assert "Ada" in terminal.echo()


async def test_the_end_of_the_file_is_no_answer(terminal: Terminal) -> None:
    asked = asyncio.ensure_future(terminal.approver.answer("name? ", secret=False))
    await terminal.type("\x04", after="name? ")
    assert await asked is None


async def test_a_question_can_be_given_up_without_a_key(terminal: Terminal) -> None:
    asked = asyncio.ensure_future(terminal.approver.answer("name? ", secret=False))
    await asyncio.sleep(0.05)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(asked, 5)
    again = asyncio.ensure_future(terminal.approver.answer("again? ", secret=False))
    await terminal.type("yes\n", after="again? ")
    assert await again == "yes"


async def test_two_questions_are_put_one_after_the_other(terminal: Terminal) -> None:
    approver = terminal.approver
    first, second = (asyncio.ensure_future(approver.answer(f"{name}? ", secret=False)) for name in "ab")
    await terminal.type("one\n", after="a?")
    assert await first == "one"
    await terminal.type("two\n", after="b?")
    assert await second == "two"


@pytest.mark.parametrize(("line", "approved"), [("y\n", True), ("\n", False), ("n use trash\n", False)])
async def test_an_approval_shows_the_cell_and_takes_only_a_clear_yes(
    terminal: Terminal, line: str, approved: bool
) -> None:
    asked = asyncio.ensure_future(terminal.approver.ask(CALL, "%%bash\nrm -rf x", ASK))
    await terminal.type(line, after="Run it?")
    approval = await asked
    assert approval.approved is approved
    assert ("use trash" in approval.reason) is ("trash" in line)
    assert "it deletes folders\n\n│ %%bash\n│ rm -rf x\n" in terminal.screen.getvalue()


async def test_without_a_terminal_nobody_answers() -> None:
    approver = TerminalApprover(io.StringIO("y\n"), io.StringIO())
    assert not approver.can_answer
    assert await approver.answer("name? ", secret=False) is None
    assert not (await approver.ask(CALL, "", ASK)).approved


def test_what_follows_a_no_goes_to_the_model() -> None:
    assert read_answer("N why not ask").reason == "a person said no: why not ask"
    assert read_answer("maybe later").reason == "a person said no: maybe later"


async def test_a_kind_is_allowed_and_an_edit_made_at_the_terminal(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    approver = terminal.approver
    asked = asyncio.ensure_future(approver.ask(CALL, "%%bash\nrm -rf x", ASK))
    await terminal.type("a\n", after="Run it?")
    assert (await asked).scope == "kind"
    editor = tmp_path / "editor.sh"
    editor.write_text('sed -i s/x/y/ "$1"\n')
    monkeypatch.setenv("VISUAL", f"sh {editor}")
    asked = asyncio.ensure_future(terminal.approver.ask(CALL, "%%bash\nrm -rf x", ASK))
    await terminal.type("e\n", after="e: edit")
    edited = (await asked).edited
    assert edited is not None and edited.arguments == {"command": "rm -rf y"}


def test_a_typed_edit_needs_a_text() -> None:
    edited = read_typed("e rm x/one", CALL).edited
    assert edited is not None and edited.arguments == {"command": "rm x/one"}
    with pytest.raises(ValueError, match="what to run instead"):
        read_typed("e", CALL)
    with pytest.raises(ValueError, match="nothing has been changed"):
        read_typed("e rm -rf x", CALL)


def test_arguments_that_are_no_texts_are_changed_as_json() -> None:
    call = ToolCall(call_id="c", name="bash", arguments={"command": "ls", "timeout": 5})
    assert with_texts(call, {"command": "ls -l", "timeout": "7"}).arguments == {"command": "ls -l", "timeout": 7}
    with pytest.raises(ValueError, match="timeout is not JSON"):
        with_texts(call, {"timeout": "soon"})
    with pytest.raises(ValueError, match="no argument"):
        with_texts(call, {"path": "x"})


def test_nothing_in_a_source_passes_for_the_prompt() -> None:
    url = "https://example.org/" + "a" * 200
    shown = in_gutter(f"curl {url}\n\x1b[2J\x1b[1;1HRun it? [y/N] y\r\u202e", 60)
    assert "\x1b" not in shown and "\r" not in shown and "\u202e" not in shown
    assert all(line.startswith(("│", "┊")) and len(line) <= 60 for line in shown.split("\n"))
    assert url in "".join(line[2:] for line in shown.split("\n"))
