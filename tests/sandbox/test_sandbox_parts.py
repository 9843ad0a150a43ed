"""The parts of the sandbox by themselves: what is shown and protected, the filter, the profile, the words."""

from __future__ import annotations

import errno
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from harness_nb.errors import UsageError
from harness_nb.kernel import bubblewrap, enforced, groups, places, protected, sandbox, seatbelt
from harness_nb.kernel.confinement import Bounds, Confinement
from harness_nb.kernel.confining import LEAST_MEMORY, bounds_for, confinement_for
from harness_nb.kernel.spec import name_here, resolve_kernel
from harness_nb.safeguards import tool_kernel_for
from harness_nb.settings import Settings
from harness_nb.tools import confine, syscall_filter

HELD = Confinement(Path("/w"), bounds=Bounds(memory=4 * 10**9))


def settings(folder: Path, **values: object) -> Settings:
    return Settings.load(folder, values, {})


# What is protected in a workspace


def test_record_repository_settings_and_read_only_files_are_protected(tmp_path: Path) -> None:
    for name in ("tests/test_a.py", "deep/tests/x.py", ".git/config", "data/big.csv", "a.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "pyproject.toml").write_text("[tool.harness-nb]\nmodel = 'x:y'\n")
    found = protected.protected_paths(tmp_path, ["tests/**", "*.csv"])
    names = {path.relative_to(tmp_path).as_posix() for path in found}
    assert names == {"harness_sessions", ".git/hooks", ".git/config", "pyproject.toml", "tests", "data/big.csv"}


def test_other_settings_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.ruff]\n")
    assert protected.protected_paths(tmp_path, ()) == (tmp_path / "harness_sessions",)


def test_a_worktree_shows_its_repository(tmp_path: Path) -> None:
    repository = tmp_path / "main" / ".git" / "worktrees" / "side"
    repository.mkdir(parents=True)
    (repository / "HEAD").write_text("ref: x")
    (tmp_path / "main" / ".git" / "HEAD").write_text("ref: y")
    (repository / "commondir").write_text("../..\n")
    (tmp_path / "side").mkdir()
    (tmp_path / "side" / ".git").write_text(f"gitdir: {repository}\n")
    assert protected.git_folders(tmp_path / "side") == (repository, tmp_path / "main" / ".git")
    assert tmp_path / "side" / ".git" in protected.protected_paths(tmp_path / "side", ())


def test_the_own_python_in_the_workspace_is_protected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".venv").mkdir()
    monkeypatch.setattr(sys, "prefix", str(tmp_path / ".venv"))
    assert tmp_path / ".venv" in protected.protected_paths(tmp_path, ())


def test_very_many_read_only_files_are_left_to_the_check(tmp_path: Path) -> None:
    for number in range(protected.MOST + 1):
        (tmp_path / f"{number}.csv").touch()
    assert protected.protected_paths(tmp_path, ["*.csv"]) == (tmp_path / "harness_sessions",)


# What is shown of the machine


def test_the_home_folder_is_not_shown_by_what_lies_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    own = tmp_path / "home" / "lib"
    own.mkdir(parents=True)
    monkeypatch.setattr(sys, "path", [str(own), str(tmp_path / "home"), str(tmp_path), "/", *sys.path])
    shown = places.python_paths({})
    assert own in shown
    assert not {Path("/"), tmp_path, tmp_path / "home"} & set(shown)
    assert any(places.TOOLS.is_relative_to(path) for path in shown)


def test_what_the_environment_names_is_shown(tmp_path: Path) -> None:
    for name in ("models", "data"):
        (tmp_path / name).mkdir()
    environment = {"HF_HOME": str(tmp_path / "models"), "HARNESS_NB_DEMO_DATA": str(tmp_path / "data"), "X": "/etc"}
    shown = places.python_paths(environment)
    assert {tmp_path / "models", tmp_path / "data"} <= set(shown) and Path("/etc") not in shown


