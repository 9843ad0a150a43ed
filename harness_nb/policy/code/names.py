"""What the names in a Python cell stand for: modules under other names, texts put together, paths. Pure.

A cell may use what an earlier one imported, so a name that this cell does not bind is taken for the module of that name
or of its usual short form.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from harness_nb.policy.findings import UNKNOWN, words_in

SHORT = {
    "sp": "subprocess",
    "sh": "shutil",
    "np": "numpy",
    "pd": "pandas",
    "Path": "pathlib.Path",
    "PurePath": "pathlib.Path",
    "system": "os.system",
    "popen": "os.popen",
    "Popen": "subprocess.Popen",
    "check_call": "subprocess.check_call",
    "check_output": "subprocess.check_output",
    "getoutput": "subprocess.getoutput",
    "rmtree": "shutil.rmtree",
    "urlopen": "urllib.request.urlopen",
    "urlretrieve": "urllib.request.urlretrieve",
    "expanduser": "os.path.expanduser",
    "CDLL": "ctypes.CDLL",
}
"""What names mostly stand for that this cell does not bind."""

_ENDS = {
    "system": "os.system",
    "rmtree": "shutil.rmtree",
    "Popen": "subprocess.Popen",
    "check_output": "subprocess.check_output",
    "check_call": "subprocess.check_call",
    "getoutput": "subprocess.getoutput",
    "getstatusoutput": "subprocess.getstatusoutput",
    "popen": "os.popen",
    "killpg": "os.killpg",
    "execv": "os.execv",
    "execve": "os.execve",
    "execvp": "os.execvp",
    "removedirs": "os.removedirs",
    "unpack_archive": "shutil.unpack_archive",
    "CDLL": "ctypes.CDLL",
    "LoadLibrary": "ctypes.CDLL",
}
"""Ends that tell a function, whatever the module is called: an earlier cell may have given it another name."""

_WRAPS_PATHS = ("pathlib.Path", "pathlib.PosixPath", "os.path.join", "os.path.abspath", "os.fspath", "str", "glob.glob")
_LISTS_PATHS = (
    "glob",
    "rglob",
    "iterdir",
    "joinpath",
    "with_suffix",
    "with_name",
    "resolve",
    "absolute",
    "walk",
    "format",
)
_TEMPORARY = ("tempfile.", "tmp_path", "TemporaryDirectory", "mkdtemp")
MANY = UNKNOWN
"""Stands in a text for a part that is not known."""


class Names:
    """The names of one cell, whose nodes are given."""

    def __init__(self, nodes: Iterable[ast.AST]) -> None:
        self._dotted: dict[str, str] = {}
        self._values: dict[str, list[ast.expr]] = {}
        self._bound: set[str] = set()
        self._known: dict[int, str] = {}
        for node in nodes:
            self._learn(node)
        self._modules = _COMMON | {dotted.split(".")[0] for dotted in self._dotted.values()}

    def _learn(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                short = alias.asname or alias.name.split(".")[0]
                self._dotted[short] = alias.name if alias.asname else short
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                self._dotted[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            self._bound.add(node.name)
        elif isinstance(node, ast.arg):
            self._bound.add(node.arg)
        else:
            self._learn_values(node)

    def _learn_values(self, node: ast.AST) -> None:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._assign(target, node.value)
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            self._assign(node.target, node.value)
        elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            self._assign(node.target, node.iter)
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            self._assign(node.optional_vars, node.context_expr)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            self._values.setdefault(node.target.id, []).append(node.value)

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self._values.setdefault(target.id, []).append(value)
        elif isinstance(target, ast.Tuple | ast.List):
            pairs = value.elts if isinstance(value, ast.Tuple | ast.List) else [value] * len(target.elts)
            for each, given in zip(target.elts, pairs, strict=False):
                self._assign(each, given)

    def dotted(self, node: ast.expr, depth: int = 0) -> str:
        """The dotted name that an expression stands for; empty for none."""
        if depth > 8:
            return ""
        if depth:
            return self._find_dotted(node, depth)
        if id(node) not in self._known:
            self._known[id(node)] = self._find_dotted(node, depth)
        return self._known[id(node)]

    def _find_dotted(self, node: ast.expr, depth: int) -> str:
        if isinstance(node, ast.Name):
            if node.id in self._dotted:
                return self._dotted[node.id]
            values = self._values.get(node.id, [])
            named = [each for each in values if isinstance(each, ast.Name | ast.Attribute | ast.Call)]
            for value in named:
                if not _is_name(value, node.id) and (dotted := self.dotted(value, depth + 1)):
                    return dotted
            known = values or node.id in self._bound
            return node.id if known else SHORT.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            base = self.dotted(node.value, depth + 1)
            if not base or base.split(".")[0] not in self._modules:
                return _ENDS.get(node.attr, f"{base or '?'}.{node.attr}")
            return f"{base}.{node.attr}"
        if isinstance(node, ast.Call):
            return self._called(node, depth)
        return ""

    def _called(self, node: ast.Call, depth: int) -> str:
        function = self.dotted(node.func, depth + 1)
        texts = [self.text(argument) for argument in node.args[:2]]
        if function in ("__import__", "builtins.__import__", "importlib.import_module", "import_module") and texts:
            return texts[0] or ""
        if function in ("getattr", "builtins.getattr") and len(texts) == 2 and texts[1]:
            base = self.dotted(node.args[0], depth + 1)
            return f"{base}.{texts[1]}" if base else ""
        return f"{function}()" if function else ""

    def is_bound(self, name: str) -> bool:
        """Whether this cell gives the name a value of its own, other than by an import."""
        return (name in self._bound or name in self._values) and name not in self._dotted

    def text(self, node: ast.expr | None, depth: int = 0) -> str | None:
        """The text that an expression gives, ``MANY`` for parts that are not known; ``None`` if all is unknown."""
        if node is None or depth > 8:
            return None
        if isinstance(node, ast.Constant):
            if isinstance(node.value, bytes):
                return node.value.decode("latin-1")
            return node.value if isinstance(node.value, str) else str(node.value)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Div):
            left, right = self.text(node.left, depth + 1), self.text(node.right, depth + 1)
            if left is None and right is None:
                return None
            between = "/" if isinstance(node.op, ast.Div) else ""
            return f"{MANY if left is None else left}{between}{MANY if right is None else right}"
        if isinstance(node, ast.JoinedStr):
            return "".join(self._piece(part, depth) for part in node.values)
        if isinstance(node, ast.Name):
            values = self._values.get(node.id, [])
            return self.text(values[0], depth + 1) if len(values) == 1 and not _is_name(values[0], node.id) else None
        if isinstance(node, ast.Call):
            return self._text_of_call(node, depth)
        if isinstance(node, ast.Subscript | ast.Starred | ast.Attribute) and _has_texts(node.value):
            return self.text(node.value, depth + 1)
        return None

    def _piece(self, part: ast.expr, depth: int) -> str:
        inner = part.value if isinstance(part, ast.FormattedValue) else part
        text = self.text(inner, depth + 1)
        return MANY if text is None else text

    def _text_of_call(self, node: ast.Call, depth: int) -> str | None:
        dotted = self.dotted(node.func)
        if dotted in ("os.path.expanduser", "pathlib.Path.home") or dotted.endswith(".expanduser"):
            return self.text(node.args[0], depth + 1) if node.args else "~"
        if dotted in ("pathlib.Path.cwd", "os.getcwd"):
            return "."
        if dotted in _WRAPS_PATHS:
            parts = [self.text(argument, depth + 1) for argument in node.args]
            separator = "/" if len(parts) > 1 else ""
            return separator.join(MANY if part is None else part for part in parts) if parts else "."
        if dotted.startswith(_TEMPORARY):
            return "/tmp/x"
        if isinstance(node.func, ast.Attribute):
            if node.func.attr == "join" and node.args and isinstance(node.args[0], ast.List | ast.Tuple):
                pieces = [self.text(each, depth + 1) for each in node.args[0].elts]
                joint = self.text(node.func.value, depth + 1)
                return None if joint is None else joint.join(MANY if piece is None else piece for piece in pieces)
            if node.func.attr in _LISTS_PATHS:
                root = self.text(node.func.value, depth + 1)
                return None if root is None else f"{root}/{MANY}"
        return None

    def path(self, node: ast.expr | None, depth: int = 0) -> str | None:
        """The path that an expression gives, ``MANY`` for unknown ends; ``None`` where its beginning is unknown."""
        if depth > 8:
            return None
        if isinstance(node, ast.Name) and len(values := self._values.get(node.id, [])) == 1:
            if isinstance(values[0], ast.List | ast.Tuple | ast.Set):
                texts = [self.text(each) for each in values[0].elts]
                if all(texts):
                    outside = [text for text in texts if text and text.startswith(("/", "~", ".."))]
                    return (outside or texts)[0]
            return self.path(values[0], depth + 1) if not _is_name(values[0], node.id) else None
        if isinstance(node, ast.Call) and self.dotted(node.func).endswith(
            ("os.listdir", "os.walk", "os.scandir", "sorted")
        ):
            root = self.path(node.args[0], depth + 1) if node.args else "."
            return None if root is None else f"{root}/{MANY}"
        if isinstance(node, ast.List | ast.Tuple):
            return self.path(node.elts[0], depth + 1) if len(node.elts) == 1 else None
        text = self.text(node)
        return None if text is None or text.startswith(MANY) else text

    def words(self, node: ast.expr | None) -> list[str] | None:
        """The words of a command that is given as a list; ``None`` if it is no list that stands there."""
        if isinstance(node, ast.Name) and len(values := self._values.get(node.id, [])) == 1:
            node = values[0]
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            left = self.words(node.left)
            right = self.words(node.right)
            return None if left is None else left + (right if right is not None else [MANY])
        if isinstance(node, ast.Call) and self.dotted(node.func) == "shlex.split":
            return None
        if not isinstance(node, ast.List | ast.Tuple):
            return None
        return [self._word(each) for each in node.elts]

    def _word(self, node: ast.expr) -> str:
        if isinstance(node, ast.Attribute) and self.dotted(node) == "sys.executable":
            return "python"
        if isinstance(node, ast.Attribute) and self.dotted(node).endswith(".pid"):
            return "%1"
        text = self.text(node)
        return MANY if text is None else text


def _is_name(node: ast.expr, name: str) -> bool:
    """Whether a name is given to itself."""
    return isinstance(node, ast.Name) and node.id == name


def _has_texts(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant | ast.JoinedStr)


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    """The value of a keyword argument."""
    return next((each.value for each in call.keywords if each.arg == name), None)


def argument(call: ast.Call, place: int, *names: str) -> ast.expr | None:
    """An argument, by its place or one of its names."""
    for name in names:
        if (value := keyword(call, name)) is not None:
            return value
    positional: Sequence[ast.expr] = call.args
    return positional[place] if place < len(positional) else None


_COMMON = words_in(
    "os posix sys subprocess shutil pathlib socket requests httpx urllib urllib3 aiohttp pickle torch numpy "
    "pandas joblib ctypes signal builtins importlib asyncio pty platform psutil tempfile glob io json "
    "re time math random ast types operator sklearn tensorflow keras scipy matplotlib plt sns tf nn F "
    "jax cv2 PIL tqdm datetime collections functools itertools logging warnings smtplib ftplib "
    "telnetlib paramiko boto3 http xmlrpc code runpy dill cloudpickle marshal shelve yaml base64 zlib "
    "codecs multiprocessing threading ssl select fcntl resource pwd grp getpass webbrowser zipfile "
    "tarfile"
)
