"""Which demo runs when none is named, and why. ``make demo`` runs this file by path before anything is installed.

Standard library only, and nothing of ours.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

ARCHIVE_VARIABLE = "HARNESS_NB_CIFAR10"
ARCHIVE_NAME = "cifar-10-python.tar.gz"


def pick_demo(environment: Mapping[str, str]) -> tuple[str, str]:
    """The demo to run and a sentence that says why: cifar10 when its archive is set or cached, else digits."""
    if environment.get(ARCHIVE_VARIABLE):
        return "cifar10", f"demo: cifar10, because {ARCHIVE_VARIABLE} names its archive"
    cached = cache_folder(environment) / ARCHIVE_NAME
    if cached.is_file():
        return "cifar10", f"demo: cifar10, because its archive is cached at {cached}"
    return "digits", f"demo: digits, because {ARCHIVE_VARIABLE} is not set and there is no archive at {cached}"


def cache_folder(environment: Mapping[str, str]) -> Path:
    """Where downloads are kept: ``XDG_CACHE_HOME``, else what is usual on the platform; below it ``harness_nb``."""
    if given := environment.get("XDG_CACHE_HOME"):
        return Path(given, "harness_nb")
    home = Path(environment.get("HOME") or Path.home())
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "harness_nb"
    if sys.platform == "win32":
        return Path(environment.get("LOCALAPPDATA") or home / "AppData" / "Local", "harness_nb", "Cache")
    return home / ".cache" / "harness_nb"


if __name__ == "__main__":
    name, why = pick_demo(os.environ)
    print(name if "--name" in sys.argv[1:] else why)