def test_the_credentials_of_a_home_that_is_the_workspace_are_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".netrc").write_text("secret")
    confinement = Confinement(tmp_path)
    words = bubblewrap.bubblewrap(["true"], confinement, directory=tmp_path, environment={})
    after = words[words.index("--bind") :]
    assert ["--tmpfs", str(tmp_path / ".ssh")] in [after[i : i + 2] for i in range(len(after))]
    assert ["/dev/null", str(tmp_path / ".netrc")] in [after[i : i + 2] for i in range(len(after))]
    rules = {rule.name: rule for rule in enforced.enforced(replace(confinement, layer="bubblewrap")).rules}
    assert not rules["reading"].held


# The filter of system calls, as the machine would run it


def verdict(machine: str, number: int, *arguments: int, network: bool = True, arch: int | None = None) -> int:
    """The errno with which the filter answers; 0 if it lets the call pass. Classic BPF, as far as it is used."""
    data = {0: number, 4: syscall_filter.AUDIT[machine] if arch is None else arch}
    data |= {16 + 8 * place: value & 0xFFFFFFFF for place, value in enumerate(arguments)}
    code, at, value = syscall_filter.program(machine, network=network), 0, 0
    while True:
        operation, then, otherwise, operand = code[at]
        at += 1
        if operation == syscall_filter.LOAD:
            value = data.get(operand, 0)
        elif operation == syscall_filter.RETURN:
            return 0 if operand == syscall_filter.ALLOW else operand & 0xFFFF
        else:
            holds = {
                syscall_filter.EQUAL: value == operand,
                syscall_filter.AT_LEAST: value >= operand,
                syscall_filter.SOME_BITS: bool(value & operand),
            }[operation]
            at += then if holds else otherwise


@pytest.mark.parametrize("machine", sorted(syscall_filter.AUDIT))
def test_the_filter_refuses_what_it_says_and_nothing_else(machine: str) -> None:
    column = list(syscall_filter.AUDIT).index(machine)
    for name, numbers in syscall_filter.CALLS.items():
        assert verdict(machine, numbers[column]) == errno.EPERM, name
    assert verdict(machine, 0) == 0
    assert verdict(machine, 0, arch=0x40000003) == errno.EPERM
    clone, unshare = syscall_filter.CLONE[column], syscall_filter.UNSHARE[column]
    assert (verdict(machine, clone, 0x11), verdict(machine, clone, 0x10000011)) == (0, errno.EPERM)
    assert (verdict(machine, unshare, 0x400), verdict(machine, unshare, 0x40000000)) == (0, errno.EPERM)
    assert verdict(machine, syscall_filter.CLONE3[column]) == errno.ENOSYS
    ioctl = syscall_filter.IOCTL[column]
    assert (verdict(machine, ioctl, 0, 0x5401), verdict(machine, ioctl, 0, 0x5412)) == (0, errno.EPERM)
    socket = syscall_filter.SOCKET[column]
    assert [verdict(machine, socket, family) for family in (1, 2, 10, 16)] == [0, 0, 0, 0]
    assert [verdict(machine, socket, family) for family in (17, 38, 40)] == [errno.EPERM] * 3
    offline = [verdict(machine, socket, family, network=False) for family in (1, 2, 10, 16, 17)]
    assert offline == [0, errno.ENETUNREACH, errno.ENETUNREACH, 0, errno.EPERM]


def test_x32_calls_are_refused() -> None:
    assert verdict("x86_64", 0x40000000 + 41, 2) == errno.EPERM


# macOS


def test_the_profile_of_macos_allows_only_what_is_named() -> None:
    confinement = Confinement(Path("/w"), protected=(Path("/w/tests"),))
    text = seatbelt.profile(confinement, [Path("/py")], [Path("/w"), Path("/s")])
    lines = text.splitlines()
    assert lines[:2] == ["(version 1)", "(deny default)"]
    assert '(allow file-read* (subpath "/py"))' in lines
    assert '(allow file-read* file-write* (subpath "/w"))' in lines
    assert lines.index('(deny file-write* (subpath "/w/tests"))') > lines.index(
        '(allow file-read* file-write* (subpath "/w"))'
    )
    assert not any("network-outbound" in line for line in lines)
    assert "(allow network-outbound)" in seatbelt.profile(replace(confinement, network="on"), [], [])
    assert text.count("(") == text.count(")")


def test_paths_cannot_break_out_of_the_profile() -> None:
    assert seatbelt.quoted('/a"b\\c') == '"/a\\"b\\\\c"'
    with pytest.raises(ValueError, match="rename the folder"):
        seatbelt.quoted("/a\nb")


