"""What the model gets of an executed call: the outputs' text in order, a last line that says how it ended, images.

``Cells`` calls ``result_content`` once a call. It imports only its neighbours in ``outputs``, types and ports.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness_nb.outputs.bounds import Bounds
from harness_nb.outputs.envelope import ENVELOPED, enveloped
from harness_nb.outputs.firewall import Firewall, Item
from harness_nb.outputs.images import describe_image, image_part, image_size
from harness_nb.outputs.items import DisplayItem
from harness_nb.outputs.joined import Piece, cut_pieces
from harness_nb.outputs.metrics import MetricsReader
from harness_nb.outputs.mime import is_artist_repr
from harness_nb.outputs.status import status_line, told_by_status, words_of_refusal
from harness_nb.ports import ExecuteReply
from harness_nb.types import ImagePart, Part, Status, TextPart

_MOST_ANOMALIES = 2
_OWN_WORDS = ("read_file", "search_files", "list_files", "web_fetch")

Picked = dict[int, ImagePart | None]
"""By the index of an item: its image for the model, ``None`` when it could not be read."""


def result_content(
    reply: ExecuteReply, firewall: Firewall, elapsed: float, images: bool, metrics: MetricsReader | None = None
) -> tuple[Part, ...]:
    """The content of a tool result: one text part, then the images. ``elapsed`` is in seconds.

    ``images`` says whether the model takes images; if not, the text names them. ``metrics`` are those of the whole
    cell, where ``firewall`` has only a part of its output. To be called after ``close``, unless the cell is still
    running.
    """
    bounds, items = firewall.bounds, firewall.items
    picked = _pick_images(items, bounds) if images else {}
    pieces = _pieces(reply, firewall, picked, images)
    wrap = _wrap_for(reply, firewall)
    text = cut_pieces(pieces, firewall.whole, bounds.model_chars, wrap)
    shown = "\n".join(filter(None, (text.rstrip("\n"), wrap(_error_unseen(reply, items, text)))))
    words = str(reply.extra.get("words", "")).strip()
    body = "\n".join(filter(None, (shown, words and f"The kernel's last words:\n{wrap(words)}")))
    parts = [part for part in picked.values() if part is not None]
    total = sum(item.image is not None for item in items) + firewall.left_out[1].images
    remark = f"{len(parts)} of {total} images attached" if images and len(parts) < total else ""
    last_line = status_line(reply, elapsed, shown=bool(shown), tool=firewall.name, remark=remark)
    nothing = [] if reply.status is Status.RUNNING else ["(no output)"]  # the last line says it of a running call
    lines = [*([body] if body else nothing), *_training(metrics or firewall.metrics, wrap), last_line]
    return (TextPart(text=firewall.masker.mask("\n".join(lines))), *parts)


def _wrap_for(reply: ExecuteReply, firewall: Firewall) -> Callable[[str], str]:
    """What marks the outputs of a call as data; what a file tool says of its own failure is none."""
    if firewall.name not in ENVELOPED or (firewall.name in _OWN_WORDS and reply.status is Status.ERROR):
        return lambda text: text
    return lambda text: enveloped(text, firewall.tag)


def _training(metrics: MetricsReader, wrap: Callable[[str], str]) -> list[str]:
    """How a training goes, if there is one, and what has gone wrong in it."""
    told = [f"[metrics: {metrics.summary()}]"] if metrics.points else []
    wrong = metrics.anomalies[:_MOST_ANOMALIES]
    return told + [f"[anomaly: {anomaly}; the line: {wrap(anomaly.line)}]" for anomaly in wrong]


def _pick_images(items: Sequence[Item], bounds: Bounds) -> Picked:
    """The first and the last images, as many as the model may get."""
    images = [(index, item.image) for index, item in enumerate(items) if item.image is not None]
    if len(images) > bounds.model_images:
        half = bounds.model_images // 2
        images = images[: bounds.model_images - half] + images[len(images) - half :]
    return {index: image_part(*image, bounds) for index, image in images}


def _pieces(reply: ExecuteReply, firewall: Firewall, picked: Picked, images: bool) -> list[Piece]:
    """The outputs in order, without what the model is told otherwise, and markers where the images are."""
    pieces: list[Piece] = []
    items, (position, left_out) = firewall.items, firewall.left_out
    plotted = bool(left_out.images) or any(item.image is not None for item in items)
    numbers = {index: number for number, index in enumerate((i for i, part in picked.items() if part), start=1)}
    for index, item in enumerate(items):
        if index == position and left_out:
            pieces.append(Piece(dropped=left_out))
        if told_by_status(item, reply, firewall.name) or (plotted and _is_artist(item)):
            pieces.append(Piece(shift=item.amount().lines))
            continue
        if words := words_of_refusal(item, firewall.name):
            pieces.append(Piece(words))
            continue
        head, dropped, tail = item.reading()
        end = "" if not (tail or head) or (tail or head).endswith("\n") else "\n"
        pieces += [Piece(head), Piece(dropped=dropped), Piece(tail + end)] if dropped else [Piece(head + tail + end)]
        if item.image is not None:
            marker = _marker(item.image, numbers.get(index), picked, index, images)
            pieces.append(Piece(marker + "\n", shift=-1))
    return pieces


def _is_artist(item: Item) -> bool:
    """Whether this is the value of the last line of a cell that plots, such as ``Text(0.5, 1.0, 'Loss')``."""
    if not isinstance(item, DisplayItem) or item.kind != "execute_result" or item.image is not None:
        return False
    head, dropped, tail = item.reading()
    return not dropped and is_artist_repr(head + tail)


def _marker(image: tuple[str, str], number: int | None, picked: Picked, index: int, images: bool) -> str:
    """What stands in the text for an image: its number, its size as the model gets it, or why it is not attached."""
    part, size = picked.get(index), image_size(*image)
    if part is not None:
        sent = image_size(part.media_type, part.data)
        scaled = (
            f", scaled down from {size[0]}x{size[1]}; crop it in python for detail" if size and sent != size else ""
        )
        return f"[image {number}: {describe_image(part.media_type, part.data)}{scaled}]"
    description = describe_image(*image)
    if not images:
        return f"[image: {description}; you cannot be shown pictures, print the numbers behind it]"
    return f"[image: {description}, {'could not be read' if index in picked else 'not attached'}]"


def _error_unseen(reply: ExecuteReply, items: Sequence[Item], text: str) -> str:
    """The error of the reply, when no output tells it: some errors are only on stderr, some nowhere."""
    shown = any(isinstance(item, DisplayItem) and item.kind == "error" for item in items)
    evalue = (reply.evalue or "").strip()
    if reply.status is not Status.ERROR or shown or not reply.ename or (evalue and evalue[:200] in text):
        return ""
    return f"{reply.ename}: {evalue}" if evalue else reply.ename
