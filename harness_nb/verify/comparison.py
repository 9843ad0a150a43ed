"""The outputs of one cell, as recorded and as they are now: the same, or what differs, under nbval's rules.

nbval's rules (its documentation, and its behaviour in version 0.11): streams are joined by name and carriage returns
are carried out; values are gathered by key (``stdout``, ``stderr``, ``ename``, each MIME type), so that the order
counts only among values of one key; metadata, tracebacks, counts and ids of widget models do not count; texts are
compared after sanitising. Ours goes further where nbval looks away, and is kinder only where it says so: pictures are
compared by how they look, HTML by its text when only its markup differs, numbers within the cell's tolerance. Pure.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from harness_nb.types import JsonObject
from harness_nb.verify.difference import describe_texts, short_text
from harness_nb.verify.markup import html_text, looks_like_program
from harness_nb.verify.numbers import close, compare_numbers, distance, told_tolerance
from harness_nb.verify.pictures import TYPES, compare_pictures
from harness_nb.verify.sanitise import Pattern, left_aside, sanitise

SKIPPED = {
    "metadata",
    "traceback",
    "prompt_number",
    "output_type",
    "name",
    "execution_count",
    "application/vnd.jupyter.widget-view+json",
}
_NAMES = {
    "stdout": "printed text",
    "stderr": "text on stderr",
    "ename": "an error",
    "evalue": "an error's text",
    "text/plain": "a value",
    "text/html": "an HTML output",
}
_RETURNS = re.compile(r"^.*\r(?=[^\n])", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Comparison:
    """What came of it: ``difference`` is empty when the outputs are the same, ``aside`` names what was left aside."""

    difference: str = ""
    aside: tuple[str, ...] = ()
    compared: int = 0


def compare_outputs(
    recorded: Sequence[JsonObject], now: Sequence[JsonObject], patterns: Sequence[Pattern], tolerance: float = 0.0
) -> Comparison:
    """Compare the outputs of a cell. ``compared`` counts the recorded values."""
    ours, theirs = gather(recorded), gather(now)
    aside: dict[str, None] = {}
    for key in ours.keys() | theirs.keys():
        if len(ours.get(key, ())) != len(theirs.get(key, ())):
            return Comparison(_describe_counts(ours, theirs))
    for key, values in ours.items():
        for one, other in zip(values, theirs[key], strict=True):
            difference, kinds = _compare_value(key, one, other, patterns, tolerance)
            if difference:
                return Comparison(difference)
            aside |= dict.fromkeys(kinds)
    return Comparison(aside=tuple(aside), compared=sum(map(len, ours.values())))


def gather(outputs: Sequence[JsonObject]) -> dict[str, list[Any]]:
    """The values of a cell's outputs by key, in their order."""
    found: dict[str, list[Any]] = {}
    for output in join_streams(outputs):
        if output.get("output_type") == "stream":
            found.setdefault(str(output.get("name", "stdout")), []).append(output["text"])
            continue
        for key, value in output.items():
            if key == "data" and isinstance(value, dict):
                for kind, content in value.items():
                    if kind not in SKIPPED:
                        found.setdefault(kind, []).append(content)
            elif key not in SKIPPED:
                found.setdefault(key, []).append(value)
    return found


def join_streams(outputs: Iterable[JsonObject]) -> list[JsonObject]:
    """The outputs with one stream of each name, where its first part was; carriage returns are carried out."""
    joined: list[JsonObject] = []
    streams: dict[str, JsonObject] = {}
    for output in outputs:
        if output.get("output_type") != "stream":
            joined.append(output)
            continue
        name = str(output.get("name", "stdout"))
        if name not in streams:
            streams[name] = {**output, "text": ""}
            joined.append(streams[name])
        streams[name]["text"] += str(output.get("text", ""))
    for stream in streams.values():
        stream["text"] = _RETURNS.sub("", stream["text"])
    return joined


