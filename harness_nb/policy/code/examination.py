"""Examines a Python cell by its syntax tree: calls, tricks with names, magics and shell lines. Pure.

What the tree does not show is not seen: a file that is imported or run, and what a library does. The sandbox is for
that.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from harness_nb.policy import paths
from harness_nb.policy.code import ipython
from harness_nb.policy.code.calls import examine_call
from harness_nb.policy.code.names import Names
from harness_nb.policy.code.site import Site
from harness_nb.policy.findings import MAX_DEPTH, UNKNOWN, Finding, Ground, Report, joined, words_in

_SENSITIVE = words_in(
    "os subprocess shutil sys builtins __builtins__ importlib ctypes socket pty posix nt signal _posixsubprocess"
)
"""Modules that nobody needs to reach by a detour."""

_HANDED = words_in(
    "os.system os.popen subprocess.run subprocess.call subprocess.check_call subprocess.check_output subprocess.Popen "
    "subprocess.getoutput shutil.rmtree os.execv os.execve os.execvp eval exec builtins.eval builtins.exec ctypes.CDLL"
)
"""Functions that are to be called where one sees what they are given."""

_LAST_PARTS = {name.rsplit(".", 1)[-1] for name in _HANDED}
_TAKE_PATHS = ("os.", "pathlib.", "glob.", "shutil.", "open", "sys.path")
_DETOURS = frozenset({"getattr", "builtins.getattr", "vars", "operator.attrgetter", "operator.methodcaller"})
_IMPORTS = frozenset({"__import__", "builtins.__import__", "importlib.import_module", "importlib.__import__"})
_DOWNLOADS = re.compile(
    r"(requests|httpx|urllib|urllib3|aiohttp|huggingface_hub|wget|gdown)\b.*|.*\b(urlopen|urlretrieve)"
)
_STRINGS = 300
"""Longer texts in a cell are not looked at as paths."""


def examine(source: str, ground: Ground) -> Report:
    """What there is against a cell."""
    if ground.depth > MAX_DEPTH:
        why = "stands in too many scripts within one another; write it out plainly"
        return Report((Finding("ask", "run:", why, source),))
    cell = ipython.parse_cell(source)
    reports = [_shell_line(command, ground) for command in cell.commands]
    if cell.body is not None:
        reports.append(_cell_magic(*cell.magics[0], cell.body, ground))
    else:
        reports += [_line_magic(name, line, ground) for name, line in cell.magics]
    for line in cell.odd:
        why = "is rewritten by IPython into a call; write the call out"
        reports.append(Report((Finding("ask", "run:", why, line),)))
    if cell.tree is not None:
        reports.append(_tree(cell.tree, ground))
    return joined(reports)


def _shell_line(command: str, ground: Ground) -> Report:
    """A line for the shell. IPython puts Python values in for ``{x}`` and ``$x``, and those are not known."""
    if re.search(r"(?<!\$)\{[^{}\n,]+\}|\$[a-z_]\w*", command):
        why = "is a shell line with Python values in it; write them out, or use the bash tool"
        return Report((Finding("ask", "run:", why, f"!{command}"),))
    return ground.shell(command, ground.deeper())


def _cell_magic(name: str, line: str, body: str, ground: Ground) -> Report:
    if name in ipython.SHELL_CELLS:
        first = line.split()[:1]
        if name == "script" and first and first[0] not in ("bash", "sh", "zsh", "dash"):
            return _unknown_magic(f"%%script {line}", body)
        return ground.shell(body, ground.deeper())
    if name == "writefile" or name == "file":
        path = line.split()[-1].strip("'\"") if line else ""
        finding = paths.writing(path, f"%%writefile {path}", ground)
        return Report((finding,) if finding else (), (), (path,))
    if name in ipython.PYTHON_CELLS:
        statement = re.sub(r"^(-\w+(\s+\d+)?\s*)+", "", line) if name in ("time", "timeit", "prun") else ""
        setup = examine(statement, ground.deeper()) if statement else Report()
        return setup + examine(body, ground.deeper())
    if name in ipython.TEXT_CELLS and name not in ("js", "javascript", "html"):
        return Report()
    return _unknown_magic(f"%%{name} {line}", body)


def _unknown_magic(head: str, body: str) -> Report:
    why = "runs a program in a way that the rules do not know; use plain Python or the bash tool"
    return Report((Finding("ask", "run:", why, f"{head}\n{body}"),))


def _line_magic(name: str, line: str, ground: Ground) -> Report:
    if name in ("system", "sx", "sc"):
        return _shell_line(line.split("=", 1)[-1] if name == "sc" else line, ground)
    if name in ipython.ALIASES or name in ("pip", "conda", "mamba", "micromamba", "uv", "cd", "pushd"):
        return _shell_line(f"{name} {line}", ground)
    if name in ipython.STATEMENTS:
        return examine(re.sub(r"^(-\w+(\s+\d+)?\s*)+", "", line), ground.deeper())
    if name in ("run", "load", "loadpy", "edit", "ed"):
        words = [word for word in line.split() if not word.startswith("-")]
        finding = paths.reading(words[0], f"%{name} {line}", ground) if words else None
        if words and "://" in words[0]:
            finding = Finding("ask", f"%{name} from the network", "runs code from the network", f"%{name} {line}")
        return Report((finding,)) if finding else Report()
    if name in ipython.HARMLESS:
        return Report()
    why = "is a magic that the rules do not know; use plain Python or the bash tool"
    return Report((Finding("ask", f"%{name}", why, f"%{name} {line}"),))


def _tree(tree: ast.Module, ground: Ground) -> Report:
    nodes = list(ast.walk(tree))
    names = Names(nodes)
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    sites = [(node, names.dotted(node.func)) for node in calls]
    downloads = any(_DOWNLOADS.fullmatch(dotted) for _, dotted in sites)
    report = Report()
    for node, dotted in sites:
        report += examine_call(Site(node, dotted, names, ground, downloads))
        report += _shell_of_ipython(node, dotted, names, ground)
        report += _detour(node, dotted, names)
    return report + _aliases(nodes, names) + _handed_over(nodes, names) + _texts(nodes, names, ground)


def _shell_of_ipython(node: ast.Call, dotted: str, names: Names, ground: Ground) -> Report:
    """``get_ipython().system(…)`` and its like."""
    if not re.match(r"(IPython\.(core\.getipython\.)?)?get_ipython\(\)\.", dotted):
        return Report()
    method, texts = dotted.rsplit(".", 1)[-1], [names.text(each) for each in node.args]
    known = all(text is not None and UNKNOWN not in text for text in texts)
    given = [text or "" for text in texts]
    if not known and method in (
        "system",
        "getoutput",
        "run_line_magic",
        "run_cell_magic",
        "run_cell",
        "magic",
        "ex",
        "ev",
    ):
        return Report((Finding("ask", "run:", "runs what is only known when it runs", ast.unparse(node)),))
    if method in ("system", "getoutput", "system_piped", "system_raw") and given:
        return ground.shell(given[0], ground.deeper())
    if method == "run_line_magic" and given:
        return _line_magic(given[0], " ".join(given[1:2]), ground)
    if method == "magic" and given:
        name, _, line = given[0].lstrip("%").partition(" ")
        return _line_magic(name, line, ground)
    if method == "run_cell_magic" and len(given) > 2:
        return _cell_magic(given[0], given[1], given[2], ground)
    if method in ("run_cell", "run_cell_async", "ex", "ev", "safe_execfile") and given:
        return examine(given[0], ground.deeper())
    return Report()


def _detour(node: ast.Call, dotted: str, names: Names) -> Report:
    """Ways round a plain name: ``getattr(os, …)``, ``__import__("os")``, ``vars(os)``."""
    if dotted in _DETOURS and node.args:
        base = names.dotted(node.args[0])
        literal = len(node.args) > 1 and isinstance(node.args[1], ast.Constant)
        if base.split(".")[0] in _SENSITIVE and not (literal and base in ("sys", "os") and dotted == "getattr"):
            return _detoured(ast.unparse(node))
        if literal and base == "os" and names.text(node.args[1]) not in _PLAIN_OF_OS:
            return _detoured(ast.unparse(node))
    if dotted in _IMPORTS:
        text = names.text(node.args[0]) if node.args else None
        if text is None or UNKNOWN in text or text.split(".")[0] in _SENSITIVE:
            return _detoured(ast.unparse(node))
    return Report()


_PLAIN_OF_OS = ("environ", "sched_getaffinity", "cpu_count", "process_cpu_count", "getuid", "name", "sep", "linesep")


def _detoured(part: str) -> Report:
    why = "reaches a module by a detour that hides what is called; import it and call the function by its name"
    return Report((Finding("ask", "reach a module by a detour:", why, part),))


def _aliases(nodes: Sequence[ast.AST], names: Names) -> Report:
    """``os.__dict__["system"]``, ``sys.modules["os"]``, ``globals()["os"]``, ``__builtins__``."""
    report = Report()
    for node in nodes:
        if isinstance(node, ast.Subscript):
            dotted, key = names.dotted(node.value), names.text(node.slice)
            inside = dotted.endswith(".__dict__") and dotted.split(".")[0] in _SENSITIVE
            tables = dotted in ("sys.modules", "globals()", "locals()", "vars()", "__builtins__")
            hidden = tables and (key is None or UNKNOWN in key or key in _SENSITIVE | {"exec", "eval"})
            if (inside or hidden) and isinstance(node.ctx, ast.Load):
                report += _detoured(ast.unparse(node))
        elif isinstance(node, ast.Attribute) and node.attr in ("__subclasses__", "__globals__", "__builtins__"):
            report += _detoured(ast.unparse(node))
    return report


def _texts(nodes: Sequence[ast.AST], names: Names, ground: Ground) -> Report:
    """Texts of the cell that are paths: credentials, what lies outside, and what rules of the user are about."""
    findings, named = list[Finding](), list[str]()
    passed = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Call) and names.dotted(node.func).startswith(_TAKE_PATHS):
            named += [str(each.value) for each in node.args if isinstance(each, ast.Constant) and each.value == ".."]
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or id(node) in passed:
            continue
        text = node.value
        if len(text) > 3 and len(text) <= _STRINGS and not re.search(r"[\s:]", text):
            named.append(text)
    for text in named:
        if paths.is_credentials(text) or text.startswith(("~/", "..", "/home/", "/root/", "/Users/")):
            finding = paths.reading(text, repr(text), ground)
            findings += [finding] if finding else []
    return Report(tuple(findings), (), tuple(named))


def _handed_over(nodes: Sequence[ast.AST], names: Names) -> Report:
    """Functions that start processes and their like under another name, or as an argument: what they get is hidden."""
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    report = Report()
    for node in nodes:
        if isinstance(node, ast.Name | ast.Attribute) and id(node) not in called and isinstance(node.ctx, ast.Load):
            if isinstance(node, ast.Attribute) and node.attr not in _LAST_PARTS:
                continue
            dotted = names.dotted(node)
            if dotted in _HANDED and not (isinstance(node, ast.Name) and names.is_bound(node.id)):
                why = (
                    f"hands {dotted} over, so that what it is given does not show; call it by its name where it is used"
                )
                report += Report((Finding("ask", f"hand over {dotted}", why, ast.unparse(node)),))
    return report
