"""Secrets become masks: known values by name, credentials of well-known kinds by what they look like. Pure.

One ``Masker`` serves a session: the firewall, the record, the screen and what is sent to a model all ask it. It cannot
undo what a program does to a value before it prints it, other than the encodings in ``secret_forms``; see the page on
secrets for what that means.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from harness_nb.outputs.secret_forms import BLOCK, Form, forms_of
from harness_nb.outputs.secret_patterns import BEGIN_KEY, KINDS, LONGEST_KEY, UNFINISHED, is_placeholder

MASK = re.compile(r"\[secret(?: [A-Za-z_][\w.:@\- ]{0,80}|: looks like [a-zA-Z ]{3,40})\]")
"""What stands in the place of a secret."""

_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_ALIGNED = 2 * BLOCK - 1
"""Every run of so many bytes holds a whole piece that begins at a multiple of ``BLOCK``."""

_BEGUN = 4
"""Characters of a known value at the end of a text that may be its beginning."""

_SHORT_TEXT = 2000
_LINE_LIMIT = 8192
"""Characters of an endless line that wait for what may follow."""

Span = tuple[int, int, str]
"""Start and end of a secret in a text, and its mask."""


def masks_in(text: str) -> list[str]:
    """The masks that stand in a text, each once."""
    return list(dict.fromkeys(MASK.findall(text))) if "[secret" in text else []


class Masker:
    """Masks the ``known`` values (by the name that the mask says) and what looks like a credential.

    Most text holds neither, and that is found out at little cost, however many values there are: every eighth piece of
    eight bytes of the text is looked up among the pieces of all long forms.
    """

    def __init__(self, known: Mapping[str, str] | None = None) -> None:
        self._forms = forms_of(known or {})
        self._pieces: dict[int, list[tuple[Form, int]]] = {}
        self._short = [form for form in self._forms if len(_bytes(form.text)) < _ALIGNED]
        for form in self._forms:
            data = _bytes(form.text)
            for offset in range(len(data) - BLOCK + 1 if len(data) >= _ALIGNED else 0):
                piece = int.from_bytes(data[offset : offset + BLOCK], sys.byteorder)
                self._pieces.setdefault(piece, []).append((form, offset))

    @property
    def knows(self) -> bool:
        """Whether there are known values."""
        return bool(self._forms)

    def mask(self, text: str) -> str:
        """``text`` with masks in the place of secrets. Colours do not hide one, and stay. Masked twice is as once."""
        plain = _ESCAPES.sub("", text) if "\x1b" in text else text
        spans = self._spans(plain)
        if spans and plain is not text:
            places = _visible(text)
            spans = [(places[start], places[end - 1] + 1, mask) for start, end, mask in spans]
        return _replaced(text, spans) if spans else text

    def mask_json(self, value: Any) -> Any:
        """A JSON value with all of its texts masked, those of keys too; pictures in base64 stay as they are."""
        if isinstance(value, str):
            return self.mask(value)
        if isinstance(value, dict):
            picture = value.get("type") == "image"
            return {
                self.mask(key) if isinstance(key, str) else key: item
                if isinstance(key, str) and ((picture and key == "data") or _is_binary(key))
                else self.mask_json(item)
                for key, item in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.mask_json(item) for item in value]
        return value

    def holds_known(self, data: bytes) -> bool:
        """Whether a file with these bytes has a known value in it, in one of its forms."""
        view = memoryview(data)[: len(data) // BLOCK * BLOCK].cast("Q")
        short = any(_bytes(form.text) in data for form in self._short)
        return short or (
            not self._pieces.keys().isdisjoint(view) and bool(self._known(data.decode("utf-8", "replace")))
        )

    def unfinished(self, text: str) -> int:
        """How many characters at the end of ``text`` may be the first of a secret that is still being written."""
        start = text.rfind("\n") + 1
        line = _ESCAPES.sub("", text[start:][-_LINE_LIMIT:])
        match = UNFINISHED.search(line)
        held = len(line) - match.start() if match else 0
        for form in self._forms:
            place = line.rfind(form.text[:_BEGUN], max(len(line) - len(form.text) + 1, 0))
            if place >= 0 and form.text.startswith(line[place:]):
                held = max(held, len(line) - place)
        if not held or "\x1b" not in text[start:]:
            return held
        return len(text) - start - _visible(text[start:])[-held]

    def settled(self, text: str) -> int:
        """Up to where ``text``, to which more may come, can be masked for good: no secret reaches over that place."""
        cut = text.rfind("\n") + 1
        begun = text.rfind(BEGIN_KEY)
        if begun >= 0 and len(text) - begun < LONGEST_KEY and "-----END " not in text[begun:]:
            cut = min(cut, text.rfind("\n", 0, begun) + 1)
        if cut or len(text) <= 2 * _LINE_LIMIT:
            return cut
        cut = len(text) - _LINE_LIMIT
        spans = self._spans(text) if "\x1b" not in text else []
        return next((start or end for start, end, _ in spans if start < cut < end), cut)

    def _spans(self, text: str) -> list[Span]:
        """The secrets in a text without colours, in order, none over another; known ones come first."""
        merged: list[Span] = []
        for start, end, mask in [*self._known(text), *_looks(text)]:
            if not any(start < until and begin < end for begin, until, _ in merged):
                merged.append((start, end, mask))
        return sorted(merged)

    def _known(self, text: str) -> list[Span]:
        """Runs of the forms of known values; of those that overlap the first and longest."""
        found = [
            (match.start(), match.end(), f"[secret {form.name}]")
            for form in self._short
            if _may_hold(text, form.text)
            for match in re.finditer(re.escape(form.text), text)
        ]
        data = _bytes(text)
        view = memoryview(data)[: len(data) // BLOCK * BLOCK].cast("Q")
        if not self._pieces.keys().isdisjoint(view):
            found += self._runs(text, data, view)
        kept: list[Span] = []
        end = 0
        for span in sorted(set(found), key=lambda span: (span[0], -span[1])):
            if span[1] > end:
                kept.append((max(span[0], end), span[1], span[2]))
                end = span[1]
        return kept

    def _runs(self, text: str, data: bytes, view: memoryview[int]) -> Iterator[Span]:
        """What agrees with long forms around each piece that was found."""
        for number, piece in enumerate(view):
            for form, offset in self._pieces.get(piece, ()):
                start, end = _extended(data, number * BLOCK, _bytes(form.text), offset)
                if end - start >= min(form.least, len(_bytes(form.text))):
                    if len(data) != len(text):
                        start, end = (len(data[:place].decode("utf-8", "surrogatepass")) for place in (start, end))
                    yield start, end, f"[secret {form.name}]"


class Held:
    """Text that is masked while it comes in, with what may still become a secret held back."""

    def __init__(self, masker: Masker) -> None:
        self._masker = masker
        self._text = ""

    def feed(self, text: str) -> str:
        """Take text; return what is masked for good."""
        self._text += text
        cut = self._masker.settled(self._text)
        done, self._text = self._text[:cut], self._text[cut:]
        return self._masker.mask(done)

    def flush(self, text: str = "") -> str:
        """The rest, and ``text``, masked; nothing is held back any more."""
        rest, self._text = self._text + text, ""
        return self._masker.mask(rest)

    def peek(self, text: str, ended: bool) -> str:
        """The rest, and ``text``, masked, without the beginning of what may become a secret unless it has ``ended``."""
        rest = self._text + text
        if not ended and (hidden := self._masker.unfinished(rest)):
            rest = rest[: len(rest) - hidden]
        return self._masker.mask(rest)


class Deltas:
    """Pieces of text that are shown as they come and cannot be taken back: the last word is held until it is whole."""

    def __init__(self, masker: Masker) -> None:
        self._masker = masker
        self._text = ""

    def feed(self, piece: str) -> str:
        """Take a piece; return what can be shown."""
        self._text += piece
        begun = self._text.rfind(BEGIN_KEY)
        held = max(self._masker.unfinished(self._text), len(self._text) - begun if begun >= 0 else 0)
        end = len(self._text) - held
        cut = max(self._text.rfind(blank, 0, end) for blank in " \n\t") + 1
        if len(self._text) - cut > (LONGEST_KEY if held else _LINE_LIMIT):
            cut = len(self._text)
        done, self._text = self._text[:cut], self._text[cut:]
        return self._masker.mask(done)

    def flush(self) -> str:
        """The rest."""
        rest, self._text = self._text, ""
        return self._masker.mask(rest)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _may_hold(text: str, wanted: str) -> bool:
    """Whether ``wanted`` is in ``text``; in a long one, whether its characters are is known much sooner."""
    return (len(text) < _SHORT_TEXT or all(character in text for character in wanted)) and wanted in text


def _extended(data: bytes, at: int, form: bytes, offset: int) -> tuple[int, int]:
    """How far the data agree with the form around a piece of it."""
    start, place = at, offset
    while start and place and data[start - 1] == form[place - 1]:
        start, place = start - 1, place - 1
    end, place = at + BLOCK, offset + BLOCK
    while end < len(data) and place < len(form) and data[end] == form[place]:
        end, place = end + 1, place + 1
    return start, end


def _looks(text: str) -> Iterator[Span]:
    """What looks like a credential of a known kind."""
    taken: list[tuple[int, int]] = []
    for kind in KINDS:
        for hint in kind.hints:
            if _may_hold(text, hint):
                break
        else:
            continue
        for match in kind.pattern.finditer(text):
            start, end = match.span("secret" if "secret" in kind.pattern.groupindex else 0)
            if kind.weak and is_placeholder(text[start:end]):
                continue
            if not any(start < until and begin < end for begin, until in taken):
                taken.append((start, end))
                yield start, end, f"[secret: looks like {kind.words}]"


def _visible(text: str) -> list[int]:
    """The places of the characters that are seen in a text with colours."""
    places: list[int] = []
    at = 0
    for match in _ESCAPES.finditer(text):
        places.extend(range(at, match.start()))
        at = match.end()
    return [*places, *range(at, len(text))]


def _replaced(text: str, spans: list[Span]) -> str:
    """The text with masks; colours that change within a secret change behind it."""
    if not spans:
        return text
    pieces = [text[: spans[0][0]]]
    for (start, end, mask), (following, _, _) in pairwise([*spans, (len(text), 0, "")]):
        pieces += [mask, *_ESCAPES.findall(text[start:end]), text[end:following]]
    return "".join(pieces)


def _is_binary(key: str) -> bool:
    return (key.startswith("image/") and "svg" not in key) or key == "application/pdf"
