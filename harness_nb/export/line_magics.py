"""The IPython magics that stand between statements: what they do to names, files and settings. Pure; ``flow`` asks."""

from __future__ import annotations

import re
from collections.abc import Collection

from harness_nb.export.code_files import CodeFiles
from harness_nb.export.effects import Effects
from harness_nb.export.mentions import scripts_run, shell_mentions
from harness_nb.export.nodes import Node
from harness_nb.export.reading import effects_of
from harness_nb.export.sharing import Knowledge
from harness_nb.export.source import parse_cell

BRACED = re.compile(r"[{$](\w+)")
_AMBIENT = re.compile(r"\s*%(?:matplotlib|config|env|set_env|cd|load_ext|autoreload|precision|pylab)\b")
_TIMED = re.compile(r"\s*%(?:time|timeit|prun)\b(?:\s+-\S+)*\s+(.*)")
_RUN = re.compile(r"\s*%run\s+((?:-\S+\s+)*)([\w./-]+\.py)")


def magics_of(node: Node) -> list[str]:
    """The magics that stand where a statement is."""
    assert node.statement is not None
    first, last = node.statement.lineno, node.statement.end_lineno or node.statement.lineno
    return [text for line, text in node.step.source.magics if first <= line <= last]


def reloads(text: str) -> bool:
    """Whether a magic has edited modules loaded anew from here on."""
    return bool(re.match(r"\s*%autoreload\s+[23]", text))


def take_magic(text: str, node: Node, known: Collection[str], code: CodeFiles) -> list[str]:
    """Add what a magic does to the effects of its statement; ``known`` are names. The scripts that it runs."""
    effects = node.effects
    effects.settings |= bool(_AMBIENT.match(text))
    effects.uses |= set(BRACED.findall(text)) & set(known)
    command = text.split("!", 1)[1] if "!" in text else ""
    effects.texts += shell_mentions(command)
    if (timed := _TIMED.match(text)) and (tree := parse_cell(timed[1])[0]) and tree.body:
        more = effects_of(tree.body[0], Knowledge({}))
        effects.uses |= more.uses
        effects.binds |= more.binds
        effects.touches |= more.touches | more.changes
    if run := _RUN.match(text):
        _take_script(run[2], effects, code.statements_in(run[2], node.step.number), inside="-i" in run[1].split())
        return [run[2]]
    return scripts_run(command)


def _take_script(path: str, effects: Effects, found: list[Effects], *, inside: bool) -> None:
    """``%run`` binds what a script binds; with ``-i`` the script works on the names of the kernel."""
    for one in found:
        effects.binds |= one.binds
        effects.bodies |= one.bodies
        effects.imports |= one.imports
        effects.calls += one.calls
        effects.dotted |= one.dotted
        effects.settings |= one.settings
        if inside:
            effects.uses |= one.uses
            effects.changes |= one.changes
            effects.touches |= one.touches
