"""Changes of single values in the text of a JSON file; every other byte stays as it is.

``badge`` and ``repair`` use it on notebooks: parsing and dumping a whole file would change how numbers, escapes and
line lists are written. Pure; knows JSON and nothing of notebooks. Grammar: RFC 8259.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

_SPACE = re.compile(r"[ \t\r\n\ufeff]*")
_DECODER = json.JSONDecoder(strict=False)

Step = str | int


@dataclass(frozen=True, slots=True)
class Span:
    """Where a value stands in the text: from ``start`` up to but not including ``end``."""

    start: int
    end: int


def replace_value(text: str, path: Sequence[Step], value: Any) -> str:
    """The text with the value at ``path`` (keys and indexes) replaced; objects on the way that are missing are made.

    Raises:
        ValueError: if the text is not JSON, or the path leads through something that is no container.
    """
    span = Span(_skip(text, 0), len(text))
    for depth, step in enumerate(path):
        members = _members(text, span.start) if isinstance(step, str) else _elements(text, span.start)
        found = members.get(step)
        if found is None:
            if not isinstance(step, str):
                raise ValueError(f"there is no element {step}")
            for missing in reversed(list(path)[depth + 1 :]):
                value = {missing: value}
            return _add_member(text, span.start, members, step, value)
        span = found
    return text[: span.start] + _dumped(value, text, span.start) + text[span.end :]


def insert_element(text: str, path: Sequence[Step], index: int, value: Any) -> str:
    """The text with ``value`` put before element ``index`` of the array at ``path``."""
    start = _find(text, path).start
    elements = _elements(text, start)
    if index in elements:
        at = elements[index].start
        gap = text[_line_start(text, at) : at]
        between = _newline(text) + gap if not gap.strip() and "\n" in text[start:at] else " "
        return text[:at] + _dumped(value, text, at) + "," + between + text[at:]
    if elements:
        last = elements[max(elements)]
        between = text[_skip_back(text, elements[0].start) : elements[0].start]
        return text[: last.end] + "," + between + _dumped(value, text, last.start) + text[last.end :]
    return _fill(text, start, lambda indent: _dumped_at(value, text, indent))


def remove_element(text: str, path: Sequence[Step], index: int) -> str:
    """The text without element ``index`` of the array at ``path``."""
    elements = _elements(text, _find(text, path).start)
    span = elements[index]
    if index + 1 in elements:
        return text[: span.start] + text[elements[index + 1].start :]
    start = elements[index - 1].end if index else span.start
    return text[:start] + text[span.end :]


def _find(text: str, path: Sequence[Step]) -> Span:
    span = Span(_skip(text, 0), len(text))
    for step in path:
        members = _members(text, span.start) if isinstance(step, str) else _elements(text, span.start)
        if step not in members:
            raise ValueError(f"there is no {step!r}")
        span = members[step]
    return span


def _members(text: str, start: int) -> dict[Step, Span]:
    """The members of the object that starts at ``start``; of a repeated key the last, as for ``json.loads``."""
    if text[start : start + 1] != "{":
        raise ValueError("an object was expected")
    found: dict[Step, Span] = {}
    at = _skip(text, start + 1)
    while text[at] != "}":
        key, at = _DECODER.raw_decode(text, at)
        at = _skip(text, _skip(text, at) + 1)
        _, end = _DECODER.raw_decode(text, at)
        found[key] = Span(at, end)
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return found


def _elements(text: str, start: int) -> dict[Step, Span]:
    if text[start : start + 1] != "[":
        raise ValueError("an array was expected")
    found: dict[Step, Span] = {}
    at = _skip(text, start + 1)
    while text[at] != "]":
        _, end = _DECODER.raw_decode(text, at)
        found[len(found)] = Span(at, end)
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return found


def _add_member(text: str, start: int, members: dict[Step, Span], key: str, value: Any) -> str:
    if not members:
        return _fill(text, start, lambda indent: f"{json.dumps(key)}: {_dumped_at(value, text, indent)}")
    last = max(members.values(), key=lambda span: span.end)
    first = _skip(text, start + 1)
    between = text[start + 1 : first]
    indent = between.rpartition("\n")[2] if "\n" in between else None
    body = f"{json.dumps(key)}: {_dumped_at(value, text, indent)}"
    return text[: last.end] + "," + (between if "\n" in between else " ") + body + text[last.end :]


def _fill(text: str, start: int, body: Callable[[str | None], str]) -> str:
    """The text with the empty container at ``start`` filled with one thing."""
    closing = _skip(text, start + 1)
    if "\n" not in text.rstrip():
        return text[: start + 1] + body(None) + text[closing:]
    outer = re.match(r"[ \t]*", text[_line_start(text, start) :])
    margin = outer.group() if outer else ""
    inner = margin + _unit(text)
    newline = _newline(text)
    return text[: start + 1] + newline + inner + body(inner) + newline + margin + text[closing:]


def _dumped(value: Any, text: str, at: int) -> str:
    """``value`` as JSON that fits to the place ``at``: indented below its line, or in one line."""
    margin = re.match(r"[ \t]*", text[_line_start(text, at) :])
    return _dumped_at(value, text, margin.group() if margin and "\n" in text.rstrip() else None)


def _dumped_at(value: Any, text: str, indent: str | None) -> str:
    if indent is None:
        return json.dumps(value, ensure_ascii=False)
    return json.dumps(value, ensure_ascii=False, indent=_unit(text)).replace("\n", _newline(text) + indent)


def _unit(text: str) -> str:
    """One level of the text's indentation."""
    found = re.search(r"\n([ \t]+)", text)
    return found.group(1) if found else " "


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    assert match is not None
    return match.end()


def _skip_back(text: str, at: int) -> int:
    while at and text[at - 1] in " \t\r\n":
        at -= 1
    return at


def _line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1
