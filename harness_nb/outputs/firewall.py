"""The output firewall: everything that a cell prints or shows passes here once, is cleaned, bounded and coalesced.

The session makes one for each executed call, feeds it what the kernel yields and passes on the events that it drains.
It is pure: the clock is an argument, and the whole text goes to a ``Sink`` that somebody else made.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Sequence

from harness_nb.events import CellOutput
from harness_nb.outputs.bounds import DEFAULT_BOUNDS, Amount, Bounds, describe_gap
from harness_nb.outputs.changes import Changes, weight
from harness_nb.outputs.derived import Derived
from harness_nb.outputs.items import DisplayItem, StreamItem, note_item
from harness_nb.outputs.masking import Masker
from harness_nb.outputs.metrics import MetricsReader
from harness_nb.outputs.whole import Offloaded, Sink, WholeText
from harness_nb.ports import Output
from harness_nb.types import JsonObject

_LEADING_ESCAPES = re.compile(r"(?:\x1b\[[0-9;?]*[A-Za-z])*")
_PARTIAL_ESCAPE = re.compile(r"(?:\x1b(?:\[[0-9;?]*)?)?")
_LEAST_CHARS = 2000
_LEAST_LINES = 20

Item = StreamItem | DisplayItem


class Firewall:
    """The outputs of one call of the tool ``name``.

    ``masker`` knows what must not pass, ``tag`` marks for a model what is data. ``save_image`` is called with number,
    media type and base64 data of an image that the cell cannot keep, and returns where it was put. Neither the size of
    an output nor their number makes memory grow: head and tail are kept, the rest is counted.

    Metrics in its text are shown as a plot and a table behind the outputs, unless ``plot`` is false; ``stopwatch``
    gives seconds, to measure what a drawing costs.
    """

    def __init__(
        self,
        call_id: str,
        name: str,
        bounds: Bounds = DEFAULT_BOUNDS,
        sink: Sink | None = None,
        *,
        masker: Masker | None = None,
        tag: str = "",
        save_image: Callable[[int, str, str], str] | None = None,
        plot: bool = True,
        stopwatch: Callable[[], float] | None = None,
    ) -> None:
        self.name = name
        self.bounds = bounds
        self.whole = WholeText(sink, bounds.kept_chars)
        self.masker = masker or Masker()
        self.tag = tag
        self._save_image = save_image
        self._saved: list[str] = []
        self._images = 0
        self._changes = Changes(call_id, name)
        self._derived = Derived(bounds, self.masker.mask, stopwatch, plot)
        self._next_screen = self._next_lasting = float("-inf")
        self._changed = False
        self._closed = False
        self._clear_next = False
        self._clear()

    def _clear(self) -> None:
        self._head: list[Item] = []
        self._tail: deque[Item] = deque()
        self._left_out = Amount()
        self._latest: dict[str, StreamItem] = {}
        self._undecided: dict[str, str] = {}
        self._active: StreamItem | None = None
        self.whole.forget()

    # ---- in

    def feed(self, output: Output) -> None:
        """Take one output, as the kernel sent it."""
        if output.kind == "clear_output":
            self._clear_next = bool(output.content.get("wait"))
            self._derived.cleared(any(item.image is not None for item in self.items))
            if not self._clear_next:
                self._clear()
                self._changed = True
            return
        if output.kind == "update_display_data":
            self._update(output)
            return
        if self._clear_next:
            self._clear_next = False
            self._clear()
        self._changed = True
        if output.kind == "stream":
            name, text = str(output.content.get("name", "stdout")), str(output.content.get("text", ""))
            self._feed_stream(name, text)
            self._derived.feed(text, name)
            return
        self._activate(None)
        path = self.whole.path
        item = DisplayItem(output.kind, output.content, output.display_id, self.bounds, self.masker, path)
        self.whole.add(item.pause())
        if item.left_out:
            self.whole.spill()
        if item.image is not None:
            self._derived.image_shown(update=False)
        self._add(item)

    def _update(self, output: Output) -> None:
        for item in self.items:
            if isinstance(item, DisplayItem) and item.display_id is not None and item.display_id == output.display_id:
                item.update(output.content)
                if item.left_out:
                    self.whole.spill()
                if item.image is not None:
                    self._derived.image_shown(update=True)
                self._changed = True

    def _feed_stream(self, name: str, text: str) -> None:
        text = self._undecided.pop(name, "") + text
        while text:
            item = self._stream_for(name, text)
            if item is None:
                self._undecided[name] = text
                return
            piece, text = text, ""
            if item is not self._newest:
                end = piece.find("\n") + 1 or len(piece)
                piece, text = piece[:end], piece[end:]
            self._activate(item)
            self.whole.add(item.feed(piece))
            if piece.endswith("\n") and item is not self._newest and not item.terminal.open:
                self._activate(None)

    def _stream_for(self, name: str, text: str) -> StreamItem | None:
        """The item that ``text`` goes to; ``None`` while that cannot be told.

        A new output, unless the stream's last one is still the newest, or the text goes back, by a carriage return, to
        a line that was left unfinished there: a progress bar that other outputs have come between.
        """
        item = self._latest.get(name)
        if item is not None and item is not self._newest and item is not self._active and item.terminal.open:
            match = _LEADING_ESCAPES.match(text)
            rest = text[match.end() :] if match else text
            if not item.terminal.returned and not rest.startswith("\r"):
                if _PARTIAL_ESCAPE.fullmatch(rest):
                    return None
                item = None
        elif item is not self._newest and item is not self._active:
            item = None
        if item is None:
            item = StreamItem(name, self.bounds.kept_chars, self.masker)
            self._latest[name] = item
            self._add(item)
        return item

    def _activate(self, item: StreamItem | None) -> None:
        if self._active is not None and self._active is not item:
            self.whole.add(self._active.pause())
        self._active = item

    def _add(self, item: Item) -> None:
        half = max(self.bounds.outputs // 2, 1)
        half_images = max(self.bounds.images // 2, 1)
        if item.image is not None:
            self._images += 1
            item.number = self._images
        full = len(self._head) >= half or (item.image and _count_images(self._head) >= half_images)
        if not self._tail and not full:
            self._head.append(item)
            return
        self._tail.append(item)
        while len(self._tail) > half or _count_images(self._tail) > half_images:
            self._drop(self._tail.popleft())

    def _drop(self, item: Item) -> None:
        if item is self._active:
            self._activate(None)
        if isinstance(item, StreamItem):
            self.whole.add(item.pause())
            if self._latest.get(item.name) is item:
                del self._latest[item.name]
        self._left_out += item.amount()
        if item.image is not None and self._save_image is not None:
            self._saved.append(self._save_image(item.number, *item.image))
            del self._saved[1:-1]
        if self._left_out.chars:
            self.whole.spill()

    # ---- out

    @property
    def items(self) -> list[Item]:
        """The outputs that are kept, in order; ``left_out`` comes after the first ``len(head)`` of them."""
        return [*self._head, *self._tail]

    @property
    def _newest(self) -> Item | None:
        return self._tail[-1] if self._tail else self._head[-1] if self._head else None

    @property
    def outputs(self) -> tuple[JsonObject, ...]:
        """The outputs in nbformat's form, as they are now."""
        derived = self._derived.output
        return (*self._view(), *([] if derived is None else [derived]))

    @property
    def metrics(self) -> MetricsReader:
        """What the cell printed of a training: summary, anomalies, last line, table."""
        return self._derived.reader

    @property
    def offloaded(self) -> Offloaded | None:
        """The file with the whole text, if something was left out anywhere."""
        return self.whole.offloaded

    def drain(self, now: float) -> list[CellOutput]:
        """The events that are due at ``now``, in seconds of a monotonic clock.

        Text that only continues is lasting; a state of something that changes is transient, and lasting every few
        seconds. Called again before the screen's interval is over it returns nothing.
        """
        self._derived.tick(now)
        due = now >= self._next_lasting
        if now < self._next_screen or not (self._changed or (due and self._changes.owed())):
            return self._derived.advance(now, (), self._changes, closing=False)
        return self._advance(now, due)

    def close(self, now: float) -> list[CellOutput]:
        """Everything lasting that is still owed. The cell has ended; later output may still be fed and drained."""
        self._activate(None)
        for item in self.items:
            self.whole.add(item.pause(ended=True))
        self._closed = True
        self._derived.tick(now)
        return self._advance(now, True, closing=True)

    def _advance(self, now: float, lasting: bool, closing: bool = False) -> list[CellOutput]:
        self._changed = False
        events = self._changes.advance(self._view(), lasting)
        size = sum(map(weight, events))
        self._next_screen = now + max(self.bounds.screen_interval, size / self.bounds.screen_rate)
        if any(not event.transient for event in events):
            self._next_lasting = now + max(self.bounds.lasting_interval, size / self.bounds.lasting_rate)
        return events + self._derived.advance(now, events, self._changes, closing)

    def _view(self) -> list[JsonObject]:
        """Head, a note, tail. While the cell runs and much is coming, only the newest of the tail is shown."""
        tail = list(self._tail)
        hidden = tail[:-1] if not self._closed and len(tail) > 1 else []
        outputs = self._view_items(self._head, Amount())
        if hidden or self._left_out:
            left_out = sum((item.amount() for item in hidden), self._left_out)
            outputs.append(note_item(self.describe_left_out(left_out)))
        return outputs + self._view_items(tail[len(hidden) :], _used(outputs))

    def describe_left_out(self, amount: Amount) -> str:
        """The sentence for outputs that are not there."""
        text = describe_gap(amount, self.whole.path)
        if self._saved and amount.images:
            text += f" Images: {' … '.join(self._saved)}"
        return text

    def _view_items(self, items: Sequence[Item], used: Amount) -> list[JsonObject]:
        outputs = []
        for item in items:
            if isinstance(item, DisplayItem):
                outputs.append(item.output)
                continue
            chars = max(self.bounds.cell_chars - used.chars, min(_LEAST_CHARS, self.bounds.cell_chars))
            lines = max(self.bounds.cell_lines - used.lines, min(_LEAST_LINES, self.bounds.cell_lines))
            outputs.append(item.view(chars, lines, self.whole.path))
            used += _used(outputs[-1:])
            if item.left_out:
                self.whole.spill()
        return outputs

    @property
    def left_out(self) -> tuple[int, Amount]:
        """How many outputs the head has, and what was dropped after it."""
        return len(self._head), self._left_out


def _count_images(items: Sequence[Item] | deque[Item]) -> int:
    return sum(item.image is not None for item in items)


def _used(outputs: Sequence[JsonObject]) -> Amount:
    texts = [output.get("text", "") for output in outputs]
    return Amount(lines=sum(text.count("\n") for text in texts), chars=sum(map(len, texts)))