# What is said


def test_without_a_sandbox_nothing_is_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = enforced.enforced(None, "harness-tools")
    assert not found.by and not found.rules and "without a sandbox" in found.sentence
    monkeypatch.setattr(enforced, "layer_of", lambda confinement: "")
    assert "without a sandbox" in enforced.enforced(HELD).sentence


def test_landlock_alone_claims_less() -> None:
    rules = {
        rule.name: rule for rule in enforced.enforced(replace(HELD, layer="landlock", protected=(Path("/w"),))).rules
    }
    assert not rules["sockets"].held
    full = {rule.name: rule for rule in enforced.enforced(replace(HELD, layer="bubblewrap")).rules}
    assert "sockets" not in full and full["processes"].held


def test_a_network_that_is_on_is_not_called_closed() -> None:
    found = enforced.enforced(replace(HELD, layer="bubblewrap", network="on"))
    assert "Not held: The network is on" in found.sentence
    assert "off" not in found.sentence


def test_the_number_of_processes_is_claimed_only_where_it_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enforced, "group_bounds", frozenset)
    for user, held in ((0, False), (1000, True)):
        monkeypatch.setattr(os, "geteuid", lambda user=user: user)
        rules = {rule.name: rule for rule in enforced.enforced(replace(HELD, layer="bubblewrap")).rules}
        assert rules["number of processes"].held is held
        assert "all together" not in rules["memory"].sentence


# Settings


def test_the_kernel_is_the_sandbox_where_one_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "layer_here", lambda: "bubblewrap")
    assert name_here("auto") == "harness-sandbox"
    monkeypatch.setattr(sandbox, "layer_here", lambda: "")
    assert name_here("auto") == "harness-tools"
    assert name_here("python3") == "python3"
    assert resolve_kernel("harness-sandbox").interrupt_by_message


def test_limits_come_from_pyproject(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.harness-nb.sandbox]\nmemory_gb = 3\nprocesses = 99\nfree_disk_gb = 0\nreadable = ["/data"]\n'
    )
    found = confinement_for(settings(tmp_path))
    assert (found.bounds.memory, found.bounds.processes, found.bounds.free_disk) == (3 * 10**9, 99, None)
    assert Path("/data") in found.readable
    (tmp_path / "pyproject.toml").write_text("[tool.harness-nb.sandbox]\nprocesses = 1\n")
    with pytest.raises(UsageError, match="sandbox"):
        settings(tmp_path)


def test_memory_is_a_share_of_the_machines_but_enough_for_libraries(tmp_path: Path) -> None:
    assert (bounds_for(settings(tmp_path).sandbox).memory or 0) >= LEAST_MEMORY


def test_a_list_of_hosts_is_not_taken_by_a_kernel_without_sandbox(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="needs a sandbox"):
        tool_kernel_for(settings(tmp_path, kernel="harness-tools", network="allow:a.org"), None)


def test_without_any_layer_the_way_out_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "layer_here", lambda: "")
    with pytest.raises(UsageError, match="--kernel harness-tools"):
        sandbox.sandboxed(["true"], Confinement(tmp_path), environment={})


# Limits and groups


def test_a_limit_is_never_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    import resource

    told: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (100, 200))
    monkeypatch.setattr(resource, "setrlimit", lambda kind, limits: told.append(limits))
    confine.limit("NOFILE", 1000)
    confine.limit("NOFILE", 50)
    assert told == [(200, 200), (50, 50)]


def test_groups_are_made_where_they_can_be_and_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "pids" / "own"
    folder.mkdir(parents=True)
    monkeypatch.setattr(groups, "CGROUPS", tmp_path)
    monkeypatch.setattr(groups, "_places", lambda: {"pids": folder})
    made = groups.make_groups(77, None)
    assert (made["pids"] / "pids.max").read_text() == "77"
    (made["pids"] / "pids.max").unlink()  # in a control group files vanish with their folder
    groups.remove_groups(made)
    assert list(folder.iterdir()) == []
    monkeypatch.setattr(groups, "_places", dict)
    assert groups.make_groups(77, 77) == {}
