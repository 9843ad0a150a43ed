"""Which files decide how a check comes out: tests, and what configures them, as its command line lets one tell.

``pristine`` keeps them as they are at the start, and the finish gate asks what has become of them. Of a file that
configures other things too, such as pyproject.toml, only the part about checks counts. Pure but for looking which files
there are.
"""

from __future__ import annotations

import configparser
import json
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

STARTUP = ("sitecustomize.py", "usercustomize.py", "*.pth", ".env")
"""What a Python, or a plugin of its test runner, reads by itself: watched whatever the command is."""

PYTHON_TESTS = ("test_*.py", "*_test.py", "tests/**", "test/**")
PYTHON_SETTINGS = (
    *("conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "pyproject.toml", "setup.cfg"),
    *("tox.ini", ".coveragerc", "noxfile.py", "unittest.cfg", "nose2.cfg"),
)
SCRIPT_TESTS = ("*.test.*", "*.spec.*", "__tests__/**")
SCRIPT_SETTINGS = ("package.json", "jest.config.*", "vitest.config.*", "vite.config.*", ".mocharc*", ".npmrc")
MAKE_FILES = ("Makefile", "makefile", "GNUmakefile", "*.mk")
BY_PROGRAM = {
    **dict.fromkeys(("pytest", "py.test", "unittest", "nose2", "tox", "nox", "coverage"), "python"),
    **dict.fromkeys(("npm", "npx", "yarn", "pnpm", "node", "jest", "vitest", "mocha", "bun", "deno"), "script"),
    **dict.fromkeys(("make", "gmake"), "make"),
    "just": "just",
    "go": "go",
}
INTERPRETERS = re.compile(r"(python[\d.]*|pypy[\d.]*|bash|sh|dash|zsh|node|ruby|perl|source|\.)\Z")
RUNNERS = frozenset(
    {"pytest", "_pytest", "pluggy", "iniconfig", "packaging", "coverage", "nose2", "tox", "nox", "hypothesis", "xdist"}
)
SHADOWING = (frozenset(sys.stdlib_module_names) | RUNNERS) - {"test", "this", "antigravity"}
"""Modules that a file at the top of the workspace would take the place of."""

_PARTS = re.compile(r"(pytest|tool:pytest|coverage|tox|nox|hatch|poe|pdm|unittest)")
_VARIABLES = re.compile(r"\s*(export\s+)?(PY|COVERAGE|BASH|ENV\b|PATH\b|LD_|DYLD_|NODE_)")
_PACKAGE_PARTS = ("scripts", "jest", "mocha", "vitest", "ava", "nyc", "c8", "babel", "type", "config")


def settings_patterns(commands: Sequence[str], workspace: Path) -> tuple[str, ...]:
    """gitignore patterns of the files that configure ``commands``; one that comes into being counts too."""
    kinds = _kinds(commands, workspace)
    found = [*STARTUP]
    found += [*PYTHON_SETTINGS] if "python" in kinds else []
    found += [*SCRIPT_SETTINGS] if "script" in kinds else []
    found += [*MAKE_FILES] if "make" in kinds else []
    found += ["justfile", "Justfile", ".justfile"] if "just" in kinds else []
    return tuple(found) if commands else ()


def test_patterns(commands: Sequence[str], workspace: Path) -> tuple[str, ...]:
    """gitignore patterns of the tests of ``commands``, and of the scripts in the workspace that they name."""
    kinds = _kinds(commands, workspace)
    found = [*PYTHON_TESTS] if "python" in kinds else []
    found += [*SCRIPT_TESTS] if "script" in kinds else []
    found += ["*_test.go"] if "go" in kinds else []
    named = [name for command in commands for name in _named(command, workspace)]
    return tuple(dict.fromkeys([*found, *named]))


def counting_part(name: str, data: bytes) -> bytes:
    """What of a file decides about checks: all of most files, of some only a part. Without order or comments."""
    base = PurePosixPath(name).name
    try:
        match base:
            case "pyproject.toml":
                tools = tomllib.loads(data.decode()).get("tool", {})
                return _json({key: value for key, value in tools.items() if _PARTS.match(key)})
            case "setup.cfg":
                parser = configparser.RawConfigParser(strict=False)
                parser.read_string(data.decode())
                return _json({key: dict(parser[key]) for key in parser.sections() if _PARTS.match(key)})
            case "package.json":
                return _json({key: value for key, value in json.loads(data).items() if key in _PACKAGE_PARTS})
            case ".env":
                return _lines(data, _VARIABLES)
            case _:
                return _lines(data, re.compile(r"import[ \t]")) if base.endswith(".pth") else data
    except (ValueError, AttributeError, TypeError, configparser.Error):
        return data


def counts_when_new(name: str, data: bytes) -> bool:
    """Whether a new file that matches says anything about checks: a pyproject.toml without such a part does not."""
    return counting_part(name, data) not in (b"", b"{}") or PurePosixPath(name).name == "conftest.py"


def shadowing(workspace: Path) -> set[str]:
    """Files at the top of the workspace in whose place a check would else find a module of Python or of a runner."""
    found = set()
    for path in workspace.iterdir() if workspace.is_dir() else ():
        if path.name.partition(".")[0] not in SHADOWING:
            continue
        if path.is_dir() and (path / "__init__.py").exists():
            found.add(f"{path.name}/__init__.py")
        elif path.is_file() and path.suffix in (".py", ".pyc", ".so", ".pyd"):
            found.add(path.name)
    return found


_SKIPS = re.compile(rb"\bskip|xfail|expectedFailure|SkipTest|\.only\(|\bxit\(|\bxdescribe\(")
_HOOKS = re.compile(rb"def (pytest_\w+)|\b(load_tests)\b|\b(__import__|setattr|monkeypatch|os\._exit)\b")


def what_was_done(name: str, before: bytes | None, after: bytes | None) -> str:
    """``edited``, ``deleted`` or ``added``, with what is in it that makes checks pass without being true."""
    if after is None:
        return "deleted"
    if before is None:
        hooks = sorted({(m[0] or m[1] or m[2]).decode() for m in _HOOKS.findall(after)})
        return f"added, with {', '.join(hooks[:4])}" if hooks else "added"
    more = len(_SKIPS.findall(after)) > len(_SKIPS.findall(before))
    hooks = sorted({(m[0] or m[1] or m[2]).decode() for m in _HOOKS.findall(after)} - _names_of(before))
    fewer = len(re.findall(rb"def test|\bit\(", before)) - len(re.findall(rb"def test|\bit\(", after))
    told = ["tests skipped"] if more else []
    told += [f"{fewer} tests fewer"] if fewer > 0 else []
    told += [f"with {', '.join(hooks[:4])}"] if hooks else []
    return "edited" + (f", {', '.join(told)}" if told else "")


def _names_of(data: bytes) -> set[str]:
    return {(m[0] or m[1] or m[2]).decode() for m in _HOOKS.findall(data)}


def lacks_tests(command: str, output: str) -> str:
    """Why a check that ended with 0 did not run its tests; empty if it did, or nobody can tell.

    pytest and unittest end with a line that counts the tests. Code under test that ends the process has none.
    """
    if re.search(r"[|>;&]|-qq|-q -q|--no-summary|--collect-only|--help|--version", command):
        return ""
    words = _words(command)
    if "unittest" in words and not re.search(r"^Ran \d+ tests? in ", output, re.MULTILINE):
        return "unittest ended without its last line, how many tests it ran"
    names = {PurePosixPath(word).name for word in words[:4]}
    if "pytest" in names and not re.search(r"\b\d+ (passed|failed|skipped|xfailed|xpassed|deselected)\b", output):
        return "pytest ended without its last line, how many tests passed"
    return ""


def _kinds(commands: Sequence[str], workspace: Path) -> set[str]:
    words = {PurePosixPath(word).name for command in commands for word in _words(command)}
    kinds = {BY_PROGRAM[word] for word in words if word in BY_PROGRAM}
    if kinds & {"make", "just"} or any(_named(command, workspace) for command in commands):
        kinds.add("python")  # what they call is not read; most of it is pytest or unittest
    return kinds


def _named(command: str, workspace: Path) -> Iterator[str] | list[str]:
    """Patterns for the scripts in the workspace that a command runs, and the paths that are given to a test runner."""
    found, before, runner = [], "", False
    for word in _words(command):
        base = PurePosixPath(word.partition("::")[0]).name
        runner = runner or base in BY_PROGRAM
        path = Path(word.partition("::")[0])
        path = path if path.is_absolute() else workspace / path
        starts = before in ("", "&&", "||", ";", "|") or INTERPRETERS.match(PurePosixPath(before).name)
        if not word.startswith("-") and path.is_relative_to(workspace) and path != workspace and (starts or runner):
            name = Path(*path.relative_to(workspace).parts).as_posix()
            if path.is_file():
                found.append(f"/{name}")
            elif path.is_dir() and runner:
                found.append(f"/{name}/**" if (path / "conftest.py").exists() or "test" in name else f"/{name}/test_*")
        before = before if word.startswith("-") else word
    return found


def _words(command: str) -> list[str]:
    try:
        lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        return list(lexer)
    except ValueError:
        return command.split()


def _lines(data: bytes, wanted: re.Pattern[str]) -> bytes:
    return "\n".join(line for line in data.decode("utf-8", "replace").splitlines() if wanted.match(line)).encode()


def _json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, default=str).encode()
