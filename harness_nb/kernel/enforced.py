"""What a sandbox holds on this machine, in sentences that are true: for ``doctor``, the model and the status.

One place says it, from the same values that make the sandbox; the escape suite tries what is said here.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from harness_nb.kernel import bubblewrap
from harness_nb.kernel.confinement import GIGA, Confinement
from harness_nb.kernel.groups import group_bounds
from harness_nb.kernel.places import devices
from harness_nb.kernel.sandbox import layer_of, why_none
from harness_nb.tools import landlock, syscall_filter

NAMES = {"landlock": "Landlock", "seatbelt": "sandbox-exec of macOS, whose profile has not been tried yet"}


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing: whether it is ``held``, and a sentence about it."""

    name: str
    held: bool
    sentence: str


@dataclass(frozen=True, slots=True)
class Enforced:
    """What confines tool code: ``by`` names the means, empty where there is none; ``why`` says why there is none."""

    by: str
    rules: tuple[Rule, ...]
    why: str = ""

    @property
    def sentence(self) -> str:
        """All of it in one text, for the model and the record."""
        if not self.by:
            return f"Tool code runs without a sandbox, with the rights of the person's own user ({self.why})."
        held = " ".join(rule.sentence for rule in self.rules if rule.held)
        lacking = " ".join(rule.sentence for rule in self.rules if not rule.held)
        return f"Tool code runs in a sandbox ({self.by}). {held}" + (f" Not held: {lacking}" if lacking else "")

    def lines(self) -> list[str]:
        """The same as a list, for people: ``held`` or ``open`` before each rule."""
        if not self.by:
            return [self.sentence]
        return [f"{'held' if rule.held else 'open'} {rule.name}: {rule.sentence}" for rule in self.rules]


def enforced(confinement: Confinement | None, kernel: str = "harness-tools") -> Enforced:
    """What holds for tool code in this confinement; ``None`` for the kernel spec ``kernel``, which has none."""
    if confinement is None:
        return Enforced("", (), f"the kernel is {kernel}")
    layer = layer_of(confinement)
    if not layer:
        return Enforced("", (), why_none())
    rules = (*_files(confinement, layer), _network(confinement, layer), *_others(layer), *_bounds(confinement, layer))
    return Enforced(_means(layer), rules)


def _means(layer: str) -> str:
    parts = [bubblewrap.version() if layer == "bubblewrap" else NAMES[layer]]
    if layer == "bubblewrap" and landlock.abi():
        parts.append("Landlock")
    if layer in ("bubblewrap", "landlock") and syscall_filter.supported():
        parts.append("a filter of system calls")
    return ", ".join(parts[:-1]) + f" and {parts[-1]}" if len(parts) > 1 else parts[0]


def _files(confinement: Confinement, layer: str) -> list[Rule]:
    root = confinement.workspace
    writable = "Only the workspace can be written, and an empty /tmp and home folder that go with the kernel."
    if layer != "bubblewrap":
        writable = "Only the workspace and a home and temporary folder of the kernel's own can be written."
    names = ", ".join(path.relative_to(root).as_posix() for path in confinement.protected[:8] if path.exists())
    more = f" and {len(confinement.protected) - 8} more" if len(confinement.protected) > 8 else ""
    kept = f"In the workspace these are read-only: {names}{more}."
    if layer == "landlock":
        kept = "Within the workspace nothing is kept from being written; read-only files are put back after each call."
    read = "The system and the Python environment are read-only; other folders of the machine are absent."
    if Path.home().is_relative_to(root):
        read = "The workspace holds the home folder; its hidden files of credentials are absent, the rest is open."
    return [
        Rule("writing", True, writable),
        Rule("reading", not Path.home().is_relative_to(root), read),
        *([Rule("read-only files", layer != "landlock", kept)] if names else []),
    ]


def _network(confinement: Confinement, layer: str) -> Rule:
    if confinement.network == "on":
        return Rule("network", False, "The network is on: tool code reaches whatever this machine reaches.")
    if layer == "landlock":
        return Rule("network", True, "The network is off.")
    own = " (connections within the sandbox work)" if layer == "bubblewrap" else ""
    if confinement.network == "off":
        return Rule("network", True, f"The network is off{own}.")
    hosts = confinement.network.removeprefix("allow:").replace(",", ", ")
    return Rule("network", True, f"Of the network only these hosts can be reached, through a proxy: {hosts}.")


def _others(layer: str) -> list[Rule]:
    if layer == "bubblewrap":
        return [
            Rule("processes", True, "Other processes of the machine can be neither seen nor signalled."),
            Rule("privileges", True, "No program gets more rights (setuid does not work, sudo neither)."),
        ]
    scoped = layer == "seatbelt" or landlock.abi() >= 6
    seen = "Other processes cannot be signalled or read, but they can be listed."
    if not scoped:
        seen = "Other processes of the same user can be listed and signalled."
    sockets = "Unix sockets of other programs can be connected to."
    return [
        Rule("processes", scoped, seen),
        Rule("privileges", True, "No program gets more rights (setuid does not work, sudo neither)."),
        *([Rule("sockets", False, sockets)] if layer == "landlock" else []),
    ]


def _bounds(confinement: Confinement, layer: str) -> list[Rule]:
    bounds, groups, rules = confinement.bounds, group_bounds(), []
    if bounds.memory is not None:
        kind = "private data" if devices() else "address space"
        sentence = f"A process has at most {_size(bounds.memory)} of {kind}"
        sentence += f", and all together {_size(bounds.memory)} of memory." if "memory" in groups else "."
        rules.append(Rule("memory", True, sentence))
    if bounds.processes is not None:
        limited = "pids" in groups or (layer == "bubblewrap" and os.geteuid() != 0)
        most = f"There are at most {bounds.processes:,} processes and threads"
        rules.append(
            Rule("number of processes", limited, most + ("." if limited else ", watched and ended, not limited."))
        )
    if bounds.free_disk is not None:
        rules.append(
            Rule(
                "disk",
                True,
                f"The kernel is ended when less than {_size(bounds.free_disk)} of the disk is left, or half of what "
                "was free at its start.",
            )
        )
    return rules


def _size(count: int) -> str:
    return f"{count / GIGA:.3g} GB"
