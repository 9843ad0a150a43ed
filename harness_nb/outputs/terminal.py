"""A terminal small enough to be pure: turns raw stream text into the lines that a person would see.

The firewall feeds it the text of one stream in whatever pieces the kernel sent, and the pieces do not matter: any
chunking gives the same lines. Carriage returns, backspaces and cursor movements edit the last rows, colours are
kept in a canonical form, everything else that a terminal would swallow is swallowed here. It imports nothing of ours.

Escape sequences follow ECMA-48 (CSI, OSC, DCS), colours its SGR section with xterm's 256-colour and RGB extension.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import groupby
from operator import itemgetter

WINDOW = 40
"""How many of the last rows can still be edited by cursor movements; earlier ones are settled."""

WIDTH = 4096
"""Characters of a row; a longer line is settled in pieces of this size, so that memory stays bounded."""

_CONTROL = r"\x00-\x08\x0a-\x1f\x7f-\x9f\ud800-\udfff"
_SPECIAL = re.compile(rf"[{_CONTROL}]")
_SPECIAL_BUT_NEWLINE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_ESCAPE = (
    r"\x1b\[(?P<params>[0-?]{0,64})[ -/]{0,8}(?P<final>[@-~])"  # CSI
    r"|\x1b\][^\x07\x1b\n]{0,2000}(?:\x07|\x1b\\)"  # OSC: titles, hyperlinks
    r"|\x1b[PX^_][^\x1b\n]{0,2000}\x1b\\"  # DCS, SOS, PM, APC
    r"|\x1b[ -/]{1,4}[0-~]"  # character sets
    r"|\x1b[0-OQ-WYZ\\`-~]"  # two-character escapes
)
_TOKEN = re.compile(rf"(?P<text>[^{_CONTROL}]+)|{_ESCAPE}|(?P<control>[{_CONTROL}])")
_PARTIAL = re.compile(
    r"\x1b(?:\[[0-?]{0,64}[ -/]{0,8}|\][^\x07\x1b\n]{0,2000}\x1b?|[PX^_][^\x1b\n]{0,2000}\x1b?|[ -/]{0,4})?"
)
_SWALLOWED = "\x07\x0b\x0c\x1b"
_SGR = re.compile(r"\x1b\[[\d;]*m")

_SLOTS = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "inverse", 9: "strike", 21: "underline"}
_RESETS = {22: ("bold", "dim"), 23: ("italic",), 24: ("underline",), 27: ("inverse",), 29: ("strike",)}
_RESETS |= {39: ("foreground",), 49: ("background",)}


def strip_colors(text: str) -> str:
    """``text`` without the colour sequences that a ``Terminal`` leaves in."""
    return _SGR.sub("", text) if "\x1b" in text else text


@lru_cache(maxsize=1024)
def restyle(style: str, params: str) -> str:
    """The style, as canonical SGR parameters (empty: plain), after ``params`` were applied to ``style``."""
    slots: dict[str, str] = {}
    for codes in (style, params) if style else (params,):
        numbers = [int(code) if code.isdecimal() else 0 for code in re.split("[;:]", codes)]
        while numbers:
            code = numbers.pop(0)
            if code == 0:
                slots.clear()
            elif code in (38, 48, 58):
                length = {5: 2, 2: 4}.get(numbers[0] if numbers else 0, 0)
                color, numbers = numbers[:length], numbers[length:]
                if length and len(color) == length and code != 58:
                    slots["foreground" if code == 38 else "background"] = ";".join(map(str, (code, *color)))
            elif 30 <= code <= 37 or 90 <= code <= 97:
                slots["foreground"] = str(code)
            elif 40 <= code <= 47 or 100 <= code <= 107:
                slots["background"] = str(code)
            elif code in _SLOTS:
                slots[_SLOTS[code]] = str(code)
            for slot in _RESETS.get(code, ()):
                slots.pop(slot, None)
    return ";".join(slots[slot] for slot in sorted(slots))


class _Row:
    """One editable row: its characters, and a style for each once any has one."""

    __slots__ = ("chars", "edited", "styles", "wrapped")

    def __init__(self) -> None:
        self.chars = ""
        self.styles: list[str] | None = None
        self.edited = False
        self.wrapped = False

    @property
    def used(self) -> bool:
        """Whether anything was written here, even if it was erased again."""
        return self.edited or bool(self.chars)

    def write(self, column: int, text: str, style: str) -> None:
        """Put ``text`` at ``column``, over what is there."""
        if column > len(self.chars):
            self._resize(column)
        if style and self.styles is None:
            self.styles = [""] * len(self.chars)
        if self.styles is not None:
            self.styles[column : column + len(text)] = [style] * len(text)
        if column < len(self.chars):
            self.edited = True
        self.chars = self.chars[:column] + text + self.chars[column + len(text) :]

    def erase(self, start: int, end: int | None) -> None:
        """Blank the columns from ``start`` to ``end``, or cut the row at ``start``."""
        self.edited = True
        if end is None:
            self._resize(min(start, len(self.chars)))
        else:
            self.write(start, " " * min(end - start, max(len(self.chars) - start, 0)), "")

    def _resize(self, length: int) -> None:
        self.chars = self.chars[:length].ljust(length)
        if self.styles is not None:
            self.styles = (self.styles + [""] * length)[:length]

    def render(self) -> str:
        """The row as text in which each coloured span is self-contained."""
        text = self.chars
        if self.styles is not None:
            pairs = zip(self.styles, text, strict=True)
            spans = ((style, "".join(char for _, char in group)) for style, group in groupby(pairs, itemgetter(0)))
            text = "".join(f"\x1b[{style}m{span}\x1b[0m" if style else span for style, span in spans)
        return text.rstrip(" ") if self.edited and not self.wrapped else text


class Terminal:
    """The last rows of one stream, edited as a terminal would.

    ``feed`` returns the text that has settled: rows that left the window, each with its newline. ``text`` is the
    window that can still change. What settled, joined, plus ``text`` is all that was printed.
    """

    def __init__(self) -> None:
        self._rows = [_Row()]
        self._row = 0
        self._column = 0
        self._style = ""
        self._held = ""
        self._settled: list[str] = []

    @property
    def text(self) -> str:
        """The rows that can still change; colours are the only escape sequences in it."""
        return self._join(self._rows[:-1]) + self._rows[-1].render()

    @property
    def returned(self) -> bool:
        """Whether the cursor stands at the start of a row that has been written to: the next text replaces it."""
        return self._column == 0 and self._rows[self._row].used

    @property
    def open(self) -> bool:
        """Whether a row is unfinished: it was written to and has no newline yet, or the cursor was moved up to it."""
        return self._rows[self._row].used or self._row < len(self._rows) - 1

    def feed(self, text: str) -> str:
        """Take the next piece of the stream; return what settled by it."""
        text, self._held = self._held + text, ""
        settled = self._feed_plain(text)
        if settled is not None:
            return settled
        for match in _TOKEN.finditer(text):
            if (run := match["text"]) is not None:
                self._put(run)
            elif (control := match["control"]) is None:
                if match["final"]:
                    self._command(match["params"], match["final"])
            elif control == "\x1b" and _PARTIAL.fullmatch(text, match.start()):
                self._held = text[match.start() :]
                break
            else:
                self._control(control)
        settled, self._settled = "".join(self._settled), []
        return settled

    def settle(self) -> str:
        """Settle all finished rows: another output follows. An unfinished row stays open to a carriage return."""
        return self._settle(self._row) if self._row == len(self._rows) - 1 else ""

    def _feed_plain(self, text: str) -> str | None:
        """The short way for lines without control characters; ``None`` when it cannot be taken."""
        row = self._rows[-1]
        at_end = self._row == len(self._rows) - 1 and self._column == len(row.chars) and not self._style
        if not at_end or "\n" not in text or _SPECIAL_BUT_NEWLINE.search(text):
            return None
        first, *rest = text.rsplit("\n", WINDOW)
        if max(map(len, rest)) > WIDTH:
            return None
        settled = ""
        if len(rest) == WINDOW:
            settled = f"{self.text}{first}\n"
            self._rows = []
        elif len(row.chars) + len(first) > WIDTH:
            return None
        else:
            row.write(len(row.chars), first, "")
        for line in rest:
            row = _Row()
            row.chars = line
            self._rows.append(row)
        self._row, self._column = len(self._rows) - 1, len(rest[-1])
        return settled + self._settle(len(self._rows) - WINDOW)

    def _put(self, text: str) -> None:
        position = 0
        while position < len(text):
            if self._column >= WIDTH:
                self._rows[self._row].wrapped = True
                self._down()
                self._column = 0
            piece = text[position : position + WIDTH - self._column]
            self._rows[self._row].write(self._column, piece, self._style)
            self._column += len(piece)
            position += len(piece)

    def _control(self, control: str) -> None:
        if control == "\n":
            self._down()
            self._column = 0
        elif control == "\r":
            self._column = 0
        elif control == "\b":
            self._column = max(self._column - 1, 0)
        elif control not in _SWALLOWED:
            self._put("\N{REPLACEMENT CHARACTER}")

    def _down(self) -> None:
        self._row += 1
        if self._row == len(self._rows):
            self._rows.append(_Row())
            self._settled.append(self._settle(len(self._rows) - WINDOW))

    def _command(self, params: str, final: str) -> None:
        if final == "m":
            if not params.startswith(("<", "=", ">", "?")):
                self._style = restyle(self._style, params)
            return
        first = params.split(";")[0]
        number = int(first) if first.isdecimal() else 0
        row = self._rows[self._row]
        match final:
            case "A":
                self._row = max(self._row - max(number, 1), 0)
            case "B":
                self._row = min(self._row + max(number, 1), len(self._rows) - 1)
            case "C":
                self._column = min(self._column + max(number, 1), WIDTH)
            case "D":
                self._column = max(self._column - max(number, 1), 0)
            case "G":
                self._column = min(max(number, 1) - 1, WIDTH)
            case "K" if number == 1:
                row.erase(0, self._column + 1)
            case "K":
                row.erase(self._column if number == 0 else 0, None)
            case "J" if number == 0:
                row.erase(self._column, None)
                del self._rows[self._row + 1 :]
            case "J" if number in (2, 3):
                self._rows, self._row, self._column = [_Row()], 0, 0

    def _settle(self, count: int) -> str:
        if count <= 0:
            return ""
        settled, self._rows = self._rows[:count], self._rows[count:]
        self._row = max(self._row - count, 0)
        return self._join(settled)

    @staticmethod
    def _join(rows: list[_Row]) -> str:
        return "".join(row.render() + ("" if row.wrapped else "\n") for row in rows)


def clean_text(text: str, *, colors: bool = False) -> str:
    """``text`` as a terminal would have left it on paper.

    Carriage returns, backspaces and cursor movements are carried out, surrogates, NUL and other control characters
    become U+FFFD. Escape sequences are removed; with ``colors`` the SGR ones stay, in a canonical form.
    """
    terminal = Terminal()
    result = terminal.feed(text) + terminal.text
    return result if colors else strip_colors(result)
