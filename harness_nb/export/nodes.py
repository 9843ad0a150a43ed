"""The values of the data flow: statements that ran, and what names stood for. Pure; ``flow`` makes them."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Literal

from harness_nb.export.effects import Effects
from harness_nb.export.history import Version
from harness_nb.export.story import Step


@dataclass
class Node:
    """A statement that ran, or a whole cell where its parts cannot be told apart.

    ``needs`` are the ids of the nodes that it builds on; ``reads`` are versions of files. ``broken`` says that it did
    not come to its end: ``surely`` where it had begun to change what others need, ``perhaps`` where it may have.
    ``missing`` are names that it used and that no cell that counts had bound, with what is known of them. ``changed``
    are names whose values it changes for sure, ``elsewhere`` are functions of the workspace's modules that it runs,
    ``seeds`` the generators that it sets. ``half`` says that other statements stand on the line at which it failed.
    """

    id: int
    step: Step
    statement: ast.stmt | None
    kind: Literal["import", "code", "whole"]
    needs: set[int] = field(default_factory=set)
    reads: set[Version] = field(default_factory=set)
    missing: dict[str, str] = field(default_factory=dict)
    broken: Literal["", "perhaps", "surely"] = ""
    effects: Effects = field(default_factory=Effects)
    bodies: list[Effects] = field(default_factory=list)
    mentions: list[tuple[str, str]] = field(default_factory=list)
    changed: set[str] = field(default_factory=set)
    elsewhere: list[Effects] = field(default_factory=list)
    half: bool = False
    seeds: set[str] = field(default_factory=set)
    draws: set[str] = field(default_factory=set)
    drew_unseeded: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Value:
    """What a name stands for.

    ``regions`` are the data that it reaches. ``bodies`` are the functions and classes that a use of it may run.
    ``stands_for`` is the dotted name of an import; ``files`` are those of local modules. A ``plain`` value cannot be
    changed; one that ``streams`` has an iterator inside, which every use moves on. ``draws`` are the generators that a
    use of it may draw from, ``traces`` the data that a tensor was computed from, to which ``backward`` goes.
    """

    nodes: frozenset[int]
    regions: frozenset[int] = frozenset()
    bodies: tuple[Effects, ...] = ()
    texts: tuple[str, ...] = ()
    stands_for: str = ""
    files: frozenset[str] = frozenset()
    plain: bool = False
    streams: bool = False
    draws: frozenset[str] = frozenset()
    traces: frozenset[int] = frozenset()