def _compare_value(
    key: str, recorded: Any, now: Any, patterns: Sequence[Pattern], tolerance: float
) -> tuple[str, tuple[str, ...]]:
    """What differs (empty: nothing that counts), and the kinds of things that were left aside."""
    if recorded == now:
        return "", ()
    if key in TYPES and isinstance(recorded, str) and isinstance(now, str):
        return compare_pictures(recorded, now), ("pixels of pictures",)
    if isinstance(recorded, str) and isinstance(now, str):
        return _compare_texts(key, recorded, now, patterns, tolerance)
    needed = _json_distance(recorded, now, patterns)
    if close(0.0, needed, tolerance):
        return "", (("numbers within the tolerance",) if needed else ("parts of JSON data",))
    hint = told_tolerance(needed)
    hint = f"; a tolerance of {hint} would pass" if hint else ""
    return f"{key} differs: {short_text(repr(recorded))} recorded, {short_text(repr(now))} now{hint}", ()


def _compare_texts(
    key: str, recorded: str, now: str, patterns: Sequence[Pattern], tolerance: float
) -> tuple[str, tuple[str, ...]]:
    ours, theirs = sanitise(recorded, patterns), sanitise(now, patterns)
    if ours == theirs:
        return "", left_aside(recorded, now, patterns)
    aside: tuple[str, ...] = ()
    if key == "text/html" and not looks_like_program(recorded) and not looks_like_program(now):
        aside = ("markup of HTML",)
        ours, theirs = html_text(ours), html_text(theirs)
        if ours == theirs:
            return "", aside
    numbers = compare_numbers(ours, theirs)
    if numbers is not None and tolerance and close(0.0, numbers.needed, tolerance):
        return "", (*aside, "numbers within the tolerance")
    name = _NAMES.get(key, key)
    if numbers is None:
        return f"{name} differs:\n{describe_texts(ours, theirs)}", ()
    hint = told_tolerance(numbers.needed)
    hint = f"; a tolerance of {hint} would pass" if hint else ""
    return f"{numbers}{hint}", ()


def _json_distance(recorded: Any, now: Any, patterns: Sequence[Pattern]) -> float:
    """The tolerance that two JSON values would need; infinite when more than numbers differs."""
    if isinstance(recorded, bool) or isinstance(now, bool) or recorded is None or now is None:
        return 0.0 if recorded is now else math.inf
    if isinstance(recorded, int | float) and isinstance(now, int | float):
        return distance(float(recorded), float(now))
    if isinstance(recorded, str) and isinstance(now, str):
        return 0.0 if sanitise(recorded, patterns) == sanitise(now, patterns) else math.inf
    if isinstance(recorded, list) and isinstance(now, list) and len(recorded) == len(now):
        pairs = list(zip(recorded, now, strict=True))
    elif isinstance(recorded, dict) and isinstance(now, dict) and recorded.keys() == now.keys():
        pairs = [(value, now[key]) for key, value in recorded.items()]
    else:
        return math.inf
    return max((_json_distance(one, other, patterns) for one, other in pairs), default=0.0)


def _describe_counts(ours: dict[str, list[Any]], theirs: dict[str, list[Any]]) -> str:
    """The first key of which there are more or fewer values than before."""
    for key in [*ours, *(key for key in theirs if key not in ours)]:
        before, after = len(ours.get(key, ())), len(theirs.get(key, ()))
        if before == after:
            continue
        name = _NAMES.get(key, "a picture" if key.startswith("image/") else key)
        if not after:
            return f"{name} is recorded and does not come now{_sample(key, ours[key][0])}"
        if not before:
            return f"{name} comes now and is not recorded{_sample(key, theirs[key][0])}"
        return f"{name}: {before} recorded, {after} now"
    return ""


def _sample(key: str, value: Any) -> str:
    if key in TYPES:
        return ""
    return f": {short_text(value if isinstance(value, str) else repr(value))}"
