"""What one statement does to the names of the kernel, as a value. Pure; ``reading`` finds it in the syntax tree."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from harness_nb.export.mentions import Mention

STAR = "*"
"""Stands for the names that a star import, or code that is not known, may bind."""


@dataclass
class Effects:
    """What a statement does. ``uses`` are names it needs, ``firm`` those that it needs for sure.

    ``binds`` get a value, ``kills`` for sure; ``changes`` are changed in place, ``touches`` perhaps. ``holds`` says
    which names a bound name may share data with, ``parts`` with which it does if it is a list or the like, and
    ``streams`` are names that hold an iterator. ``bodies`` are the effects of functions and classes that it defines,
    which happen when those are used. ``imports`` maps a name to what it stands for. ``calls`` are (dotted name, call).
    ``texts`` are string literals and how they are used (see ``mentions``), ``held`` are names that are used as paths,
    ``constants`` the texts of names that may be paths. What is ``opaque`` may use any name, and ``anything`` may also
    change it. ``changing`` are the methods of a class that change the object, ``attributes`` all that is asked of any.
    ``traced`` are tensors that gradients flow back from.
    """

    uses: set[str] = field(default_factory=set)
    firm: set[str] = field(default_factory=set)
    binds: set[str] = field(default_factory=set)
    kills: set[str] = field(default_factory=set)
    changes: set[str] = field(default_factory=set)
    touches: set[str] = field(default_factory=set)
    holds: dict[str, set[str]] = field(default_factory=dict)
    parts: dict[str, set[str]] = field(default_factory=dict)
    streams: set[str] = field(default_factory=set)
    bodies: dict[str, Effects] = field(default_factory=dict)
    imports: dict[str, str] = field(default_factory=dict)
    calls: list[tuple[str, ast.Call]] = field(default_factory=list)
    dotted: set[str] = field(default_factory=set)
    texts: list[Mention] = field(default_factory=list)
    held: list[tuple[str, str]] = field(default_factory=list)
    constants: dict[str, list[str]] = field(default_factory=dict)
    settings: bool = False
    opaque: bool = False
    anything: bool = False
    changes_arguments: bool = False
    changing: set[str] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)
    traced: set[str] = field(default_factory=set)


def join_now(effects: Effects, body: Effects, local: frozenset[str], *, bodies: bool = True) -> None:
    """Take the effects of a body as happening now, none of them for sure."""
    effects.uses |= body.uses - local - effects.kills
    for name in ("binds", "changes", "touches", "traced"):
        getattr(effects, name).update(getattr(body, name) - local)
    effects.calls += body.calls
    effects.dotted |= body.dotted
    effects.attributes |= body.attributes
    effects.texts += body.texts
    effects.held += [(name, mode) for name, mode in body.held if name not in local]
    effects.settings |= body.settings
    effects.opaque |= body.opaque
    effects.anything |= body.anything
    effects.changes_arguments |= body.changes_arguments
    if bodies:
        for inner in body.bodies.values():
            join_now(effects, inner, local)
