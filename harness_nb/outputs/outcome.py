"""What the outputs of a cell come to, as a digest: two runs of the same code that said the same have the same. Pure.

``recordings`` keeps it of each recorded call, so that a replay can say what came out differently.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Any

from harness_nb.outputs.fold import is_derived
from harness_nb.outputs.terminal import clean_text
from harness_nb.types import JsonObject

_NUMBER = re.compile(r"0x[0-9a-fA-F]+|\d+(?:[.,:]\d+)*(?:[eE][+-]?\d+)?|\bnan\b|\binf\b")
_BAR = re.compile(r"[\u2580-\u259f#=>.-]{4,}")
_SPACE = re.compile(r"\s+")


def outcome_digest(outputs: Sequence[JsonObject]) -> str:
    """A digest of what outputs say, blind to what wobbles from run to run. Pure.

    The kinds of output count, and their texts with numbers, addresses, bars and white space evened out; pictures count
    by their number. How a stream was cut into pieces, and what the harness derived, does not count.
    """
    said: dict[str, str] = {}
    pictures: dict[str, int] = {}
    for output in outputs:
        if is_derived(output):
            continue
        kind = output.get("output_type", "")
        if kind == "stream":
            name = str(output.get("name", ""))
            said[name] = said.get(name, "") + _text(output.get("text"))
        elif kind == "error":
            said["error"] = said.get("error", "") + f"{output.get('ename')}: {output.get('evalue')}"
        else:
            data = output.get("data", {})
            for name in (name for name in data if name.startswith("image/")):
                pictures[name] = pictures.get(name, 0) + 1
            if not any(name.startswith("image/") for name in data):
                said[kind] = said.get(kind, "") + _text(data.get("text/plain"))
    evened = {name: _evened(text) for name, text in said.items() if text.strip()}
    return hashlib.sha256(json.dumps([evened, pictures], sort_keys=True).encode("ascii")).hexdigest()


def _text(value: Any) -> str:
    return "".join(value) if isinstance(value, list) else str(value or "")


def _evened(text: str) -> str:
    """A text without what differs between two runs of the same code."""
    text = _BAR.sub(" ", _NUMBER.sub("0", clean_text(text)))
    return _SPACE.sub(" ", text).strip()
