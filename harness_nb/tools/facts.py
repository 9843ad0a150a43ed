"""Facts about the machine and the Python that tool code runs in, as one JSON object on stdout.

The session runs this file with the tool kernel's own Python; standard library only.
"""

import importlib.metadata
import json
import os
import platform
import shutil
import subprocess
import sys

PACKAGES = (
    "numpy",
    "pandas",
    "polars",
    "scipy",
    "scikit-learn",
    "matplotlib",
    "seaborn",
    "plotly",
    "torch",
    "torchvision",
    "tensorflow",
    "jax",
    "transformers",
    "datasets",
    "xgboost",
    "lightgbm",
    "pillow",
    "requests",
    "pytest",
    "tqdm",
)


def main() -> None:
    """Print the facts; the order is fixed, so that the same machine gives the same bytes."""
    facts = {
        "Python": f"{platform.python_version()} on {platform.system()} {platform.machine()}",
        "Installed packages": ", ".join(installed()) or "none of the usual ones",
        "Not installed": ", ".join(missing()) or "none of the usual ones",
        "Processor cores": str(cores()),
        "Memory": memory(),
        "GPU": gpu(),
        "Distributions": distributions(),
    }
    json.dump(facts, sys.stdout)


def installed() -> list[str]:
    """Name and version of each of the packages that matter and are there."""
    found = []
    for name in PACKAGES:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def distributions() -> dict[str, str]:
    """Version of every distribution by name. For the record and its export; the model is not told."""
    found: dict[str, str] = {}
    for one in importlib.metadata.distributions():
        name, version = one.metadata["Name"], one.metadata["Version"]
        if name and version:
            found.setdefault(str(name), str(version))
    return dict(sorted(found.items(), key=lambda item: item[0].lower()))


def missing() -> list[str]:
    """The packages that matter and are not there."""
    present = {entry.split()[0] for entry in installed()}
    return [name for name in PACKAGES if name not in present]


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def memory() -> str:
    """Physical memory, in GiB."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return "unknown"
    return f"{total / 2**30:.0f} GiB"


def gpu() -> str:
    """What nvidia-smi says, or that there is none."""
    if shutil.which("nvidia-smi") is None:
        return "Apple silicon (mps)" if sys.platform == "darwin" and platform.machine() == "arm64" else "none"
    command = ["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return "none that answers"
    return "; ".join(answer.stdout.split("\n")).strip("; ") or "none"


if __name__ == "__main__":
    main()
