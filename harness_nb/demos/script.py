"""Builds the scripts of the demos: YAML, which people write, into JSON, which a scripted model plays.

The YAML is the same list of replies; ``!file train.py`` stands for the text of a file beside it. The JSON ships in the
wheel, and a test holds that it is what the YAML says. ``python -m harness_nb.demos.script`` builds all of them anew.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from harness_nb.demos.demo import DATA


class _Loader(yaml.SafeLoader):
    """YAML's plain types and ``!file``. ``folder`` is where the script lies."""

    folder: Path


def _file_text(loader: _Loader, node: yaml.Node) -> str:
    return (loader.folder / str(node.value)).read_text("utf-8")


_Loader.add_constructor("!file", _file_text)


def build_script(source: Path) -> str:
    """The JSON text of the script that a YAML file describes."""
    loader = _Loader(source.read_text("utf-8"))
    loader.folder = source.parent
    replies: list[dict[str, Any]] = loader.get_single_data()
    return json.dumps(replies, indent=1, ensure_ascii=False) + "\n"


def script_sources() -> list[Path]:
    """The YAML files of all scripts."""
    return sorted(DATA.glob("*/*.yaml"))


if __name__ == "__main__":
    for source in script_sources():
        source.with_suffix(".json").write_text(build_script(source), "utf-8")
        print(f"built {source.with_suffix('.json').relative_to(DATA)}")
