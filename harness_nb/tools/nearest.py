"""What ``search_replace`` says when its search text is not in the file, or stands there more than once.

A model that gets "no match" guesses again; one that gets the true lines with their numbers, and what its text would
have needed, corrects itself in one step. Pure; standard library only; runs in the tool kernel.
"""

from __future__ import annotations

import difflib
import re

from harness_nb.tools.workspace import counted

CANDIDATES = 30
FILE_LINES = 50_000
SHOWN_LINES = 25
SHOWN_MATCHES = 5
NAMED_MATCHES = 20
SHOWN_CHARACTERS = 500
TELLING_CHARACTERS = 10
TELLING_LINES = 2

_NUMBER = re.compile(r"^ *\d+\t", re.M)
_BLANKS = {" ": "space", "\t": "tab"}


def describe_matches(text: str, search: str) -> str:
    """Where several matches are: the first lines with their numbers, then the numbers of more."""
    lines = text.split("\n")
    numbers: dict[int, None] = {}
    at = text.find(search)
    line = position = 0
    while at >= 0:
        line += text.count("\n", position, at)
        position = at
        numbers[line] = None
        at = text.find(search, at + len(search))
    found = list(numbers)
    rows = [numbered_line(lines, number) for number in found[:SHOWN_MATCHES]]
    more = [str(number + 1) for number in found[SHOWN_MATCHES : SHOWN_MATCHES + NAMED_MATCHES]]
    if more:
        end = ", …" if len(found) > SHOWN_MATCHES + NAMED_MATCHES else ""
        rows.append(f"      \t… and in {'line' if len(more) == 1 else 'lines'} {', '.join(more)}{end}")
    where = "All of them begin in this line" if len(found) == 1 else "They begin in these lines"
    return "\n".join([f"Add text around it so that it matches once. {where}:", *rows])


def describe_nearest(text: str, search: str, replace: str) -> str:
    """The nearest lines of ``text``, numbered, and what differs; or that the edit seems to have been made."""
    unnumbered = _NUMBER.sub("", search)
    if unnumbered != search and unnumbered.strip("\n") in text:
        return "It holds the line numbers that read_file prints; leave out each number and the tab behind it."
    lines, wanted = text.split("\n"), search.strip("\r\n").split("\n")
    if len(lines) > FILE_LINES or not any(line.strip() for line in wanted):
        return "Read the file again and copy the text exactly."
    found = _same_but_for_white_space(lines, wanted)
    if found is not None:
        reason = _white_space_reason(lines[found : found + len(wanted)], wanted, search)
        differ = (
            f"Line {found + 1} differs" if len(wanted) == 1 else f"Lines {found + 1} to {found + len(wanted)} differ"
        )
        return f"{differ} only in {reason}:\n{_numbered(lines, found, len(wanted))}"
    found = _most_like(lines, wanted)
    made = _already_there(text, search, replace, found, len(wanted))
    if made is not None:
        rows = _numbered(lines, made, replace.strip("\n").count("\n") + 1)
        return f"The text to put there is in the file already, so this edit may have been made before:\n{rows}"
    if found is None:
        return "Nothing in the file is like it; read the file again."
    return f"The nearest lines are:\n{_numbered(lines, found, len(wanted))}{_same_until(lines[found:], wanted)}"


def _same_until(lines: list[str], wanted: list[str]) -> str:
    """Where the search text first differs from the lines that are most like it; empty where that is soon seen."""
    same = next((number for number, (line, search) in enumerate(zip(lines, wanted, strict=False)) if line != search), 0)
    if same < TELLING_LINES:
        return ""
    return (
        f"\nThe first {same} lines are the same; then your search text has\n      \t{wanted[same][:SHOWN_CHARACTERS]}"
    )


def _already_there(text: str, search: str, replace: str, nearest: int | None, size: int) -> int | None:
    """The index of the line where the replacement stands, if it tells that this edit has been made.

    It does when it stands where the search text would be looked for, and is not a part of the search text itself.
    """
    if not replace.strip() or replace in search or text.count(replace) != 1:
        return None
    start = text.index(replace) + len(replace) - len(replace.lstrip("\n"))
    line = text.count("\n", 0, start)
    if nearest is None:
        return line if len(replace.strip()) >= TELLING_CHARACTERS else None
    last = line + replace.strip("\n").count("\n")
    return line if line < nearest + size and last >= nearest else None


