"""Fixtures of the whole suite, and the guard that keeps tests on this machine."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

LOOPBACK = ("127.", "::1", "localhost")


@pytest.fixture(autouse=True)
def loopback_only(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A test that reaches past loopback fails. (Child processes are kept there by having no need.)"""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and not str(address[0]).startswith(LOOPBACK):
            pytest.fail(f"a test tried to reach {address[0]}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)
    yield


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key or setting of the person who runs the suite changes what it does."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "HARNESS_NB_MODEL", "HARNESS_NB_CIFAR10", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
