"""The layer rule of CONTRIBUTING.md: a module imports only from rows above its own, libraries stay at their edges."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "harness_nb"

ROWS = [
    {"types", "errors"},
    {"events"},
    {"ports"},
    {"policy", "context", "toolset", "notebook", "outputs"},
    {"budget"},
    {"past", "joining", "consent"},
    {"watch"},
    {"cells"},
    {"work"},
    {"judging"},
    {"calls", "compacting"},
    {"loop"},
    {
        *("settings", "options", "store", "journal", "files", "draft", "notebook_file", "record"),
        *("record_parts", "recordings", "forking", "replaying", "replay_ground", "approval", "surroundings"),
        *("workplace", "pristine", "gate", "questions", "secrets_kept", "session", "opening", "model_choice"),
        *("watched", "check_copy", "integrity", "audit"),
    },
    {"web", "network"},
    {"kernel"},
    {"models"},
    {"tools"},
    {"export", "verify", "evaluation"},
    {"ui"},
    {"demos"},
    {"cli"},
]
# The session owns a run and makes the kernel and the model, so it ranks behind both; playing a recording is a model.
RANK = {name: rank for rank, row in enumerate(ROWS) for name in row}
RANK["replaying"] = RANK["models"] + 0.2
RANK["model_choice"] = RANK["models"] + 0.2
RANK["safeguards"] = RANK["models"] + 0.3
RANK["session"] = RANK["models"] + 0.5
SAME_ROW_ALLOWED = ROWS[12] | {"notebook", "outputs"}

EDGES = {
    "openai": {"models"},
    "jupyter_client": {"kernel", "verify"},
    "zmq": {"kernel"},
    "IPython": {"ui"},
    "ipywidgets": {"ui"},
    "ipykernel": {"ui", "tools"},
    "click": {"options", "ui", "cli"},
    "rich": {"cli", "ui"},
    "anthropic": {"models"},
    "bs4": {"web"},
    "markdownify": {"web"},
    "h11": {"network"},
    "nbclient": {"verify"},
    "nbconvert": {"export"},
    "tree_sitter": {"policy"},
    "tree_sitter_bash": {"policy"},
    "mcp": set(),
}
PURE = {
    "types",
    "errors",
    "events",
    "ports",
    "policy",
    "context",
    "toolset",
    "notebook",
    "outputs",
    "budget",
    "past",
    "joining",
    "consent",
}
IMPURE_MODULES = {"os", "time", "random", "secrets", "uuid", "subprocess", "socket", "tempfile", "shutil", "threading"}


def modules() -> list[Path]:
    return [path for path in sorted(PACKAGE.rglob("*.py")) if "demos" not in path.parts or path.parent.name == "demos"]


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path: Path) -> list[str]:
    names = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            module = node.module or ""
            names += [f"harness_nb.{alias.name}" for alias in node.names] if module == "harness_nb" else [module]
    return names


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_only_from_rows_above(path: Path) -> None:
    part = part_of(path)
    if part == "__init__":
        return
    for name in imports(path):
        words = name.split(".")
        if words[0] != "harness_nb" or len(words) == 1 or words[1] in ("__version__", part):
            continue
        other = words[1]
        above = RANK[other] < RANK[part] or (RANK[other] == RANK[part] and other in SAME_ROW_ALLOWED)
        assert part != "tools", f"{path.name}: tools/ imports nothing of ours, but {name}"
        assert above or (other == "tools" and name == "harness_nb.tools"), f"{part} must not import {other}"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_libraries_stay_at_their_edges(path: Path) -> None:
    part = part_of(path)
    typing_only = "TYPE_CHECKING" in path.read_text() and part == "__init__"
    for name in imports(path):
        library = name.split(".")[0]
        if library in EDGES and not typing_only:
            assert part in EDGES[library], f"{part} must not import {library}"


@pytest.mark.parametrize(
    "path", [p for p in modules() if part_of(p) in PURE], ids=lambda p: str(p.relative_to(PACKAGE))
)
def test_pure_layers_have_no_io_and_no_clock(path: Path) -> None:
    used = {name.split(".")[0] for name in imports(path)} & IMPURE_MODULES
    assert not used, f"{path.name} imports {used}"


def test_tools_need_only_the_standard_library() -> None:
    for path in (PACKAGE / "tools").rglob("*.py"):
        for name in imports(path):
            top = name.split(".")[0]
            allowed = (
                top in sys.stdlib_module_names or name.startswith("harness_nb.tools") or top in ("IPython", "ipykernel")
            )
            assert allowed, f"{path.name} imports {name}"


def test_importing_the_package_is_cheap() -> None:
    heavy = ["openai", "IPython", "ipywidgets", "matplotlib", "jupyter_client", "pydantic"]
    code = f"import sys, harness_nb; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_loop_can_be_read_in_one_go() -> None:
    assert len((PACKAGE / "loop.py").read_text().splitlines()) < 200


def test_public_names_are_exported() -> None:
    import harness_nb

    for name in harness_nb.__all__:
        assert hasattr(harness_nb, name)
