"""Progress bars in text: tqdm, Keras, rich, and plain ones of ``#`` or ``=``. Pure; ``reader`` calls ``find_bar``.

A bar gives where the work is and how fast; the text around it may hold metrics (``loss=0.3``) and is handed back. It
imports nothing of ours. Forms are those of tqdm 4.67 (``format_meter``), Keras 2 and 3 (``Progbar``), rich 14
(``BarColumn``) and progressbar2 4.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_COUNT = r"(?<![\w.])(?P<done>\d[\d.]*)(?P<done_unit>[kMGT]?)(?:i?B)?"
_OF = rf"{_COUNT}\s?/\s?(?P<total>\d[\d.]*)(?P<total_unit>[kMGT]?)(?:i?B)?"
_PERCENT = r"(?<![\w.])(?P<percent>\d{1,3}(?:\.\d+)?)\s?%"
_CLOCK = r"(?:\d{1,5} days?, )?\d{0,5}:?\d{1,5}:\d\d"
_FILL = r"[#=>█▉▊▋▌▍▎▏▓▒░■□●○━╸╺─.\- ]"
_DONE_FILL = r"[#=>█▓■●━]"

_TQDM = re.compile(
    rf"(?P<head>.*?)(?:{_PERCENT}\|(?P<fill>[^|]*)\|\s*)?(?:{_OF}|{_COUNT.replace('done', 'only')}(?P<unit>[A-Za-z]+))"
    rf"\s\[(?P<elapsed>{_CLOCK})(?:<(?P<left>{_CLOCK}|\?))?,?\s*(?P<rate>[\d.]{{1,15}}|\?)?\s?(?P<rate_unit>[^\s,\]]*)"
    r"(?:, (?P<tail>[^\]]*))?\](?P<rest>.*)",
    re.S,
)
_KERAS = re.compile(rf"(?P<head>)\s*{_OF}\s+(?:\[(?:=*>?[.=]*)\]|[━╸╺]+)(?P<rest>.*)", re.S)
_BRACKETED = re.compile(
    rf"(?P<head>.*?)(?:{_PERCENT}\s*(?:\(\d+ of \d+\)\s*)?)?[\[|](?P<fill>{_FILL}{{5,}})[\]|]\s*"
    rf"(?:{_PERCENT.replace('percent', 'after')}|{_OF})?(?P<rest>.*)",
    re.S,
)
_RICH = re.compile(rf"(?P<head>.*?)(?<![━╸╺])(?P<fill>[━╸╺]{{5,}}\s*)\s(?:{_PERCENT}|{_OF})(?P<rest>.*)", re.S)
_SIGNS = ("%|", "\u2501\u2501", "\u2588\u2588", "==", "##", "     ", ".....", "[0", "it/s", "s/it", "=>")
"""No line without one of these has a bar."""

_ETA = re.compile(rf"\b(?:ETA|eta)\b:?\s*(?:(?P<clock>{_CLOCK})|(?P<seconds>\d{{1,9}})s)")
_KERAS_TIME = re.compile(r"^\s*-?\s*(?P<seconds>\d{1,9})s(?:\s+\d+[mu]?s/step)?")
_MOST_DIGITS = 15

LONGEST = 500
"""Characters of the longest line that can be a bar; terminals are narrower."""

_SCALE = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


class Bar(NamedTuple):
    """A state of a progress bar. ``fraction`` is from 0 to 1; ``left`` is in seconds, ``rate`` in ``unit`` a second.

    ``text`` is what stands around it: a description, of which ``name`` is what comes before the bar, and metrics.
    """

    text: str
    name: str = ""
    done: float | None = None
    total: float | None = None
    fraction: float | None = None
    left: float | None = None
    rate: float | None = None
    unit: str = ""


def find_bar(line: str) -> Bar | None:
    """The progress bar in ``line``, if there is one."""
    if len(line) > LONGEST or not any(sign in line for sign in _SIGNS):
        return None
    if match := _TQDM.match(line):
        return _tqdm(match)
    if match := _KERAS.match(line):
        return _keras(match)
    if (match := _RICH.match(line)) or ((match := _BRACKETED.match(line)) and _is_bar(match)):
        found = match.groupdict()
        left = _eta(found["rest"])
        if "after" not in found and (clocks := re.findall(_CLOCK, found["rest"])):
            left = clock_seconds(clocks[-1])
        return _bar(found, _number(found, "done"), _number(found, "total"), left)
    return None


def _tqdm(match: re.Match[str]) -> Bar:
    found = match.groupdict()
    rate, unit = found["rate"], found["rate_unit"] or ""
    speed = float(rate) if rate and rate.strip(".").replace(".", "", 1).isdecimal() else None
    if unit.startswith("s/"):
        speed, unit = (1 / speed if speed else None), unit[2:]
    unit = unit.removesuffix("/s")
    done = _number(found, "done") if found["total"] else _number(found, "only")
    left = clock_seconds(found["left"] or "")
    found["rest"] = f" {found['tail'] or ''} {found['rest']}"
    return _bar(found, done, _number(found, "total"), left, speed, unit or found["unit"] or "")


def _keras(match: re.Match[str]) -> Bar:
    found = match.groupdict()
    left = _eta(found["rest"])
    if time := _KERAS_TIME.match(found["rest"]):
        done, total = _number(found, "done"), _number(found, "total")
        if left is None and done != total and "[" not in match.group():
            left = float(time["seconds"])
        found["rest"] = found["rest"][time.end() :]
    return _bar(found, _number(found, "done"), _number(found, "total"), left, None, "step")


def _bar(
    found: dict[str, str | None],
    done: float | None,
    total: float | None,
    left: float | None,
    rate: float | None = None,
    unit: str = "",
) -> Bar:
    percent = found.get("percent") or found.get("after")
    fraction = done / total if done is not None and total else float(percent) / 100 if percent else None
    text = f"{(found['head'] or '').strip()} {_ETA.sub('', found['rest'] or '').strip()}".strip()
    name = (found["head"] or "").strip(" :-")
    return Bar(text, name, done, total, None if fraction is None else min(fraction, 1.0), left, rate, unit)


def _is_bar(match: re.Match[str]) -> bool:
    """Whether there is a number to the bar, and something that fills it (nothing yet at the very start)."""
    number = match["percent"] or match["after"] or match["done"]
    filled = re.match(rf"\s?{_DONE_FILL}", match["fill"])
    return bool(number and (filled or float(number) == 0))


def _number(found: dict[str, str | None], name: str) -> float | None:
    text = found.get(name)
    if not text or len(text) > _MOST_DIGITS or not text.replace(".", "", 1).isdecimal():
        return None
    return float(text) * _SCALE[found.get(f"{name}_unit") or ""]


def _eta(text: str | None) -> float | None:
    match = _ETA.search(text or "")
    if match is None:
        return None
    return float(match["seconds"]) if match["seconds"] else clock_seconds(match["clock"])


def clock_seconds(text: str) -> float | None:
    """``01:02:03`` or ``02:03`` in seconds; ``None`` for anything else."""
    days, _, clock = text.rpartition(", ")
    parts = clock.split(":")
    if len(parts) < 2 or not all(part.isdecimal() for part in parts):
        return None
    seconds = 0.0
    for part in parts:
        seconds = 60 * seconds + float(part)
    return seconds + 86_400 * float(days.split()[0]) if days else seconds
