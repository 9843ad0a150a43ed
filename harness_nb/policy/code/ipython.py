"""Cells as IPython reads them: magics and shell lines taken out, the rest as Python. Pure; imports no IPython.

Source: IPython's documentation, "IPython Tutorial" (magics, system commands, auto-quoting) and its input transformers.
Automagic, a magic without its percent sign, holds for cells of one line only.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

from harness_nb.policy.findings import words_in

ALIASES = words_in("cat cp ldir lf lk ll ls lx man mkdir more mv rm rmdir less")
"""Magics that are commands of the system."""

SHELL_CELLS = words_in("bash sh system sx ! script")
"""Cell magics whose body is a script of the shell."""

PYTHON_CELLS = words_in("time timeit capture prun python python3 debug memit mprun pypy")
"""Cell magics whose body is Python."""

TEXT_CELLS = words_in("html markdown latex svg javascript js")
"""Cell magics whose body is only shown."""

OTHER_CELLS = words_in("perl ruby node R cython sql")
"""Cell magics whose body is a program in another language."""

STATEMENTS = words_in("time timeit prun debug memit lprun")
"""Line magics that run a Python statement."""

HARMLESS = words_in(
    "matplotlib pylab load_ext reload_ext unload_ext autoreload who whos who_ls whos_ls pwd precision "
    "config env set_env reset reset_selective xdel pinfo pinfo2 pdef pdoc psource pfile psearch "
    "lsmagic magic quickref history hist colors xmode page pdb tb doctest_mode automagic autocall "
    "autosave autoawait gui logstart logstop logon logoff logstate rerun recall rep dirs dhist "
    "bookmark unalias alias_magic notebook profile pprint tensorboard watermark save pycat conda_info "
    "subshell connect_info qtconsole dataframe"
)
"""Line magics that change nothing outside of the kernel, or only show something."""

LINE_MAGICS = (
    HARMLESS
    | STATEMENTS
    | ALIASES
    | words_in(
        "cd pip conda mamba micromamba uv system sx sc run load loadpy edit ed alias rehashx store macro "
        "pastebin pushd popd killbgscripts writefile notebook code_wrap"
    )
)

_ASSIGNED = re.compile(r"^(\s*)([\w.,\s\[\]'\"*()]+?)\s*=\s*([!%])(?!=)(.*)$", re.S)
_LINE = re.compile(r"^(\s*)(!!|!|%%?)(.*)$", re.S)


@dataclass(slots=True)
class Cell:
    """A cell: its Python as a tree, the shell commands and the magics in it.

    ``tree`` is ``None`` where the rest is no Python; ``odd`` are lines that IPython would rewrite in a way that is not
    followed here. ``body`` is the text below a cell magic, whose name and line are the first of ``magics`` then.
    """

    tree: ast.Module | None = None
    commands: list[str] = field(default_factory=list)
    magics: list[tuple[str, str]] = field(default_factory=list)
    odd: list[str] = field(default_factory=list)
    body: str | None = None


def parse_cell(source: str) -> Cell:
    """Take a cell apart."""
    lead = source.lstrip("\n")
    if lead.lstrip().startswith("%%"):
        line, _, body = lead.lstrip()[2:].partition("\n")
        name, _, rest = line.strip().partition(" ")
        return Cell(magics=[(name, rest.strip())], body=body)
    cell = Cell(tree=_parse(source))
    if cell.tree is not None:
        if len(source.strip().splitlines()) == 1:
            _automagic(source.strip(), cell, only_aliases=True)
        return cell
    if len(source.strip().splitlines()) == 1 and _automagic(source.strip(), cell, only_aliases=False):
        cell.tree = ast.Module(body=[], type_ignores=[])
        return cell
    cell.tree = _parse(_without_magics(source, cell))
    return cell


def _parse(source: str) -> ast.Module | None:
    """The tree of a cell; ``await`` may stand at the top of one."""
    try:
        tree = compile(source, "<cell>", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return tree if isinstance(tree, ast.Module) else None


def _automagic(line: str, cell: Cell, *, only_aliases: bool) -> bool:
    """A cell of one line that may be a magic without its percent sign. Whether it can be nothing else."""
    name, _, rest = line.partition(" ")
    known = ALIASES | {"cd", "pip", "conda"} if only_aliases else LINE_MAGICS
    if name not in known or not rest.strip() or (only_aliases and rest.lstrip().startswith(("=", ".", "(", ","))):
        return False
    cell.magics.append((name, rest.strip()))
    return True


def _without_magics(source: str, cell: Cell) -> str:
    """The source with ``pass`` in the place of magics and shell lines, which are put into ``cell``."""
    kept, lines = list[str](), source.split("\n")
    while lines:
        line = lines.pop(0)
        special = _LINE.match(line) or _ASSIGNED.match(line)
        if special:
            while line.endswith("\\") and lines:
                line = line[:-1] + " " + lines.pop(0).lstrip()
        if match := _LINE.match(line):
            _take(match[2], match[3], cell)
            kept.append(f"{match[1]}pass")
        elif match := _ASSIGNED.match(line):
            _take(match[3], match[4], cell)
            kept.append(f"{match[1]}{match[2]} = None")
        elif re.match(r"^\s*\??[\w.*%]+\?{0,2}\s*$", line) and "?" in line:
            kept.append("pass")
        elif re.match(r"^[,;/]\s*[\w.]+", line):
            cell.odd.append(line)
            kept.append("pass")
        else:
            kept.append(line)
    return "\n".join(kept)


def _take(mark: str, text: str, cell: Cell) -> None:
    if mark.startswith("!"):
        cell.commands.append(text.strip())
        return
    name, _, rest = text.strip().lstrip("%").partition(" ")
    cell.magics.append((name, rest.strip()))
