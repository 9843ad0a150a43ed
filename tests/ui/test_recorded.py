"""The verbs about recorded sessions at a desk of their own: words, questions, what they change and what they say."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat
import pytest

from harness_nb import events as ev
from harness_nb.approval import DenyApprover
from harness_nb.errors import UsageError
from harness_nb.kernel import FakeKernel
from harness_nb.record import read_record
from harness_nb.session import Session
from harness_nb.settings import Settings
from harness_nb.store import session_ids
from harness_nb.types import JsonObject
from harness_nb.ui import recorded
from harness_nb.ui.current import CurrentSession, Task
from harness_nb.ui.here import Placed
from harness_nb.ui.publish import Bundle
from harness_nb.verify import CellVerdict, Verdict

WORK = [
    {"calls": [{"name": "python", "arguments": {"code": "x = 1"}}]},
    {"calls": [{"name": "write_file", "arguments": {"path": "notes.txt", "content": "first\n"}}]},
    {"text": "Now the rest.", "calls": [{"name": "python", "arguments": {"code": "print('x is', x)"}}]},
    {"calls": [{"name": "write_file", "arguments": {"path": "notes.txt", "content": "second\n"}}]},
    {"text": "Counted."},
]


class Desk:
    """A cell of a notebook; ``answers`` are the person's, in order; without one nobody is there."""

    def __init__(self, answers: Sequence[bool] = ()) -> None:
        self.current = CurrentSession()
        self.shown: list[str] = []
        self.meanwhile: list[str] = []
        self.questions: list[str] = []
        self.cells: list[JsonObject] = []
        self.below: list[str] = []
        self._answers = list(answers)

    def show(self, bundle: Bundle) -> None:
        self.shown.append(bundle.data["text/plain"])

    def show_meanwhile(self, bundle: Bundle) -> None:
        self.meanwhile.append(bundle.data["text/plain"])

    def ask(self, question: str) -> bool | None:
        self.questions.append(question)
        return self._answers.pop(0) if self._answers else None

    def put_below(self, cells: Sequence[JsonObject], session_id: str, below: Sequence[str]) -> Placed:
        self.cells, self.below = list(cells), list(below)
        return Placed(inserted=len(cells))

    def do(self, line: str) -> str:
        """Do a verb as the magic does; what the cell shows last."""
        verb, _, words = line.partition(" ")
        recorded.RUNNERS[verb](self, **recorded.read_words(verb, words))
        return self.shown[-1]


def run(source: str) -> Any:
    """What the code would do, without a kernel."""
    if source.startswith("%%writefile"):
        first, rest = source.split("\n", 1)
        Path(first.split()[1]).write_text(f"{rest}\n")
        return "Written.\n"
    return "x is 1\n" if "print" in source else ()


async def work(folder: Path, script: list[dict[str, Any]] = WORK, most: int = 50, **options: Any) -> Session:
    """A session that has worked on a task in ``folder``, the working directory. It is open."""
    (folder / "script.json").write_text(json.dumps(script))
    given = {"model": "scripted:script.json", "max_turns": most, **options}
    session = await Session.open(Settings.load(folder, given, {}), DenyApprover(), kernel=FakeKernel(run))
    async for _ in session.send("Count and note"):
        pass
    return session


@pytest.fixture
async def done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The id of a session that is finished, in the working directory."""
    monkeypatch.chdir(tmp_path)
    session = await work(tmp_path)
    await session.aclose()
    return session.id


@pytest.fixture
async def limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The id of a session that has reached its limit of three turns."""
    monkeypatch.chdir(tmp_path)
    session = await work(tmp_path, most=3)
    await session.aclose()
    return session.id


