"""Which files code speaks of, and whether it reads or writes them. Pure.

Modes of a mention: ``r`` it is read, ``w`` it is only written, ``a`` both, ``=`` it is a name for later use, and an
empty text where that cannot be told, which counts as read. Texts may hold stars, for parts that are not known.
"""

from __future__ import annotations

import ast
import fnmatch
import posixpath
import re
import shlex
from collections.abc import Collection, Iterable, Iterator

from harness_nb.export import purity

Mention = tuple[str, str]

_PATH_WORDS = ("Path", "PurePath", "PosixPath", "join", "str", "fspath", "abspath", "resolve", "expanduser", "open")
_REDIRECT = re.compile(r"(\d?>>?|&>>?)\s*([^\s;|&<>()]+)")
_WORD = re.compile(r"[^\s;|&<>()$`'\"=,]+")
_SCRIPT = re.compile(r"(?:python[\d.]*|ipython|bash|sh|source|\.)\s+(?:-[uOBIsEX]+\s+)*([\w./-]+\.(?:py|sh))")
_MODULE = re.compile(r"python[\d.]*\s+(?:-[uOBIsE]+\s+)*-m\s+([\w.]+)")
_INLINE_IMPORT = re.compile(r"(?:^|[;\n\"'])\s*(?:from\s+([\w.]+)\s+import|import\s+([\w.]+))", re.MULTILINE)
WHOLE_PROJECT = re.compile(r"\b(?:pytest|unittest|tox|nox|make|mypy|ruff|flake8|coverage|nbval|build)\b")
CODE_SUFFIXES = (
    ".py",
    ".sh",
    ".cfg",
    ".toml",
    ".ini",
    ".yaml",
    ".yml",
    ".json",
    ".txt",
    ".md",
    ".sql",
    ".html",
    ".css",
    ".js",
)


def mode_of_call(node: ast.Call, last: str) -> str:
    """Whether a call reads or writes the files that its arguments name; empty if it is not about files."""
    if last == "open":
        texts: list[ast.expr] = [word.value for word in node.keywords if word.arg == "mode"]
        texts += node.args[0:1] if isinstance(node.func, ast.Attribute) and len(node.args) == 1 else node.args[1:2]
        given = next((text.value for text in texts if isinstance(text, ast.Constant)), "r")
        return "w" if str(given)[:1] in "wx" else "a" if str(given)[:1] == "a" or "+" in str(given) else "r"
    if last == "to_csv" and any(w.arg == "mode" and getattr(w.value, "value", "a") != "w" for w in node.keywords):
        return "a"
    return "w" if last in purity.WRITING_CALLS else "r" if last in purity.READING_CALLS else ""


def literals_in(node: ast.AST) -> Iterator[ast.AST]:
    """String literals and names that make up a path: not those inside of other calls."""
    if isinstance(node, ast.Constant | ast.JoinedStr | ast.Name):
        yield node
    elif isinstance(node, ast.Call):
        last = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if last in _PATH_WORDS:
            for argument in [*node.args, *([node.func.value] if isinstance(node.func, ast.Attribute) else [])]:
                yield from literals_in(argument)
    elif isinstance(node, ast.BinOp | ast.Tuple | ast.List | ast.Dict | ast.Starred | ast.Set):
        for child in ast.iter_child_nodes(node):
            yield from literals_in(child)
    elif isinstance(node, ast.Attribute):
        yield from literals_in(node.value)


def text_of(node: ast.AST) -> str | None:
    """The text of a string literal, a star for each part of an f-string that is not known."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and 0 < len(node.value) < 300:
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "*" for part in node.values)
    return None


def is_path_like(node: ast.AST) -> bool:
    """Whether an expression may be a path, or some of them: made of string literals and of nothing that computes."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Div | ast.Add) and (is_path_like(node.left) or is_path_like(node.right))
    if isinstance(node, ast.Call):
        return bool(list(literals_in(node)))
    if isinstance(node, ast.Tuple | ast.List | ast.Dict | ast.Set):
        return any(is_path_like(child) for child in ast.iter_child_nodes(node))
    return isinstance(node, ast.JoinedStr)


def shell_mentions(command: str) -> list[Mention]:
    """The words of a shell script that may name files."""
    found = [(target, "a" if ">>" in arrow else "w") for arrow, target in _REDIRECT.findall(command)]
    written = {target for target, _ in found}
    words = dict.fromkeys(word for word in _WORD.findall(_REDIRECT.sub(" ", command)) if word not in written)
    return found + [(word, "") for word in words if not word.startswith("-")]


def shell_modules(command: str) -> set[str]:
    """The modules that a shell script runs or imports, as dotted names."""
    return {*_MODULE.findall(command), *(one or other for one, other in _INLINE_IMPORT.findall(command))}


def scripts_run(command: str) -> list[str]:
    """The script files that a shell script runs."""
    return [posixpath.normpath(path) for path in _SCRIPT.findall(command)]


def match_paths(text: str, known: Collection[str], workspace: str = "") -> set[str]:
    """The known files that a text may mean: the file, a folder above it, a pattern, or its last part."""
    text = text.strip()
    if workspace and text.startswith(workspace.rstrip("/") + "/"):
        text = text[len(workspace.rstrip("/")) + 1 :]
    if not text or "\n" in text or text in (".", "..", "/", "*"):
        return set()
    path = posixpath.normpath(text)
    if any(character in path for character in "*?["):
        if not re.search(r"\w\w|\.\w|\w/", path) or not re.search(r"[./]", path):
            return set()  # it could be anything
        return {one for one in known if fnmatch.fnmatch(one, path) or fnmatch.fnmatch(one, f"*/{path}")}
    tail = f"/{path}"
    named = "." in posixpath.basename(path)
    return {one for one in known if one == path or one.startswith(path + "/") or (named and one.endswith(tail))}


def module_files(dotted: str, known: Collection[str]) -> set[str]:
    """The known files that importing a dotted name reads: the module, and the packages above it."""
    parts = [part for part in dotted.split(".") if part]
    found = set()
    for count in range(1, len(parts) + 1):
        stem = "/".join(parts[:count])
        for path in (f"{stem}.py", f"{stem}/__init__.py", f"src/{stem}.py", f"src/{stem}/__init__.py"):
            if path in known:
                found.add(path)
    return found


def is_local_module(dotted: str, known: Collection[str]) -> bool:
    """Whether the workspace has a module of that name."""
    root = dotted.lstrip(".").split(".")[0]
    return dotted.startswith(".") or (
        bool(root)
        and any(
            path == f"{root}.py" or path.startswith((f"{root}/", f"src/{root}/")) or path == f"src/{root}.py"
            for path in known
            if path.endswith(".py")
        )
    )


def first_words(command: str) -> list[list[str]]:
    """The simple commands of a shell script, each as its words; empty if it cannot be told."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=";&|()<>\n")
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, "#"
    commands: list[list[str]] = [[]]
    try:
        for word in lexer:
            if set(word) <= set(";&|()\n"):
                commands.append([])
            else:
                commands[-1].append(word)
    except ValueError:
        return []
    return [_without_assignments(words) for words in commands if words]


def _without_assignments(words: Iterable[str]) -> list[str]:
    kept = list(words)
    while kept and re.fullmatch(r"\w+=.*", kept[0]):
        kept.pop(0)
    return kept
