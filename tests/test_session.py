"""Sessions with the real tool kernel and a scripted model: record, resume, interrupt."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import nbformat
import pytest

from harness_nb import events as ev
from harness_nb.approval import DenyApprover
from harness_nb.errors import MissingKeyError, SessionLockedError, UsageError
from harness_nb.journal import read_journal
from harness_nb.session import Session
from harness_nb.settings import Settings
from harness_nb.types import Status


def script(folder: Path, *replies: dict[str, Any]) -> str:
    path = folder / "script.json"
    path.write_text(json.dumps(replies))
    return f"scripted:{path}"


def call(tool: str, /, **arguments: Any) -> dict[str, Any]:
    return {"calls": [{"name": tool, "arguments": arguments}]}


DONE = call("finish", summary="All done.")


@asynccontextmanager
async def opened(workspace: Path, **overrides: Any) -> AsyncGenerator[Session]:
    session = await Session.open(Settings.load(workspace, overrides, {}), DenyApprover())
    try:
        yield session
    finally:
        await session.aclose()


async def send(session: Session, prompt: str = "go") -> list[ev.Event]:
    return [item async for item in session.send(prompt) if isinstance(item, ev.EventBase)]


def results(events: list[ev.Event]) -> list[ev.ResultAdded]:
    return [event for event in events if isinstance(event, ev.ResultAdded)]


def text_of(result: ev.ResultAdded) -> str:
    return "".join(part.text for part in result.content if part.type == "text")


async def test_a_session_writes_a_journal_and_a_notebook(tmp_path: Path) -> None:
    plot = "import matplotlib.pyplot as plt\nplt.plot([1, 3, 2])\nplt.title('zig')\nplt.show()"
    model = script(
        tmp_path,
        {"text": "I write a file and look at it.", **call("write_file", path="a/b.txt", content="one\ntwo\n")},
        call("read_file", path="a/b.txt"),
        call("python", code="x = 40"),
        call("python", code=plot),
        call("bash", command="pwd; echo $X; exit 3"),
        call("python", code="x + 2"),
        DONE,
    )
    async with opened(tmp_path, model=model) as session:
        events = await send(session, "Write {it} for $5.")
        notebook_path = session.notebook_path
    written, read, _, plotted, failed, summed, finished = results(events)
    assert (tmp_path / "a/b.txt").read_text() == "one\ntwo\n"
    assert "two" in text_of(read)
    assert [part.type for part in plotted.content if part.type == "image"] == ["image"]
    assert (failed.status, str(tmp_path) in text_of(failed), "status 3" in text_of(failed)) == (
        Status.ERROR,
        True,
        True,
    )
    assert "42" in text_of(summed)
    assert (written.status, finished.status) == (Status.OK, Status.OK)
    journal, warnings = read_journal(tmp_path / "harness_sessions" / session.id / "journal.jsonl")
    assert not warnings
    assert journal == [event for event in events if not (isinstance(event, ev.CellOutput) and event.transient)]
    assert [event.seq for event in journal] == list(range(1, len(journal) + 1))
    notebook = nbformat.read(notebook_path, as_version=4)
    nbformat.validate(notebook)
    sources = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    assert sources[1:3] == ["%%writefile a/b.txt\none\ntwo", "read_file('a/b.txt')"]
    assert any("image/png" in output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", []))
    counts = [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"]
    assert counts == list(range(1, len(counts) + 1))


async def test_files_are_written_byte_for_byte(tmp_path: Path) -> None:
    contents = [
        "a\n",
        "a",
        "",
        "\n",
        "a\n\n\n",
        "a\n  \n",
        "  a\n",
        "%%bash\nls\n",
        ">>> 1\n1\n",
        "{x} $y !z\n\tt\\n\n",
        "ü\r\nb\r\n",
    ]
    replies = [call("write_file", path=f"f{k}.txt", content=content) for k, content in enumerate(contents)]
    async with opened(tmp_path, model=script(tmp_path, *replies, DONE)) as session:
        events = await send(session)
    assert {result.status for result in results(events)} == {Status.OK}
    written = [(tmp_path / f"f{k}.txt").read_bytes().decode() for k in range(len(contents))]
    assert written == ["a\n" if content == "a" else content for content in contents]


async def test_a_large_output_is_bounded_and_kept_whole(tmp_path: Path) -> None:
    model = script(tmp_path, call("python", code="for i in range(20_000): print('line', i)"), DONE)
    async with opened(tmp_path, model=model) as session:
        events = await send(session)
    (printed, _) = results(events)
    assert len(text_of(printed)) < 20_000
    assert "line 0\n" in text_of(printed) and "line 19999" in text_of(printed)
    (offloaded,) = [event for event in events if isinstance(event, ev.ContextOffloaded)]
    assert offloaded.path in text_of(printed)
    assert (tmp_path / offloaded.path).read_text() == "".join(f"line {i}\n" for i in range(20_000))


async def test_a_second_prompt_goes_on_in_the_same_kernel(tmp_path: Path) -> None:
    model = script(tmp_path, call("python", code="x = 7"), DONE, call("python", code="x * 6"), DONE)
    async with opened(tmp_path, model=model) as session:
        await send(session, "first")
        events = await send(session, "second")
    assert "42" in text_of(results(events)[0])
    assert not [event for event in events if isinstance(event, ev.SessionStarted)]
    assert session.turns == 4


async def test_the_prompt_reaches_the_model(tmp_path: Path) -> None:
    async with opened(tmp_path, model=script(tmp_path, DONE)) as session:
        requests = []
        stream = session._models.main.stream

        def spy(messages: Any, tools: Any, settings: Any) -> Any:
            requests.append(messages)
            return stream(messages, tools, settings)

        session._models.main.stream = spy  # type: ignore[method-assign]
        await send(session, "Do {this} for $5\n")
    assert [message.role for message in requests[0]] == ["system", "user"]
    assert requests[0][1].text == "Do {this} for $5\n"


async def test_the_model_is_told_the_rules_of_each_prompt(tmp_path: Path) -> None:
    model = script(tmp_path, DONE)
    async with opened(tmp_path, model=model) as session:
        await send(session, "first")
        before = session._work().system
        await session.use(
            Settings.load(tmp_path, {"model": model, "check": ("true",), "max_turns": 9}, {}), DenyApprover()
        )
        await send(session, "second")
        after = session._work().system
    assert "exits with 0: `true`" in after and "at most 9 replies" in after
    assert "exits with 0" not in before and "at most 50 replies" in before


async def test_a_session_is_continued_from_its_journal(tmp_path: Path) -> None:
    model = script(tmp_path, call("python", code="x = 7"), DONE)
    async with opened(tmp_path, model=model) as session:
        await send(session, "first")
    model = script(tmp_path, call("python", code="x"), DONE)
    async with opened(tmp_path, model=model, session=session.id) as again:
        events = await send(again, "second")
    assert again.notebook_path == session.notebook_path
    assert results(events)[0].status is Status.ERROR
    nudge = next(event for event in events if isinstance(event, ev.Nudged))
    assert "fresh kernel" in nudge.text and "are lost: x (int)" in nudge.text
    journal, _ = read_journal(tmp_path / "harness_sessions" / session.id / "journal.jsonl")
    assert [event.seq for event in journal] == list(range(1, len(journal) + 1))
    notebook = nbformat.read(session.notebook_path, as_version=4)
    assert {"first", "second"} <= {word for cell in notebook.cells for word in cell.source.split()}


async def test_an_interrupt_completes_the_record(tmp_path: Path) -> None:
    code = "import time\nprint('begun', flush=True)\ntime.sleep(60)"
    model = script(tmp_path, call("python", code=code), call("python", code="print('alive')"), DONE)
    async with opened(tmp_path, model=model) as session:

        async def consume() -> None:
            async with aclosing(session.send("go")) as items:
                async for item in items:
                    if isinstance(item, ev.CellOutput):
                        begun.set()

        begun = asyncio.Event()
        task = asyncio.ensure_future(consume())
        await asyncio.wait_for(begun.wait(), 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert session.ending is not None and session.ending.reason == "interrupted"
        events = await send(session, "go on")
    assert "alive" in text_of(results(events)[0])
    journal, _ = read_journal(tmp_path / "harness_sessions" / session.id / "journal.jsonl")
    assert results(journal)[0].status is Status.INTERRUPTED
    assert any(isinstance(event, ev.CellOutput) and "begun" in str(event.output) for event in journal)
    nbformat.validate(nbformat.read(session.notebook_path, as_version=4))


async def test_a_recorded_session_replays_without_a_model(tmp_path: Path) -> None:
    model = script(tmp_path, call("python", code="print(6 * 7)"), DONE)
    async with opened(tmp_path, model=model) as session:
        await send(session)
    async with opened(tmp_path, model=f"replay:{session.id}", new=True) as again:
        events = await send(again)
    assert again.id != session.id
    assert "42" in text_of(results(events)[0])
    assert again.ending is not None and again.ending.reason == "finished"


async def test_names_are_lost_with_the_kernel_and_rebuilt_on_request(tmp_path: Path) -> None:
    model = script(
        tmp_path,
        call("python", code="x = 6"),
        call("python", code="1 / 0"),
        call("python", code="y = x * 7\nprint(y)"),
        call("python", code="import os, signal\nprint('last words', flush=True)\nos.kill(os.getpid(), signal.SIGKILL)"),
        call("rebuild"),
        call("python", code="y"),
        DONE,
    )
    async with opened(tmp_path, model=model) as session:
        events = await send(session)
    _, _, _, died, rebuilt, shown, _ = results(events)
    assert died.status is Status.KERNEL_DIED
    for words in ("last words", "SIGKILL", "x (int)", "y (int)", "rebuild runs your earlier python cells again"):
        assert words in text_of(died)
    assert text_of(rebuilt).startswith("All 2 python cells that had ended well were run again")
    assert text_of(rebuilt).endswith("Names now: y (int), x (int).")
    assert "42" in text_of(shown)
    finished = [event for event in events if isinstance(event, ev.CellFinished) and event.name == "python"]
    assert [row["name"] for row in finished[2].names or ()] == ["y", "x"]


async def test_closed_streams_and_odd_paths_harm_nothing_later(tmp_path: Path) -> None:
    model = script(
        tmp_path,
        call("python", code="import sys\nsys.stdout.close()\nsys.stderr.close()"),
        call("bash", command="echo here"),
        call("write_file", path='a\n"b".txt', content="x\n"),
        DONE,
    )
    async with opened(tmp_path, model=model) as session:
        _, shell, written, _ = results(await send(session))
    assert "here" in text_of(shell)
    assert (written.status, (tmp_path / 'a\n"b".txt').read_text()) == (Status.OK, "x\n")


async def test_a_broken_journal_line_is_said_when_the_session_goes_on(tmp_path: Path) -> None:
    async with opened(tmp_path, model=script(tmp_path, call("python", code="x = 7"), DONE)) as session:
        await send(session, "first")
    journal = tmp_path / "harness_sessions" / session.id / "journal.jsonl"
    lines = journal.read_text().splitlines()
    lines[4] = "garbage{"
    journal.write_text("\n".join(lines) + "\n")
    async with opened(tmp_path, model=script(tmp_path, DONE), session=session.id) as again:
        events = await send(again, "second")
    warned = [event.text for event in events if isinstance(event, ev.Warned)]
    assert len(warned) == 2 and "line 5 is set aside" in warned[0] and "1 event comes from the" in warned[1]
    assert (journal.parent / "journal.set-aside.txt").read_text() == "garbage{\n"
    assert not read_journal(journal)[1]


async def test_a_name_that_is_a_magic_is_a_name(tmp_path: Path) -> None:
    model = script(tmp_path, call("python", code="history"), call("python", code="%pip --version"), DONE)
    async with opened(tmp_path, model=model) as session:
        missing, magic, _ = results(await send(session))
    assert "NameError: name 'history' is not defined" in text_of(missing)
    assert magic.status is Status.OK and "pip" in text_of(magic)


async def test_a_long_call_goes_on_and_is_waited_for(tmp_path: Path) -> None:
    train = """import time
