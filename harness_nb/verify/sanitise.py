r"""What may differ between two runs of the same code: times, durations, paths, addresses, process numbers, ids.

The patterns are written beside the notebook in nbval's own format (pairs of lines ``regex:`` and ``replace:``), so that
``pytest --nbval --nbval-sanitize-with FILE`` sees the same. A file that is there already is used as it is: a person may
have changed it. Pure. Source of the format: the documentation of nbval, "Sanitizing outputs".
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

SUFFIX = ".nbval-sanitize.cfg"
"""Follows the notebook's name without ``.ipynb``."""

_HEADER = """\
# What harness-nb verify leaves aside when it compares outputs, in nbval's format:
#     pytest --nbval --nbval-sanitize-with THIS_FILE NOTEBOOK
# The patterns are applied one after the other. Change them as you need: an existing file is used as it is.
"""

_SEAL = "# As harness-nb wrote it: "

_DURATION = r"(?:ns|us|\u00b5s|\u03bcs|ms|s|secs?|seconds?|mins?|minutes?|hours?)"
_NUMBER = r"\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?"


@dataclass(frozen=True, slots=True)
class Pattern:
    """One rule: what matches ``regex`` becomes ``replace``. ``what`` names the kind of thing for people."""

    what: str
    regex: str
    replace: str


DEFAULT = (
    Pattern("colours", r"\x1b\[[0-?]*[ -/]*[@-~]", ""),
    Pattern(
        "attributes of HTML",
        r"<(table|thead|tbody|tfoot|tr|td|th|div|span|style|p|pre|caption|col|colgroup|progress)\s[^<>]*>",
        r"<\1>",
    ),
    Pattern("ids of SVG", r"(\b(?:id|xlink:href|href)=\"#?|url\(#)[A-Za-z]+[0-9a-f]{8,}", r"\1ID"),
    Pattern("ids", r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b", "UUID"),
    Pattern("ids", r"\bT_[0-9a-f]{5}(?=[_\s\"{,]|$)", "T_ID"),
    Pattern("addresses", r"\b0x[0-9a-fA-F]{6,16}\b", "ADDRESS"),
    Pattern("times", r"\b\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:Z|[-+]\d{2}:?\d{2})?", "TIME"),
    Pattern(
        "times",
        r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? [A-Z0-9][a-z0-9]* +[A-Za-z0-9]+ [\d: ]+(?:[A-Z]+ )?(?:\d{4}\b)?",
        "TIME",
    ),
    Pattern("times", r"(?<![\w.])1[4-9]\d{8}\.\d{3,}\b", "TIME"),
    Pattern("progress", r"\[(?:\d+:)?\d+:\d+<(?:(?:\d+:)?\d+:\d+|\?),[^\]\r\n]*\]", "[PROGRESS]"),
    Pattern("progress", r"(\d+%)\|[^|\r\n]*\|", r"\1|BAR|"),
    Pattern("durations", r"\b\d+:\d{2}:\d{2}(?:\.\d+)?\b", "DURATION"),
    Pattern(
        "durations",
        rf"(?<![\w.,])(?:{_NUMBER} ?{_DURATION}\b(?:[ ,]+(?:and )?|(?= \u00b1)))*{_NUMBER} ?{_DURATION}(?![\w/])",
        "DURATION",
    ),
    Pattern(
        "durations", r"DURATION (?:\u00b1|\+-) DURATION per loop \(mean .*? of .*? runs?, .*? loops? each\)", "DURATION"
    ),
    Pattern(
        "speeds", rf"(?<![\w.,]){_NUMBER} ?((?:[kMG]?i?B|it|steps?|images?|samples?|rows?)/s(?:ec)?)(?!\w)", r"N \1"
    ),
    Pattern("process numbers", r"\bipykernel_\d+", "ipykernel_PID"),
    Pattern("process numbers", r"(?i)\b(pid|process(?: id)?)(\W{1,3})\d+\b", r"\1\2PID"),
    Pattern("paths", r"\btmp[a-z0-9_]{8}\b", "TMP"),
    Pattern("paths", r"(?<![\w/.:<])/(?:[\w.+@~-]+/)+", "PATH/"),
    Pattern("paths", r"\b[A-Z]:\\(?:[^\\\s:*?\"<>|]+\\)+", "PATH/"),
    Pattern("ports", r"\b(localhost|127\.0\.0\.1):\d+", r"\1:PORT"),
    Pattern("whether a file was there", r"(?m)^(?:Writing|Overwriting) (?=\S)", "Writing "),
)
"""In the order of their application."""


def sanitise(text: str, patterns: Sequence[Pattern]) -> str:
    """``text`` with every pattern applied, one after the other, as nbval does."""
    for pattern in patterns:
        text = re.sub(pattern.regex, pattern.replace, text)
    return text


def left_aside(one: str, other: str, patterns: Sequence[Pattern]) -> tuple[str, ...]:
    """What kinds of things made a difference between two texts that are equal when sanitised."""
    kinds: dict[str, None] = {}
    for pattern in patterns:
        found = [re.findall(pattern.regex, text) for text in (one, other)]
        matches = [[match.group() for match in re.finditer(pattern.regex, text)] for text in (one, other)]
        if matches[0] != matches[1] or found[0] != found[1]:
            kinds[pattern.what] = None
        one, other = (re.sub(pattern.regex, pattern.replace, text) for text in (one, other))
    return tuple(kinds)


def dump_patterns(patterns: Sequence[Pattern]) -> str:
    """The patterns in nbval's format. ASCII only: nbval reads the file in the encoding of the machine."""
    lines = []
    kind = ""
    for pattern in patterns:
        if pattern.what != kind:
            kind = pattern.what
            lines.append(f"\n# {kind}\n")
        lines.append(f"regex: {pattern.regex}\nreplace: {pattern.replace}\n")
    body = "".join(lines)
    return f"{_HEADER}{_SEAL}{_seal(body)}\n{body}"


def is_untouched(text: str) -> bool:
    """Whether the file is as some version of ``dump_patterns`` wrote it; such a file is replaced by today's."""
    head, found, rest = text.partition(_SEAL)
    seal, _, body = rest.partition("\n")
    return bool(found) and head == _HEADER and seal == _seal(body)


def _seal(body: str) -> str:
    return hashlib.sha256(body.encode("utf-8")).hexdigest()[:16]


def parse_patterns(text: str) -> tuple[Pattern, ...]:
    """The patterns of a file in nbval's format; the comment above a pair says what it is.

    Raises:
        ValueError: if a regular expression does not compile; the text names it.
    """
    found: list[Pattern] = []
    comment = "what its sanitise file says"
    regex: str | None = None
    for line in text.splitlines():
        if line.startswith("# "):
            comment = line[2:].strip() or comment
        elif line.startswith("regex: "):
            regex = line.removeprefix("regex: ")
        elif line.startswith("replace: ") and regex is not None:
            found.append(_checked(Pattern(comment, regex, line.removeprefix("replace: "))))
            regex = None
        else:
            regex = None
    return tuple(found)


def _checked(pattern: Pattern) -> Pattern:
    try:
        re.sub(pattern.regex, pattern.replace, "")
        re.compile(pattern.regex).sub(pattern.replace, "")
    except re.error as error:
        raise ValueError(f"the pattern {pattern.regex!r} of the sanitise file is wrong: {error}") from None
    return pattern
