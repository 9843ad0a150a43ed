"""The Markdown of a session notebook: what a person reads between the code cells.

The cells call it with text of any origin. It must not import events: it knows words, not what they are about.
Markdown as CommonMark 0.31 has it, with the mathematics of Jupyter's front-ends (dollar signs).
"""

from __future__ import annotations

import re

TITLE_CHARS = 80

_CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_MARKUP = re.compile(r"[\\<>&$_*\[\]~`|]")
_ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;", "$": "<span>&#36;</span>"}
_MATH = re.compile(r"\\(?=[()\[\]]|begin\b|end\b)")
"""Front-ends typeset the rendered text, so an entity alone does not hide a delimiter: an element must come between."""

_LIST_ITEM = re.compile(r"\s*(?:[-+*]|\d{1,9}[.)])\s")
_BULLET = re.compile(r"(\s*)([*+-])(\s)")
_BLOCK_START = re.compile(r"#{1,6}(?=\s|$)|(?:=+|-+|(?:-\s*){3,})$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_HEADING = re.compile(r"( {0,3})(#{1,6})(?=\s|$)")


def title_of(prompt: str) -> str:
    """A title from the first line of a prompt: its first sentence, at most 80 characters, markup made inert."""
    line = next((line.strip() for line in prompt.splitlines() if line.strip()), "Session")
    line = line.lstrip("#").strip() or "Session"
    sentence = re.match(r"(.{12,}?[^.\s]{3,}[!?]?)(?:(?<=[!?])|\.)(?:\s|$)", line)
    if sentence:
        line = sentence[1]
    if len(line) > TITLE_CHARS:
        line = line[:TITLE_CHARS].rsplit(" ", 1)[0].rstrip(" ,;:.") + "…"
    return escape_line(line)


def escape_line(line: str) -> str:
    """One line of plain text as Markdown that shows it as it is; code spans stay code."""
    pieces = []
    position = 0
    for match in _CODE_SPAN.finditer(line):
        pieces += [_escape(line[position : match.start()]), match[0]]
        position = match.end()
    return "".join([*pieces, _escape(line[position:])])


def _escape(text: str) -> str:
    pieces = (_MARKUP.sub(_escape_character, piece) for piece in _MATH.split(text))
    return "<span>&#92;</span>".join(pieces)


def _escape_character(match: re.Match[str]) -> str:
    return _ENTITIES.get(match[0], f"\\{match[0]}")


def quote(text: str) -> str:
    """A person's words as a block quote that shows them as they were typed.

    Lists, code spans and fenced code stay what they are and line breaks are kept; headings, HTML, mathematics and
    emphasis are shown as the characters that were typed.
    """
    lines = text.strip("\n").splitlines() or [""]
    quoted = []
    fence = ""
    for index, line in enumerate(lines):
        match = _FENCE.match(line)
        if fence:
            quoted.append(line)
            if match and match[1].startswith(fence) and not match[2].strip():
                fence = ""
            continue
        if match and "`" not in match[2]:
            fence = match[1]
            quoted.append(line)
            continue
        following = lines[index + 1] if index + 1 < len(lines) else ""
        continues = line.strip() and following.strip() and not _LIST_ITEM.match(following)
        quoted.append(_quoted_line(line) + ("  " if continues and not _FENCE.match(following) else ""))
    return "\n".join(f"> {line}".rstrip() if not line.endswith("  ") else f"> {line}" for line in quoted)


def _quoted_line(line: str) -> str:
    """A line as it was typed: bullets stay bullets, and what would start a heading, a rule or code does not."""
    if bullet := _BULLET.match(line):
        return bullet[0] + escape_line(line[bullet.end() :])
    text = line.lstrip(" ")
    indent = "&nbsp;" * (len(line) - len(text)) if line.startswith("    ") and not _LIST_ITEM.match(line) else ""
    return indent + ("\\" if _BLOCK_START.match(text) else "") + escape_line(text if indent else line)


def demote_headings(text: str, level: int = 3) -> str:
    """Markdown with its headings moved down, so that the highest is at ``level``; code blocks are left alone."""
    lines = text.split("\n")
    fence = ""
    headings: dict[int, int] = {}
    for index, line in enumerate(lines):
        match = _FENCE.match(line)
        if fence:
            if match and match[1].startswith(fence) and not match[2].strip():
                fence = ""
        elif match:
            fence = match[1]
        elif heading := _HEADING.match(line):
            headings[index] = len(heading[2])
    shift = max(level - min(headings.values(), default=level), 0)
    for index, old in headings.items():
        line = lines[index].lstrip()
        lines[index] = "#" * min(old + shift, 6) + line[old:]
    return "\n".join(lines)


def inline_code(text: str) -> str:
    """One line as a code span, whatever backticks it holds."""
    line = " ".join(text.split())
    runs = [len(run) for run in re.findall("`+", line)]
    ticks = "`" * next(length for length in range(1, len(runs) + 2) if length not in runs)
    return (
        f"{ticks} {line} {ticks}" if line.startswith("`") or line.endswith("`") or not line else f"{ticks}{line}{ticks}"
    )


def fenced(text: str, language: str = "text") -> str:
    """``text`` as a fenced code block with a fence that it cannot end."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(longest + 1, 3)
    return f"{fence}{language}\n{text.rstrip(chr(10))}\n{fence}"


def count(number: int, noun: str) -> str:
    """``1 turn``, ``12,345 tokens``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def noted(*figures: tuple[int | None, str]) -> str:
    """`` (800 cached, 20 written to the cache)``; what is unknown or zero is left out."""
    told = ", ".join(f"{number:,} {words}" for number, words in figures if number)
    return f" ({told})" if told else ""