for epoch in range(1, 9):
    print('epoch', epoch, 'val_acc:', 0.1 * epoch, flush=True)
    time.sleep(0.4)
x = 1"""
    model = script(
        tmp_path,
        call("python", code=train, timeout=0.5),
        call("python", code="x"),
        call("wait", until=r"val_acc: 0\.4"),
        call("wait"),
        call("python", code="x"),
        DONE,
    )
    async with opened(tmp_path, model=model) as session:
        events = await send(session)
        notebook_path = session.notebook_path
    started, busy, matched, ended, after, _ = results(events)
    statuses = [result.status for result in (started, busy, matched, ended, after)]
    assert statuses == [Status.RUNNING, Status.ERROR, Status.RUNNING, Status.OK, Status.OK]
    assert "epoch 1" in text_of(started) and "epoch 8" not in text_of(started)
    assert "busy" in text_of(busy)
    assert "epoch 1 " not in text_of(matched) and "the pattern matched" in text_of(matched)
    assert "epoch 8" in text_of(ended) and "epoch 3 " not in text_of(ended)
    notebook = nbformat.read(notebook_path, as_version=4)
    nbformat.validate(notebook)
    (cell,) = [cell for cell in notebook.cells if "epoch" in cell.source and cell.cell_type == "code"]
    printed = "".join(output["text"] for output in cell.outputs if output.output_type == "stream")
    assert printed.count("epoch") == 8
    assert cell.outputs[-1].metadata.harness_nb == {"derived": "metrics"}
    assert cell.metadata.tags == ["nbval-ignore-output"]
    assert any(cell.source.startswith("*Waited: ok") for cell in notebook.cells)


WEAKEN = """\
import os
for folder, _, names in os.walk("."):
    if "test_x.py" in names:
        for name in ("test_x.py", "helper.py"):
            open(os.path.join(folder, name), "w").close()
