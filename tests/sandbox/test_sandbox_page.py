"""docs/sandbox.md against the code: settings with their defaults, kernels, the hint."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from harness_nb.kernel.confining import LEAST_MEMORY, SHARE_OF_MEMORY
from harness_nb.kernel.network import PORT
from harness_nb.kernel.spec import AUTO, DEFAULT_NAME, SANDBOX_NAME
from harness_nb.network.proxy import HEAD_SECONDS, MOST_CONNECTIONS, MOST_HEAD, NOT_LISTED
from harness_nb.outputs.sandbox_hints import refused_hint, sandbox_hint
from harness_nb.policy.hosts import SHORTHANDS, read_hosts
from harness_nb.settings import SandboxSettings

PAGE = (Path(__file__).parents[2] / "docs" / "sandbox.md").read_text()
MADE_UP = {"memory_gb", "cpu_minutes", "readable"}
"""Settings whose default is not a value to show."""


def test_the_settings_are_those_of_the_code() -> None:
    block = re.search(r"    \[tool\.harness-nb\.sandbox\]\n(?:    .*\n)+", PAGE)
    assert block
    table = tomllib.loads(block[0])["tool"]["harness-nb"]["sandbox"]
    assert set(table) == set(SandboxSettings.model_fields)
    found, default = SandboxSettings.model_validate(table), SandboxSettings()
    for name in set(table) - MADE_UP:
        assert getattr(found, name) == getattr(default, name), name


def test_the_kernels_and_numbers_are_those_of_the_code() -> None:
    for name in (AUTO, DEFAULT_NAME, SANDBOX_NAME):
        assert f"| `{name}`" in PAGE
    default = SandboxSettings()
    assert SHARE_OF_MEMORY == 0.8 and f"at least {LEAST_MEMORY // 10**9} GB" in PAGE
    assert f"| {default.processes:,} |" in PAGE
    assert f"{default.open_files:,} open ones, {default.file_gb:g} GB each" in PAGE
    assert f"less than {default.free_disk_gb:g} GB of the workspace's disk" in PAGE


def test_what_is_said_of_hosts_is_in_the_code() -> None:
    assert f"`127.0.0.1:{PORT}`" in PAGE
    assert all(f"`{name}`" in PAGE for name in SHORTHANDS["pypi"])
    assert f"({MOST_HEAD // 1024} KB, {HEAD_SECONDS:g} s)" in PAGE and f"({MOST_CONNECTIONS} at a time)" in PAGE
    items = re.findall(r"--network allow:(\S+) \"", PAGE)
    assert len(read_hosts(f"allow:{items[0]}").entries) == 5
    assert f"[{refused_hint([('example.org', 443, NOT_LISTED)])}]" in PAGE


def test_the_hint_is_what_the_model_gets() -> None:
    text = "gaierror: [Errno -3] Temporary failure in name resolution"
    assert text in PAGE
    assert f"[{sandbox_hint(text, network='off', workspace='/w')}]" in PAGE
