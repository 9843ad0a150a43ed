"""A model's Markdown, made safe to show in a notebook. Pure; the screen uses it.

A notebook that runs trusts its own outputs: HTML in a Markdown output is live, scripts included, and a remote picture
is fetched as soon as it is shown. A model may repeat what it has read in a file or on a page, so neither may get
through, whatever a front-end's reader of Markdown makes of a tricky text.
"""

from __future__ import annotations

import re

WORD_JOINER = "\u2060"
"""Invisible, and enough to make ``<`` begin no tag, inside code as well as outside."""

PIECE_LENGTH = 3000
"""Characters after which a long text may be parted: a front-end renders a display anew whenever it grows."""

_FENCE_LIKE = re.compile(r"[\s>*+\-\d.)]*(?:`{3}|~{3})")
_OPENING = re.compile(r"(`{3,}|~{3,})[^`]*")
_TAG = re.compile(r"<(?=[A-Za-z/!?])(?!https?://[^\s<>\"']*>)")
_PICTURE = re.compile(r"!(?=\[)(?!\[[^\[\]]*\]\([\w.-][\w./%-]*\))")


def inert_markdown(text: str) -> str:
    """``text`` with no live HTML and no picture but those with a relative path.

    Code in fences stays as it is, to be copied, where all fences of the text stand at the margin and leave no doubt
    about where they begin and end. A fence that is still open at the end is closed.
    """
    lines = text.split("\n")
    code, fence = _code_lines(lines)
    shown = [line if number in code else _inert(line) for number, line in enumerate(lines)]
    return "\n".join([*shown, fence] if fence else shown)


def _inert(line: str) -> str:
    return _PICTURE.sub("", _TAG.sub("<" + WORD_JOINER, line))


def _code_lines(lines: list[str]) -> tuple[set[int], str]:
    """The numbers of the lines that are certainly code, and the fence that is open at the end."""
    code: set[int] = set()
    fence = ""
    for number, line in enumerate(lines):
        if not _FENCE_LIKE.match(line):
            if fence:
                code.add(number)
        elif fence and line == fence:
            fence = ""
        elif not fence and (match := _OPENING.fullmatch(line)):
            fence = match[1]
        elif fence and set(line) == {"`", "~"} - {fence[0]}:
            code.add(number)
        else:
            return set(), ""
    return code, fence


def pieces(text: str) -> list[str]:
    """A long text in pieces that look the same when they are shown one below the other.

    They part only at a blank line before a heading or a paragraph, outside of fences and formulas, and where they part
    does not change when text is added at the end.
    """
    parted: list[str] = []
    piece: list[str] = []
    fence, formula, length = "", False, 0
    for line in text.split("\n"):
        may_part = length >= PIECE_LENGTH and not fence and not formula and not piece[-1].strip()
        if may_part and (line[:1].isalpha() or line[:1] == "#"):
            parted.append("\n".join(piece))
            piece, length = [], 0
        piece.append(line)
        length += len(line) + 1
        fence = _fence_after(line.strip(), fence)
        formula ^= line.count("$$") % 2 == 1
    return [*parted, "\n".join(piece)]


def _fence_after(line: str, fence: str) -> str:
    """The fence that is open behind a line, if ``fence`` was before it."""
    if fence:
        return "" if line.startswith(fence) and set(line) == {fence[0]} else fence
    match = _OPENING.match(line)
    return match[1] if match else ""