def _same_but_for_white_space(lines: list[str], wanted: list[str]) -> int | None:
    """The index where ``wanted`` stands when all white space counts alike, or ``None``."""
    plain, target = [_squeezed(line) for line in lines], [_squeezed(line) for line in wanted]
    size = len(target)
    starts = (i for i in range(len(plain) - size + 1) if plain[i] == target[0])
    return next((i for i in starts if plain[i : i + size] == target), None)


def _squeezed(line: str) -> str:
    return "".join(line.split())


def _white_space_reason(there: list[str], wanted: list[str], search: str) -> str:
    """What differs, and what the search text would need; the first line that differs is the example."""
    pairs = [(have.rstrip("\r"), want.rstrip("\r")) for have, want in zip(there, wanted)]  # noqa: B905 - Python 3.9
    if all(have == want for have, want in pairs):
        return "the line ends before or behind it" if search != search.strip("\n") else "the kind of line end"
    if all(have.rstrip() == want.rstrip() for have, want in pairs):
        whose, have, want = _first_difference([(_tail(have), _tail(want)) for have, want in pairs])
        return f"white space at the end of a line: {whose} ends in {_blank(want)}, the file's in {_blank(have)}"
    if all(have.strip() == want.strip() for have, want in pairs):
        whose, have, want = _first_difference([(_margin(have), _margin(want)) for have, want in pairs])
        theirs = str(len(have)) if set(have + want) == {" "} and have and want else _blank(have)
        return f"indentation: {whose} is indented by {_blank(want)}, the file's by {theirs}"
    return "white space within a line"


def _first_difference(pairs: list[tuple[str, str]]) -> tuple[str, str, str]:
    index = next(i for i, (have, want) in enumerate(pairs) if have != want)
    whose = "your text" if len(pairs) == 1 else "your first line" if index == 0 else f"line {index + 1} of yours"
    return (whose, *pairs[index])


def _margin(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _tail(line: str) -> str:
    return line[len(line.rstrip()) :]


def _blank(text: str) -> str:
    """White space in words: ``4 spaces``, ``1 tab and 2 spaces``, ``nothing``."""
    parts = [counted(text.count(blank), name) for blank, name in _BLANKS.items() if blank in text]
    return " and ".join(reversed(parts)) or "nothing"


def _most_like(lines: list[str], wanted: list[str]) -> int | None:
    """The start of the window that is most like ``wanted``; ``None`` when nothing is half alike."""
    words = [set(line.split()) for line in lines]
    target = [set(line.split()) for line in wanted]
    size, goal = len(target), "\n".join(line.strip() for line in wanted)
    shared = [
        (sum(len(have & want) for have, want in zip(words[i:], target)), -i)  # noqa: B905 - Python 3.9
        for i in range(max(1, len(lines) - size + 1))
    ]
    candidates = [-position for score, position in sorted(shared, reverse=True)[:CANDIDATES] if score]
    if not candidates:
        candidates = list(range(min(len(shared), CANDIDATES)))
    scored = [(_likeness(lines[i : i + size], goal), -i) for i in candidates]
    best, position = max(scored, default=(0.0, 0))
    return -position if best >= 0.5 else None


def _likeness(window: list[str], goal: str) -> float:
    have = "\n".join(line.strip() for line in window)
    return difflib.SequenceMatcher(None, have[:4000], goal[:4000], autojunk=False).ratio()


def _numbered(lines: list[str], start: int, count: int) -> str:
    stop = min(len(lines), start + count)
    rows = [numbered_line(lines, number) for number in range(start, min(stop, start + SHOWN_LINES))]
    if stop > start + SHOWN_LINES:
        rows.append(f"      \t… {counted(stop - start - SHOWN_LINES, 'more line')}")
    return "\n".join(rows)


def numbered_line(lines: list[str], index: int) -> str:
    """A line as ``read_file`` shows it, cut at 500 characters."""
    line = lines[index].rstrip("\r")
    return f"{index + 1:6d}\t{line if len(line) <= SHOWN_CHARACTERS else line[:SHOWN_CHARACTERS] + '…'}"
