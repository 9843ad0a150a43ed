"""Bounds of what a cell shows and a model reads, and the cutting of text to head and tail with exact counts.

The firewall and ``result_content`` call it; anything else that shows the model or a person a text of unknown length may
call ``head_and_tail``. It imports nothing of ours but the terminal's text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from harness_nb.outputs.terminal import strip_colors

_SGR_AT = re.compile(r"\x1b\[[\d;]*m")


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much is kept. Lengths are in characters unless the name says otherwise.

    ``cell_chars`` and ``cell_lines`` bound the text of one cell, ``model_chars`` the text that the model gets; the 400
    lines and 15,000 characters that ``read_file`` prints at most by default, and its remark, are within all of them.
    ``html_chars`` bounds one HTML output, ``data_chars`` any other rich one, ``image_chars`` an image in base64.
    ``outputs`` and ``images`` are how many of them a cell keeps, half from its start and half from its end.
    The model gets ``model_images`` images at most, ``model_image_pixels`` on the long side, ``model_image_bytes`` each.
    ``screen_interval`` and ``lasting_interval`` are seconds between two states of an output that keeps changing; large
    states come less often, at ``screen_rate`` and ``lasting_rate`` characters a second at most.

    The plot that is derived from metrics comes ``derived_delay`` seconds after the cell began at the earliest, then
    every ``derived_interval`` seconds at most, and takes no more than ``derived_share`` of the time; every
    ``derived_lasting_interval`` seconds it is recorded, too.
    """

    cell_chars: int = 64_000
    cell_lines: int = 420
    model_chars: int = 16_000
    html_chars: int = 200_000
    data_chars: int = 2_000_000
    image_chars: int = 4_000_000
    outputs: int = 60
    images: int = 20
    model_images: int = 4
    model_image_pixels: int = 1024
    model_image_bytes: int = 1_000_000
    screen_interval: float = 0.1
    screen_rate: float = 1_000_000
    lasting_interval: float = 5.0
    lasting_rate: float = 8_000
    derived_delay: float = 2.0
    derived_interval: float = 5.0
    derived_share: float = 0.02
    derived_lasting_interval: float = 120.0

    @property
    def kept_chars(self) -> int:
        """Characters to keep of the head and of the tail of one output, so that every view can be cut from them."""
        return max(self.cell_chars, self.model_chars) // 2 + 1000


DEFAULT_BOUNDS = Bounds()


@dataclass(frozen=True, slots=True)
class Amount:
    """How much text there is, or was left out: exact numbers of the text without colours; bytes in UTF-8."""

    lines: int = 0
    chars: int = 0
    bytes: int = 0
    images: int = 0
    outputs: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(
            self.lines + other.lines,
            self.chars + other.chars,
            self.bytes + other.bytes,
            self.images + other.images,
            self.outputs + other.outputs,
        )

    def __bool__(self) -> bool:
        return bool(self.chars or self.images or self.outputs)


def measure(text: str) -> Amount:
    """The amount of ``text``, which may hold colours. Lines are counted by their newlines."""
    plain = strip_colors(text)
    return Amount(lines=plain.count("\n"), chars=len(plain), bytes=len(plain.encode(errors="replace")))


def format_bytes(count: int) -> str:
    """``count`` bytes for people: ``812 B``, ``1.2 KB``, ``3.4 MB`` (decimal units)."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("KB", 10**3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"


def format_seconds(seconds: float) -> str:
    """A duration for people: ``0.4 s``, ``42 s``, ``3 min 20 s``, ``2 h 5 min``."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    if whole < 7200:
        return f"{whole // 60} min {whole % 60} s" if whole % 60 else f"{whole // 60} min"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def describe_amount(amount: Amount) -> str:
    """``12,345 lines (1.2 MB) and 3 images``: what was left out, in words."""
    parts = []
    if amount.lines > 1:
        parts.append(f"{amount.lines:,} lines ({format_bytes(amount.bytes)})")
    elif amount.chars:
        parts.append(f"{amount.chars:,} character{'s' if amount.chars > 1 else ''}")
    if amount.images:
        parts.append(f"{amount.images:,} image{'s' if amount.images > 1 else ''}")
    return " and ".join(parts) or f"{amount.outputs:,} output{'s' if amount.outputs > 1 else ''}"


def describe_gap(amount: Amount, path: str | None = None) -> str:
    """The sentence that stands where text was left out of a cell. (What the model gets has its own, see ``joined``.)

    ``path`` is where the whole text is, relative to the workspace.
    """
    where = f"; whole output: {path}" if path and amount.chars else ""
    return f"… {describe_amount(amount)} left out{where} …"


