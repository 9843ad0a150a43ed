"""What the model is told where the sandbox refused something: the reason, and the option that would allow it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness_nb.approval import DenyApprover
from harness_nb.events import ResultAdded
from harness_nb.kernel import FakeKernel
from harness_nb.outputs.sandbox_hints import sandbox_hint
from harness_nb.session import Session
from harness_nb.settings import Settings
from harness_nb.types import TextPart
from harness_nb.workplace import Workplace


def hint(text: str, network: str = "off") -> str:
    return sandbox_hint(text, network=network, workspace="/home/u/work", protected=("tests", "harness_sessions"))


@pytest.mark.parametrize(
    "text",
    [
        "gaierror: [Errno -3] Temporary failure in name resolution",
        "curl: (6) Could not resolve host: example.com",
        "OSError: [Errno 101] Network is unreachable",
        "HTTPSConnectionPool: Max retries exceeded (Caused by NameResolutionError(...))",
        "fatal: unable to access 'https://x.org/': Could not resolve host: x.org",
    ],
)
def test_a_network_that_is_off_is_named_with_its_option(text: str) -> None:
    assert "network is off" in hint(text) and "--network allow:HOST" in hint(text)
    assert "Only a.org, b.org can be reached" in hint(text, "allow:a.org,b.org")
    assert hint(text, "on") == ""


def test_what_is_read_only_is_named() -> None:
    assert "it not tests." in hint("OSError: [Errno 30] Read-only file system: 'tests/test_a.py'")
    assert "tests, harness_sessions" in hint("touch: cannot touch 'x': Read-only file system")
    assert "installed by the person" in hint("error: EROFS: read-only file system, open '/usr/lib/x'")


def test_files_that_are_absent_are_told_from_files_that_are_not_there() -> None:
    assert "/home/u/data.csv" in hint("FileNotFoundError: [Errno 2] No such file or directory: '/home/u/data.csv'")
    assert "/home/u/data.csv" in hint("cat: /home/u/data.csv: No such file or directory")
    assert hint("FileNotFoundError: [Errno 2] No such file or directory: 'data.csv'") == ""
    assert hint("FileNotFoundError: [Errno 2] No such file or directory: '/home/u/work/data.csv'") == ""
    assert hint("cat: /tmp/x: No such file or directory") == ""


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("MemoryError: ", "memory_gb"),
        ("BlockingIOError: [Errno 11] Resource temporarily unavailable", "processes"),
        ("OSError: [Errno 24] Too many open files", "open_files"),
        ("OSError: [Errno 27] File too large", "file_gb"),
        ("OSError: [Errno 28] No space left on device", "temporary_gb"),
    ],
)
def test_limits_are_named_with_their_setting(text: str, name: str) -> None:
    assert name in hint(text)


def test_other_errors_are_left_alone() -> None:
    for text in ("ValueError: no", "NameError: name 'x' is not defined", "bash exited with status 1", ""):
        assert hint(text) == ""


def test_settings_that_a_call_has_written_are_named(tmp_path: Path) -> None:
    place = Workplace(Settings.load(tmp_path, {}, {}), FakeKernel(), tmp_path / "harness_sessions" / "x")
    assert place.inspect()[0] == ""
    (tmp_path / "pyproject.toml").write_text('[tool.harness-nb]\nkernel = "harness-tools"\nnetwork = "on"\n')
    assert "(kernel, network)" in place.inspect()[0]
    assert place.inspect()[0] == ""


async def test_a_session_tells_it_to_the_model(tmp_path: Path) -> None:
    result = await first_result(tmp_path, "import socket; socket.getaddrinfo('example.com', 80)")
    assert "--network allow:HOST" in result


async def first_result(workspace: Path, code: str) -> str:
    """What the model is told of a python call."""
    finish = {"name": "finish", "arguments": {"summary": "done"}}
    script = workspace / "script.json"
    script.write_text(json.dumps([{"calls": [{"name": "python", "arguments": {"code": code}}]}, {"calls": [finish]}]))
    settings = Settings.load(workspace, {"model": f"scripted:{script}", "policy": "auto"}, {})
    session = await Session.open(settings, DenyApprover())
    try:
        events = [item async for item in session.send("go")]
    finally:
        await session.aclose()
    results = [event for event in events if isinstance(event, ResultAdded)]
    return "\n".join(part.text for part in results[0].content if isinstance(part, TextPart))
