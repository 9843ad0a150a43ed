from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness_nb.approval import DenyApprover
from harness_nb.errors import SessionLockedError, UsageError
from harness_nb.session import Session
from harness_nb.settings import Settings
from harness_nb.ui.current import CurrentSession, Task, notebook_folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a", "b"):
        (tmp_path / f"{name}.json").write_text(json.dumps([{"text": name}]))
    return tmp_path


async def take(current: CurrentSession, folder: Path, **given: Any) -> Session:
    options = current.options(given, folder)
    task = Task("Hi", Settings.load(folder, options, {}), given, options)
    return await current.take(task, DenyApprover())


async def test_the_session_and_its_options_go_on(folder: Path) -> None:
    current = CurrentSession()
    first = await take(current, folder, model="scripted:a.json", max_turns=3)
    again = await take(current, folder)
    assert again is first and again.model_name == "scripted:a.json"
    assert current.options({}) == {"model": "scripted:a.json"}
    other = await take(current, folder, model="scripted:b.json")
    assert other is first and other.model_name == "scripted:b.json"
    await current.aclose()


async def test_new_leaves_the_session_and_its_options(folder: Path) -> None:
    current = CurrentSession()
    first = await take(current, folder, model="scripted:a.json", policy="deny")
    second = await take(current, folder, model="scripted:b.json", new=True)
    assert second.id != first.id
    assert current.options({}) == {"model": "scripted:b.json"}
    await current.aclose()


async def test_another_workspace_is_another_session(folder: Path) -> None:
    (folder / "sub").mkdir()
    current = CurrentSession()
    first = await take(current, folder, model="scripted:a.json")
    second = await take(current, folder, model="scripted:../a.json", dir="sub")
    assert second.id != first.id and second.workspace == folder / "sub"
    await current.aclose()


async def test_another_kernel_reopens_the_same_session(folder: Path) -> None:
    current = CurrentSession()
    first = await take(current, folder, model="scripted:a.json")
    async for _ in first.send("Hi"):
        pass
    second = await take(current, folder, kernel="python3", session=first.id, model="scripted:a.json")
    assert second.id == first.id and second is not first
    await current.aclose()


async def test_a_call_that_cannot_be_leaves_the_session_open(folder: Path) -> None:
    current = CurrentSession()
    first = await take(current, folder, model="scripted:a.json")
    with pytest.raises(UsageError):
        await take(current, folder, model="scripted:absent.json", new=True)
    with pytest.raises(UsageError):
        await take(current, folder, session="nope", model="scripted:a.json")
    assert current.session is first
    assert current.options({})["model"] == "scripted:a.json"
    with pytest.raises(SessionLockedError):
        await Session.open(Settings(directory=folder, model="scripted:a.json", session=first.id), DenyApprover())
    await current.aclose()
    assert current.session is None


def test_the_notebooks_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    assert notebook_folder({"JPY_SESSION_NAME": str(tmp_path / "sub" / "x.ipynb")}) == tmp_path / "sub"
    assert notebook_folder({"JPY_SESSION_NAME": str(tmp_path / "gone" / "x.ipynb")}) == tmp_path
    assert notebook_folder({"JPY_SESSION_NAME": "sub/x.ipynb"}) == tmp_path
    assert notebook_folder({}) == tmp_path
