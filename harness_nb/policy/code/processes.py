"""Calls in a Python cell that start processes: their command is judged by the shell's rules. Pure."""

from __future__ import annotations

import ast

from harness_nb.policy.code.names import argument, keyword
from harness_nb.policy.code.site import Site
from harness_nb.policy.findings import UNKNOWN, Report
from harness_nb.policy.shell import examine_words


def shell_text(site: Site) -> Report:
    """``os.system`` and its like: one text for the shell."""
    node = argument(site.node, 0, "command", "cmd", "args")
    if node is None:
        return _hidden(site)
    text = site.names.text(node)
    if text is None or UNKNOWN in text:
        return _unknown_command(site)
    return site.ground.shell(text, site.ground.deeper())


def _hidden(site: Site) -> Report:
    """A call without a command: nothing to judge, unless the command comes out of a dictionary."""
    return _unknown_command(site) if any(each.arg is None for each in site.node.keywords) else Report()


def _unknown_command(site: Site) -> Report:
    why = "runs a command that is only known when it runs; write the command out, or use the bash tool"
    return site.ask("run:", why)


def run_process(site: Site) -> Report:
    """``subprocess.run`` and its like: a list of words, or a text."""
    node = argument(site.node, 0, "args", "cmd", "command")
    if node is None or isinstance(node, ast.Starred):
        return _unknown_command(site) if node is not None else _hidden(site)
    words = site.names.words(node)
    if words is None:
        text = site.names.text(node)
        if text is None or UNKNOWN in text:
            return _unknown_command(site)
        return site.ground.shell(text, site.ground.deeper())
    shell = keyword(site.node, "shell")
    if shell is not None and not (isinstance(shell, ast.Constant) and not shell.value):
        return site.ground.shell(words[0], site.ground.deeper()) if words else Report()
    given = keyword(site.node, "input")
    stdin = None if given is None else site.names.text(given) or UNKNOWN
    return examine_words(words, site.part, site.ground.deeper(), stdin)


def run_if_shown(site: Site) -> Report:
    """Something called ``run``, which an earlier cell may have imported: judged where a command stands there."""
    node = argument(site.node, 0)
    if isinstance(node, ast.Constant):
        return run_process(site) if isinstance(node.value, str) else Report()
    words = site.names.words(node) if isinstance(node, ast.List) else None
    return run_process(site) if words and UNKNOWN not in words[0] else Report()


def arguments_as_words(site: Site) -> Report:
    """``asyncio.create_subprocess_exec``: each argument is a word."""
    words = [UNKNOWN if isinstance(each, ast.Starred) else site.names.text(each) or UNKNOWN for each in site.node.args]
    first = site.node.args[0] if site.node.args else None
    if isinstance(first, ast.Attribute) and site.names.dotted(first) == "sys.executable":
        words[0] = "python"
    return examine_words(words, site.part, site.ground.deeper())


def exec_program(site: Site) -> Report:
    """``os.execv``, ``os.spawnl``, ``os.posix_spawn``, ``pty.spawn``."""
    place = 1 if ".spawn" in site.dotted and site.dotted.startswith("os.") else 0
    rest = site.node.args[place:]
    if not rest:
        return Report()
    words = site.names.words(rest[-1]) or (site.names.words(rest[1]) if len(rest) > 1 else None)
    if words is None and "l" in site.dotted.rsplit(".", 1)[-1].removeprefix("execv").removeprefix("spawnv"):
        words = [site.names.text(each) or UNKNOWN for each in rest[1:]]
    program = site.names.text(rest[0])
    if words is None:
        return _unknown_command(site) if program is None or len(rest) > 1 else shell_text(site)
    return examine_words([program or UNKNOWN, *words[1:]] if len(rest) > 1 else words, site.part, site.ground.deeper())
