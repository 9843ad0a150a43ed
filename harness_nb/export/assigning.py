"""What a name gets with its value: data that it shares, iterators, texts that may be paths. Pure; ``reading`` asks."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from harness_nb.export.effects import Effects
from harness_nb.export.mentions import is_path_like, literals_in, text_of
from harness_nb.export.sharing import Knowledge, holds_stream, names_in, parts_of, shared_with


def note_value(effects: Effects, name: str, value: ast.AST, known: Knowledge, local: frozenset[str]) -> None:
    """``name`` stands for ``value`` from now on."""
    if name not in local and is_path_like(value):
        texts = [text for part in literals_in(value) if (text := text_of(part)) is not None]
        effects.constants.setdefault(name, []).extend(texts)
    effects.holds.setdefault(name, set()).update(set(shared_with(value, known)) - local)
    effects.parts.setdefault(name, set()).update(set(parts_of(value, known)) - local)
    if holds_stream(value, known):
        effects.streams.add(name)


def note_part(effects: Effects, name: str, value: ast.AST, known: Knowledge) -> None:
    """A part of what ``name`` stands for is ``value`` from now on."""
    effects.holds.setdefault(name, set()).update(shared_with(value, known))
    if holds_stream(value, known):
        effects.streams.add(name)


def share_among(effects: Effects, targets: Iterable[ast.expr], value: ast.AST | None, local: frozenset[str]) -> None:
    """Names that get parts of one value may share data; not those that get the items of a display each."""
    names = set(names_in(targets)) - local if not isinstance(value, ast.Tuple | ast.List) else set()
    for name in names:
        effects.holds.setdefault(name, set()).update(names - {name})