def notes() -> str:
    return Path("notes.txt").read_text()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("rewind", "%agent rewind: Missing argument 'STEP'. It is written: %agent rewind N"),
        ("rewind two", "'two' is not a valid integer"),
        ("rewind -1", "No such option"),
        ("export --cleen", "No such option"),
        ("export 'open", "No closing quotation. It is written: %agent export [PATH]"),
        ("export a b", "Got unexpected extra argument (b)"),
        ("fork --at -1", "is not in the range"),
        ("fork --at", "requires an argument"),
        ("verify", "Missing argument 'PATH'. It is written: %agent verify PATH [--repair]"),
        ("steps 1 2", "Got unexpected extra argument (2)"),
        ("resume a b", "It is written: %agent resume [ID] [options]"),
    ],
)
def test_wrong_words_are_answered_in_a_sentence(line: str, message: str) -> None:
    verb, _, words = line.partition(" ")
    with pytest.raises(UsageError) as raised:
        recorded.read_words(verb, words)
    assert message in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.parametrize("line", ["rewind 1", "fork", "steps", "export", "export --here"])
def test_without_a_session_they_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="There is no session in"):
        Desk().do(line)


def test_steps_are_listed_with_their_calls(done: str) -> None:
    told = Desk().do("steps").splitlines()
    assert told[0].split() == ["step", "tool", "outcome", "time", "call"]
    assert told[1].split(maxsplit=1) == ["0", "the task, before any call"]
    assert [line.split()[:3] for line in told[2:]] == [
        ["1", "python", "ok"],
        ["2", "write_file", "ok"],
        ["3", "python", "ok"],
        ["4", "write_file", "ok"],
    ]
    assert "notes.txt (1 line)" in told[3]


def test_rewind_shows_what_would_change_and_asks_before(done: str) -> None:
    desk = Desk(answers=[False, True])
    assert desk.do("rewind 2") == "○ Nothing was changed."
    assert (notes(), desk.current.id, session_ids(Path())) == ("second\n", "", [done])
    assert desk.questions == ["Change these files? [y/N] "]
    assert desk.shown[0].splitlines()[:2] == [
        f"⟲ Back to step 2 of {done}: write_file notes.txt (1 line)",
        "    Written as they were then: notes.txt.",
    ]
    told = desk.do("rewind 2")
    (fork,) = set(session_ids(Path())) - {done}
    assert (notes(), desk.current.id) == ("first\n", fork)
    assert (
        f"Back at step 2 of {done}: write_file notes.txt (1 line). Written: notes.txt. This is the session {fork}"
        in told
    )
    assert told.endswith(f"harness_sessions/{fork}.ipynb")
    assert desk.current.options({}) == {"model": "scripted:script.json", "session": fork}
    assert desk.current.options({"new": True}) == {"new": True}
    assert "session" not in desk.current.options({"dir": "elsewhere"})


def test_rewind_changes_nothing_where_nobody_can_be_asked_but_for_yes(done: str) -> None:
    desk = Desk()
    with pytest.raises(UsageError, match="Nobody can be asked here: add --yes, or fork --into FOLDER for a copy"):
        desk.do("rewind 2")
    assert (notes(), session_ids(Path())) == ("second\n", [done])
    desk.do("rewind 2 --yes")
    assert notes() == "first\n" and len(desk.questions) == 1


def test_where_no_file_changes_nobody_is_asked(done: str) -> None:
    desk = Desk()
    assert "No file was changed." in desk.do("rewind 4")
    assert desk.questions == []
    with pytest.raises(UsageError, match="no step 9 in that session; it has the steps 0 to 4"):
        desk.do("rewind 9")


