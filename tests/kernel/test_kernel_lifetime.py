"""A kernel from its start to its end: setup, environment, quitting, and what is left behind."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from kernel_cells import Run

from harness_nb.errors import KernelError
from harness_nb.kernel import ToolKernel
from harness_nb.types import Status


async def test_the_setup_takes_count_one_and_enters_the_workspace(run: Run, tmp_path: Path) -> None:
    ran = await run("import os\nos.getcwd()")
    assert ran.result == repr(str(tmp_path))
    assert ran.reply.execution_count == 2
    assert "input" not in ran.kinds


async def test_quit_is_a_death_that_is_told(run: Run) -> None:
    ran = await run("x = 1\nquit()")
    assert ran.reply.status is Status.KERNEL_DIED
    assert "quit or exit" in ran.reply.detail
    ran = await run("x")
    assert (ran.reply.ename, ran.reply.execution_count) == ("NameError", 2)


async def test_no_key_reaches_tool_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S8: the tool kernel does not have it at all, nor has its parent."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "HF_TOKEN", "MY_SECRET", "AWS_ACCESS_KEY_ID", "SOMETHING_ELSE"):
        monkeypatch.setenv(name, "sk-leak")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    made = ToolKernel(directory=tmp_path, environment={"HARNESS_NB_DEMO_X": "1"})
    try:
        source = (
            "import json, os, pathlib\n"
            "own = dict(os.environ)\nparent = pathlib.Path(f'/proc/{os.getppid()}/environ')\n"
            "print(json.dumps([own, parent.read_bytes().decode() if parent.exists() else '']))"
        )
        items = [item async for item in made.execute(source, 60)]
        own, parent = json.loads(items[0].content["text"])  # type: ignore[union-attr]
    finally:
        await made.aclose()
    assert "sk-leak" not in json.dumps(own) + parent
    assert (own["OMP_NUM_THREADS"], own["HARNESS_NB_DEMO_X"], own["HOME"]) == ("1", "1", os.environ["HOME"])
    assert "SOMETHING_ELSE" not in own


async def test_a_failing_setup_is_an_error_and_leaves_no_process(tmp_path: Path) -> None:
    made = ToolKernel(directory=tmp_path, setup="1/0")
    with pytest.raises(KernelError, match="ZeroDivisionError: division by zero"):
        await made.start()
    assert made.connection_file is None
    await made.aclose()
    with pytest.raises(KernelError, match="closed"):
        await made.start()


async def test_nothing_is_left_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    made = ToolKernel(directory=tmp_path / "work")
    await made.start()
    private = made.connection_file.parent  # type: ignore[union-attr]
    assert private.stat().st_mode & 0o077 == 0
    await made.aclose()
    assert not private.exists()
    assert not (tmp_path / "home").exists()
