"""What the model gets of an executed call: the outputs' text in order, a last line that says how it ended, images.

The loop calls ``result_content`` once a call. It imports only its neighbours in ``outputs``, types and ports.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness_nb.outputs.bounds import Amount, cut_middle, format_seconds, measure
from harness_nb.outputs.firewall import Firewall, Item
from harness_nb.outputs.images import describe_image, image_part
from harness_nb.outputs.items import DisplayItem, Extent
from harness_nb.ports import ExecuteReply
from harness_nb.types import ImagePart, Part, Status, TextPart

Picked = dict[int, ImagePart | None]
"""By the index of an item: its image for the model, ``None`` when it could not be read."""


def result_content(reply: ExecuteReply, firewall: Firewall, elapsed: float, images: bool) -> tuple[Part, ...]:
    """The content of a tool result: one text part, then the images. ``elapsed`` is in seconds.

    ``images`` says whether the model takes images; if not, the text names them. To be called after ``close``.
    """
    bounds = firewall.bounds
    items = firewall.items
    with_image = [index for index, item in enumerate(items) if item.image is not None]
    half = bounds.model_images // 2
    chosen = with_image
    if len(with_image) > bounds.model_images:
        chosen = with_image[: bounds.model_images - half] + with_image[len(with_image) - half :]
    picked: Picked = {}
    for index in chosen if images else ():
        image = items[index].image
        picked[index] = image_part(*image, bounds) if image else None
    head, dropped, tail = _join(firewall, items, picked, images)
    text, left_out = cut_middle(head, dropped, tail, chars=bounds.model_chars, path=firewall.whole.path)
    if left_out:
        firewall.whole.spill()
    unseen = _error_unseen(reply, items, text)
    body = "\n".join(filter(None, (text.rstrip("\n"), unseen))) or "(no output)"
    parts = [part for part in picked.values() if part is not None]
    shown = len(parts)
    total = len(with_image) + firewall.left_out[1].images
    remark = f"; {shown} of {total} images attached" if images and shown < total else ""
    return (TextPart(text=f"{body}\n{status_line(reply, elapsed, remark)}"), *parts)


def status_line(reply: ExecuteReply, elapsed: float, remark: str = "") -> str:
    """How the execution ended, in brackets: ``[ok, 0.4 s]``, ``[error: ValueError, 0.1 s]``, ``[kernel died: …]``."""
    time, detail = format_seconds(elapsed), reply.detail.strip().removesuffix(".")
    more = f"; {detail}" if detail else ""
    match reply.status:
        case Status.OK:
            text = f"ok, {time}{more}"
        case Status.ERROR:
            text = f"error{f': {reply.ename}' if reply.ename else ''}, {time}{more}"
        case Status.TIMED_OUT:
            text = f"timed out after {time}; the partial output is above{more}"
        case Status.RUNNING:
            text = f"still running after {time}; the output so far is above{more}"
        case Status.INTERRUPTED:
            text = f"interrupted after {time}; the output until then is above{more}"
        case Status.KERNEL_DIED:
            text = f"kernel died: {detail or 'it ended without a reply'}; after {time}, the last output is above"
        case Status.DENIED:
            text = f"denied: {detail or 'it was not run'}"
        case Status.UNKNOWN:
            text = f"outcome unknown: {detail or 'no reply was recorded'}"
    return f"[{text}{remark}]"


def _join(firewall: Firewall, items: Sequence[Item], picked: Picked, images: bool) -> Extent:
    """All outputs as one text: what comes before the first gap, the gaps and what is between them, what comes after."""
    pieces: list[str | Amount] = []
    position, left_out = firewall.left_out
    numbers = {index: number for number, index in enumerate((i for i, part in picked.items() if part), start=1)}
    for index, item in enumerate(items):
        if index == position and left_out:
            pieces.append(left_out)
        head, dropped, tail = item.reading()
        pieces += [head, dropped, tail] if dropped else [head + tail]
        if isinstance(pieces[-1], str) and pieces[-1] and not pieces[-1].endswith("\n"):
            pieces[-1] += "\n"
        if item.image is not None:
            pieces.append(_marker(item.image, numbers.get(index), index in picked, images) + "\n")
    gaps = [index for index, piece in enumerate(pieces) if isinstance(piece, Amount)]
    if not gaps:
        return "".join(map(str, pieces)), Amount(), ""
    between = (piece if isinstance(piece, Amount) else measure(piece) for piece in pieces[gaps[0] : gaps[-1] + 1])
    head = "".join(map(str, pieces[: gaps[0]]))
    return head, sum(between, Amount()), "".join(map(str, pieces[gaps[-1] + 1 :]))


def _marker(image: tuple[str, str], number: int | None, tried: bool, images: bool) -> str:
    description = describe_image(*image)
    if number is not None:
        return f"[image {number}: {description}]"
    if not images:
        return f"[image: {description}, not shown to this model]"
    return f"[image: {description}, {'could not be read' if tried else 'in the notebook only'}]"


def _error_unseen(reply: ExecuteReply, items: Sequence[Item], text: str) -> str:
    """The error of the reply, when no output tells it: some errors are only on stderr, some nowhere."""
    shown = any(isinstance(item, DisplayItem) and item.kind == "error" for item in items)
    evalue = (reply.evalue or "").strip()
    if reply.status is not Status.ERROR or shown or not reply.ename or (evalue and evalue[:200] in text):
        return ""
    return f"{reply.ename}: {evalue}" if evalue else reply.ename
