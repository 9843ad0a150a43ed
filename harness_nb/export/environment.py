"""What the export says of Python, packages, data and seeds. Pure: from facts that the session recorded at its start."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping

from harness_nb.export import purity
from harness_nb.types import JsonObject

DISTRIBUTIONS = "Distributions"
"""The key of ``SessionStarted.environment`` with the version of every distribution; it is not told to the model."""

_URL = re.compile(r"https?://[^\s'\"<>)\]}\\`]+")
_INSTALLED = re.compile(r"Successfully installed (.+)")

CHECK = '''\
def check_versions(python, packages):
    """Say where this Python or a package is another than the one that the outputs below are from."""
    import sys
    from importlib.metadata import PackageNotFoundError, version

    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    if python and here != python:
        print(f"Python is {here} here; the outputs below are from {python}.")
    for name, wanted in packages.items():
        try:
            found = version(name).split("+")[0]
        except PackageNotFoundError:
            found = "not installed"
        if found != wanted:
            print(f"{name} is {found} here; the outputs below are from {wanted}.")
'''


def known_versions(environment: Mapping[str, object], outputs: Iterable[str]) -> dict[str, str]:
    """Version by normalised name of distribution: from the start of the session, and what it installed since."""
    full = environment.get(DISTRIBUTIONS)
    versions = {normal(name): str(version) for name, version in full.items()} if isinstance(full, dict) else {}
    for entry in str(environment.get("Installed packages", "")).split(", "):
        name, _, version = entry.partition(" ")
        if re.match(r"\d", version):
            versions.setdefault(normal(name), version)
    for text in outputs:
        for line in _INSTALLED.findall(text):
            pairs = [word.rpartition("-") for word in line.split()]
            versions |= {normal(name): version for name, _, version in pairs if name}
    return versions


def normal(name: str) -> str:
    """The normalised name of a distribution (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(modules: Iterable[str], versions: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Distribution and version for each imported module that is not of Python itself, and those without a version.

    Local version labels (``2.13.0+cpu``) are left out: package indexes do not have them.
    """
    pinned: dict[str, str] = {}
    unknown = []
    for module in sorted(set(modules) - set(sys.stdlib_module_names) - {"IPython", "", "harness_nb", "__main__"}):
        name = purity.DISTRIBUTIONS.get(module, module)
        version = versions.get(normal(name), "").split("+")[0]
        if version:
            pinned[name] = version
        else:
            unknown.append(module)
    return dict(sorted(pinned.items(), key=lambda item: item[0].lower())), unknown


def environment_source(python: str, pinned: Mapping[str, str]) -> str:
    """The cell that states the versions; it prints nothing where they are the same."""
    lines = []
    if pinned:
        wanted = " ".join(f'"{name}=={version}"' for name, version in pinned.items())
        lines = [
            "# To install the same versions, take away the # of the next line and run this cell.",
            f"# %pip install {wanted}",
        ]
    series = ".".join(python.split()[0].split(".")[:2]) if python else ""
    packages = "".join(f'\n    "{name}": "{version}",' for name, version in pinned.items())
    call = f'check_versions("{series}", {{{packages}{chr(10) if packages else ""}}})'
    return "\n".join([*lines, *([""] if lines else []), *([""] if lines else []), CHECK, "", call]).replace(
        "\n\n\n\n", "\n\n\n"
    )


def environment_text(environment: JsonObject, unknown: list[str], seeds: list[str], unseeded: list[str]) -> str:
    """The words above that cell."""
    python = str(environment.get("Python", "")) or "a Python that the record does not name"
    facts = [f"The outputs in this notebook are from Python {python}"]
    facts += [f"{label}: {environment[key]}" for key, label in _MACHINE if environment.get(key)]
    text = f"## Environment\n\n{'; '.join(facts)}."
    if unknown:
        named = ", ".join(f"`{name}`" for name in unknown)
        text += f" The record does not know the version of {named}."
    if seeds:
        text += f"\n\nSeeds: {', '.join(f'`{seed}`' for seed in seeds)}."
    if unseeded:
        text += (
            f"\n\nRandom numbers without a seed: {'; '.join(unseeded)}. What depends on them differs from run to run."
        )
    return text


_MACHINE = (("Processor cores", "processor cores"), ("Memory", "memory"), ("GPU", "GPU"))


def urls_in(text: str) -> list[str]:
    """The web addresses in a text."""
    return list(dict.fromkeys(url.rstrip(".,;:") for url in _URL.findall(text)))


def file_table(rows: Iterable[tuple[str, int | None, str, str]]) -> str:
    """Files as a Markdown table: path, bytes, SHA-256, and where it is from."""
    lines = ["| file | bytes | SHA-256 | |", "|:--|--:|:--|:--|"]
    for path, size, digest, told in rows:
        shown = f"`{digest}`" if digest and not digest.startswith("?") else "not known"
        lines.append(f"| `{path}` | {'' if size is None else f'{size:,}'} | {shown} | {told} |")
    return "\n".join(lines)
