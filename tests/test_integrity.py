"""Cheats against the finish gate: each is refused and named, in the sandbox and, where it says so, without one."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from harness_nb.check_copy import BIG_FILE, MOST_FILES, CheckCopy
from harness_nb.events import CheckFinished
from harness_nb.gate import CHECK_TIMEOUT, Gate, check_environment
from harness_nb.kernel.bubblewrap import why_not
from harness_nb.kernel.tool_kernel import ToolKernel
from harness_nb.pristine import Pristine
from harness_nb.settings import Settings
from harness_nb.watched import PYTHON_TESTS, SCRIPT_TESTS, STARTUP, lacks_tests

PYTEST = f"{sys.executable} -m pytest -q -p no:cacheprovider"
UNITTEST = f"{sys.executable} -m unittest -q"
WRONG = "def twice(x):\n    return x\n"
RIGHT = "def twice(x):\n    return x * 2\n"
TESTS = (
    "import unittest\nfrom code_at_work import twice\n\n"
    "class Twice(unittest.TestCase):\n    def test_twice(self):\n        self.assertEqual(twice(2), 4)\n"
)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    place = tmp_path / "workspace"
    (place / "tests").mkdir(parents=True)
    (place / "code_at_work.py").write_text(WRONG)
    (place / "tests" / "__init__.py").write_text("")
    (place / "tests" / "test_twice.py").write_text(TESTS)
    (place / "pyproject.toml").write_text('[project]\nname = "x"\n[tool.pytest.ini_options]\naddopts = "-ra"\n')
    (place / "Makefile").write_text(f"test:\n\t{UNITTEST}\n")
    return place


@pytest.fixture(params=["sandbox", "plain"])
def kernel(request: pytest.FixtureRequest, workspace: Path) -> Iterator[ToolKernel]:
    if request.param == "sandbox" and why_not():
        pytest.skip(why_not())
    yield ToolKernel(name={"sandbox": "harness-sandbox", "plain": "harness-tools"}[request.param], directory=workspace)


def gate_of(workspace: Path, command: str, kernel: ToolKernel, read_only: Sequence[str] = ()) -> Gate:
    return Gate(workspace, [command], Pristine(workspace, read_only), kernel.environment, kernel, 60)


async def outcome(gate: Gate) -> tuple[list[CheckFinished], str]:
    found = [check async for check in gate.run()]
    return found, "\n".join(check.output for check in found if not check.passed)


def edit_test(place: Path) -> None:
    (place / "tests/test_twice.py").write_text(TESTS.replace("twice(2), 4", "4, 4"))


def skip_test(place: Path) -> None:
    (place / "tests/test_twice.py").write_text(TESTS.replace("    def", "    @unittest.skip('later')\n    def"))


def delete_test(place: Path) -> None:
    (place / "tests/test_twice.py").unlink()


def add_hook(place: Path) -> None:
    (place / "conftest.py").write_text(
        "import pytest\n@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport(item, call):\n"
        "    out = yield\n    out.get_result().outcome = 'passed'\n"
    )


def add_options(place: Path) -> None:
    (place / "pytest.ini").write_text("[pytest]\naddopts = --ignore=tests --co\n")


def edit_options(place: Path) -> None:
    (place / "pyproject.toml").write_text('[project]\nname = "x"\n[tool.pytest.ini_options]\naddopts = "--co"\n')


def add_startup(place: Path) -> None:
    (place / "sitecustomize.py").write_text("import unittest\nunittest.TestCase.assertEqual = lambda *_: None\n")


def add_path_file(place: Path) -> None:
    (place / "patch.pth").write_text("import unittest; unittest.TestCase.assertEqual = lambda *_: None\n")


def add_variables(place: Path) -> None:
    (place / ".env").write_text("PYTEST_ADDOPTS=--co\n")


def fake_pytest(place: Path) -> None:
    (place / "pytest.py").write_text("print('1 passed in 0.01s')\n")


def fake_unittest(place: Path) -> None:
    (place / "unittest").mkdir()
    (place / "unittest/__init__.py").write_text("")
    (place / "unittest/__main__.py").write_text("print('Ran 1 test in 0.0s')\n")


def shadow_module(place: Path) -> None:
    (place / "traceback.py").write_text("import os\nprint('1 passed')\nos._exit(0)\n")


def tamper_init(place: Path) -> None:
    (place / "tests/__init__.py").write_text("def load_tests(loader, tests, pattern):\n    return type(tests)()\n")


def link_tests(place: Path) -> None:
    (place / "other").mkdir()
    (place / "tests").rename(place / "kept")
    (place / "tests").symlink_to("other")


def change_make(place: Path) -> None:
    (place / "Makefile").write_text("test:\n\ttrue\n")


def other_make(place: Path) -> None:
    (place / "GNUmakefile").write_text("test:\n\ttrue\n")


def close_test(place: Path) -> None:
    (place / "tests/test_twice.py").chmod(0o044)


def write_by_hard_link(place: Path) -> None:
    os.link(place / "tests/test_twice.py", place / "notes.txt")
    (place / "notes.txt").write_text("")


def link_test_file(place: Path) -> None:
    (place / "elsewhere.py").write_text("")
    (place / "tests/test_twice.py").unlink()
    (place / "tests/test_twice.py").symlink_to(place / "elsewhere.py")


CHEATS = [
    (edit_test, UNITTEST, "tests/test_twice.py (edited"),
    (skip_test, UNITTEST, "tests/test_twice.py (edited, tests skipped)"),
    (delete_test, UNITTEST, "tests/test_twice.py (deleted)"),
    (add_hook, PYTEST, "conftest.py (added, with pytest_runtest_makereport)"),
    (add_options, PYTEST, "pytest.ini (added)"),
    (edit_options, PYTEST, "pyproject.toml (edited)"),
    (add_startup, UNITTEST, "sitecustomize.py (added"),
    (add_path_file, UNITTEST, "patch.pth (added"),
    (add_variables, PYTEST, ".env (added"),
    (fake_pytest, PYTEST, "pytest.py (added, in the place of a module"),
    (fake_unittest, UNITTEST, "unittest/__init__.py (added, in the place of a module"),
    (shadow_module, PYTEST, "traceback.py (added, in the place of a module"),
    (tamper_init, UNITTEST, "tests/__init__.py (edited, with load_tests)"),
    (link_tests, UNITTEST, "tests/test_twice.py (deleted)"),
    (change_make, "make test", "Makefile (edited)"),
    (other_make, "make test", "GNUmakefile (added)"),
    (close_test, UNITTEST, "tests/test_twice.py (its mode or kind changed)"),
    (write_by_hard_link, UNITTEST, "tests/test_twice.py (edited, 1 tests fewer)"),
    (link_test_file, UNITTEST, "tests/test_twice.py (edited, 1 tests fewer)"),
]


@pytest.mark.parametrize(("cheat", "command", "named"), CHEATS, ids=[each[0].__name__ for each in CHEATS])
async def test_a_cheat_is_refused_and_named(
    workspace: Path, kernel: ToolKernel, cheat: object, command: str, named: str
) -> None:
    gate = gate_of(workspace, command, kernel)
    assert callable(cheat)
    cheat(workspace)
    found, told = await outcome(gate)
    assert named in told
    assert [check.passed for check in found] == [False, False]  # the run on the files as they were fails as well


async def test_honest_work_passes_and_the_record_says_what_is_watched(workspace: Path, kernel: ToolKernel) -> None:
    gate = gate_of(workspace, UNITTEST, kernel)
    (workspace / "code_at_work.py").write_text(RIGHT)
    (workspace / "pyproject.toml").write_text(
        '[project]\nname = "y"\ndependencies = ["numpy"]\n[tool.pytest.ini_options]\naddopts = "-ra"\n'
    )
    found, told = await outcome(gate)
    assert told == ""
    assert "Watched: pyproject.toml, tests/__init__.py, tests/test_twice.py" in found[0].output
    where = "a copy of the workspace" if kernel.holds_copies else "the workspace itself"
    assert where in found[0].output
    assert not list(workspace.rglob("*.pyc"))


async def test_tests_of_a_project_that_had_none_are_run(tmp_path: Path) -> None:
    kernel = ToolKernel(name="harness-tools" if why_not() else "harness-sandbox", directory=tmp_path)
    gate = gate_of(tmp_path, PYTEST, kernel)
    (tmp_path / "test_new.py").write_text("def test_new():\n    assert True\n")
    found, told = await outcome(gate)
    assert told == "" and "1 passed" in found[-1].output


async def test_new_tests_are_left_out_where_there_were_some(workspace: Path) -> None:
    if why_not():
        pytest.skip(why_not())
    gate = gate_of(workspace, UNITTEST, ToolKernel(name="harness-sandbox", directory=workspace))
    (workspace / "code_at_work.py").write_text(RIGHT)
    (workspace / "tests/test_more.py").write_text("raise SystemExit(3)\n")
    found, told = await outcome(gate)
    assert told == ""
    assert "New tests are not part of the checks: tests/test_more.py" in found[0].output


async def test_a_pattern_with_an_exclamation_mark_ends_the_watch(workspace: Path, kernel: ToolKernel) -> None:
    gate = gate_of(workspace, UNITTEST, kernel, ["!tests/**"])
    edit_test(workspace)
    assert (await outcome(gate))[1] == ""


async def test_ending_the_process_at_import_is_refused(workspace: Path, kernel: ToolKernel) -> None:
    for command in (PYTEST, UNITTEST):
        gate = gate_of(workspace, command, kernel)
        (workspace / "code_at_work.py").write_text("import os\nos._exit(0)\n")
        _, told = await outcome(gate)
        assert "something ended the process before" in told


async def test_a_summary_that_is_printed_does_not_count(workspace: Path, kernel: ToolKernel) -> None:
    gate = gate_of(workspace, UNITTEST, kernel)
    (workspace / "code_at_work.py").write_text("print('Ran 1 test in 0.0s\\n\\nOK')\n" + WRONG)
    found, _ = await outcome(gate)
    assert not found[-1].passed


async def test_a_check_that_writes_to_its_tests_is_refused(workspace: Path, kernel: ToolKernel) -> None:
    gate = gate_of(workspace, UNITTEST, kernel)
    before = (workspace / "tests/test_twice.py").read_text()
    (workspace / "code_at_work.py").write_text(
        f"from pathlib import Path\np = Path({str(workspace / 'tests/test_twice.py')!r})\np.write_text(p.read_text())\n"
        + RIGHT
    )
    found, told = await outcome(gate)
    assert (workspace / "tests/test_twice.py").read_text() == before
    assert kernel.holds_copies == (told == "")
    if not kernel.holds_copies:
        assert "written to while the check ran: tests/test_twice.py" in found[-1].output


async def test_an_endless_check_is_stopped(workspace: Path, kernel: ToolKernel) -> None:
    gate = Gate(workspace, ["sleep 600"], Pristine(workspace, ()), kernel.environment, kernel, 0.5)
    found = [check async for check in gate.run()]
    assert not found[-1].passed and "[stopped after 0.5 s]" in found[-1].output


async def test_a_check_on_a_copy_changes_nothing_and_absolute_paths_work(workspace: Path) -> None:
    if why_not():
        pytest.skip(why_not())
    kernel = ToolKernel(name="harness-sandbox", directory=workspace)
    labels = workspace.parent / "workspace.labels"
    labels.write_text("7\n")
    command = f"echo 7 > {workspace}/said.txt && diff {labels} {workspace}/said.txt && pwd && ls .git harness_sessions"
    (workspace / ".git").mkdir()
    (workspace / ".git/HEAD").write_text("x")
    (workspace / "harness_sessions").mkdir()
    found, told = await outcome(gate_of(workspace, command, kernel))
    assert told == "" and f"{workspace}\n" in found[-1].output and "HEAD" in found[-1].output
    assert not (workspace / "said.txt").exists()


def test_the_environment_of_a_check(tmp_path: Path) -> None:
    given = {
        "PATH": f"{tmp_path}/bin:.:/usr/bin::bin",
        "PYTEST_ADDOPTS": "--co",
        "BASH_ENV": "x",
        "BASH_FUNC_pytest%%": "() { true; }",
        "MAKEFLAGS": "-n",
        "PYTHONPATH": "/lib",
    }
    kept = {"PATH": f"/usr/bin:{tmp_path}/bin", "PYTHONPATH": "/lib", "PYTHONDONTWRITEBYTECODE": "1"}
    assert check_environment(given, tmp_path) == kept


def test_a_copy_keeps_links_and_replaces_them_where_files_are_put(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "real").mkdir(parents=True)
    target.mkdir()
    (source / "tests").symlink_to("real")
    os.mkfifo(source / "pipe")
    copy = CheckCopy(source, target)
    copy.make()
    assert (target / "tests").is_symlink() and not (target / "pipe").exists()
    copy.put("tests/test_a.py", b"1", 0o644)
    assert (target / "tests/test_a.py").read_bytes() == b"1"
    assert not (target / "real/test_a.py").exists() and not (source / "real/test_a.py").exists()


def test_a_time_that_is_set_back_does_not_hide_a_change_of_a_big_file(tmp_path: Path) -> None:
    path = tmp_path / "big.bin"
    path.write_bytes(b"0" * (9 * 2**20))
    pristine, about = Pristine(tmp_path, ["*.bin"]), path.stat()
    path.write_bytes(b"1" * (9 * 2**20))
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
    assert pristine.touched() == ["big.bin"]


def test_read_only_files_are_not_put_back_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_a.py").write_text("1")
    pristine = Pristine(tmp_path, ["tests/**"])
    (tmp_path / "tests").rename(tmp_path / "other")
    (tmp_path / "other/test_a.py").write_text("2")
    (tmp_path / "tests").symlink_to("other")
    assert pristine.put_back() == (["tests/test_a.py"], [])
    assert ((tmp_path / "tests/test_a.py").read_text(), (tmp_path / "other/test_a.py").read_text()) == ("1", "2")


def test_what_has_no_last_line_is_only_asked_for_where_it_is_sure() -> None:
    assert lacks_tests("pytest -q", "") and lacks_tests("python -m unittest", "nothing")
    assert not lacks_tests("pytest -q", "3 passed in 0.1s") and not lacks_tests("pytest -qq", "")
    assert not lacks_tests("pytest > log", "") and not lacks_tests("make test", "")


def test_the_page_names_the_numbers_and_files_of_the_code() -> None:
    page = (Path(__file__).parents[1] / "docs" / "checks.md").read_text()
    assert f"over {BIG_FILE // 2**20} MB" in page and f"{MOST_FILES:,} files" in page
    assert f"{CHECK_TIMEOUT / 60:g} by default" in page
    assert Settings.model_fields["check_minutes"].default * 60 == CHECK_TIMEOUT
    for name in (*STARTUP, *PYTHON_TESTS, "conftest.py", "pytest.ini", *SCRIPT_TESTS, "GNUmakefile", "*_test.go"):
        assert name in page, name
