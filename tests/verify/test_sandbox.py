"""Where a notebook runs: the sandbox, the copy of its folder, and what cells can and cannot do there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from written_notebooks import code, printed, write

from harness_nb.errors import StoreError
from harness_nb.verify import copies
from harness_nb.verify.copies import copy_folder, root_of
from harness_nb.verify.sandbox import Mounts, find_sandbox, wrap

SANDBOX = find_sandbox()


@pytest.fixture(autouse=True)
def _must_run_in_ci(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("skipif") and not SANDBOX.works and os.environ.get("CI"):
        pytest.fail(f"the sandbox must be tested in CI: {SANDBOX.words}")


needs_sandbox = pytest.mark.skipif(not SANDBOX.works and not os.environ.get("CI"), reason=SANDBOX.words)


@needs_sandbox
async def test_a_cell_cannot_write_outside_of_the_copy(tmp_path: Path, check: Any) -> None:
    (tmp_path / "outside").mkdir()
    folder = tmp_path / "inside"
    folder.mkdir()
    path = write(folder / "n.ipynb", code(f"open({str(tmp_path / 'outside' / 'x')!r}, 'w')"))
    verdict = await check(path)
    assert "raises OSError: [Errno 30] Read-only file system" in verdict.headline
    assert "Only the notebook's folder and /tmp can be written in the sandbox" in verdict.headline
    assert verdict.sandbox.startswith("in a sandbox: system read-only")
    assert list((tmp_path / "outside").iterdir()) == []
    home = write(folder / "h.ipynb", code("import pathlib\n(pathlib.Path.home() / 'harness-nb-x').write_text('x')"))
    assert "Read-only file system" in (await check(home)).headline


@needs_sandbox
async def test_what_a_cell_may_do_in_the_sandbox(tmp_path: Path, check: Any) -> None:
    (tmp_path / "data.txt").write_text("original")
    (tmp_path / "beside").mkdir()
    source = (
        "import os, pathlib, subprocess, tempfile\n"
        "pathlib.Path('data.txt').write_text('changed')\n"
        "pathlib.Path('/tmp/harness-nb-here').write_text('x')\n"
        "tempfile.mkdtemp()\n"
        "print(os.getcwd(), os.getpid() < 100, 'JPY_PARENT_PID' in os.environ)\n"
        "print(subprocess.run(['echo', 'hi'], capture_output=True, text=True).stdout)"
    )
    path = write(tmp_path / "n.ipynb", code(source, printed(f"{tmp_path} True False\nhi\n\n")))
    verdict = await check(path)
    assert verdict.reproduced, verdict.lines()
    assert (tmp_path / "data.txt").read_text() == "original"
    assert not Path("/tmp/harness-nb-here").exists()


@needs_sandbox
async def test_interrupts_and_deaths_inside_end_everything(tmp_path: Path, check: Any) -> None:
    source = "import subprocess\nsubprocess.Popen(['sleep', '987'], start_new_session=True)\nwhile True: pass"
    path = write(tmp_path / "n.ipynb", code(source))
    verdict = await check(path, timeout=2)
    assert "ran longer than 2 s" in verdict.headline
    assert not _running("sleep\x00987\x00")


async def test_without_a_sandbox_the_copy_still_protects_the_folder(tmp_path: Path, check: Any) -> None:
    (tmp_path / "data.txt").write_text("original")
    source = "import pathlib, subprocess\np = pathlib.Path('data.txt')\nprint(p.read_text())\np.write_text('changed')\n"
    source += "subprocess.Popen(['sleep', '986'], start_new_session=True)\nNone"
    path = write(tmp_path / "n.ipynb", code(source, printed("original\n")))
    verdict = await check(path, sandbox=False)
    assert verdict.reproduced, verdict.lines()
    assert verdict.sandbox == "without a sandbox: it was switched off; in a copy of its folder"
    assert (tmp_path / "data.txt").read_text() == "original"
    assert not _running("sleep\x00986\x00"), "what a cell started is gone, too"


async def test_in_place_runs_in_the_folder_itself(tmp_path: Path, check: Any) -> None:
    path = write(tmp_path / "n.ipynb", code("%%writefile made.txt\nx", printed("Writing made.txt\n")))
    verdict = await check(path, in_place=True)
    assert verdict.reproduced, verdict.lines()
    assert verdict.sandbox.endswith("; in the folder itself")
    assert (tmp_path / "made.txt").read_text() == "x\n"
    assert (await check(path, in_place=True)).reproduced, "Overwriting for Writing"


async def test_keys_are_not_in_the_environment(tmp_path: Path, check: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    source = "import os\nprint([n for n in os.environ if 'KEY' in n or 'TOKEN' in n])"
    path = write(tmp_path / "n.ipynb", code(source, printed("[]\n")))
    for sandbox in (True, False):
        assert (await check(path, sandbox=sandbox)).reproduced


@needs_sandbox
async def test_other_processes_and_credentials_cannot_be_seen(tmp_path: Path, check: Any) -> None:
    source = (
        "import os, pathlib\n"
        "seen = [p for p in pathlib.Path('/proc').iterdir() if p.name.isdigit()]\n"
        f"print(len(seen) < 10, pathlib.Path('/proc/{os.getpid()}').exists() and {os.getpid()} > 50)\n"
        "ssh = pathlib.Path.home() / '.ssh'\n"
        "print(list(ssh.iterdir()) if ssh.exists() else [])"
    )
    path = write(tmp_path / "n.ipynb", code(source, printed("True False\n[]\n")))
    verdict = await check(path)
    assert verdict.reproduced, verdict.lines()


def test_the_command_says_what_is_enforced(tmp_path: Path) -> None:
    mounts = Mounts(Path("/home/ada/work"), tmp_path / "copy", tmp_path / "p", (Path(".venv"),))
    command = wrap(["python", "-m", "k"], mounts, Path("/home/ada/work/sub"), {})
    assert command[-3:] == ["python", "-m", "k"]
    text = " ".join(command)
    for option in ("--die-with-parent", "--unshare-pid", "--ro-bind / /", "--unsetenv JPY_PARENT_PID"):
        assert option in text
    assert f"--bind {tmp_path / 'copy'} /home/ada/work" in text
    assert "--ro-bind /home/ada/work/.venv /home/ada/work/.venv" in text
    assert "--chdir /home/ada/work/sub" in text
    assert "network on" in SANDBOX.words or SANDBOX.words.startswith("without a sandbox")


def test_without_bwrap_the_reason_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness_nb.verify.sandbox.shutil.which", lambda name: None)
    from harness_nb.verify import sandbox

    assert "bwrap is not there" in sandbox._probe.__wrapped__()


def test_the_copy_has_what_the_notebook_needs(tmp_path: Path) -> None:
    root, target = tmp_path / "root", tmp_path / "copy"
    target.mkdir()
    for name in ("src/a.py", ".git/HEAD", "__pycache__/x.pyc", ".venv/bin/python", "harness_sessions/s/journal.jsonl"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    (root / "harness_sessions/s/outputs").mkdir()
    (root / "harness_sessions/s/outputs/1.txt").write_text("long")
    (root / "harness_sessions/s.ipynb").write_text("{}")
    (root / "link").symlink_to("src/a.py")
    (root / "absolute").symlink_to(root / "src")
    os.mkfifo(root / "pipe")
    notebook = root / "harness_sessions" / "s.ipynb"
    assert root_of(notebook) == root
    copied = copy_folder(root, target, notebook, sandboxed=True)
    files = sorted(str(path.relative_to(target)) for path in target.rglob("*") if path.is_file() or path.is_symlink())
    assert files == [
        "absolute", "harness_sessions/s.ipynb", "harness_sessions/s/outputs/1.txt", "link", "src/a.py",
    ]  # fmt: skip
    assert (target / "absolute").readlink() == Path("src")
    assert set(copied.shared) == {Path(".git"), Path(".venv")}
    assert copied.notes == ()


@pytest.mark.parametrize("sandboxed", [True, False])
def test_too_much_is_shared_and_said(tmp_path: Path, sandboxed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, "MOST_FILES", 3)
    monkeypatch.setattr(copies, "MOST_BYTES", 1000)
    root, target = tmp_path / "root", tmp_path / "copy"
    target.mkdir()
    (root / "many").mkdir(parents=True)
    for number in range(5):
        (root / "many" / str(number)).write_text("x")
    (root / "big.bin").write_bytes(b"x" * 2000)
    (root / "n.ipynb").write_text("{}")
    copied = copy_folder(root, target, root / "n.ipynb", sandboxed)
    assert set(copied.shared) == {Path("many"), Path("big.bin")}
    assert len(copied.notes) == 2
    expected = (
        "it is the original, read-only" if sandboxed else "it is a link to the original, which a cell could change"
    )
    assert all(note.endswith(expected) for note in copied.notes)
    assert (target / "big.bin").is_symlink() is not sandboxed


def test_the_root_of_the_machine_is_not_copied(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="too much to copy"):
        copy_folder(Path("/"), tmp_path, Path("/n.ipynb"), sandboxed=True)


def _running(command: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_text() == command:
                found.append(path.parent.name)
        except OSError:
            continue
    return found
