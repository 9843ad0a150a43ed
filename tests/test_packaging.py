"""What is shipped: the wheel with its kernel specs and demos, and the two lists of requirements that must agree."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path

import yaml

ROOT = Path(__file__).parent.parent


def requirements() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    return {*project["dependencies"], *extras["demo"], *extras["test"]}


def test_environment_yml_says_what_pyproject_says() -> None:
    dependencies = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    listed = next(entry["pip"] for entry in dependencies if isinstance(entry, dict))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(listed) - {"-e ."} == requirements()
    assert f"python{project['requires-python']}" in dependencies


def names_of(listed: list[str]) -> set[str]:
    """Distributions in a list of requirements, as the index spells them."""
    return {re.sub(r"[-_.]+", "-", re.split(r"[<>=\[ ]", name)[0]).lower() for name in listed}


def test_what_the_package_imports_is_required() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    known = packages_distributions()
    imported = set()
    for path in (ROOT / "harness_nb").rglob("*.py"):
        if "demos" in path.parts and path.parent.name != "demos":
            continue  # what a demo's model writes
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            imported |= {name.split(".")[0] for name in names} - sys.stdlib_module_names - {"harness_nb"}
    distributions = names_of([distribution for name in imported for distribution in known[name]])
    assert distributions <= names_of([*project["dependencies"], *extras["anthropic"], *extras["demo"]])


def test_the_package_does_not_require_torch() -> None:
    assert not [requirement for requirement in requirements() if requirement.startswith("torch")]


def test_the_wheel_has_kernel_specs_and_demos(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    names = zipfile.ZipFile(next(tmp_path.glob("*.whl"))).namelist()
    assert any(name.endswith("data/share/jupyter/kernels/harness-tools/kernel.json") for name in names)
    extension = {name.partition("data/share/jupyter/labextensions/harness-nb/")[2] for name in names}
    assert extension - {""} == {"package.json", "install.json", "static/approvals.js", "static/remoteEntry.js"}
    assert "harness_nb/py.typed" in names
    assert any(name.startswith("harness_nb/demos/digits/") and name.endswith(".json") for name in names)
    assert not [name for name in names if name.startswith("tests/")]
