"""What is shipped: the wheel with its kernel specs and demos, and the two lists of requirements that must agree."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
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


def test_the_package_does_not_require_torch() -> None:
    assert not [requirement for requirement in requirements() if requirement.startswith("torch")]


def test_the_wheel_has_kernel_specs_and_demos(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    names = zipfile.ZipFile(next(tmp_path.glob("*.whl"))).namelist()
    assert any(name.endswith("data/share/jupyter/kernels/harness-tools/kernel.json") for name in names)
    assert any(name.endswith("data/share/jupyter/labextensions/harness-nb/static/remoteEntry.js") for name in names)
    assert "harness_nb/py.typed" in names
    assert any(name.startswith("harness_nb/demos/digits/") and name.endswith(".json") for name in names)
    assert not [name for name in names if name.startswith("tests/")]
