"""All outputs of a call as one text for the model, cut to its budget, with the way to what was left out.

``content`` uses it. The sentence at the cut names lines of the file that holds the whole text, so that ``read_file``
can go on there: that file lacks the markers of images and has what the model is not told twice. It imports only its
neighbours in ``outputs``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from harness_nb.outputs.bounds import (
    Amount,
    describe_amount,
    describe_gap,
    format_bytes,
    measure,
    split_middle,
    with_gap,
)
from harness_nb.outputs.whole import Offloaded, WholeText

READ_LINE_CHARS = 2000
"""``read_file`` cuts lines that are longer than this."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the text, or the amount that was dropped there.

    ``shift`` is how many lines more the file has for it; negative for a text that is not in the file.
    """

    text: str = ""
    dropped: Amount = field(default_factory=Amount)
    shift: int = 0


@dataclass(frozen=True, slots=True)
class _Cut:
    """What is left out, and where: the first and the last of its lines in the file, and the lines of all there is."""

    left_out: Amount
    first: int
    last: int
    total: int


def cut_pieces(
    pieces: Sequence[Piece], whole: WholeText, chars: int, wrap: Callable[[str], str] = lambda text: text
) -> str:
    """The text of the pieces within ``chars``; where that leaves something out, the whole is written to its file.

    The text before and behind the sentence that says so is passed through ``wrap``, each for itself.
    """
    gaps = [index for index, piece in enumerate(pieces) if piece.dropped]
    first, last = (gaps[0], gaps[-1] + 1) if gaps else (len(pieces), len(pieces))
    head, between, tail = pieces[:first], pieces[first:last], pieces[last:]
    dropped = sum((piece.dropped or measure(piece.text) for piece in between), Amount())
    start, left_out, end = split_middle(_text(head), dropped, _text(tail), chars=chars)
    if not left_out:
        return wrap(start)
    whole.spill()
    rest = tail if dropped else head
    cut_at = len(_text(rest)) - len(end)
    total = sum(piece.dropped.lines for piece in pieces) + _file_lines(pieces)
    after = _file_lines(rest, cut_at)
    within_line = cut_at > 0 and _text(rest)[cut_at - 1] != "\n"
    cut = _Cut(left_out, _file_lines(head, 0, len(start)) + 1, total - after + within_line, total)
    return with_gap(wrap(start), _sentence(cut, whole.offloaded), wrap(end))


def _text(pieces: Sequence[Piece]) -> str:
    return "".join(piece.text for piece in pieces)


def _file_lines(pieces: Sequence[Piece], start: int = 0, stop: int | None = None) -> int:
    """How many lines the file has for the characters from ``start`` to before ``stop`` of the pieces' text."""
    lines = position = 0
    for piece in pieces:
        if start <= position and (stop is None or position < stop):
            lines += piece.shift
        end = len(piece.text) if stop is None else max(stop - position, 0)
        lines += piece.text.count("\n", max(start - position, 0), end)
        position += len(piece.text)
    return lines


def _sentence(cut: _Cut, file: Offloaded | None) -> str:
    """What stands at the cut: what is missing, and how to read it.

    The lines are told when the file has as many as were counted; it has others where outputs were updated or cleared.
    """
    amount = cut.left_out
    if file is None or not amount.chars:
        return describe_gap(amount)
    if file.lines != cut.total:
        return f"… {describe_amount(amount)} left out; whole output: {file.path}, read it with read_file …"
    lines = cut.last - cut.first + 1
    if lines > 1:
        what = f"lines {cut.first} to {cut.last} ({format_bytes(amount.bytes)})"
    else:
        what = f"{amount.chars:,} characters of line {cut.first}"
    if amount.images:
        what += f" and {describe_amount(Amount(images=amount.images))}"
    if amount.chars > READ_LINE_CHARS * lines:
        how = f"whole output: {file.path}; read_file cuts long lines, slice it with python"
    else:
        how = f"go on with read_file('{file.path}', offset={cut.first})"
    return f"… {what} left out; {how} …"