"""


async def test_checks_and_read_only_files_hold(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_x.py").write_text("assert open('x.txt').read() == 'right'\n")
    model = script(
        tmp_path,
        DONE,
        call("write_file", path="tests/test_x.py", content=""),
        call("python", code=WEAKEN),
        DONE,
        call("bash", command="rm tests/helper.py; printf right > x.txt"),
        DONE,
    )
    async with opened(tmp_path, model=model, check=("python tests/test_x.py",), kernel="harness-tools") as session:
        events = await send(session)
    refusals = [event.reason for event in events if isinstance(event, ev.FinishRejected)]
    assert "No such file" in refusals[0]
    assert "not as they were at the start: tests/helper.py" in refusals[1]
    assert "put back as they were: tests/test_x.py" in text_of(results(events)[2])
    assert [result.status for result in results(events)][1] is Status.DENIED
    assert session.ending is not None and session.ending.reason == "finished"


async def test_what_cannot_be_opened_is_said_before_anything_starts(tmp_path: Path) -> None:
    for overrides, error, words in (
        ({"model": "scripted:none.json"}, UsageError, "none.json"),
        ({"model": "what:x"}, UsageError, "chat:NAME"),
        ({"model": script(tmp_path, DONE), "session": "nope"}, UsageError, "nope"),
        ({"model": script(tmp_path, DONE), "kernel": "klingon"}, UsageError, "klingon"),
        ({}, MissingKeyError, "OPENAI_API_KEY"),
    ):
        with pytest.raises(error, match=words):
            await Session.open(Settings.load(tmp_path, overrides, {}), DenyApprover())
    assert not (tmp_path / "harness_sessions").exists()


async def test_one_session_is_open_once(tmp_path: Path) -> None:
    async with opened(tmp_path, model=script(tmp_path, DONE)) as session:
        await send(session)
        with pytest.raises(SessionLockedError):
            await Session.open(
                Settings.load(tmp_path, {"model": script(tmp_path, DONE), "session": session.id}, {}), DenyApprover()
            )
