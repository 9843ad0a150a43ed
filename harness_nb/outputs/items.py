"""What a cell shows, one item an output: a stream that is still being written, or a display.

The firewall keeps a list of these and asks each for its view. It imports only its neighbours in ``outputs``.
"""

from __future__ import annotations

from html import escape

from harness_nb.outputs.bounds import Amount, Bounds, Kept, cut_middle, measure
from harness_nb.outputs.fold import MARK
from harness_nb.outputs.masking import Held, Masker
from harness_nb.outputs.mime import bundle_images, bundle_text, clean_bundle, clean_json, exceeds_cell, html_to_text
from harness_nb.outputs.terminal import Terminal, clean_text, strip_colors
from harness_nb.outputs.tracebacks import clean_error, traceback_text
from harness_nb.types import JsonObject

Extent = tuple[str, Amount, str]
"""A text of any length: its head, the amount between, its tail."""


class StreamItem:
    """Text of ``stdout`` or ``stderr`` between two other outputs.

    Secrets are masked in the lines that a terminal would show, whatever the pieces they came in; what may be the
    beginning of one is not shown until more comes, or the cell has ``ended``.
    """

    def __init__(self, name: str, kept_chars: int, masker: Masker) -> None:
        self.name = name
        self.terminal = Terminal()
        self.left_out = Amount()
        self.number = 0
        self._kept = Kept(kept_chars)
        self._masker = masker
        self._held = Held(masker)
        self._ended = False
        self._unlogged = False
        self._view: JsonObject | None = None
        self._view_of: tuple[int, int, str | None] | None = None

    @property
    def image(self) -> tuple[str, str] | None:
        """A stream is never an image."""
        return None

    def feed(self, text: str) -> str:
        """Take text; return what settled, for the whole text."""
        settled = self._held.feed(self.terminal.feed(text))
        self._kept.add(settled)
        self._view, self._unlogged = None, True
        return strip_colors(settled)

    def pause(self, *, ended: bool = False) -> str:
        """Another output follows, or the cell has ``ended``: return what the whole text lacks, as complete lines."""
        settled = self._held.flush(self.terminal.settle())
        self._kept.add(settled)
        self._view, self._ended = None, ended
        rest = self._masker.mask(self.terminal.text) if self._unlogged else ""
        self._unlogged = False
        text = strip_colors(settled + rest)
        return text if not text or text.endswith("\n") else text + "\n"

    def view(self, chars: int, lines: int, path: str | None) -> JsonObject:
        """The nbformat output within ``chars`` and ``lines``; sets ``left_out``."""
        if self._view is None or self._view_of != (chars, lines, path):
            head, dropped, tail = self.extent()
            text, self.left_out = cut_middle(head, dropped, tail, chars=chars, lines=lines, path=path)
            self._view = {"output_type": "stream", "name": self.name, "text": text}
            self._view_of = (chars, lines, path)
        return self._view

    def extent(self) -> Extent:
        """The text with colours."""
        open_end = self._held.peek(self.terminal.text, self._ended)
        return self._kept.head, self._kept.dropped, self._kept.tail + open_end

    def reading(self) -> Extent:
        """The text as a model reads it."""
        head, dropped, tail = self.extent()
        return strip_colors(head), dropped, strip_colors(tail)

    def amount(self) -> Amount:
        """How much this is; an unfinished last line counts as one, which it becomes where another output follows."""
        head, dropped, tail = self.extent()
        unfinished = bool(head + tail) and not (tail or head).endswith("\n")
        return Amount(outputs=1, lines=int(unfinished)) + measure(head) + dropped + measure(tail)


class DisplayItem:
    """A result, a rich display or an error; ``update`` changes it in place.

    ``number`` counts the images of a cell from 1; ``left_out`` says that the cell does not hold the whole text.
    """

    def __init__(
        self, kind: str, content: JsonObject, display_id: str | None, bounds: Bounds, masker: Masker, path: str | None
    ) -> None:
        self.kind = kind
        self.display_id = display_id
        self.left_out = False
        self.image: tuple[str, str] | None = None
        self.number = 0
        self._bounds = bounds
        self._masker = masker
        self._path = path
        self._unlogged = ""
        self._kept = Kept(bounds.kept_chars)
        self.output: JsonObject = {}
        self.update(content)

    def update(self, content: JsonObject) -> None:
        """Take the content of the message, or of an ``update_display_data``."""
        content = self._masker.mask_json(content)
        if self.kind == "error":
            self.output = clean_error(content, self._bounds)
            text = traceback_text(content)
        else:
            data = content.get("data") or {}
            self.output = {
                "output_type": self.kind,
                "data": clean_bundle(data, self._bounds, self._path),
                "metadata": _foreign(clean_json(content.get("metadata") or {})),
            }
            if self.kind == "execute_result":
                self.output["execution_count"] = content.get("execution_count")
            self.image = bundle_images(self.output["data"])
            text = bundle_text(data)
            self.left_out = exceeds_cell(text, self._bounds)
        self.output, text = self._masker.mask_json(self.output), self._masker.mask(text)  # now without control codes
        _mask_visible(self.output.get("data") or {}, self._masker)
        self._unlogged = text if not text or text.endswith("\n") else text + "\n"
        self._kept = Kept(self._bounds.kept_chars)
        self._kept.add(self._unlogged)

    def pause(self, *, ended: bool = False) -> str:
        """What the whole text lacks of this."""
        text, self._unlogged = self._unlogged, ""
        return text

    def reading(self) -> Extent:
        """The text as a model reads it; an image's marker is not part of it."""
        return self._kept.head, self._kept.dropped, self._kept.tail

    def amount(self) -> Amount:
        """How much this is."""
        head, dropped, tail = self.reading()
        return Amount(outputs=1, images=int(self.image is not None)) + measure(head) + dropped + measure(tail)


def _mask_visible(data: JsonObject, masker: Masker) -> None:
    """HTML whose tags or entities part a secret, which its reader would see whole, is replaced by its masked text."""
    page = data.get("text/html")
    if isinstance(page, str) and masker.knows:
        visible = html_to_text(page)
        if (masked := masker.mask(visible)) != visible:
            data["text/html"] = f"<pre>{escape(masked)}</pre>"


def _foreign(metadata: JsonObject) -> JsonObject:
    """Metadata without the mark that says that an output is the harness's own."""
    return {key: value for key, value in metadata.items() if key != MARK}


def note_item(text: str) -> JsonObject:
    """An output that says what is not there."""
    return {"output_type": "display_data", "data": {"text/plain": clean_text(text)}, "metadata": {}}