class Kept:
    """Head and tail of a text that is being written, with the exact amount of what was dropped between them.

    Holds at most three times ``limit`` characters, however long the text gets. Any chunking of the text gives the same
    head and the same total; the tail is at least ``limit`` characters long when something was dropped.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.head = ""
        self.tail = ""
        self.dropped = Amount()
        self._head_full = False

    def add(self, text: str) -> None:
        """Append ``text``."""
        if not self._head_full:
            cut = _safe_cut(text, self.limit - len(self.head))
            self._head_full = cut < len(text)
            self.head, text = self.head + text[:cut], text[cut:]
        self.tail += text
        if len(self.tail) > 2 * self.limit:
            cut = _safe_cut(self.tail, len(self.tail) - self.limit)
            self.dropped += measure(self.tail[:cut])
            self.tail = self.tail[cut:]


def _safe_cut(text: str, position: int) -> int:
    """``position``, or the start of the colour sequence that it would cut in two."""
    if position >= len(text):
        return len(text)
    escape = text.rfind("\x1b", max(position - 64, 0), position)
    if escape >= 0 and (match := _SGR_AT.match(text, escape)) and match.end() > position:
        return escape
    return position


def _first(text: str, chars: int, lines: int) -> int:
    """Where the head of ``text`` ends: at a line's end, unless a line alone is longer than half of ``chars``."""
    end = min(chars, len(text))
    position = -1
    for _ in range(lines):
        following = text.find("\n", position + 1, end)
        if following < 0:
            break
        position = following
    else:
        return position + 1
    if end == len(text) or position + 1 < chars // 2:
        return _safe_cut(text, end)
    return position + 1


def _last(text: str, chars: int, lines: int) -> int:
    """Where the tail of ``text`` starts: at a line's start, unless a line alone is longer than half of ``chars``."""
    start = max(len(text) - chars, 0)
    position = len(text) - 1 if text.endswith("\n") else len(text)
    for _ in range(lines):
        previous = text.rfind("\n", max(start - 1, 0), position)
        if previous < 0:
            break
        position = previous
    else:
        return position + 1
    if start == 0 or len(text) - position - 1 < chars // 2:
        return _safe_cut(text, start)
    return position + 1


def split_middle(
    head: str, dropped: Amount, tail: str, *, chars: int, lines: int | None = None
) -> tuple[str, Amount, str]:
    """The text ``head + (dropped) + tail`` within ``chars`` and ``lines``: its start, what is left out, its end.

    With nothing to leave out the start is the whole text. The start is a prefix of ``head``, and the end a suffix of
    ``tail`` or, where nothing was dropped before, of both together.
    """
    lines = lines if lines is not None else chars
    if not dropped:
        head = tail = head + tail
        if len(head) <= chars and head.count("\n") + (not head.endswith("\n")) <= lines:
            return head, dropped, ""
    stop, start = _first(head, chars // 2, max(lines // 2, 1)), _last(tail, chars // 2, max(lines // 2, 1))
    if dropped:
        left_out = measure(head[stop:]) + dropped + measure(tail[:start])
    else:
        start = max(start, stop)
        left_out = measure(head[stop:start])
        if not left_out:
            return head, dropped, ""
    return head[:stop], left_out, tail[start:]


def cut_middle(
    head: str, dropped: Amount, tail: str, *, chars: int, lines: int | None = None, path: str | None = None
) -> tuple[str, Amount]:
    """The same as one text, with a sentence where something is left out; and what that is.

    It is longer than ``chars`` by the sentence at most. With nothing to leave out it is the text itself.
    """
    first, left_out, last = split_middle(head, dropped, tail, chars=chars, lines=lines)
    if not left_out:
        return first, left_out
    if "\x1b" in first[first.rfind("\n") + 1 :]:
        first += "\x1b[0m"
    return with_gap(first, describe_gap(left_out, path), last), left_out


def with_gap(first: str, sentence: str, last: str) -> str:
    """Start and end of a text around the sentence that says what is missing, which gets a line of its own."""
    separator = "" if not first or first.endswith("\n") else "\n"
    return f"{first}{separator}{sentence}\n{last}"


def head_and_tail(text: str, max_chars: int, max_lines: int | None = None, path: str | None = None) -> str:
    """``text``, or its head and tail with exact counts of what is left out between them.

    ``path`` names where the whole text can be read, if anywhere.
    """
    return cut_middle(text, Amount(), "", chars=max_chars, lines=max_lines, path=path)[0]