def test_a_rewind_that_fails_leaves_the_session_to_go_on_with(done: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(plan: Any) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(recorded, "carry_out", fail)
    desk = Desk()
    with pytest.raises(OSError, match="the disk is full"):
        desk.do("rewind 2 --yes")
    assert desk.current.id == done


def test_a_fork_leaves_the_notebook_in_its_session(done: str, tmp_path: Path) -> None:
    desk = Desk()
    told = desk.do("fork --at 1 --into 'a copy'")
    (fork,) = session_ids(tmp_path / "a copy")
    assert f"Go on in it with %%agent --session {fork} --dir 'a copy', or %agent resume {fork} --dir 'a copy'." in told
    assert (notes(), (tmp_path / "a copy" / "notes.txt").exists(), desk.current.id) == ("second\n", False, "")
    told = desk.do(f"fork {done}")
    (here,) = set(session_ids(tmp_path)) - {done}
    assert f"{here} is {done} as it was after step 4" in told and f"%%agent --session {here}. " in told
    task = recorded.resume_task(desk, **recorded.read_words("resume", f"{fork} --dir 'a copy'"))
    assert task is not None and task.settings.directory == tmp_path / "a copy"


def test_work_that_reached_a_limit_is_resumed_with_its_own_options(limited: str, tmp_path: Path) -> None:
    for named in (None, limited):
        task = recorded.resume_task(Desk(), named)
        assert task is not None and task.resume and task.prompt == ""
        assert (task.settings.session, task.settings.max_turns) == (limited, 3)
        assert task.settings.model == "scripted:script.json"
    task = recorded.resume_task(Desk(), **recorded.read_words("resume", "--max-turns 9 --check true"))
    assert task is not None
    assert (task.settings.session, task.settings.max_turns, task.settings.check) == (limited, 9, ("true",))
    with pytest.raises(UsageError, match="no session 'nowhere'"):
        recorded.resume_task(Desk(), "nowhere")


def test_after_a_rewind_the_fork_is_resumed_with_the_options_that_hold(limited: str) -> None:
    desk = Desk()
    desk.do("rewind 1 --yes")
    desk.current.kept = {"model": "scripted:other.json"}
    task = recorded.resume_task(desk, None)
    assert task is not None
    assert (task.settings.session, task.settings.model) == (desk.current.id, "scripted:other.json")


def test_finished_work_is_not_resumed_and_the_cell_does_not_fail(done: str) -> None:
    desk = Desk()
    assert recorded.resume_task(desk, None) is None
    assert desk.shown == [
        f"○ There is nothing to resume: the work of {done} is finished. A %%agent cell gives it another task."
    ]


async def test_the_open_session_is_resumed_as_it_is_whatever_its_cell_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.json").write_text(json.dumps(WORK))
    desk = Desk()
    given = {"model": "scripted:script.json", "max_turns": 1, "new": True}
    session = await desk.current.take(Task("Count", Settings.load(tmp_path, given, {}), given, given), DenyApprover())
    task = recorded.resume_task(desk, None)
    assert task is not None and await desk.current.take(task, DenyApprover()) is session
    assert (task.settings.max_turns, task.settings.new) == (1, False)
    more = recorded.resume_task(desk, None, max_turns=4)
    assert more is not None and await desk.current.take(more, DenyApprover()) is session
    assert (more.settings.max_turns, more.settings.model) == (4, "scripted:script.json")
    await desk.current.aclose()


def test_a_session_is_exported_in_each_form(done: str, tmp_path: Path) -> None:
    desk = Desk()
    assert desk.do("export") == f"✓ Exported. {done}.ipynb"
    assert "Count and note" in str(nbformat.read(tmp_path / f"{done}.ipynb", 4).cells)
    assert desk.meanwhile[-1] == f"● Exporting {done} …"
    desk.do(f"export page.html --session {done}")
    assert "Count and note" in (tmp_path / "page.html").read_text()
    desk.do("export code.py")
    assert "print('x is', x)" in (tmp_path / "code.py").read_text()
    told = desk.do("export clean.ipynb --clean")
    sources = [cell.source for cell in nbformat.read(tmp_path / "clean.ipynb", 4).cells if cell.cell_type == "code"]
    assert "left out" in told and any("print('x is', x)" in source for source in sources)
    (tmp_path / "mine.ipynb").write_text("{}")
    with pytest.raises(UsageError, match="was not written by an export"):
        desk.do("export mine.ipynb")
    desk.do("export mine.ipynb --force")
    for words, message in [
        ("--here --clean", "it goes with no other option"),
        ("page.html --verify", "--verify runs notebooks; page.html would be none"),
        ("a.txt", "an export is one of .ipynb, .py, .html"),
        ("--session nowhere", "no session 'nowhere'"),
    ]:
        with pytest.raises(UsageError, match=message):
            desk.do(f"export {words}")


def test_an_export_is_verified_and_a_changed_output_is_found(done: str, tmp_path: Path) -> None:
    desk = Desk()
    told = desk.do("export clean.ipynb --clean --verify")
    assert told.startswith("✓ Exported; reproduced: ") and "clean.ipynb" in told.splitlines()[0]
    assert "● Verifying clean.ipynb: starting a fresh kernel" in desk.meanwhile
    text = (tmp_path / "clean.ipynb").read_text()
    assert text.count("x is 1") == 1
    (tmp_path / "clean.ipynb").write_text(text.replace("x is 1", "x is two"))
    told = desk.do("verify clean.ipynb")
    assert told.startswith("✗ Differs: cell ") and "x is two" in told
    with pytest.raises(UsageError, match=r"absent\.ipynb"):
        desk.do("verify absent.ipynb")


def test_a_verification_says_at_which_cell_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cells = [nbformat.v4.new_code_cell(source) for source in ("x = 1", "import time\ntime.sleep(0.7)")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "slow.ipynb")
    desk = Desk()
    assert desk.do("verify slow.ipynb").startswith("⚠ Ran, nothing to compare: no cell has a recorded output.")
    assert "● Verifying slow.ipynb: cell 2 of 2: import time" in [line.partition(" · ")[0] for line in desk.meanwhile]


@pytest.mark.parametrize(
    ("verdict", "line"),
    [
        (Verdict(Path("a.ipynb"), "nothing to compare", "no cell has a recorded output"), "⚠ Ran, nothing to compare"),
        (Verdict(Path("a.ipynb"), "not run", "there is no kernel 'x'"), "⚠ Not run: there is no kernel 'x'."),
        (Verdict(Path("a.ipynb"), "failed", cells=(CellVerdict(2, "b", "failed", "NameError: x"),)), "✗ Failed: Name"),
    ],
)
def test_only_what_was_reproduced_is_green(verdict: Verdict, line: str) -> None:
    assert recorded.verdict_block(verdict).data["text/plain"].startswith(line)


async def test_cells_go_below_the_work_of_the_current_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    earlier = await work(tmp_path)
    await earlier.aclose()
    desk = Desk()
    desk.current.session = await work(tmp_path)
    desk.current.cells_of_work = ["agent cell"]
    assert desk.do("export --here") == f"✓ {len(desk.cells)} cells put below this one. Also in {link(desk)}"
    assert desk.below == ["agent cell"]
    assert desk.cells[0]["metadata"]["harness_nb"]["placed"]["session"] == desk.current.id
    desk.do(f"export --here --session {earlier.id}")
    assert desk.below == []
    await desk.current.aclose()


def link(desk: Desk) -> str:
    return f"harness_sessions/{desk.current.id}.ipynb"


async def test_they_work_in_the_workspace_of_the_current_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    session = await work(tmp_path / "sub")
    monkeypatch.chdir(tmp_path)
    desk = Desk()
    desk.current.session = session
    desk.current.kept = {"dir": "sub"}
    desk.current._settings = session._settings
    told = desk.do("rewind 2 --yes")
    assert (tmp_path / "sub" / "notes.txt").read_text() == "first\n"
    assert told.endswith(f"sub/harness_sessions/{desk.current.id}.ipynb")
    assert desk.current.options({}) == {"dir": "sub", "session": desk.current.id}
    desk.do("steps")
    assert len(desk.shown[-1].splitlines()) == 4
    events, _ = read_record(tmp_path / "sub", desk.current.id)
    assert isinstance(events[0], ev.SessionStarted) and events[0].origin["step"] == 2


def test_the_help_has_them_all() -> None:
    lines = dict(recorded.lines_of_help())
    assert [line.split()[0] for line in lines] == ["resume", "steps", "rewind", "fork", "export", "export", "verify"]
    assert "asks before it changes files" in lines["rewind N"]
